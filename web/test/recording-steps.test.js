/** @file The steps of a recording, with the real onnxruntime-web in node, and with runtimes that break on purpose. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idle, idleKernels, poseAs } from '../src/recording/pose.js';
import { spoiledInputs, spoiledModels, spoiledValues } from '../src/recording/spoiled.js';
import { takeSteps } from '../src/recording/steps.js';
import { OrtError } from '../src/runtime-loader.js';
import { stringTensor, tensorFromBytes } from '../src/tensor.js';
import { identity } from './helpers/onnx.js';
import { runtime } from './helpers/runtime.js';

/**
 * @typedef {import('../src/recording/steps.js').Step} Step
 * @typedef {import('../src/recording/steps.js').Parts} Parts
 * @typedef {import('../src/golden-cases.js').GoldenCase} GoldenCase
 * @typedef {import('../src/records.js').Argument} Argument
 */

const X = { name: 'x', dtype: 'float32', tensor: tensorFromBytes('float32', [2], Float32Array.of(1, -2)) };
const LABEL = { name: 's', dtype: 'string', tensor: stringTensor([1, 3], ['a', 'b', 'c']) };
/** @type {Argument[]} */
const FIXED = [{ name: 'x', dtype: 'float32', shape: [2], readable: true }];

/** @param {string} id @returns {GoldenCase} */
const golden = (id) => ({
  id,
  origin: 'by hand',
  grade: { ulp_shift: null, weight_shift: null, weak: [] },
  feed_back: null,
  inputs: [X],
  outputs: [],
  left_open: [],
});

/**
 * @param {Partial<Parts> & Pick<Parts, 'runtime'>} parts
 * @returns {Promise<{ end: string, steps: Step[] }>}
 */
async function taken(parts) {
  /** @type {Step[]} */
  const steps = [];
  const end = await takeSteps({
    executionProvider: 'wasm',
    facts: { inputs: FIXED, outputs: [{ name: 'x_out', dtype: 'float32', shape: [2], readable: true }] },
    model: { bytes: identity({ x: ['float32', [2]] }), externalData: [] },
    cases: [golden('a'), golden('b')],
    now: () => 0,
    missed: () => 0,
    entered: null,
    only: 'all',
    turns: [],
    onStep: (step) => Promise.resolve(void steps.push(step)),
    ...parts,
  });
  return { end, steps };
}

test('a session is created, run, made to fail, released and created again', async () => {
  const { end, steps } = await taken({ runtime: await runtime() });
  assert.equal(end, 'done');
  assert.deepEqual(
    steps.map(({ name, outcome }) => [name, outcome]),
    [
      ['create', 'done'],
      ['case a', 'done'],
      ['case a, repeated', 'done'],
      ['case b', 'done'],
      ['wrong rank', 'failed'],
      ['wrong dtype', 'failed'],
      ['missing input', 'failed'],
      ['wrong dimension', 'failed'],
      ['unknown output', 'failed'],
      ['case a, after failures', 'done'],
      ['release', 'done'],
      ['create again', 'done'],
      ['release again', 'done'],
      ['truncated model', 'failed'],
      ['garbage', 'failed'],
      ['unknown operator', 'failed'],
    ],
  );
  const said = new Map(steps.map(({ name, error }) => [name, error ?? '']));
  assert.match(String(said.get('wrong rank')), /Invalid rank for input: x Got: 2 Expected: 1/);
  assert.match(String(said.get('wrong dtype')), /tensor\(int32\)/);
  assert.match(String(said.get('wrong dimension')), /Got: 3 Expected: 2/);
  assert.match(String(said.get('unknown operator')), /NoSuchOperator/);
  for (const step of steps.filter(({ case_id }) => case_id !== null)) {
    assert.deepEqual(step.outputs[0]?.tensor?.data, X.tensor.data, step.name);
  }
});

test('for other GPUs only the first case is run, in a session of its own for each', async () => {
  /** @type {string[]} */
  const begun = [];
  const turns = ['as one', 'as other'].map((name) => ({ name, begin: () => void begun.push(name) }));
  const { end, steps } = await taken({ runtime: await runtime(), turns });
  assert.equal(end, 'done');
  assert.deepEqual(begun, ['as one', 'as other']);
  assert.deepEqual(
    steps.map(({ name, outcome }) => [name, outcome]),
    ['as one', 'as other'].flatMap((name) => [
      [`create ${name}`, 'done'],
      [`case a ${name}`, 'done'],
      [`release ${name}`, 'done'],
    ]),
  );
});

test('an adapter goes by another name in the realm of the runtime', () => {
  class GPUAdapterInfo {
    get vendor() {
      return 'google';
    }
    get architecture() {
      return 'swiftshader';
    }
  }
  const told = () => [new GPUAdapterInfo().vendor, new GPUAdapterInfo().architecture];
  for (const name of [
    { vendor: 'intel', architecture: 'xe-2lpg' },
    { vendor: 'nvidia', architecture: 'lovelace' },
  ]) {
    poseAs(name, { GPUAdapterInfo });
    assert.deepEqual(told(), Object.values(name));
  }
});

test('kernels of a realm can be kept from computing', () => {
  class GPUDevice {
    /** @param {{ label: string, code: string }} described */
    createShaderModule({ label, code }) {
      return [label, code];
    }
  }
  const code = '@compute @workgroup_size(64) fn main() { y[0] = 1; }';
  idleKernels({ GPUDevice });
  assert.deepEqual(new GPUDevice().createShaderModule({ label: 'Add', code }), ['Add', idle(code)]);
});

test('a kernel that need not compute keeps its declarations and its bindings', () => {
  const declared = [
    'enable f16;',
    'const workgroup_size_x: u32 = 64;',
    '@group(0) @binding(0) var<storage, read> x: array<vec4<f16>>;',
    '@group(0) @binding(1) var<storage, read_write> y: array<atomic<i32>>;',
    'struct Uniforms { size: u32 };',
    '@group(0) @binding(2) var<uniform> uniforms: Uniforms;',
    'var<workgroup> shared_: array<f32, 64>;',
    'fn helper(i: u32) -> u32 { return i; }',
    '',
  ].join('\n');
  const entry = '@compute @workgroup_size(workgroup_size_x, 1, 1)\nfn main(';
  const code = `${declared}${entry}@builtin(global_invocation_id) id: vec3<u32>) { if (id.x > 0) { return; } }`;
  assert.equal(idle(code), `${declared}${entry}) { _ = &x; _ = &y; _ = &uniforms; }`);
  assert.equal(idle('@vertex fn other() {}'), '@vertex fn other() {}');
});

test('a model that is refused is refused, and so are the broken ones', async () => {
  const { end, steps } = await taken({
    runtime: await runtime(),
    model: { bytes: new Uint8Array(9), externalData: [{ path: 'weights', data: new Uint8Array(1) }] },
  });
  assert.equal(end, 'done');
  assert.deepEqual(
    steps.map(({ name }) => name),
    ['create', 'truncated model', 'garbage', 'unknown operator', 'no external data'],
  );
  assert.ok(steps.every(({ outcome, error }) => outcome === 'failed' && error !== null));
});

/**
 * @param {(feeds: ReadonlyMap<string, unknown>) => void} onRun
 * @returns {Parts['runtime']}
 */
function pretended(onRun) {
  const session = {
    inputNames: ['x'],
    outputNames: ['x_out'],
    run: (/** @type {ReadonlyMap<string, unknown>} */ feeds) => {
      onRun(feeds);
      return Promise.resolve(new Map([['x_out', X.tensor]]));
    },
    release: () => Promise.resolve(),
  };
  return { version: '0', threads: 1, createSession: () => Promise.resolve(session) };
}

test('a trap is the last step', async () => {
  let runs = 0;
  const trapping = pretended(() => {
    runs += 1;
    if (runs === 3) {
      throw new OrtError(new WebAssembly.RuntimeError('unreachable'));
    }
  });
  const { end, steps } = await taken({ runtime: trapping });
  assert.equal(end, 'stopped');
  assert.deepEqual([steps.at(-1)?.name, steps.at(-1)?.outcome], ['case b', 'trapped']);
});

test('a miss is the last step, also where the run came to a good end', async () => {
  let missed = 0;
  const missing = pretended(() => {
    missed = 7;
  });
  const { end, steps } = await taken({ runtime: missing, missed: () => missed });
  assert.equal(end, 'stopped');
  assert.deepEqual(
    steps.map((step) => [step.name, step.missed]),
    [
      ['create', 0],
      ['case a', 7],
    ],
  );
});

test('each step says which functions and branches were entered in it', async () => {
  let step = 0;
  const entered = () => ({ functions: Uint8Array.of((step += 1)), branches: Uint8Array.of(step + 100) });
  const { steps } = await taken({ runtime: pretended(() => {}), entered });
  assert.deepEqual(
    steps.map((one) => [one.entered?.functions[0], one.entered?.branches[0]]),
    steps.map((_, index) => [index + 1, index + 101]),
  );
});

test('of a session that is only to be created nothing more is asked', async () => {
  const { end, steps } = await taken({ runtime: await runtime(), only: 'create' });
  assert.equal(end, 'done');
  assert.deepEqual(
    steps.map(({ name, outcome }) => [name, outcome]),
    [
      ['create', 'done'],
      ['release', 'done'],
    ],
  );
});

test('a broken model that is taken after all is released', async () => {
  const { steps } = await taken({ runtime: pretended(() => {}), cases: [] });
  const names = steps.map(({ name }) => name);
  assert.deepEqual(names.slice(0, 4), ['create', 'release', 'create again', 'release again']);
  assert.ok(names.includes('garbage, release'));
});

const INDEX = { name: 'i', dtype: 'int64', tensor: tensorFromBytes('int64', [2], BigInt64Array.of(0n, 1n)) };

test('integers get values that no index can have, at the very end, for they may make a runtime trap', async () => {
  const count = { name: 'k', dtype: 'int32', tensor: tensorFromBytes('int32', [], Int32Array.of(3)) };
  const none = { name: 'e', dtype: 'int64', tensor: tensorFromBytes('int64', [0], new BigInt64Array(0)) };
  const spoiled = spoiledValues([X, INDEX, count, none, LABEL]);
  assert.deepEqual(
    spoiled.map(({ name, inputs }) => [name, [...(inputs[name.endsWith('i') ? 1 : 2]?.tensor?.data ?? [])]]),
    [
      ['wrong values of i', [-1000000n, -1000000n]],
      ['wrong values of k', [-1000000]],
    ],
  );
  assert.deepEqual(spoiled[0]?.inputs[0], X);
  const trapping = pretended((feeds) => {
    const { data } = /** @type {{ data: ArrayLike<unknown> }} */ (feeds.get('i'));
    if (data[0] === -1000000n) {
      throw new OrtError(new WebAssembly.RuntimeError('memory access out of bounds'));
    }
  });
  const entry = { ...golden('a'), inputs: [INDEX] };
  const { end, steps } = await taken({ runtime: trapping, cases: [entry] });
  assert.equal(end, 'stopped');
  assert.deepEqual(
    steps.slice(-3).map(({ name, outcome }) => [name, outcome]),
    [
      ['unknown operator, release', 'done'],
      ['create for wrong values', 'done'],
      ['wrong values of i', 'trapped'],
    ],
  );
});

/** @param {ReturnType<typeof spoiledInputs>} spoiled */
const shapes = (spoiled) =>
  Object.fromEntries(
    spoiled.map(({ name, inputs }) => [name, inputs.map((input) => [input.dtype, ...(input.tensor?.shape ?? [])])]),
  );

test('the dimension that is made wrong is a fixed one, where there is one', () => {
  const declared = [{ name: 's', dtype: 'string', shape: ['n', null], readable: true }, ...FIXED];
  assert.deepEqual(shapes(spoiledInputs([LABEL, X], declared)), {
    'wrong rank': [['string', 1, 1, 3], ['float32', 2]],
    'wrong dtype': [['int32', 1, 3], ['float32', 2]],
    'missing input': [['float32', 2]],
    'wrong dimension': [['string', 1, 3], ['float32', 3]],
  }); // prettier-ignore
  const free = spoiledInputs([LABEL], [{ name: 's', dtype: 'string', shape: null, readable: true }]);
  assert.deepEqual(shapes(free)['wrong dimension'], [['string', 1, 4]]);
});

test('an input without dimensions has none that could be wrong, and no input can be spoiled at all', () => {
  const scalar = { name: 'k', dtype: 'int32', tensor: tensorFromBytes('int32', [], Int32Array.of(1)) };
  assert.deepEqual(shapes(spoiledInputs([scalar], [])), {
    'wrong rank': [['int32', 1]],
    'wrong dtype': [['float32']],
    'missing input': [],
  });
  assert.deepEqual(spoiledInputs([], []), []);
  assert.deepEqual(spoiledInputs([{ name: 'q', dtype: 'seq', tensor: null }], []), []);
});

test('spoiling leaves what was given as it was', () => {
  const inputs = [X];
  spoiledInputs(inputs, FIXED);
  assert.deepEqual(inputs, [X]);
  const bytes = Uint8Array.of(1, 2, 3, 4);
  const truncated = spoiledModels(bytes).find(({ name }) => name === 'truncated model');
  assert.deepEqual([truncated?.bytes, bytes.length], [Uint8Array.of(1, 2), 4]);
});
