/** @file What the page says of an output. Pure. */

import { isFloat, reader } from '../tensor.js';

/**
 * @typedef {import('../tensor.js').NumberTensor} NumberTensor
 * @typedef {{ min: number | bigint, max: number | bigint, mean: number } | null} Range null where nothing is finite
 * @typedef {{ count: number, nan: number, infinite: number, range: Range }} Statistics
 * @typedef {{ label: string, value: number }} Score
 */

/**
 * @param {NumberTensor} tensor
 * @returns {Statistics} the range and mean are of the finite elements
 */
export function statisticsOf(tensor) {
  const read = reader(tensor);
  const count = tensor.data.length;
  let nan = 0;
  let infinite = 0;
  let sum = 0;
  /** @type {number | bigint | undefined} */
  let min;
  /** @type {number | bigint | undefined} */
  let max;
  for (let index = 0; index < count; index += 1) {
    const value = read(index);
    if (typeof value === 'number' && !Number.isFinite(value)) {
      nan += Number.isNaN(value) ? 1 : 0;
      infinite += Number.isNaN(value) ? 0 : 1;
      continue;
    }
    min = min === undefined || value < min ? value : min;
    max = max === undefined || value > max ? value : max;
    sum += Number(value);
  }
  const range = min === undefined || max === undefined ? null : { min, max, mean: sum / (count - nan - infinite) };
  return { count, nan, infinite, range };
}

const MOST_SCORES = 10;

/**
 * The largest entries of a score vector: floats, one or two axes, at least two entries in the last one.
 *
 * @param {NumberTensor} tensor
 * @returns {{ rows: number, classes: number, top: Score[] } | null} of the first row; null: not scores
 */
export function scoresOf(tensor) {
  const { dtype, shape } = tensor;
  const classes = shape.at(-1) ?? 0;
  const rows = shape.length === 2 ? (shape[0] ?? 0) : 1;
  if (!isFloat(dtype) || shape.length < 1 || shape.length > 2 || classes < 2 || rows < 1) {
    return null;
  }
  const read = reader(tensor);
  const all = Array.from({ length: classes }, (_, index) => ({ label: String(index), value: Number(read(index)) }));
  if (all.some(({ value }) => !Number.isFinite(value))) {
    return null;
  }
  return { rows, classes, top: all.sort((a, b) => b.value - a.value).slice(0, MOST_SCORES) };
}
