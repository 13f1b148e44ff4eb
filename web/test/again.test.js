/** @file Whether a device says the same twice: on the real runtime, with a model that does and one that does not. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runParity } from '../src/parity-agent.js';
import { decodeTensors } from '../src/tensor-codec.js';
import { tensorOf } from '../src/tensor.js';
import { bundle, host } from './helpers/bundle.js';
import { showInList } from './helpers/console.js';
import { model, node, tensorInfo } from './helpers/onnx.js';
import { schema } from './helpers/schemas.js';

/** @param {...number} values */
const floats = (...values) => tensorOf('float32', [values.length], (index) => values[index] ?? 0);
const OUTPUTS = ['y', 'next'].map((name) => ({ name, dtype: 'float32', shape: ['N'], readable: true }));
const info = (/** @type {string} */ name) => tensorInfo(name, 'float32', ['N']);

/** y = x + s, next = y + y */
const MODEL = model({
  nodes: [node('Add', ['x', 's'], ['y']), node('Add', ['y', 'y'], ['next'])],
  inputs: [info('x'), info('s')],
  outputs: [info('y'), info('next')],
});
const RANDOM = model({
  nodes: [node('RandomUniformLike', ['x'], ['r']), node('Add', ['x', 'r'], ['y'])],
  inputs: [info('x')],
  outputs: [info('y')],
});

/** @param {string} id @param {Record<string, import('../src/tensor.js').NumberTensor>} inputs */
const golden = (id, inputs) => ({
  id,
  inputs: Object.entries(inputs).map(([name, tensor]) => ({ name, dtype: 'float32', tensor })),
  outputs: [{ name: 'y', dtype: 'float32', tensor: floats(0) }],
});
const CASES = [
  { ...golden('loop', { x: floats(1), s: floats(0) }), feed_back: { steps: 3, links: { s: 'next' } } },
  golden('plain', { x: floats(1, 2), s: floats(10, 20) }),
  golden('broken', { x: floats(1, 2), s: floats(1, 2, 3) }),
];
const ASKED = {
  run: 'r', repeats: 0, variant: null, threads: null, cases: null, again: false, soak: 0, problem: null,
  placement_until_ms: null,
}; // prettier-ignore
const fits = schema('record');
showInList();

/**
 * @param {ReturnType<typeof bundle>} bundled
 * @param {Partial<import('../src/bench.js').AgentOptions>} options
 */
async function report({ config, files }, options) {
  const result = await runParity(config, host(files), { ...ASKED, ...options }, () => {});
  assert.equal(fits(JSON.parse(JSON.stringify(result.document))), null);
  return result;
}

test('cases that ran are run again, in the same session and in a new one', async () => {
  const { document } = await report(bundle(MODEL, CASES, { outputs: OUTPUTS }), { again: true });
  const said = document.again?.map(({ id, session, equal, outputs }) => [id, session, equal, outputs.length]);
  assert.deepEqual(said?.sort(), [['loop', 'same', true, 0], ['plain', 'new', true, 0], ['plain', 'same', true, 0]]); // prettier-ignore
  assert.equal(document.soak, null);
  assert.deepEqual((await report(bundle(MODEL, CASES, { outputs: OUTPUTS }), {})).document.again, []);
});

test('a case is run as often as asked, and the memory is looked at', async () => {
  const { document } = await report(bundle(MODEL, CASES, { outputs: OUTPUTS }), { soak: 150 });
  assert.equal(document.soak?.run_ms.length, 150);
  assert.equal(document.soak.different, 0);
  const { memory } = document.soak;
  assert.deepEqual([memory[0]?.run, memory.at(-1)?.run, memory.length], [1, 150, 76]);
  assert.ok((memory[0]?.wasm_bytes ?? 0) > 1e6);
});

test('a model that says something else each time is reported with what it said', async () => {
  const bundled = bundle(RANDOM, [golden('only', { x: floats(1, 2) })], { outputs: OUTPUTS.slice(0, 1) });
  const { document, tensors } = await report(bundled, { again: true, soak: 3 });
  assert.deepEqual(document.again?.map(({ session, equal }) => [session, equal])[0], ['same', false]);
  assert.equal(document.soak?.different, 3);
  assert.equal(document.soak.first_different, 1);
  const values = decodeTensors(tensors, 'record');
  assert.ok(values.has('only/again-same/y') && values.has('only/soak/y'));
});
