/**
 * @file Tensors in memory: a dtype, a shape, and the elements bit for bit.
 *
 * float16 and bfloat16 are kept as their 16 bits in a Uint16Array, with or without Float16Array in the browser, so that
 * a NaN's payload, -0 and subnormals stay what they were. bool is a Uint8Array of 0 and 1. Strings are an array.
 */

/**
 * @typedef {Int8Array | Int16Array | Int32Array | BigInt64Array | Uint8Array | Uint16Array | Uint32Array | BigUint64Array
 *   | Float32Array | Float64Array} Elements
 * @typedef {'bool' | 'int8' | 'int16' | 'int32' | 'int64' | 'uint8' | 'uint16' | 'uint32' | 'uint64' | 'float16'
 *   | 'bfloat16' | 'float32' | 'float64'} NumberDtype
 * @typedef {{ dtype: NumberDtype, shape: readonly number[], data: Elements }} NumberTensor
 * @typedef {{ dtype: 'string', shape: readonly number[], data: readonly string[] }} StringTensor
 * @typedef {NumberTensor | StringTensor} Tensor
 */

/**
 * An input or output of a model. `tensor` is null where the value is not a tensor; `note` then says why.
 *
 * @typedef {{ name: string, dtype: string, tensor: Tensor | null, note?: string | undefined }} Value
 */

/**
 * @typedef {{ bytes: number, array: new (buffer: ArrayBuffer) => Elements, kind: 'bool' | 'int' | 'float', range?: [bigint, bigint] }} DtypeFacts
 */

/**
 * @param {new (buffer: ArrayBuffer) => Elements} array
 * @param {number} bytes
 * @param {boolean} signed
 * @returns {DtypeFacts}
 */
function integer(array, bytes, signed) {
  const bits = BigInt(bytes * 8);
  const range = /** @type {[bigint, bigint]} */ (
    signed ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n] : [0n, (1n << bits) - 1n]
  );
  return { bytes, array, kind: 'int', range };
}

/** @type {Readonly<Record<NumberDtype, DtypeFacts>>} */
export const DTYPES = Object.freeze({
  bool: { bytes: 1, array: Uint8Array, kind: 'bool' },
  int8: integer(Int8Array, 1, true),
  int16: integer(Int16Array, 2, true),
  int32: integer(Int32Array, 4, true),
  int64: integer(BigInt64Array, 8, true),
  uint8: integer(Uint8Array, 1, false),
  uint16: integer(Uint16Array, 2, false),
  uint32: integer(Uint32Array, 4, false),
  uint64: integer(BigUint64Array, 8, false),
  float16: { bytes: 2, array: Uint16Array, kind: 'float' },
  bfloat16: { bytes: 2, array: Uint16Array, kind: 'float' },
  float32: { bytes: 4, array: Float32Array, kind: 'float' },
  float64: { bytes: 8, array: Float64Array, kind: 'float' },
});

/**
 * @param {string} dtype
 * @returns {dtype is NumberDtype}
 */
export function isNumberDtype(dtype) {
  return Object.hasOwn(DTYPES, dtype);
}

/**
 * @param {string} dtype
 * @returns {boolean} whether elements are floating-point numbers
 */
export function isFloat(dtype) {
  return isNumberDtype(dtype) && DTYPES[dtype].kind === 'float';
}

/**
 * @param {readonly number[]} shape
 * @returns {number} how many elements a tensor of this shape holds (1 for a scalar)
 * @throws {RangeError} when a dimension is not a whole number of 0 or more, or the product is too large to be exact
 */
export function elementCount(shape) {
  let count = 1;
  for (const size of shape) {
    if (!Number.isSafeInteger(size) || size < 0) {
      throw new RangeError(`The shape [${shape.join(', ')}] holds ${size}, which is not a size.`);
    }
    count *= size;
  }
  if (!Number.isSafeInteger(count)) {
    throw new RangeError(`The shape [${shape.join(', ')}] has more elements than can be counted.`);
  }
  return count;
}

/**
 * @param {NumberDtype} dtype
 * @param {readonly number[]} shape
 * @param {ArrayBufferView} elements any view (a Uint8ClampedArray or Float16Array too); its bytes are copied
 * @returns {NumberTensor}
 * @throws {RangeError} when the bytes do not fill the shape exactly
 */
export function tensorFromBytes(dtype, shape, elements) {
  const { bytes, array } = DTYPES[dtype];
  const needed = elementCount(shape) * bytes;
  if (elements.byteLength !== needed) {
    throw new RangeError(
      `A ${dtype} tensor of shape [${shape.join(', ')}] takes ${needed} bytes, not ${elements.byteLength}.`,
    );
  }
  const copy = new Uint8Array(needed);
  copy.set(bytesOfView(elements));
  return { dtype, shape: [...shape], data: new array(copy.buffer) };
}

/**
 * @param {readonly number[]} shape
 * @param {readonly string[]} strings row-major
 * @returns {StringTensor}
 * @throws {RangeError} when the strings do not fill the shape exactly
 */
export function stringTensor(shape, strings) {
  if (strings.length !== elementCount(shape)) {
    throw new RangeError(`${strings.length} strings do not fill the shape [${shape.join(', ')}].`);
  }
  return { dtype: 'string', shape: [...shape], data: [...strings] };
}

/**
 * @param {ArrayBufferView} view
 * @returns {Uint8Array} the same memory as bytes
 */
export function bytesOfView(view) {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

/**
 * @param {NumberDtype} dtype
 * @param {readonly number[]} shape
 * @param {(index: number) => number | bigint} element gives each element; a float, or a whole number inside the dtype's range
 * @returns {NumberTensor}
 */
export function tensorOf(dtype, shape, element) {
  const count = elementCount(shape);
  const data = new DTYPES[dtype].array(new ArrayBuffer(count * DTYPES[dtype].bytes));
  const put = writer(dtype, data);
  for (let index = 0; index < count; index += 1) {
    put(index, element(index));
  }
  return { dtype, shape: [...shape], data };
}

/**
 * @param {NumberDtype} dtype
 * @param {Elements} data
 * @returns {(index: number, element: number | bigint) => void}
 */
function writer(dtype, data) {
  if (dtype === 'float16' || dtype === 'bfloat16') {
    const encode = dtype === 'float16' ? encodeFloat16 : encodeBfloat16;
    return (index, element) => {
      data[index] = encode(Number(element));
    };
  }
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
    return (index, element) => {
      data[index] = BigInt(element);
    };
  }
  return (index, element) => {
    data[index] = Number(element);
  };
}

/**
 * @param {NumberTensor} tensor
 * @returns {(index: number) => number | bigint} reads an element; 64-bit integers come as bigint
 */
export function reader(tensor) {
  const { dtype, data } = tensor;
  if (dtype === 'float16') {
    return (index) => decodeFloat16(Number(data[index]));
  }
  if (dtype === 'bfloat16') {
    return (index) => decodeBfloat16(Number(data[index]));
  }
  return (index) => /** @type {number | bigint} */ (data[index]);
}

const float32 = new Float32Array(1);
const float32Bits = new Uint32Array(float32.buffer);

/**
 * @param {number} bits the 16 bits of an IEEE 754 half
 * @returns {number}
 */
export function decodeFloat16(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) {
    return sign * fraction * 2 ** -24;
  }
  if (exponent === 0x1f) {
    return fraction === 0 ? sign * Infinity : NaN;
  }
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/**
 * @param {number} value
 * @returns {number} the 16 bits of the nearest IEEE 754 half, ties to even; too large becomes infinite
 */
export function encodeFloat16(value) {
  if (Number.isNaN(value)) {
    return 0x7e00;
  }
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size >= 65520) {
    return sign | 0x7c00;
  }
  // Below 2^-14 halves are evenly spaced, 2^-24 apart; above, 1024 steps to each power of two.
  let exponent = -14;
  while (size >= 2 ** (exponent + 1)) {
    exponent += 1;
  }
  const steps = roundHalfToEven(size / 2 ** (exponent - 10));
  // Rounding up to 2048 steps carries into the exponent field by itself.
  return sign | (size < 2 ** -14 ? steps : ((exponent + 15) << 10) + (steps - 1024));
}

/**
 * @param {number} bits
 * @returns {number}
 */
export function decodeBfloat16(bits) {
  float32Bits[0] = bits << 16;
  return /** @type {number} */ (float32[0]);
}

/**
 * @param {number} value
 * @returns {number} the 16 bits of the nearest bfloat16 (of the nearest float32), ties to even
 */
export function encodeBfloat16(value) {
  if (Number.isNaN(value)) {
    return 0x7fc0;
  }
  float32[0] = value;
  const bits = /** @type {number} */ (float32Bits[0]);
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

/**
 * @param {number} value
 * @returns {number}
 */
function roundHalfToEven(value) {
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
}
