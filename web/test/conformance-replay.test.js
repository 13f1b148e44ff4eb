/** @file The replay of conformance cases: the real onnxruntime-web in node, and runtimes that fail on purpose. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placementListener, replay } from '../src/conformance/replay.js';
import { isTrap } from '../src/errors.js';
import { OrtError } from '../src/runtime-loader.js';
import { tensorFromBytes } from '../src/tensor.js';
import { identity, model, node, tensorInfo } from './helpers/onnx.js';
import { runtime } from './helpers/runtime.js';

const X = tensorFromBytes('float32', [2], Float32Array.of(1, -2));
const INPUTS = [{ name: 'x', dtype: 'float32', shape: [2], key: 'x' }];

/**
 * @param {Uint8Array[]} models
 * @param {import('../src/runtime-loader.js').Runtime} ort
 * @param {{ run?: boolean, placements?: () => string[] }} [options]
 */
function replayed(models, ort, { run = true, placements = () => [] } = {}) {
  const entries = models.map((_, index) => ({ index, model: `${index}/model`, inputs: INPUTS, run }));
  const tensors = new Map([
    ['x', X],
    ...models.map((bytes, index) => /** @type {const} */ ([`${index}/model`, tensorFromBytes('uint8', [bytes.length], bytes)])),
  ]); // prettier-ignore
  return replay(entries, tensors, { runtime: ort, executionProvider: 'wasm', placements });
}

const UNKNOWN = model({
  nodes: [node('NoSuchOperator', ['x'], ['y'])],
  inputs: [tensorInfo('x', 'float32', [2])],
  outputs: [tensorInfo('y', 'float32', [2])],
});

test('a model runs, another is refused, and the next one runs again', async () => {
  const good = identity({ x: ['float32', [2]] });
  const { replies, outputs, stopped } = await replayed([good, UNKNOWN, good], await runtime());
  assert.equal(stopped, false);
  assert.deepEqual(
    replies.map(({ index, outcome }) => [index, outcome]),
    [
      [0, 'done'],
      [1, 'refused'],
      [2, 'done'],
    ],
  );
  assert.match(replies[1]?.error ?? '', /NoSuchOperator/);
  const [output] = replies[2]?.outputs ?? [];
  assert.deepEqual(outputs.get(String(output?.key))?.data, X.data);
});

test('a case that is only to be loaded is not run', async () => {
  const { replies } = await replayed([identity({ x: ['float32', [2]] })], await runtime(), { run: false });
  assert.equal(replies[0]?.outcome, 'loaded');
  assert.deepEqual(replies[0].outputs, []);
});

/**
 * @param {() => unknown} thrown what the run of a session throws
 * @returns {import('../src/runtime-loader.js').Runtime}
 */
function failing(thrown) {
  const session = {
    inputNames: ['x'],
    outputNames: ['y'],
    run: () => Promise.reject(new OrtError(thrown())),
    release: () => Promise.reject(new Error('broken')),
  };
  return { version: '0', threads: 1, createSession: () => Promise.resolve(session) };
}

test('a run that throws is a failure, and the replay goes on', async () => {
  const { stopped, replies } = await replayed([UNKNOWN, UNKNOWN], failing(() => new Error('no kernel'))); // prettier-ignore
  assert.equal(stopped, false);
  assert.deepEqual(
    replies.map(({ outcome, error }) => [outcome, error]),
    [
      ['failed', 'no kernel'],
      ['failed', 'no kernel'],
    ],
  );
});

test('a trap ends the replay, and what was done is reported', async () => {
  const trapping = failing(() => new WebAssembly.RuntimeError('unreachable'));
  const { stopped, replies } = await replayed([UNKNOWN, UNKNOWN], trapping);
  assert.equal(stopped, true);
  assert.deepEqual(
    replies.map(({ outcome }) => outcome),
    ['crashed'],
  );
});

test('traps are told from errors', () => {
  assert.ok(isTrap(new OrtError(new WebAssembly.RuntimeError('memory access out of bounds'))));
  assert.ok(isTrap(new Error('Aborted(). Build with -sASSERTIONS for more info.')));
  assert.ok(isTrap(new RangeError('Maximum call stack size exceeded')));
  assert.ok(!isTrap(new OrtError(new Error('no kernel'))));
  assert.ok(!isTrap(1234));
});

test('placements are read from what the runtime says, once for each case', () => {
  /** @type {Record<string, unknown>} */
  const spoken = { log: () => {}, warn: () => {} };
  const taken = placementListener(spoken);
  const say = /** @type {(...words: unknown[]) => void} */ (spoken.warn);
  say('[V:onnxruntime:, session_state.cc:1322] Node(s) placed on [WebGpuExecutionProvider]. Number of nodes: 1');
  say(' Node(s) placed on [CPUExecutionProvider]. Number of nodes: 2');
  say('Something else');
  assert.deepEqual(taken(), ['CPUExecutionProvider', 'WebGpuExecutionProvider']);
  assert.deepEqual(taken(), []);
});
