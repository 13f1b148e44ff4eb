/**
 * @file Replay many small models, one after another, and say what became of each. It judges nothing.
 *
 * A model that makes WebAssembly trap leaves the runtime in a state that nothing more may be asked of, so the replay
 * ends there; whoever asked goes on after it in a new page.
 */

import { errorText, isTrap } from '../errors.js';
import { eavesdrop } from '../placement.js';
import { joinValues, splitValues } from '../tensor-codec.js';
import { tensorFromBytes } from '../tensor.js';

/**
 * @typedef {import('../tensor.js').NumberTensor} NumberTensor
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('../tensor.js').Value} Value
 * @typedef {import('../runtime-loader.js').Runtime} Runtime
 * @typedef {import('../runtime-loader.js').SessionSettings} SessionSettings
 * @typedef {import('../tensor-codec.js').ValueEntry} ValueEntry
 * @typedef {{ index: number, model: string, inputs: ValueEntry[], run: boolean, settings?: SessionSettings }} SuiteEntry
 * @typedef {'done' | 'loaded' | 'refused' | 'failed' | 'crashed'} Outcome
 * @typedef {{ index: number, outcome: Outcome, error: string | null, outputs: ValueEntry[], placement: string[] }} Reply
 * @typedef {{ replies: Reply[], outputs: Map<string, NumberTensor>, stopped: boolean }} Replayed
 * @typedef {{ outcome: Outcome, error: string | null, outputs: Value[] }} Result
 */

/**
 * @param {readonly SuiteEntry[]} entries
 * @param {ReadonlyMap<string, NumberTensor>} tensors of the entries
 * @param {object} options
 * @param {Runtime} options.runtime
 * @param {string} options.executionProvider
 * @param {() => string[]} options.placements returns where nodes went since it was called last
 * @param {(() => Uint8Array<ArrayBuffer>) | null} [options.entered] returns the functions entered since it was called
 *   last, a bit each; null: nobody asks
 * @param {(() => Uint8Array<ArrayBuffer>) | null} [options.branches] returns the branches entered since it was called
 *   last, a bit each: once for all entries, for they are many
 * @returns {Promise<Replayed>} a reply for each entry; up to the one that trapped, where one did
 */
export async function replay(
  entries,
  tensors,
  { runtime, executionProvider, placements, entered = null, branches = null },
) {
  /** @type {Reply[]} */
  const replies = [];
  /** @type {Map<string, NumberTensor>} */
  const outputs = new Map();
  for (const entry of entries) {
    const result = await replayOne(entry, tensors, runtime, executionProvider);
    const split = splitValues(`${entry.index}/output`, result.outputs);
    split.tensors.forEach((tensor, key) => outputs.set(key, tensor));
    if (entered !== null) {
      const bits = entered();
      outputs.set(`${entry.index}/functions`, tensorFromBytes('uint8', [bits.length], bits));
    }
    const { outcome, error } = result;
    replies.push({ index: entry.index, outcome, error, outputs: split.entries, placement: placements() });
    if (outcome === 'crashed') {
      break;
    }
  }
  if (branches !== null) {
    const bits = branches();
    outputs.set('branches', tensorFromBytes('uint8', [bits.length], bits));
  }
  return { replies, outputs, stopped: replies.at(-1)?.outcome === 'crashed' };
}

/**
 * @param {SuiteEntry} entry
 * @param {ReadonlyMap<string, NumberTensor>} tensors
 * @param {Runtime} runtime
 * @param {string} executionProvider
 * @returns {Promise<Result>}
 */
async function replayOne(entry, tensors, runtime, executionProvider) {
  const model = /** @type {Uint8Array} */ (tensors.get(entry.model)?.data);
  let session;
  try {
    session = await runtime.createSession(model, [], executionProvider, entry.settings);
  } catch (error) {
    return failure('refused', error);
  }
  try {
    if (!entry.run) {
      return { outcome: 'loaded', error: null, outputs: [] };
    }
    const results = await session.run(feedsOf(joinValues(entry.inputs, tensors)), session.outputNames);
    return { outcome: 'done', error: null, outputs: Array.from(results, ([name, tensor]) => valueOf(name, tensor)) };
  } catch (error) {
    return failure('failed', error);
  } finally {
    await session.release().catch(() => {}); // a runtime that trapped cannot; what matters is why it did
  }
}

/**
 * @param {readonly Value[]} inputs
 * @returns {Map<string, Tensor>}
 */
function feedsOf(inputs) {
  /** @type {Map<string, Tensor>} */
  const feeds = new Map();
  for (const { name, tensor } of inputs) {
    if (tensor !== null) {
      feeds.set(name, tensor);
    }
  }
  return feeds;
}

/**
 * @param {string} name
 * @param {Tensor} tensor
 * @returns {Value}
 */
function valueOf(name, tensor) {
  return { name, dtype: tensor.dtype, tensor };
}

/**
 * @param {Outcome} outcome
 * @param {unknown} error
 * @returns {Result}
 */
function failure(outcome, error) {
  return { outcome: isTrap(error) ? 'crashed' : outcome, error: errorText(error), outputs: [] };
}

const PLACED = /placed on \[(\w+)\]/;

/**
 * Listen to a console: at its verbose level onnxruntime says there which execution provider got a model's nodes.
 *
 * To be called before the runtime is loaded, which keeps the console's methods as they are then. What else is said
 * there is not shown from now on, for it is a flood.
 *
 * @param {Record<string, unknown>} console its methods are replaced
 * @returns {() => string[]} returns the execution providers named since the last call, each once, in order of name
 */
export function placementListener(console) {
  /** @type {Set<string>} */
  const found = new Set();
  eavesdrop(console, (said) => {
    const provider = PLACED.exec(said)?.[1];
    if (provider !== undefined) {
      found.add(provider);
    }
  });
  return () => {
    const names = [...found].sort();
    found.clear();
    return names;
  };
}
