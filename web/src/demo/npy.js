/** @file Read a NumPy .npy file. Pure. */

import { tensorFromBytes } from '../tensor.js';

/** @type {ReadonlyMap<string, import('../tensor.js').NumberDtype>} */
const DTYPES = new Map([
  ['b1', 'bool'],
  ['i1', 'int8'],
  ['i2', 'int16'],
  ['i4', 'int32'],
  ['i8', 'int64'],
  ['u1', 'uint8'],
  ['u2', 'uint16'],
  ['u4', 'uint32'],
  ['u8', 'uint64'],
  ['f2', 'float16'],
  ['f4', 'float32'],
  ['f8', 'float64'],
]);
const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];

/**
 * @param {Uint8Array} bytes
 * @returns {boolean}
 */
export function isNpy(bytes) {
  return MAGIC.every((byte, index) => bytes[index] === byte);
}

/**
 * @param {Uint8Array} bytes
 * @returns {import('../tensor.js').NumberTensor}
 * @throws {TypeError} when the array is not one that a model takes: text, objects, big-endian, column-major
 * @throws {RangeError} when its bytes do not fill its shape
 */
export function decodeNpy(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!isNpy(bytes) || bytes.length < 12) {
    throw new TypeError('This is not a .npy file.');
  }
  const wide = (bytes[6] ?? 0) >= 2;
  const start = wide ? 12 : 10;
  const end = start + (wide ? view.getUint32(8, true) : view.getUint16(8, true));
  const header = new TextDecoder().decode(bytes.subarray(start, end));
  const descr = /'descr':\s*'([<>|=])([a-zA-Z]\d+)'/.exec(header);
  const shape = /'shape':\s*\(([\d,\s]*)\)/.exec(header);
  const dtype = DTYPES.get(descr?.[2] ?? '');
  if (dtype === undefined || descr === null || shape === null) {
    throw new TypeError('This .npy file holds neither numbers nor truth values that a model takes.');
  }
  if (descr[1] === '>') {
    throw new TypeError(
      'This .npy file is big-endian. Save it again with array.astype(array.dtype.newbyteorder("<")).',
    );
  }
  const sizes = (shape[1] ?? '')
    .split(',')
    .map((size) => size.trim())
    .filter((size) => size !== '')
    .map(Number);
  if (/'fortran_order':\s*True/.test(header) && sizes.length > 1) {
    throw new TypeError('This .npy file is in column-major order. Save it again with numpy.ascontiguousarray(array).');
  }
  return tensorFromBytes(dtype, sizes, bytes.subarray(end));
}
