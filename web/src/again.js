/**
 * @file Does this device say the same twice? Run cases again in the same session and in a new one, and one case many
 * times over, and report what came out differently. Whether that is wrong is not decided here.
 */

import { errorText } from './errors.js';
import { within } from './find-placement.js';
import { timingCase } from './golden-cases.js';
import { openFirst } from './open-model.js';

/**
 * @typedef {import('./environment.js').Host} Host
 * @typedef {import('./golden-cases.js').GoldenCase} GoldenCase
 * @typedef {import('./open-model.js').Opened} Opened
 * @typedef {import('./run-record.js').AgainRun} AgainRun
 * @typedef {import('./run-record.js').CaseRun} CaseRun
 * @typedef {import('./run-record.js').SoakRun} SoakRun
 * @typedef {import('./session.js').Session} Session
 * @typedef {import('./tensor.js').Value} Value
 * @typedef {import('./bench.js').AgentOptions} AgentOptions
 * @typedef {import('./bench.js').AgentStep} AgentStep
 * @typedef {import('./bench.js').Bench} Bench
 * @typedef {import('./records.js').PageConfig} PageConfig
 */

/** Milliseconds that running cases again may take where nobody asked for more. */
const CHEAP_MS = 1000;

/** A new session is opened unasked where the first one took no longer than this to open and run. */
const CHEAP_OPEN_MS = 2000;
const LEAST_MS = 20_000;
const TIMES_LONGER = 10;

/** How many looks at the memory a soak takes. */
const MOST_LOOKS = 100;

/**
 * @param {Host} host
 * @param {AgentOptions} options
 * @param {Bench} bench
 * @param {readonly GoldenCase[]} cases
 * @param {readonly CaseRun[]} runs
 * @param {(step: AgentStep) => void} onStep
 * @returns {Promise<{ again: AgainRun[], soak: SoakRun | null }>}
 */
export async function again(host, options, { opened }, cases, runs, onStep) {
  const entry = timingCase(cases);
  if (opened === null || entry === null) {
    return { again: [], soak: null };
  }
  const repeated = options.again ? await runAgain(opened, cases, runs) : [];
  const before = runs.find(({ id }) => id === entry.id)?.outputs ?? [];
  const total = options.soak;
  const onRun = (/** @type {number} */ done) => onStep({ stage: 'timing', what: entry.id, done, total });
  return { again: repeated, soak: total > 0 ? await soak(opened, entry, before, total, host, onRun) : null };
}

/**
 * @param {PageConfig} config
 * @param {Host} host
 * @param {AgentOptions} options
 * @param {Bench} bench its first session is ended
 * @param {readonly GoldenCase[]} cases
 * @param {readonly CaseRun[]} runs
 * @returns {Promise<AgainRun[]>}
 */
export async function anew(config, host, options, { opened, model, adapter, misses }, cases, runs) {
  if (!options.again || opened === null || model === null || misses.length > 0) {
    return [];
  }
  const threads = options.threads ?? config.threads;
  await opened.session.dispose();
  const whatever_it_takes = options.soak > 0;
  return runInNewSession(opened, cases, runs, { config, host, model, adapter, threads, whatever_it_takes });
}

/**
 * @param {readonly Value[]} a
 * @param {readonly Value[]} b
 * @returns {boolean} whether the outputs are the same in every bit
 */
export function sameOutputs(a, b) {
  return a.length === b.length && a.every((value, index) => sameValue(value, b[index]));
}

/**
 * @param {Value} a
 * @param {Value | undefined} b
 * @returns {boolean}
 */
function sameValue(a, b) {
  if (b === undefined || a.name !== b.name || a.dtype !== b.dtype || a.tensor === null || b.tensor === null) {
    return b !== undefined && a.name === b.name && a.tensor === null && b.tensor === null;
  }
  const [left, right] = [a.tensor, b.tensor];
  if (left.shape.length !== right.shape.length || left.shape.some((size, axis) => size !== right.shape[axis])) {
    return false;
  }
  if (left.dtype === 'string' || right.dtype === 'string') {
    return left.data.length === right.data.length && left.data.every((text, index) => text === right.data[index]);
  }
  return sameBytes(bytesOf(left.data), bytesOf(right.data));
}

/**
 * @param {import('./tensor.js').Elements} data
 * @returns {Uint8Array}
 */
function bytesOf(data) {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/**
 * @param {Uint8Array} a
 * @param {Uint8Array} b
 * @returns {boolean}
 */
function sameBytes(a, b) {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

/**
 * Run cases once more in the session that ran them: the cheapest first, as long as it is cheap.
 *
 * @param {Opened} opened
 * @param {readonly GoldenCase[]} cases
 * @param {readonly CaseRun[]} runs what the cases gave before
 * @returns {Promise<AgainRun[]>}
 */
async function runAgain({ session }, cases, runs) {
  const before = new Map(runs.map((run) => [run.id, run]));
  const cost = (/** @type {GoldenCase} */ { id }) => before.get(id)?.run_ms ?? 0;
  const cheapestFirst = [...cases].sort((a, b) => cost(a) - cost(b));
  const found = [];
  let left_ms = CHEAP_MS;
  for (const entry of cheapestFirst) {
    left_ms -= cost(entry);
    if (left_ms < 0) {
      break;
    }
    found.push(await compareOne(session, entry, before.get(entry.id)?.outputs ?? [], 'same'));
  }
  return found;
}

/**
 * @param {Session} session
 * @param {GoldenCase} entry
 * @param {readonly Value[]} before
 * @param {'same' | 'new'} where
 * @returns {Promise<AgainRun>} never rejects
 */
async function compareOne(session, { id, inputs, feed_back }, before, where) {
  try {
    const { outputs } = await session.run(inputs, feed_back);
    const equal = sameOutputs(before, outputs);
    return { id, session: where, equal, error: null, outputs: equal ? [] : outputs };
  } catch (error) {
    return { id, session: where, equal: false, error: errorText(error), outputs: [] };
  }
}

/**
 * Open the variant that ran once more, and run one case. The first session must have been ended: a device may not hold
 * the model twice.
 *
 * @param {Opened} opened
 * @param {readonly GoldenCase[]} cases that ran
 * @param {readonly CaseRun[]} runs
 * @param {Omit<import('./open-model.js').OpenOptions, 'probe' | 'onStep' | 'onMiss'> & { whatever_it_takes: boolean }} options
 * @returns {Promise<AgainRun[]>} none where it would not be cheap, or where another runtime would run
 */
async function runInNewSession(opened, cases, runs, { whatever_it_takes, ...options }) {
  const { variant, timings } = opened;
  const entry = timingCase(cases);
  const before = runs.find(({ id }) => id === entry?.id);
  const open_ms = timings.compile_ms + timings.create_ms + (timings.first_run_ms ?? 0);
  const cheap = open_ms <= CHEAP_OPEN_MS && (before?.run_ms ?? 0) <= CHEAP_MS;
  if (entry === null || before === undefined || !(cheap || whatever_it_takes)) {
    return [];
  }
  if (opened.running().sha256 !== variant.wasm_sha256) {
    return []; // the net runs, and a new session would begin with the trimmed runtime
  }
  /** @type {Opened | null} */
  let second = null;
  try {
    return await within(LEAST_MS + TIMES_LONGER * open_ms, async () => {
      const silent = { probe: null, onStep: () => {}, onMiss: () => {} };
      second = (await openFirst([variant], { ...options, ...silent })).opened;
      if (second === null || second.running().sha256 !== variant.wasm_sha256) {
        return [];
      }
      return [await compareOne(second.session, entry, before.outputs, 'new')];
    });
  } catch {
    return []; // too late: nothing is known of it
  } finally {
    /** @type {Opened | null} */ (second)?.session.dispose().catch(() => {});
  }
}

/**
 * Run one case many times: does the answer drift, does a run take longer, does the memory grow?
 *
 * @param {Opened} opened
 * @param {GoldenCase} entry
 * @param {readonly Value[]} before what it gave first
 * @param {number} runs
 * @param {{ heapBytes?: (() => number | null) | undefined }} host
 * @param {(done: number) => void} onRun
 * @returns {Promise<SoakRun>} never rejects; fewer runs than asked where one failed
 */
async function soak({ session }, { id, inputs, feed_back }, before, runs, host, onRun) {
  /** @type {SoakRun} */
  const found = {
    id,
    asked: runs,
    different: 0,
    first_different: null,
    error: null,
    run_ms: [],
    memory: [],
    outputs: [],
  };
  const every = Math.max(1, Math.ceil(runs / MOST_LOOKS));
  for (let run = 1; run <= runs; run += 1) {
    onRun(run - 1);
    try {
      const { outputs, run_ms, memory_bytes } = await session.run(inputs, feed_back);
      found.run_ms.push(run_ms);
      if (!sameOutputs(before, outputs)) {
        found.different += 1;
        found.first_different ??= run;
        found.outputs = outputs;
      }
      if (run % every === 0 || run === 1 || run === runs) {
        found.memory.push({ run, wasm_bytes: memory_bytes ?? null, heap_bytes: host.heapBytes?.() ?? null });
      }
    } catch (error) {
      found.error = errorText(error);
      break;
    }
  }
  return found;
}
