/**
 * @file The net under a trimmed runtime. Where a function is needed that was removed from it, the runtime is ended, a
 * stock one takes its place, and the same inputs run again. Whoever asked gets the answer.
 */

import { EngineError } from './engine.js';

/**
 * @typedef {import('./records.js').Miss} Miss
 * @typedef {import('./records.js').PageConfig} PageConfig
 * @typedef {PageConfig['variants'][number]} Variant
 * @typedef {PageConfig['nets'][number]} Net
 * @typedef {import('./engine.js').AnyEngine} AnyEngine
 * @typedef {import('./engine.js').OpenReply} OpenReply
 * @typedef {import('./engine.js').RunReply} RunReply
 * @typedef {import('./engine.js').Feeds} Feeds
 */

/**
 * A runtime whose files are here; `open` creates the session.
 *
 * @typedef {{ engine: AnyEngine, sha256: string, fetch_ms: number, session?: import('./records.js').SessionSettings, open: () => Promise<OpenReply> }} Launched
 */

/**
 * @typedef {object} Plan
 * @property {Variant} variant
 * @property {Net | null} net null: a miss is an error
 * @property {(files: Variant | Net, what: string) => Promise<Launched>} launch
 * @property {(miss: Miss, text: string) => void} onMiss
 */

/**
 * What runs now, and what it took to get there.
 *
 * @typedef {object} Running
 * @property {string} execution_provider
 * @property {import('./records.js').SessionSettings | undefined} [session] none: left to onnxruntime
 * @property {string} sha256 of its WebAssembly
 * @property {string} version
 * @property {number} threads
 * @property {number} compile_ms
 * @property {number} create_ms
 * @property {number} fetch_ms of every runtime that was fetched so far
 */

const LOOK_MS = 50;

/**
 * How long an answer may take once a removed function was called. A trap ends a call within milliseconds; what takes
 * longer is a thread that waits for one that trapped, and it waits for ever.
 *
 * Silence without the flag is never a miss, however long: every removed function sets the flag before it traps, so a
 * runtime that is silent and has set none does honest work, or hangs as the stock one would.
 */
const GRACE_MS = 1000;

/** What onnxruntime says where it has no kernel for a node. A trimmed runtime does not register those of other operators. */
const LACKS_KERNEL = /Could not find an implementation for|Failed to find kernel/;

/** A function, or a kernel, was needed that was removed. */
export class MissError extends EngineError {
  name = 'MissError';

  /**
   * @param {ReadonlySet<number>} functions
   * @param {Miss['reason']} reason
   * @param {string} message
   */
  constructor(functions, reason, message) {
    super(message, 'miss');
    this.functions = [...functions].sort((a, b) => a - b);
    this.reason = reason;
  }
}

/**
 * @template T
 * @param {AnyEngine} engine of a trimmed runtime
 * @param {Promise<T>} request made of it
 * @returns {Promise<T>}
 * @throws {MissError} also when the request came to a good end: a thread may have trapped, and its part be missing
 */
export async function watched(engine, request) {
  /** @type {Set<number>} */
  const functions = new Set();
  const look = () => {
    const missed = engine.missed();
    if (missed !== 0) {
      functions.add(missed - 1);
    }
    return missed !== 0;
  };
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let grace;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let looking;
  const silence = new Promise((_, reject) => {
    const giveUp = () => reject(new MissError(functions, 'silence', 'It fell silent after that.'));
    looking = setInterval(() => {
      if (look()) {
        grace ??= setTimeout(giveUp, GRACE_MS);
      }
    }, LOOK_MS);
  });
  try {
    const value = await Promise.race([request, /** @type {Promise<never>} */ (silence)]);
    if (look()) {
      throw new MissError(functions, 'flag', 'The call came to an end, but its answer cannot be trusted.');
    }
    return value;
  } catch (error) {
    const trap = error instanceof EngineError && error.kind === 'trap';
    if (!(error instanceof MissError) && (look() || trap)) {
      throw new MissError(functions, trap ? 'trap' : 'flag', error instanceof Error ? error.message : '');
    }
    throw error;
  } finally {
    clearInterval(looking);
    clearTimeout(grace);
  }
}

/** Runs requests on a variant, and on its net after a miss. */
export class NettedRunner {
  /** @type {Plan} */
  #plan;

  /** @type {AnyEngine | null} null: none yet, or a miss ended the last and no net took over */
  #engine = null;

  #trimmed = true;

  #fetch_ms = 0;

  /** @type {Running | null} */
  running = null;

  /** @type {Miss[]} */
  misses = [];

  /** @param {Plan} plan */
  constructor(plan) {
    this.#plan = plan;
  }

  /** @returns {Promise<void>} when there is a session */
  async open() {
    const { variant } = this.#plan;
    try {
      await this.#start(variant, `${variant.id} runtime`, variant.trimmed !== null);
    } catch (error) {
      await this.#recover(error, 'create');
    }
  }

  /**
   * @param {Feeds} feeds
   * @param {readonly string[]} fetches
   * @returns {Promise<RunReply>}
   */
  async run(feeds, fetches) {
    if (this.#engine === null) {
      await this.open();
    }
    try {
      return await this.#ask((engine) => engine.run(feeds, fetches));
    } catch (error) {
      await this.#recover(error, 'run');
      return await this.#ask((engine) => engine.run(feeds, fetches));
    }
  }

  /** @returns {Promise<void>} */
  async terminate() {
    const engine = this.#engine;
    this.#engine = null;
    await engine?.terminate();
  }

  /**
   * @template T
   * @param {(engine: AnyEngine) => Promise<T>} request
   * @returns {Promise<T>}
   */
  #ask(request) {
    const engine = /** @type {AnyEngine} */ (this.#engine);
    return this.#trimmed ? watched(engine, request(engine)) : request(engine);
  }

  /**
   * @param {Variant | Net} files
   * @param {string} what
   * @param {boolean} trimmed
   */
  async #start(files, what, trimmed) {
    const { engine, sha256, fetch_ms, session, open } = await this.#plan.launch(files, what);
    this.#engine = engine;
    this.#trimmed = trimmed;
    this.#fetch_ms += fetch_ms;
    try {
      const opened = await this.#ask(open);
      const { execution_provider } = files;
      this.running = { ...opened, execution_provider, session, sha256, fetch_ms: this.#fetch_ms };
    } catch (error) {
      await this.terminate();
      throw error;
    }
  }

  /**
   * Put the net's runtime in place after a miss. Anything else that was thrown is thrown again.
   *
   * @param {unknown} error
   * @param {Miss['during']} during
   */
  async #recover(error, during) {
    const miss = this.#missOf(error, during);
    if (miss === null) {
      throw error;
    }
    const { net } = this.#plan;
    await this.terminate();
    if (net === null) {
      throw this.#unrecovered(miss, during, 'It was built without a net (--net none).');
    }
    try {
      await this.#start(net, `${net.id} runtime, which lacks nothing`, false);
    } catch (why) {
      if (why instanceof EngineError && why.kind === 'refusal') {
        // The stock runtime's own answer, which is what was asked for. It may lack the kernel too: then none was missed.
        if (miss.reason !== 'kernel') {
          this.#report(miss, during, net.id);
        }
        throw why;
      }
      const said = why instanceof Error ? why.message : String(why);
      throw this.#unrecovered(miss, during, `The stock runtime that stands in did not start: ${said}`);
    }
    this.#report(miss, during, net.id);
  }

  /**
   * @param {unknown} error
   * @param {Miss['during']} during
   * @returns {MissError | null} null: the error has nothing to do with what was removed
   */
  #missOf(error, during) {
    if (error instanceof MissError) {
      return error;
    }
    const refused = this.#trimmed && during === 'create' && error instanceof EngineError && error.kind === 'refusal';
    return refused && LACKS_KERNEL.test(error.message) ? new MissError(new Set(), 'kernel', error.message) : null;
  }

  /**
   * @param {MissError} miss
   * @param {Miss['during']} during
   * @param {string} why no net took over
   * @returns {EngineError}
   */
  #unrecovered(miss, during, why) {
    const text = `${this.#report(miss, during, null)} ${why} Build it again with --net cpu, or keep what this run needs with --add-profile.`;
    return new EngineError(text, 'miss', miss);
  }

  /**
   * @param {MissError} error
   * @param {Miss['during']} during
   * @param {string | null} recovered_by
   * @returns {string} what was missed, in words
   */
  #report({ functions, reason, message }, during, recovered_by) {
    const { variant } = this.#plan;
    const unnamed = reason === 'kernel' ? `a kernel (${message})` : 'a function (which is not known)';
    const named = functions.length === 0 ? unnamed : `group ${functions.join(', ')} of its functions`;
    const text = `The trimmed runtime of variant ${variant.id} lacks ${named}, which ${during === 'create' ? 'creating the session' : 'this run'} needs.`;
    const miss = { variant: variant.id, functions, during, recovered_by, reason, message };
    this.misses.push(miss);
    this.#plan.onMiss(miss, text);
    return text;
  }
}
