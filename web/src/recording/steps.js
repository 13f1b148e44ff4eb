/**
 * @file Take a runtime through the life of a bundle's session, step by step: golden cases, repeated runs, failures,
 * release, another session. It judges nothing; whoever asked compares outputs, errors and functions.
 */

import { errorText, isTrap } from '../errors.js';
import { Session } from '../session.js';
import { spoiledInputs, spoiledModels, spoiledValues } from './spoiled.js';

/**
 * @typedef {import('../tensor.js').Value} Value
 * @typedef {import('../records.js').PageConfig} PageConfig
 * @typedef {import('../runtime-loader.js').Runtime} Runtime
 * @typedef {import('../runtime-loader.js').RawSession} RawSession
 * @typedef {import('../open-model.js').Model} Model
 * @typedef {import('../golden-cases.js').GoldenCase} GoldenCase
 */

/**
 * What came of one step. `trapped`: nothing more may be asked of the runtime, so it was the last. `missed`: what stands
 * at a trimmed runtime's miss address, 0: no function was missed. `entered`: functions and branches since the step
 * before, a bit each; null: the runtime does not record.
 *
 * @typedef {object} Step
 * @property {string} name
 * @property {string | null} case_id of the golden case whose `outputs` these are
 * @property {'done' | 'failed' | 'trapped'} outcome
 * @property {string | null} error
 * @property {number} ms
 * @property {number} missed
 * @property {Value[]} outputs
 * @property {Entered | null} entered
 */

/** @typedef {{ functions: Uint8Array<ArrayBuffer>, branches: Uint8Array<ArrayBuffer> }} Entered */

/**
 * @typedef {object} Parts
 * @property {Runtime} runtime
 * @property {string} executionProvider
 * @property {import('../records.js').SessionSettings | undefined} [session] none: how it is created is left to onnxruntime
 * @property {Pick<PageConfig['model'], 'inputs' | 'outputs'>} facts
 * @property {Pick<Model, 'bytes' | 'externalData'>} model
 * @property {readonly GoldenCase[]} cases
 * @property {() => number} now milliseconds
 * @property {() => number} missed
 * @property {(() => Entered) | null} entered
 * @property {'all' | 'create'} only `create`: a session is created and released, and that is all
 * @property {readonly { name: string, begin: () => void }[]} turns in each, a session is created after `begin`, runs the
 *   first case and is released, and that is all; none: `only` says what is done
 * @property {(step: Step) => Promise<void>} onStep
 */

/** After a trap or a miss. */
class Stopped extends Error {}

/**
 * @param {Parts} parts
 * @returns {Promise<'done' | 'stopped'>} `stopped`: the last step trapped, or called a function that was removed
 */
export async function takeSteps(parts) {
  const work = new Steps(parts);
  try {
    await work.all();
    return 'done';
  } catch (error) {
    if (error instanceof Stopped) {
      return 'stopped';
    }
    throw error;
  }
}

class Steps {
  /** @param {Parts} parts */
  constructor(parts) {
    this.parts = parts;
  }

  async all() {
    const { cases, model, only, turns } = this.parts;
    const [first] = cases;
    for (const { name, begin } of turns) {
      begin();
      await this.#turn(name, first);
    }
    if (turns.length > 0) {
      return;
    }
    const raw = await this.#create('create', model);
    if (only === 'create') {
      await this.#step('release', () => raw?.release() ?? Promise.resolve());
      return;
    }
    if (raw !== null) {
      const session = new Session(this.#runner(raw), this.parts.facts.outputs);
      for (const entry of cases) {
        await this.#golden(`case ${entry.id}`, session, entry);
        if (entry === first) {
          await this.#golden(`case ${entry.id}, repeated`, session, entry);
        }
      }
      if (first !== undefined) {
        await this.#failures(raw, session, first);
        await this.#golden(`case ${first.id}, after failures`, session, first);
      }
      await this.#step('release', () => session.dispose());
      const again = await this.#create('create again', model);
      if (again !== null) {
        await this.#step('release again', () => again.release());
      }
    }
    await this.#refusals();
    // One thread: where another one traps, who waits for it waits for ever.
    if (raw !== null && first !== undefined && this.parts.runtime.threads === 1) {
      await this.#wrongValues(first);
    }
  }

  /**
   * The released session takes the runtime's GPU device with it, so that the next turn's asks for the adapter anew.
   *
   * @param {string} name
   * @param {GoldenCase | undefined} first
   */
  async #turn(name, first) {
    const raw = await this.#create(`create ${name}`, this.parts.model);
    if (raw !== null && first !== undefined) {
      const session = new Session(this.#runner(raw), this.parts.facts.outputs);
      await this.#golden(`case ${first.id} ${name}`, session, first);
    }
    await this.#step(`release ${name}`, () => raw?.release() ?? Promise.resolve());
  }

  /**
   * Runs that onnxruntime refuses, or its JavaScript before it.
   *
   * @param {RawSession} raw
   * @param {Session} session
   * @param {GoldenCase} entry
   */
  async #failures(raw, session, { inputs }) {
    for (const spoiled of spoiledInputs(inputs, this.parts.facts.inputs)) {
      await this.#step(spoiled.name, async () => void (await session.run(spoiled.inputs)));
    }
    const unknown = new Session(this.#runner(raw), [{ name: 'edgekit: no such output', dtype: '', readable: true }]);
    await this.#step('unknown output', async () => void (await unknown.run(inputs)));
  }

  /**
   * Runs with values that some operator refuses, or that make it trap: so they come last of all.
   *
   * @param {GoldenCase} entry
   */
  async #wrongValues({ inputs }) {
    const spoiled = spoiledValues(inputs);
    const raw = spoiled.length > 0 ? await this.#create('create for wrong values', this.parts.model) : null;
    if (raw !== null) {
      const session = new Session(this.#runner(raw), this.parts.facts.outputs);
      for (const one of spoiled) {
        await this.#step(one.name, async () => void (await session.run(one.inputs)));
      }
      await this.#step('release for wrong values', () => session.dispose());
    }
  }

  /** Sessions that are not created. */
  async #refusals() {
    const { bytes, externalData } = this.parts.model;
    for (const spoiled of spoiledModels(bytes)) {
      await this.#refused(spoiled.name, { bytes: spoiled.bytes, externalData: [] });
    }
    if (externalData.length > 0) {
      await this.#refused('no external data', { bytes, externalData: [] });
    }
  }

  /**
   * @param {string} name
   * @param {Parts['model']} model
   */
  async #refused(name, model) {
    const raw = await this.#create(name, model);
    if (raw !== null) {
      await this.#step(`${name}, release`, () => raw.release()); // it was taken after all
    }
  }

  /**
   * @param {string} name
   * @param {Parts['model']} model
   * @returns {Promise<RawSession | null>}
   */
  async #create(name, { bytes, externalData }) {
    /** @type {{ session: RawSession | null }} */
    const made = { session: null };
    const { runtime, executionProvider, session: settings } = this.parts;
    await this.#step(name, async () => {
      made.session = await runtime.createSession(bytes, externalData, executionProvider, settings);
    });
    return made.session;
  }

  /**
   * @param {string} name
   * @param {Session} session
   * @param {GoldenCase} entry
   */
  #golden(name, session, { id, inputs, feed_back }) {
    return this.#step(name, async () => (await session.run(inputs, feed_back)).outputs, id);
  }

  /**
   * @param {RawSession} raw
   * @returns {import('../session.js').Runner}
   */
  #runner(raw) {
    const { now } = this.parts;
    return {
      run: async (feeds, fetches) => {
        const started = now();
        const results = await raw.run(feeds, fetches);
        return { results, run_ms: now() - started };
      },
      terminate: () => raw.release(),
    };
  }

  /**
   * @param {string} name
   * @param {() => Promise<Value[] | void>} work
   * @param {string | null} [case_id]
   * @throws {Stopped}
   */
  async #step(name, work, case_id = null) {
    const { now, missed, entered, onStep } = this.parts;
    /** @type {Pick<Step, 'outcome' | 'error' | 'outputs'>} */
    let result = { outcome: 'done', error: null, outputs: [] };
    const started = now();
    try {
      result.outputs = (await work()) ?? [];
    } catch (error) {
      result = { outcome: isTrap(error) ? 'trapped' : 'failed', error: errorText(error), outputs: [] };
    }
    const step = { name, case_id, ...result, ms: now() - started, missed: missed(), entered: entered?.() ?? null };
    await onStep(step);
    if (step.outcome === 'trapped' || step.missed !== 0) {
      throw new Stopped(name);
    }
  }
}
