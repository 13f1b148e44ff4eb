import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  DTYPES,
  decodeBfloat16,
  decodeFloat16,
  elementCount,
  encodeBfloat16,
  encodeFloat16,
  reader,
  stringTensor,
  tensorFromBytes,
  tensorOf,
} from '../src/tensor.js';

test('every float16 that is not NaN survives decoding and encoding', () => {
  for (let bits = 0; bits < 0x10000; bits += 1) {
    const value = decodeFloat16(bits);
    assert.equal(encodeFloat16(value), Number.isNaN(value) ? 0x7e00 : bits);
  }
});

test('float16 agrees with the Float16Array of the engine', { skip: !('Float16Array' in globalThis) }, () => {
  const Float16 = /** @type {new (buffer: ArrayBuffer) => { [index: number]: number }} */ (
    Reflect.get(globalThis, 'Float16Array')
  );
  const bits = new Uint16Array(1);
  const halves = new Float16(bits.buffer);
  for (let step = 0; step < 20_000; step += 1) {
    const value = Math.sin(step) * 2 ** ((step % 60) - 30);
    halves[0] = value;
    assert.equal(encodeFloat16(value), bits[0], `${value}`);
    assert.equal(decodeFloat16(Number(bits[0])), halves[0]);
  }
});

test('float16 rounds to the nearest, ties to even, and overflows to infinity', () => {
  const cases = /** @type {const} */ ([
    [1 + 2 ** -11, 0x3c00], [1 + 3 * 2 ** -11, 0x3c02], [65519.99, 0x7bff], [65520, 0x7c00], [-65520, 0xfc00],
    [2 ** -24, 0x0001], [2 ** -25, 0x0000], [2 ** -25 * 1.01, 0x0001], [-0, 0x8000], [Infinity, 0x7c00], [2 ** -14, 0x0400],
  ]); // prettier-ignore
  for (const [value, bits] of cases) {
    assert.equal(encodeFloat16(value), bits, `${value}`);
  }
});

test('every bfloat16 that is not NaN survives decoding and encoding', () => {
  for (let bits = 0; bits < 0x10000; bits += 1) {
    const value = decodeBfloat16(bits);
    assert.equal(encodeBfloat16(value), Number.isNaN(value) ? 0x7fc0 : bits);
  }
});

test('bfloat16 rounds to the nearest, ties to even', () => {
  assert.equal(encodeBfloat16(1 + 2 ** -8), 0x3f80);
  assert.equal(encodeBfloat16(1 + 3 * 2 ** -8), 0x3f82);
  assert.equal(encodeBfloat16(3.4e38), 0x7f80);
});

test('bytes of any view become a tensor of their own, bit for bit', () => {
  const clamped = new Uint8ClampedArray([300, -5, 7]);
  const tensor = tensorFromBytes('uint8', [3], clamped);
  clamped[0] = 1;
  assert.deepEqual([...tensor.data], [255, 0, 7]);

  const nan = new Uint8Array([0, 0x12, 0x34, 0xc0, 0xff]).subarray(1); // a NaN with a payload, not aligned
  assert.deepEqual([...new Uint8Array(tensorFromBytes('float32', [1], nan).data.buffer)], [0x12, 0x34, 0xc0, 0xff]);
});

test('bytes that do not fill the shape are refused', () => {
  assert.throws(() => tensorFromBytes('float32', [2], new Float32Array(1)), /takes 8 bytes, not 4/);
  assert.throws(() => stringTensor([2], ['one']), /do not fill/);
});

test('shapes are counted, and those that cannot be are refused', () => {
  assert.equal(elementCount([]), 1);
  assert.equal(elementCount([2, 0, 3]), 0);
  for (const shape of [[-1], [1.5], [NaN], [2 ** 53], [2 ** 40, 2 ** 40]]) {
    assert.throws(() => elementCount(shape), RangeError);
  }
});

test('elements are read as they were written, in every dtype', () => {
  for (const dtype of /** @type {import('../src/tensor.js').NumberDtype[]} */ (Object.keys(DTYPES))) {
    const { kind, range } = DTYPES[dtype];
    const values = range ?? (kind === 'bool' ? [0, 1] : [-0, -1.5]);
    const tensor = tensorOf(dtype, [2], (index) => values[index] ?? 0);
    assert.deepEqual(
      [0, 1].map(reader(tensor)).map(String),
      values.map((value) => String(value)),
      dtype,
    );
  }
});
