import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CodecError, decodeTensors, encodeTensors, joinValues, splitValues } from '../src/tensor-codec.js';
import { DTYPES, stringTensor, tensorFromBytes, tensorOf } from '../src/tensor.js';

/**
 * @param {unknown} header an object, or text that takes the place of its JSON
 * @param {number} [bytes] of elements
 * @returns {Uint8Array}
 */
function file(header, bytes = 0) {
  const text = new TextEncoder().encode(typeof header === 'string' ? header : JSON.stringify(header));
  const whole = new Uint8Array(8 + text.length + bytes);
  new DataView(whole.buffer).setBigUint64(0, BigInt(text.length), true);
  whole.set(text, 8);
  return whole;
}

/** @param {Partial<{ dtype: unknown, shape: unknown, data_offsets: unknown }>} changes */
const entry = (changes) => ({ t: { dtype: 'F32', shape: [2], data_offsets: [0, 8], ...changes } });

test('every dtype, scalars, empty tensors and every bit survive', () => {
  const tensors = new Map();
  for (const dtype of /** @type {import('../src/tensor.js').NumberDtype[]} */ (Object.keys(DTYPES))) {
    const bytes = Uint8Array.from({ length: DTYPES[dtype].bytes * 6 }, (_, index) =>
      dtype === 'bool' ? index % 2 : (index * 151) % 256,
    );
    tensors.set(`${dtype}/filled`, tensorFromBytes(dtype, [2, 3], bytes));
    tensors.set(`${dtype}/scalar`, tensorFromBytes(dtype, [], bytes.slice(0, DTYPES[dtype].bytes)));
    tensors.set(`${dtype}/empty`, tensorFromBytes(dtype, [0, 3], new Uint8Array()));
  }
  tensors.set(
    'special',
    tensorOf('float32', [5], (index) => [NaN, Infinity, -Infinity, -0, 1e-45][index] ?? 0),
  );
  tensors.set(
    'names <b>"é☃\n/ \u0000',
    tensorOf('int64', [2], (index) => [2n ** 63n - 1n, -(2n ** 63n)][index] ?? 0n),
  );
  const back = decodeTensors(encodeTensors(tensors), 'it');
  assert.equal(back.size, tensors.size);
  for (const [name, { dtype, shape, data }] of tensors) {
    const read = back.get(name);
    assert.deepEqual([read?.dtype, read?.shape], [dtype, shape], name);
    assert.deepEqual(new Uint8Array(/** @type {ArrayBuffer} */ (read?.data.buffer)), new Uint8Array(data.buffer), name);
  }
});

test('the same tensors give the same bytes, in whatever order they come', () => {
  const tensors = [...Array(4).keys()].map(
    (n) => /** @type {const} */ ([`t${n}`, tensorOf(n % 2 ? 'int8' : 'float64', [n], () => n)]),
  );
  assert.deepEqual(encodeTensors(new Map(tensors)), encodeTensors(new Map(tensors.toReversed())));
});

test('a file without tensors is a file', () => {
  assert.equal(decodeTensors(encodeTensors(new Map()), 'it').size, 0);
  assert.equal(decodeTensors(file({ __metadata__: { format: 'pt' } }), 'it').size, 0);
});

test('tensors that Python wrote, with a metadata entry, are read', () => {
  const read = decodeTensors(file({ __metadata__: { a: 'b' }, ...entry({}) }, 8), 'it');
  assert.deepEqual([...(read.get('t')?.data ?? [])], [0, 0]);
});

const lies = /** @type {const} */ ({
  'is shorter than its header length': new Uint8Array(7),
  'says that its header is longer than the file': Uint8Array.of(200, 0, 0, 0, 0, 0, 0, 0, 0x7b, 0x7d),
  'says that its header is 2^63 bytes long': Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0x80, 0x7b, 0x7d),
  'has a header that is not JSON': file('{"t": '),
  'has a header that is not UTF-8': (() => {
    const broken = file('{"x":1}');
    broken[10] = 0xff;
    return broken;
  })(),
  'has a header that is a list': file([]),
  'has a header that is null': file('null'),
  'describes a tensor by a number': file({ t: 5 }),
  'describes a tensor by null': file({ t: null }),
  'has an unknown dtype': file(entry({ dtype: 'F8_E4M3' }), 8),
  'has a dtype that is an inherited name': file(entry({ dtype: 'constructor' }), 8),
  'has a dtype that is no text': file(entry({ dtype: ['F32'] }), 8),
  'has a negative size': file(entry({ shape: [-2] }), 8),
  'has a broken size': file(entry({ shape: [0.5, 4] }), 8),
  'has a shape that is text': file(entry({ shape: '2' }), 8),
  'has sizes that overflow': file(entry({ shape: [2 ** 52, 2 ** 52] }), 8),
  'has a size past what is exact': file(entry({ shape: [2 ** 60] }), 8),
  'has offsets that go backwards': file(entry({ data_offsets: [8, 0] }), 8),
  'has a negative offset': file(entry({ data_offsets: [-8, 0] }), 8),
  'has one offset': file(entry({ data_offsets: [8] }), 8),
  'has offsets past the end': file(entry({ data_offsets: [8, 16] }), 8),
  'has too few bytes for the shape': file(entry({ data_offsets: [0, 4] }), 4),
  'has bytes that belong to no tensor': file(entry({}), 12),
  'has a hole before the tensor': file(entry({ data_offsets: [4, 12] }), 12),
  'has tensors that overlap': file({ ...entry({}), u: { dtype: 'F32', shape: [2], data_offsets: [4, 12] } }, 12),
});
for (const [what, bytes] of Object.entries(lies)) {
  test(`a file is refused that ${what}`, () => {
    assert.throws(() => decodeTensors(bytes, 'it'), CodecError);
  });
}

test('values are split into entries and tensors, and joined again', () => {
  const values = [
    { name: 'a', dtype: 'float32', tensor: tensorOf('float32', [2], () => -0) },
    { name: 'words', dtype: 'string', tensor: stringTensor([2, 1], ['', 'é☃\n<b>']) },
    { name: 'seq', dtype: 'seq(tensor(float))', tensor: null, note: 'not a tensor' },
  ];
  const { entries, tensors } = splitValues('case/output', values);
  assert.deepEqual([...tensors.keys()], ['case/output/a']);
  assert.deepEqual(JSON.parse(JSON.stringify(entries)), [
    { name: 'a', dtype: 'float32', shape: [2], key: 'case/output/a' },
    { name: 'words', dtype: 'string', shape: [2, 1], strings: ['', 'é☃\n<b>'] },
    { name: 'seq', dtype: 'seq(tensor(float))', shape: null, note: 'not a tensor' },
  ]);
  assert.deepEqual(joinValues(entries, tensors).map(({ tensor }) => tensor), values.map(({ tensor }) => tensor)); // prettier-ignore
});

test('entries that their tensors do not bear out are refused', () => {
  const tensors = new Map([['k', tensorOf('float32', [2], () => 0)]]);
  const good = { name: 'x', dtype: 'float32', shape: [2], key: 'k' };
  assert.equal(joinValues([good], tensors).length, 1);
  for (const change of [
    { key: 'other' },
    { dtype: 'float16' },
    { shape: [1, 2] },
    { shape: null },
    { dtype: 'constructor' },
  ]) {
    assert.throws(() => joinValues([{ ...good, ...change }], tensors), CodecError);
  }
  assert.throws(() => joinValues([{ name: 'x', dtype: 'string', shape: [3], strings: ['a'] }], tensors), CodecError);
});
