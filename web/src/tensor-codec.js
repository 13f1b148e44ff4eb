/**
 * @file safetensors bytes to and from tensors, and the JSON entries that name them.
 *
 * The format: 8 bytes of header length (little-endian), a JSON header, then the elements. What the header says is
 * checked before anything is believed: it comes from a file.
 */

import { DTYPES, bytesOfView, elementCount, isNumberDtype, stringTensor, tensorFromBytes } from './tensor.js';

/**
 * @typedef {import('./tensor.js').NumberTensor} NumberTensor
 * @typedef {import('./tensor.js').NumberDtype} NumberDtype
 * @typedef {import('./tensor.js').Value} Value
 * @typedef {{ name: string, dtype: string, shape: number[] | null, key?: string, strings?: string[], note?: string }} ValueEntry
 */

/** @type {Readonly<Record<NumberDtype, string>>} */
const STORED_NAMES = Object.freeze({
  bool: 'BOOL',
  int8: 'I8',
  int16: 'I16',
  int32: 'I32',
  int64: 'I64',
  uint8: 'U8',
  uint16: 'U16',
  uint32: 'U32',
  uint64: 'U64',
  float16: 'F16',
  bfloat16: 'BF16',
  float32: 'F32',
  float64: 'F64',
});
const DTYPE_OF = new Map(
  Object.entries(STORED_NAMES).map(([dtype, stored]) => [stored, /** @type {NumberDtype} */ (dtype)]),
);

// The limit of the reference implementation.
const MAX_HEADER_BYTES = 100_000_000;

/** Bytes that are not a safetensors file, or tensors that do not fit their description. */
export class CodecError extends Error {
  name = 'CodecError';
}

/**
 * @param {ReadonlyMap<string, NumberTensor>} tensors
 * @returns {Uint8Array<ArrayBuffer>} a safetensors file; the same tensors give the same bytes
 */
export function encodeTensors(tensors) {
  // Widest elements first, so that every tensor starts at a multiple of its element's size.
  const entries = [...tensors].sort(
    ([a, x], [b, y]) => DTYPES[y.dtype].bytes - DTYPES[x.dtype].bytes || (a < b ? -1 : 1),
  );
  let end = 0;
  const header = Object.fromEntries(
    entries.map(([name, { dtype, shape, data }]) => {
      const start = end;
      end += data.byteLength;
      return [name, { dtype: STORED_NAMES[dtype], shape, data_offsets: [start, end] }];
    }),
  );
  const text = new TextEncoder().encode(JSON.stringify(header));
  const headerBytes = Math.ceil(text.length / 8) * 8;
  const file = new Uint8Array(8 + headerBytes + end).fill(0x20, 8, 8 + headerBytes);
  new DataView(file.buffer).setBigUint64(0, BigInt(headerBytes), true);
  file.set(text, 8);
  let offset = 8 + headerBytes;
  for (const [, { data }] of entries) {
    file.set(bytesOfView(data), offset);
    offset += data.byteLength;
  }
  return file;
}

/**
 * @param {Uint8Array} file
 * @param {string} what names the bytes in errors
 * @returns {Map<string, NumberTensor>}
 * @throws {CodecError} when the bytes are not a safetensors file, or its header lies
 */
export function decodeTensors(file, what) {
  const { header, elements } = readHeader(file, what);
  /** @type {Map<string, NumberTensor>} */
  const tensors = new Map();
  /** @type {[number, number, string][]} */
  const spans = [];
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') {
      continue;
    }
    const { dtype, shape, begin, end } = readEntry(entry, `${what}, tensor ${JSON.stringify(name)}`);
    if (end > elements.length) {
      throw new CodecError(`${what}: the tensor ${JSON.stringify(name)} ends at byte ${end} of ${elements.length}.`);
    }
    tensors.set(name, tensorFromBytes(dtype, shape, elements.subarray(begin, end)));
    spans.push([begin, end, name]);
  }
  let covered = 0;
  for (const [begin, end, name] of spans.sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
    if (begin !== covered) {
      throw new CodecError(`${what}: the tensor ${JSON.stringify(name)} starts at byte ${begin}, not at ${covered}.`);
    }
    covered = end;
  }
  if (covered !== elements.length) {
    throw new CodecError(`${what}: ${elements.length - covered} bytes at the end belong to no tensor.`);
  }
  return tensors;
}

/**
 * @param {Uint8Array} file
 * @param {string} what
 * @returns {{ header: Record<string, unknown>, elements: Uint8Array }}
 */
function readHeader(file, what) {
  if (file.length < 8) {
    throw new CodecError(`${what} is not a safetensors file: it has ${file.length} bytes.`);
  }
  const length = new DataView(file.buffer, file.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(Math.min(file.length - 8, MAX_HEADER_BYTES))) {
    throw new CodecError(`${what} is not a safetensors file: it says that its header has ${length} bytes.`);
  }
  const end = 8 + Number(length);
  /** @type {unknown} */
  let header;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(file.subarray(8, end)));
  } catch (error) {
    throw new CodecError(`${what} is not a safetensors file: its header is not JSON.`, { cause: error });
  }
  if (!isRecord(header)) {
    throw new CodecError(`${what} is not a safetensors file: its header is not a JSON object.`);
  }
  return { header, elements: file.subarray(end) };
}

/**
 * @param {unknown} entry
 * @param {string} place
 * @returns {{ dtype: NumberDtype, shape: number[], begin: number, end: number }}
 */
function readEntry(entry, place) {
  if (!isRecord(entry)) {
    throw new CodecError(`${place}: its description is not a JSON object.`);
  }
  const { dtype: stored, shape, data_offsets: offsets } = entry;
  const dtype = typeof stored === 'string' ? DTYPE_OF.get(stored) : undefined;
  if (dtype === undefined) {
    throw new CodecError(`${place}: ONNX models do not take the type ${JSON.stringify(stored)}.`);
  }
  if (!isSizes(shape) || !isSizes(offsets) || offsets.length !== 2) {
    throw new CodecError(`${place}: its shape or its offsets are not lists of whole numbers.`);
  }
  const [begin, end] = /** @type {[number, number]} */ (offsets);
  let needed;
  try {
    needed = elementCount(shape) * DTYPES[dtype].bytes;
  } catch (error) {
    throw new CodecError(`${place}: its shape has too many elements.`, { cause: error });
  }
  if (end < begin || end - begin !== needed) {
    throw new CodecError(
      `${place}: ${dtype} of shape [${shape.join(', ')}] takes ${needed} bytes, its offsets say ${end - begin}.`,
    );
  }
  return { dtype, shape, begin, end };
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
function isRecord(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * @param {unknown} value
 * @returns {value is number[]}
 */
function isSizes(value) {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}

/**
 * Split values into JSON entries and tensors keyed `prefix/name`; strings travel in the entries.
 *
 * @param {string} prefix
 * @param {readonly Value[]} values
 * @returns {{ entries: ValueEntry[], tensors: Map<string, NumberTensor> }}
 */
export function splitValues(prefix, values) {
  /** @type {Map<string, NumberTensor>} */
  const tensors = new Map();
  const entries = values.map(({ name, dtype, tensor, note }) => {
    /** @type {ValueEntry} */
    const entry = { name, dtype, shape: tensor === null ? null : [...tensor.shape] };
    if (tensor?.dtype === 'string') {
      entry.strings = [...tensor.data];
    } else if (tensor !== null) {
      entry.key = `${prefix}/${name}`;
      tensors.set(entry.key, tensor);
    }
    if (note !== undefined) {
      entry.note = note;
    }
    return entry;
  });
  return { entries, tensors };
}

/**
 * Undo `splitValues`.
 *
 * @param {readonly ValueEntry[]} entries
 * @param {ReadonlyMap<string, NumberTensor>} tensors
 * @returns {Value[]}
 * @throws {CodecError} when an entry and its tensor disagree, or the tensor is not there
 */
export function joinValues(entries, tensors) {
  return entries.map((entry) => ({
    name: entry.name,
    dtype: entry.dtype,
    tensor: joinOne(entry, tensors),
    note: entry.note,
  }));
}

/**
 * @param {ValueEntry} entry
 * @param {ReadonlyMap<string, NumberTensor>} tensors
 * @returns {import('./tensor.js').Tensor | null}
 */
function joinOne({ name, dtype, shape, key, strings }, tensors) {
  if (strings !== undefined) {
    try {
      return stringTensor(shape ?? [], strings);
    } catch (error) {
      throw new CodecError(`The strings of ${JSON.stringify(name)} do not fit.`, { cause: error });
    }
  }
  if (key === undefined) {
    return null;
  }
  const tensor = tensors.get(key);
  if (tensor === undefined) {
    throw new CodecError(`The tensor ${JSON.stringify(key)} is named but not stored.`);
  }
  if (!isNumberDtype(dtype) || tensor.dtype !== dtype || JSON.stringify(tensor.shape) !== JSON.stringify(shape)) {
    throw new CodecError(
      `The tensor ${JSON.stringify(key)} is ${tensor.dtype} [${tensor.shape.join(', ')}] but said to be ${dtype} [${shape?.join(', ')}].`,
    );
  }
  return tensor;
}
