/** @file The real onnxruntime-web in node, on tiny models. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { before, test } from 'node:test';
import { promisify } from 'node:util';
import { compileRuntime } from '../src/runtime-loader.js';
import { stringTensor, tensorFromBytes, tensorOf } from '../src/tensor.js';
import { identity, model, node, tensorInfo } from './helpers/onnx.js';
import { runtime } from './helpers/runtime.js';

/** @typedef {import('../src/tensor.js').Tensor} Tensor */

/** @type {import('../src/runtime-loader.js').Runtime} */
let ort;
before(async () => {
  ort = await runtime();
});

/**
 * @param {Record<string, Tensor>} inputs
 * @returns {Promise<Map<string, Tensor>>} what an identity model makes of them
 */
async function through(inputs) {
  const facts = Object.entries(inputs).map(([name, { dtype, shape }]) => [name, [dtype, [...shape]]]);
  const session = await ort.createSession(identity(Object.fromEntries(facts)), [], 'wasm');
  try {
    return await session.run(new Map(Object.entries(inputs)), session.outputNames);
  } finally {
    await session.release();
  }
}

/** @param {Tensor | undefined} tensor */
const bits = (tensor) =>
  tensor?.dtype === 'string' ? tensor.data : [...new Uint8Array(/** @type {ArrayBuffer} */ (tensor?.data.buffer))];

// 1, -2.5, 65504, the smallest subnormal, -0, infinity, a third, and two NaN of different payloads.
const HALVES = Uint16Array.of(0x3c00, 0xc100, 0x7bff, 0x0001, 0x8000, 0x7c00, 0x3555, 0x7e01, 0xfd23);

// A NaN's payload is not the business of an operator that computes.
const NUMBERS = HALVES.subarray(0, -2);

test('every dtype that onnxruntime-web takes comes back bit for bit', async () => {
  const inputs = {
    bool: tensorFromBytes('bool', [2], Uint8Array.of(1, 0)),
    int8: tensorFromBytes('int8', [2], Int8Array.of(-128, 127)),
    int16: tensorFromBytes('int16', [1, 2], Int16Array.of(-32768, 32767)),
    int32: tensorFromBytes('int32', [2], Int32Array.of(-(2 ** 31), 2 ** 31 - 1)),
    int64: tensorFromBytes('int64', [3], BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n + 1n)),
    uint8: tensorFromBytes('uint8', [3], Uint8ClampedArray.of(300, -1, 128)),
    uint16: tensorFromBytes('uint16', [1], Uint16Array.of(65535)),
    uint32: tensorFromBytes('uint32', [1], Uint32Array.of(2 ** 32 - 1)),
    uint64: tensorFromBytes('uint64', [1], BigUint64Array.of(2n ** 64n - 1n)),
    float16: tensorFromBytes('float16', [3, 3], HALVES),
    float32: tensorFromBytes('float32', [4], Uint32Array.of(0x7fc12345, 0x80000000, 0xff800000, 1)),
    float64: tensorFromBytes('float64', [2], BigUint64Array.of(0x7ff8000000012345n, 0x8000000000000000n)),
    scalar: tensorFromBytes('float32', [], Float32Array.of(-0)),
    empty: tensorFromBytes('float32', [0, 3], new Float32Array()),
    words: stringTensor([2, 2], ['', 'é☃', '<b>"\n', 'x'.repeat(1000)]),
  };
  const results = await through(inputs);
  for (const [name, given] of Object.entries(inputs)) {
    const back = results.get(`${name}_out`);
    assert.deepEqual([back?.dtype, back?.shape, bits(back)], [given.dtype, given.shape, bits(given)], name);
  }
});

test('float16 is computed right and bit-exact, with Float16Array and without', async () => {
  const script = `
    if (process.argv[1] === 'without') delete globalThis.Float16Array;
    const { runtime } = await import(${JSON.stringify(new URL('helpers/runtime.js', import.meta.url).href)});
    const { model, node, tensorInfo } = await import(${JSON.stringify(new URL('helpers/onnx.js', import.meta.url).href)});
    const { tensorFromBytes } = await import(${JSON.stringify(new URL('../src/tensor.js', import.meta.url).href)});
    const neg = model({ nodes: [node('Neg', ['x'], ['y'])], inputs: [tensorInfo('x', 'float16', ['N'])], outputs: [tensorInfo('y', 'float16', ['N'])] });
    const session = await (await runtime()).createSession(neg, [], 'wasm');
    const x = tensorFromBytes('float16', [${NUMBERS.length}], Uint16Array.of(${NUMBERS}));
    const y = (await session.run(new Map([['x', x]]), ['y'])).get('y');
    console.log(JSON.stringify({ halves: 'Float16Array' in globalThis, dtype: y.dtype, kind: y.data.constructor.name, bits: [...y.data] }));
    process.exit(0);`;
  for (const way of ['with', 'without']) {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [
      '--input-type=module',
      '--eval',
      script,
      way,
    ]);
    assert.deepEqual(JSON.parse(stdout), {
      halves: way === 'with' && 'Float16Array' in globalThis,
      dtype: 'float16',
      kind: 'Uint16Array',
      bits: [...NUMBERS].map((half) => half ^ 0x8000),
    }); // prettier-ignore
    assert.equal(stderr, '');
  }
});

test('names that JavaScript gives a meaning are names like any other', async () => {
  const results = await through({
    constructor: tensorOf('int64', [1], () => 7n),
    toString: tensorOf('int64', [1], () => 8n),
  });
  assert.deepEqual([...results.values()].map(({ data }) => data[0]), [7n, 8n]); // prettier-ignore
});

test('an input that is called __proto__ arrives; such an output, which the runtime loses, is said by name', async () => {
  const graph = model({
    nodes: [node('Neg', ['__proto__'], ['y'])],
    inputs: [tensorInfo('__proto__', 'float32', [1])],
    outputs: [tensorInfo('y', 'float32', [1])],
  });
  const feeds = new Map([['__proto__', tensorOf('float32', [1], () => 1)]]);
  const taking = await ort.createSession(graph, [], 'wasm');
  assert.equal((await taking.run(feeds, ['y'])).get('y')?.data[0], -1);

  const lost = model({
    nodes: [node('Neg', ['x'], ['y']), node('Neg', ['y'], ['__proto__'])],
    inputs: [tensorInfo('x', 'float32', [1])],
    outputs: [tensorInfo('y', 'float32', [1]), tensorInfo('__proto__', 'float32', [1])],
  });
  const giving = await ort.createSession(lost, [], 'wasm');
  const run = giving.run(new Map([['x', tensorOf('float32', [1], () => 1)]]), ['y', '__proto__']);
  await assert.rejects(run, /returned no output "__proto__"/);
});

test('what the runtime refuses comes out as text', async () => {
  await assert.rejects(ort.createSession(Uint8Array.of(1, 2, 3), [], 'wasm'), {
    name: 'OrtError',
    message: /protobuf/i,
  });
  await assert.rejects(ort.createSession(identity({ x: ['float32', [1]] }), [], 'nowhere'), /nowhere/);
  const session = await ort.createSession(identity({ x: ['float32', [2]] }), [], 'wasm');
  await assert.rejects(
    session.run(new Map([['x', tensorOf('float32', [3], () => 0)]]), ['x_out']),
    /[Gg]ot: 3|invalid dimensions/,
  );
  await assert.rejects(session.run(new Map([['x', tensorOf('int32', [2], () => 0)]]), ['x_out']), /type/i);
  await assert.rejects(session.run(new Map(), ['x_out']), /missing|'x'/);
  await assert.rejects(session.run(new Map([['x', tensorOf('bfloat16', [2], () => 0)]]), ['x_out']), /bfloat16/);
  await assert.rejects(
    session.run(new Map([['x', tensorOf('float32', [2], () => 0)]]), []),
    /None of the outputs is a tensor/,
  );
  const later = await session.run(new Map([['x', tensorOf('float32', [2], (index) => index)]]), ['x_out']);
  assert.deepEqual([...(later.get('x_out')?.data ?? [])], [0, 1], 'a failed run does not spoil the next one');
});

test('bytes that are not WebAssembly are refused as text', async () => {
  await assert.rejects(compileRuntime(Uint8Array.of(1, 2, 3)), { name: 'OrtError', message: /^CompileError: / });
});

test('WebAssembly.instantiate is given back, also after a failure', async () => {
  const { instantiate } = WebAssembly;
  await ort.createSession(Uint8Array.of(1), [], 'wasm').catch(() => {});
  assert.equal(WebAssembly.instantiate, instantiate);
});
