/** @file Values for a model's inputs: made, typed, or from a file, and of which shape. Pure. */

import { DTYPES, elementCount, isNumberDtype, reader, stringTensor, tensorFromBytes, tensorOf } from '../tensor.js';
import { decodeTensors } from '../tensor-codec.js';
import { decodeNpy, isNpy } from './npy.js';
import { shapeText } from './words.js';

/**
 * @typedef {import('../records.js').Argument} Argument
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('../tensor.js').NumberTensor} NumberTensor
 * @typedef {{ low: number, high: number }} Range
 * @typedef {'random' | 'zeros' | 'ones'} Made
 */

/** A value that a person gave and that the input does not take. */
export class FillError extends Error {
  name = 'FillError';
}

/**
 * Axes without a fixed size. A symbolic name stands for one size wherever it occurs; a nameless axis for itself.
 *
 * @param {Argument} input
 * @returns {{ axis: number, key: string, label: string }[]}
 */
export function openAxes({ name, shape }) {
  return (shape ?? []).flatMap((size, axis) => {
    if (typeof size === 'number') {
      return [];
    }
    return [
      size === null
        ? { axis, key: `${axis} of ${name}`, label: `axis ${axis} of ${name}` }
        : { axis, key: size, label: size },
    ];
  });
}

/**
 * @param {Argument} input
 * @param {ReadonlyMap<string, number>} sizes by key of an open axis
 * @returns {number[]}
 */
export function shapeOf(input, sizes) {
  const shape = (input.shape ?? []).map((size) => (typeof size === 'number' ? size : 1));
  for (const { axis, key } of openAxes(input)) {
    shape[axis] = sizes.get(key) ?? 1;
  }
  return shape;
}

/**
 * Take the sizes of open axes from a tensor that was given.
 *
 * @param {Argument} input
 * @param {readonly number[]} given shape of the tensor
 * @param {ReadonlyMap<string, number>} sizes
 * @returns {Map<string, number>} new sizes
 * @throws {FillError} when the shape is not one that the input takes
 */
export function adoptShape(input, given, sizes) {
  const { shape } = input;
  const adopted = new Map(sizes);
  if (shape === null) {
    return adopted;
  }
  const fits =
    shape.length === given.length && shape.every((size, axis) => typeof size !== 'number' || size === given[axis]);
  if (!fits) {
    throw new FillError(`Its shape is ${shapeText(given)}; this input takes ${shapeText(shape)}.`);
  }
  for (const { axis, key } of openAxes(input)) {
    adopted.set(key, given[axis] ?? 1);
  }
  return adopted;
}

/**
 * @param {Made} how
 * @param {string} dtype
 * @param {readonly number[]} shape
 * @param {{ random: () => number, range: Range | null }} options `range`: of the values that the golden cases give
 * @returns {Tensor}
 */
export function makeTensor(how, dtype, shape, { random, range }) {
  if (!isNumberDtype(dtype)) {
    const word = { random: () => `word ${Math.floor(random() * 1000)}`, zeros: () => '', ones: () => '1' }[how];
    return stringTensor(shape, Array.from({ length: elementCount(shape) }, word));
  }
  if (how !== 'random') {
    return tensorOf(dtype, shape, () => (how === 'ones' ? 1 : 0));
  }
  const { kind } = DTYPES[dtype];
  if (kind === 'bool') {
    return tensorOf(dtype, shape, () => (random() < 0.5 ? 0 : 1));
  }
  const { low, high } = range ?? (kind === 'int' ? { low: 0, high: 1 } : { low: -1, high: 1 });
  return tensorOf(dtype, shape, () =>
    kind === 'int' ? low + Math.floor(random() * (high - low + 1)) : low + random() * (high - low),
  );
}

/**
 * @param {readonly Tensor[]} tensors
 * @returns {Range | null} over all finite elements; null where there are none, or where they are text
 */
export function rangeOf(tensors) {
  let low = Infinity;
  let high = -Infinity;
  for (const tensor of tensors) {
    if (tensor.dtype === 'string') {
      return null;
    }
    const read = reader(tensor);
    for (let index = 0; index < tensor.data.length; index += 1) {
      const value = Number(read(index));
      if (Number.isFinite(value)) {
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
  }
  return low <= high ? { low, high } : null;
}

/**
 * @param {string} text numbers between spaces, commas or brackets; for strings one a line, or a JSON list
 * @param {string} dtype
 * @param {readonly number[]} shape
 * @returns {Tensor} one value alone fills the whole tensor
 * @throws {FillError}
 */
export function parseText(text, dtype, shape) {
  const count = elementCount(shape);
  const words = isNumberDtype(dtype) ? text.split(/[\s,;[\]()]+/).filter((word) => word !== '') : linesOf(text);
  if (words.length !== count && words.length !== 1) {
    throw new FillError(
      `The shape ${shapeText(shape)} takes ${count} values (or one for all); here are ${words.length}.`,
    );
  }
  if (!isNumberDtype(dtype)) {
    return stringTensor(shape, words.length === count ? words : Array.from({ length: count }, () => words[0] ?? ''));
  }
  const numbers = words.map((word) => parseNumber(word, dtype));
  return tensorOf(dtype, shape, (index) => numbers[words.length === 1 ? 0 : index] ?? 0);
}

/**
 * @param {string} text
 * @returns {string[]}
 */
function linesOf(text) {
  if (text.trim().startsWith('[')) {
    try {
      const list = /** @type {unknown} */ (JSON.parse(text));
      if (Array.isArray(list)) {
        return list.flat(Infinity).map(String);
      }
    } catch {
      // A line of text may well begin with a bracket.
    }
  }
  return text.replace(/\n$/, '').split('\n');
}

/**
 * @param {string} word
 * @param {import('../tensor.js').NumberDtype} dtype
 * @returns {number | bigint}
 */
function parseNumber(word, dtype) {
  const { kind, range } = DTYPES[dtype];
  if (kind === 'bool') {
    const truth = new Map([
      ['true', 1],
      ['1', 1],
      ['false', 0],
      ['0', 0],
    ]).get(word.toLowerCase());
    if (truth === undefined) {
      throw new FillError(`"${word}" is neither true nor false.`);
    }
    return truth;
  }
  if (range !== undefined) {
    if (!/^[+-]?\d+$/.test(word)) {
      throw new FillError(`"${word}" is not a whole number, which ${dtype} takes.`);
    }
    return inRange(BigInt(word.replace('+', '')), dtype, range);
  }
  const special = /^([+-]?)(inf(?:inity)?|nan)$/i.exec(word);
  const value = special ? (/nan/i.test(word) ? NaN : special[1] === '-' ? -Infinity : Infinity) : Number(word);
  if (special === null && Number.isNaN(value)) {
    throw new FillError(`"${word}" is not a number.`);
  }
  return value;
}

/**
 * @param {bigint} value
 * @param {string} dtype
 * @param {[bigint, bigint]} range
 * @returns {bigint}
 */
function inRange(value, dtype, [low, high]) {
  if (value < low || value > high) {
    throw new FillError(`${value} does not fit ${dtype}, which goes from ${low} to ${high}.`);
  }
  return value;
}

/**
 * @param {Uint8Array} bytes a .npy or .safetensors file, or the elements alone
 * @param {string} fileName
 * @param {Argument} input
 * @param {readonly number[]} shape that raw elements must fill
 * @returns {{ tensor: Tensor, note: string }}
 * @throws {Error} when the file does not fit the input
 */
export function tensorFromFile(bytes, fileName, input, shape) {
  if (!isNumberDtype(input.dtype)) {
    throw new FillError('Text cannot come from a file here. Type it.');
  }
  if (isNpy(bytes)) {
    return castTo(decodeNpy(bytes), input.dtype, 'NumPy array');
  }
  if (fileName.toLowerCase().endsWith('.safetensors')) {
    const tensors = decodeTensors(bytes, fileName);
    const only = tensors.size === 1 ? [...tensors.values()][0] : undefined;
    const tensor = tensors.get(input.name) ?? only;
    if (tensor === undefined) {
      throw new FillError(
        `${fileName} holds no tensor called "${input.name}". It holds ${[...tensors.keys()].slice(0, 8).join(', ') || 'none'}.`,
      );
    }
    return castTo(tensor, input.dtype, 'safetensors');
  }
  return { tensor: tensorFromBytes(input.dtype, shape, bytes), note: `raw ${input.dtype}` };
}

/**
 * @param {NumberTensor} tensor
 * @param {import('../tensor.js').NumberDtype} dtype
 * @param {string} what
 * @returns {{ tensor: Tensor, note: string }}
 */
function castTo(tensor, dtype, what) {
  if (tensor.dtype === dtype) {
    return { tensor, note: what };
  }
  const { kind, range } = DTYPES[dtype];
  if (kind !== 'float' && DTYPES[tensor.dtype].kind === 'float') {
    throw new FillError(`It holds ${tensor.dtype}; this input takes ${dtype}, and rounding would change the values.`);
  }
  const read = reader(tensor);
  const element = (/** @type {number} */ index) =>
    range === undefined ? read(index) : inRange(BigInt(read(index)), dtype, range);
  if (kind === 'bool') {
    return {
      tensor: tensorOf(dtype, tensor.shape, (index) => (Number(read(index)) === 0 ? 0 : 1)),
      note: `${what}, not zero is true`,
    };
  }
  return { tensor: tensorOf(dtype, tensor.shape, element), note: `${what}, converted from ${tensor.dtype}` };
}
