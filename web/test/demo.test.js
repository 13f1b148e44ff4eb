/** @file The parts of the demo that need no document. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  FillError,
  adoptShape,
  makeTensor,
  openAxes,
  parseText,
  rangeOf,
  shapeOf,
  tensorFromFile,
} from '../src/demo/fill.js';
import {
  NORMALISATIONS,
  builtNormalisation,
  imageLayout,
  imageSize,
  pictureShape,
  pixelsToTensor,
} from '../src/demo/image.js';
import { decodeNpy } from '../src/demo/npy.js';
import { resample } from '../src/demo/resample.js';
import { scoresOf, statisticsOf } from '../src/demo/statistics.js';
import { bytesText, median, numberText, shapeText, timeText } from '../src/demo/words.js';
import { encodeTensors } from '../src/tensor-codec.js';
import { reader, stringTensor, tensorFromBytes, tensorOf } from '../src/tensor.js';

/** @typedef {import('../src/tensor.js').Tensor} Tensor */

/**
 * @param {string} dtype
 * @param {(number | string | null)[] | null} shape
 * @param {string} [name]
 */
const argument = (dtype, shape, name = 'x') => ({ name, dtype, shape, readable: true });

/**
 * @param {Tensor} tensor
 * @returns {(string | number | bigint)[]}
 */
const elements = (tensor) =>
  tensor.dtype === 'string'
    ? [...tensor.data]
    : Array.from({ length: tensor.data.length }, (_, index) => reader(tensor)(index));

test('open axes: a symbolic name stands for one size, a nameless axis for itself', () => {
  const input = argument('float32', ['batch', 3, null]);
  assert.deepEqual(openAxes(input).map(({ label }) => label), ['batch', 'axis 2 of x']); // prettier-ignore
  const sizes = adoptShape(input, [4, 3, 7], new Map([['other', 1]]));
  assert.deepEqual([...sizes], [['other', 1], ['batch', 4], ['2 of x', 7]]); // prettier-ignore
  assert.deepEqual(shapeOf(input, sizes), [4, 3, 7]);
  assert.deepEqual(shapeOf(argument('float32', [null], 'y'), sizes), [1]);
});

test('a shape that the input does not take is refused', () => {
  for (const shape of [[4, 3], [4, 2, 7], []]) {
    assert.throws(() => adoptShape(argument('float32', ['batch', 3, null]), shape, new Map()), FillError);
  }
  assert.equal(adoptShape(argument('float32', null), [1, 2], new Map()).size, 0);
});

test('random values stay in the range of the golden cases, and integers are whole', () => {
  let step = 0;
  const random = () => (step += 0.07) % 1;
  const range = rangeOf([tensorOf('int64', [2], (index) => BigInt(3 + 2 * index)), tensorOf('int64', [1], () => 9n)]);
  assert.deepEqual(range, { low: 3, high: 9 });
  const made = elements(makeTensor('random', 'int64', [200], { random, range }));
  assert.deepEqual([...new Set(made)].map(Number).sort((a, b) => a - b), [3, 4, 5, 6, 7, 8, 9]); // prettier-ignore
  for (const value of elements(makeTensor('random', 'float16', [100], { random, range: { low: -2, high: -1 } }))) {
    assert.ok(Number(value) >= -2 && Number(value) <= -1);
  }
  assert.deepEqual(new Set(elements(makeTensor('random', 'bool', [50], { random, range: null }))), new Set([0, 1]));
  assert.equal(makeTensor('random', 'string', [3], { random, range: null }).data.length, 3);
});

test('zeros and ones are made in every dtype', () => {
  const none = { random: Math.random, range: null };
  assert.deepEqual(elements(makeTensor('ones', 'bfloat16', [2], none)), [1, 1]);
  assert.deepEqual(elements(makeTensor('zeros', 'uint64', [], none)), [0n]);
  assert.deepEqual(elements(makeTensor('zeros', 'string', [1], none)), ['']);
});

test('the range passes over what is not finite, and there is none of text', () => {
  assert.deepEqual(rangeOf([tensorOf('float32', [4], (index) => [NaN, Infinity, 2, -1][index] ?? 0)]), {
    low: -1,
    high: 2,
  });
  assert.equal(rangeOf([tensorOf('float32', [1], () => NaN)]), null);
  assert.equal(rangeOf([stringTensor([1], ['1'])]), null);
  assert.equal(rangeOf([]), null);
});

test('typed values become tensors', () => {
  assert.deepEqual(elements(parseText('[[1, -2.5], [1e3, -0]]', 'float64', [2, 2])), [1, -2.5, 1000, -0]);
  assert.deepEqual(elements(parseText('nan inf -Infinity +inf', 'float32', [4])), [NaN, Infinity, -Infinity, Infinity]);
  assert.deepEqual(elements(parseText('9223372036854775807, -9223372036854775808', 'int64', [2])), [
    2n ** 63n - 1n,
    -(2n ** 63n),
  ]);
  assert.deepEqual(elements(parseText('true False 1 0', 'bool', [4])), [1, 0, 1, 0]);
  assert.deepEqual(elements(parseText('7', 'uint8', [2, 2])), [7, 7, 7, 7]);
  assert.deepEqual(elements(parseText('one\n\n[three', 'string', [3])), ['one', '', '[three']);
  assert.deepEqual(elements(parseText('["a\\n", ["b"]]', 'string', [2])), ['a\n', 'b']);
});

test('typed values that do not fit say why', () => {
  const wrong = /** @type {[string, string, number[], RegExp][]} */ ([
    ['1 2 3', 'float32', [2], /takes 2 values \(or one for all\); here are 3/],
    ['one', 'float32', [1], /"one" is not a number/],
    ['1.5', 'int32', [1], /not a whole number/],
    ['256', 'uint8', [1], /256 does not fit uint8, which goes from 0 to 255/],
    ['-1', 'uint64', [1], /does not fit/],
    ['yes', 'bool', [1], /neither true nor false/],
    ['', 'float32', [2], /here are 0/],
  ]);
  for (const [text, dtype, shape, expected] of wrong) {
    assert.throws(() => parseText(text, dtype, shape), expected);
  }
});

/**
 * @param {string} header
 * @param {ArrayBufferView<ArrayBuffer>} data
 * @param {1 | 2} [version]
 */
function npy(header, data, version = 1) {
  const text = new TextEncoder().encode(header);
  const start = version === 1 ? 10 : 12;
  const file = new Uint8Array(start + text.length + data.byteLength);
  file.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, version, 0]);
  new DataView(file.buffer).setUint16(8, text.length, true);
  file.set(text, start);
  file.set(new Uint8Array(data.buffer), start + text.length);
  return file;
}

test('.npy files are read', () => {
  const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n";
  for (const version of /** @type {const} */ ([1, 2])) {
    const { dtype, shape, data } = decodeNpy(npy(header, Float32Array.of(1, -0), version));
    assert.deepEqual([dtype, shape, [...data]], ['float32', [2, 1], [1, -0]]);
  }
  const scalar = decodeNpy(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", Uint8Array.of(1)));
  assert.deepEqual([scalar.dtype, scalar.shape], ['bool', []]);
  assert.deepEqual(
    decodeNpy(npy("{'descr': '<i8', 'fortran_order': True, 'shape': (1,), }", BigInt64Array.of(5n))).shape,
    [1],
  );
});

test('.npy files that no model takes are refused with what to do', () => {
  const four = new Float32Array(4);
  const wrong = /** @type {[string, RegExp][]} */ ([
    ["{'descr': '<U3', 'fortran_order': False, 'shape': (1,), }", /neither numbers/],
    ["{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", /neither numbers/],
    ["{'descr': '>f4', 'fortran_order': False, 'shape': (4,), }", /big-endian.*newbyteorder/],
    ["{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", /column-major.*ascontiguousarray/],
    ["{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", /takes 20 bytes, not 16/],
    ['{}', /neither numbers/],
  ]);
  for (const [header, expected] of wrong) {
    assert.throws(() => decodeNpy(npy(header, four)), expected);
  }
  assert.throws(() => decodeNpy(new Uint8Array(20)), /not a \.npy file/);
  assert.throws(() => decodeNpy(new Uint8Array(2)), /not a \.npy file/);
});

test('files become tensors of the input’s dtype, or say why not', () => {
  const input = argument('float32', [2]);
  const doubles = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", Float64Array.of(0.5, NaN));
  const cast = tensorFromFile(doubles, 'a.npy', input, [2]);
  assert.deepEqual(
    [cast.tensor.dtype, elements(cast.tensor), cast.note],
    ['float32', [0.5, NaN], 'NumPy array, converted from float64'],
  );
  const raw = tensorFromFile(new Uint8Array(Float32Array.of(1, 2).buffer), 'a.bin', input, [2]);
  assert.deepEqual(elements(raw.tensor), [1, 2]);
  const many = encodeTensors(new Map([['x', tensorOf('float32', [2], () => 3)], ['y', tensorOf('float32', [2], () => 4)]])); // prettier-ignore
  assert.deepEqual(elements(tensorFromFile(many, 'A.SafeTensors', input, [2]).tensor), [3, 3]);
  assert.throws(
    () => tensorFromFile(many, 'a.safetensors', argument('float32', [2], 'z'), [2]),
    /no tensor called "z".*x, y/,
  );
  const one = encodeTensors(new Map([['other', tensorOf('int32', [2], () => 300)]]));
  assert.deepEqual(elements(tensorFromFile(one, 'a.safetensors', argument('int64', [2]), [2]).tensor), [300n, 300n]);
  assert.throws(() => tensorFromFile(one, 'a.safetensors', argument('uint8', [2]), [2]), /300 does not fit uint8/);
  assert.deepEqual(elements(tensorFromFile(one, 'a.safetensors', argument('bool', [2]), [2]).tensor), [1, 1]);
  assert.throws(() => tensorFromFile(doubles, 'a.npy', argument('int64', [2]), [2]), /rounding would change/);
  assert.throws(() => tensorFromFile(new Uint8Array(7), 'a.bin', input, [2]), /takes 8 bytes, not 7/);
  assert.throws(() => tensorFromFile(new Uint8Array(7), 'a.safetensors', input, [2]), /safetensors/);
  assert.throws(() => tensorFromFile(new Uint8Array(7), 'a.txt', argument('string', [2]), [2]), /Type it/);
});

test('shapes that look like an image are known with their layout', () => {
  const cases = /** @type {[string, (number | string | null)[] | null, string | null][]} */ ([
    ['float32', ['N', 3, 224, 224], 'NCHW 3'],
    ['float32', [1, null, null, 3], 'NHWC 3'],
    ['uint8', [1, 8, 8, 4], 'NHWC 4'],
    ['float16', [1, 28, 28], 'NCHW 1'],
    ['float32', [1, 16, 8, 8], null],
    ['int64', [1, 3, 8, 8], 'NCHW 3'],
    ['int8', [1, 3, 8, 8], null],
    ['float32', [1, 3], null],
    ['float32', null, null],
  ]);
  for (const [dtype, shape, expected] of cases) {
    const found = imageLayout(argument(dtype, shape));
    assert.equal(found && `${found.layout} ${found.channels}`, expected);
  }
  assert.deepEqual(imageSize([1, 3, 4, 5], 'NCHW'), { width: 5, height: 4 });
  assert.deepEqual(imageSize([4, 5, 3], 'NHWC'), { width: 5, height: 4 });
});

test('pixels are laid out and scaled as asked', () => {
  const pixels = Uint8ClampedArray.of(255, 0, 51, 255, 0, 102, 255, 255); // two pixels, RGBA
  /** @param {number[]} shape @param {Partial<Parameters<typeof pixelsToTensor>[2]>} options */
  const of = (shape, options) =>
    elements(
      pixelsToTensor(pixels, shape, {
        dtype: 'float64',
        layout: 'NCHW',
        channels: 3,
        normalisation: NORMALISATIONS.bytes,
        ...options,
      }),
    );
  assert.deepEqual(of([1, 3, 1, 2], {}), [255, 0, 0, 102, 51, 255]);
  assert.deepEqual(of([1, 1, 2, 3], { layout: 'NHWC' }), [255, 0, 51, 0, 102, 255]);
  assert.deepEqual(of([2, 3, 1, 2], {}).slice(6), [255, 0, 0, 102, 51, 255], 'each image of a batch is the same');
  assert.deepEqual(of([1, 3, 1, 2], { normalisation: NORMALISATIONS.unit }), [1, 0, 0, 0.4, 0.2, 1]);
  assert.deepEqual(of([1, 3, 1, 2], { normalisation: NORMALISATIONS.signed }).slice(0, 2), [1, -1]);
  assert.ok(
    Math.abs(Number(of([1, 3, 1, 2], { normalisation: NORMALISATIONS.imagenet })[0]) - (1 - 0.485) / 0.229) < 1e-12,
  );
  assert.deepEqual(of([1, 1, 1, 2], { channels: 1 }), [82, 89]);
  assert.deepEqual(of([1, 1, 2, 4], { layout: 'NHWC', channels: 4, dtype: 'uint8' }), [...pixels]);
  assert.throws(() => of([1, 3, 2, 2], {}), /2 pixels do not make/);
});

test('a picture is made as the build was told, and as the build does by itself', () => {
  const input = argument('float32', [null, 3, 'h', 'w']);
  const build = { size: null, mean: [1, 2, 3], std: [4], scale: 2, layout: null };
  assert.equal(builtNormalisation(input, 3, null), 'unit');
  const told = /** @type {import('../src/demo/image.js').BuildOptions} */ (build);
  assert.deepEqual(builtNormalisation(input, 3, told), { scale: 2, mean: [1, 2, 3], std: [4] });
  assert.equal(builtNormalisation(input, 1, told), 'unit', 'three means are not of a grey picture');
  assert.equal(builtNormalisation(argument('uint8', [3, 1, 1]), 3, told), 'bytes');
  const pixels = Uint8ClampedArray.of(10, 20, 30, 255);
  const options = /** @type {const} */ ({ dtype: 'float64', layout: 'NCHW', channels: 3 });
  assert.deepEqual(
    elements(pixelsToTensor(pixels, [3, 1, 1], { ...options, normalisation: { scale: 2, mean: [1, 2, 3], std: [4] } })),
    [19 / 4, 38 / 4, 57 / 4],
  );
});

test('the layout that the build was told is taken, and open axes take the size of the picture', () => {
  const open = argument('float32', ['n', 'h', 'w', 'c']);
  assert.equal(imageLayout(open), null);
  assert.deepEqual(imageLayout(open, 'nhwc'), { layout: 'NHWC', channels: 3 });
  assert.deepEqual(imageLayout(argument('float32', [1, 3, 4, 3]), 'nhwc'), { layout: 'NHWC', channels: 3 });
  assert.deepEqual(imageLayout(argument('float32', null), 'nchw'), { layout: 'NCHW', channels: 3 });
  assert.equal(imageLayout(argument('float32', [1, 5, 4, 3]), 'nchw'), null);
  assert.deepEqual(pictureShape(open, [2, 1, 1, 1], { layout: 'NHWC', channels: 3 }, [7, 9]), [2, 7, 9, 3]);
  const fixed = argument('float32', ['n', 3, 4, 'w']);
  assert.deepEqual(pictureShape(fixed, [2, 3, 4, 1], { layout: 'NCHW', channels: 3 }, [7, 9]), [2, 3, 4, 9]);
});

test('pixels are resized as Pillow resizes them', () => {
  // Image.fromarray(red).resize((3, 1), BILINEAR) and so on, with Pillow 12.
  const red = [0, 255, 10, 200, 50, 90, 17];
  const data = Uint8ClampedArray.from(red.flatMap((value) => [value, 0, 0, 255]));
  const row = { data, width: 7, height: 1 };
  const channel = (/** @type {Uint8ClampedArray} */ pixels) => [...pixels].filter((_, index) => index % 4 === 0);
  assert.equal(resample(row, 7, 1), row);
  assert.deepEqual(channel(resample(row, 3, 1).data), [111, 117, 55]);
  assert.deepEqual(channel(resample(row, 10, 1).data), [0, 140, 194, 22, 134, 148, 52, 80, 57, 17]);
  assert.deepEqual(channel(resample({ data, width: 1, height: 7 }, 1, 3).data), [111, 117, 55]);
});

test('statistics pass over what is not finite, and count it', () => {
  const tensor = tensorOf('float32', [5], (index) => [1, NaN, -3, Infinity, -Infinity][index] ?? 0);
  assert.deepEqual(statisticsOf(tensor), { count: 5, nan: 1, infinite: 2, range: { min: -3, max: 1, mean: -1 } });
  assert.equal(statisticsOf(tensorFromBytes('float32', [0], new Float32Array())).range, null);
  assert.deepEqual(statisticsOf(tensorOf('int64', [2], (index) => BigInt(index) * 2n ** 60n)).range?.max, 2n ** 60n);
});

test('score vectors are known, largest first', () => {
  const scores = scoresOf(tensorOf('float32', [2, 12], (index) => index % 12));
  assert.deepEqual(
    [scores?.rows, scores?.classes, scores?.top.length, scores?.top[0]],
    [2, 12, 10, { label: '11', value: 11 }],
  );
  assert.equal(scoresOf(tensorOf('float32', [1, 1], () => 1)), null);
  assert.equal(scoresOf(tensorOf('float32', [1, 2, 3], () => 1)), null);
  assert.equal(scoresOf(tensorOf('int64', [3], () => 1n)), null);
  assert.equal(scoresOf(tensorOf('float32', [0, 3], () => 1)), null);
  assert.equal(scoresOf(tensorOf('float32', [2], () => NaN)), null);
});

test('numbers, sizes and times are put in words', () => {
  assert.deepEqual([0.1 + 0.2, -0, 1e21, NaN, 12345678, 2n ** 63n].map(numberText), ['0.3', '-0', '1e+21', 'NaN', '12345678', '9223372036854775808']); // prettier-ignore
  assert.deepEqual([5, 1500, 2_345_678].map(bytesText), ['5 B', '1.5 kB', '2.3 MB']);
  assert.deepEqual([null, 0.123, 12.34, 123.4, 1234].map(timeText), ['–', '0.12 ms', '12.3 ms', '123 ms', '1.23 s']);
  assert.deepEqual([shapeText(null), shapeText([]), shapeText(['N', null, 3])], ['any shape', '[]', '[N, ?, 3]']);
  assert.deepEqual([median([]), median([3, 1, 2]), median([4, 1])], [null, 2, 2.5]);
});
