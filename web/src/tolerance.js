/**
 * @file The rule of tolerance, for a preview on the page. The verdict is edgekit's: edgekit/compare.py is the only judge.
 */

import { reader } from './tensor.js';

/**
 * @typedef {import('./records.js').Tolerance} Tolerance
 * @typedef {import('./tensor.js').Value} Value
 * @typedef {{ match: boolean, reason: string | null, worst: number, allowed: number }} Preview
 *   `worst`: largest absolute error where both are finite; `allowed`: what it may be
 */

/**
 * An element passes when |a - b| <= absolute + relative * scale, scale being the largest finite magnitude of the
 * reference. NaN must meet NaN and an infinity the same one; what has no tolerance (integers, bools, strings)
 * must be equal.
 *
 * @param {Value} reference
 * @param {Value | undefined} value
 * @param {Tolerance | undefined} tolerance of the output, or of the reference's dtype; undefined: exact
 * @param {Value} [leftOpen] bools: true where the standard does not define the reference, so that any element will do
 * @returns {Preview | null} null where there is nothing to compare: the value is not a tensor, or nothing is defined
 */
export function preview(reference, value, tolerance, leftOpen) {
  const expected = reference.tensor;
  const isOpen = openPlaces(leftOpen);
  if (expected === null || (expected.data.length > 0 && expected.data.every((_, index) => isOpen(index)))) {
    return null;
  }
  const actual = value?.tensor ?? null;
  /** @param {string} reason */
  const fails = (reason) => ({ match: false, reason, worst: NaN, allowed: 0 });
  if (actual === null) {
    return fails('missing');
  }
  if (actual.dtype !== expected.dtype) {
    return fails(`${actual.dtype}, not ${expected.dtype}`);
  }
  if (actual.shape.join() !== expected.shape.join()) {
    return fails(`shape [${actual.shape.join(', ')}], not [${expected.shape.join(', ')}]`);
  }
  if (expected.dtype === 'string' || actual.dtype === 'string') {
    const at = expected.data.findIndex((text, index) => text !== actual.data[index] && !isOpen(index));
    return at === -1 ? { match: true, reason: null, worst: 0, allowed: 0 } : fails(`element ${at} differs`);
  }
  return compareNumbers(expected, actual, tolerance, isOpen);
}

/**
 * @param {Value | undefined} leftOpen
 * @returns {(index: number) => boolean} whether any element will do at an index
 */
function openPlaces(leftOpen) {
  const mask = leftOpen?.tensor ?? null;
  return mask === null || mask.dtype === 'string' ? () => false : (index) => Boolean(mask.data[index]);
}

/**
 * @param {import('./tensor.js').NumberTensor} expected
 * @param {import('./tensor.js').NumberTensor} actual
 * @param {Tolerance | undefined} tolerance
 * @param {(index: number) => boolean} isOpen
 * @returns {Preview}
 */
function compareNumbers(expected, actual, tolerance, isOpen) {
  const [a, b, count] = [reader(expected), reader(actual), expected.data.length];
  let scale = 0;
  for (let index = 0; index < count; index += 1) {
    const size = isOpen(index) ? 0 : Math.abs(Number(a(index)));
    scale = Number.isFinite(size) && size > scale ? size : scale;
  }
  const allowed = tolerance === undefined ? 0 : tolerance.absolute + tolerance.relative * scale;
  let worst = 0;
  let reason = null;
  for (let index = 0; index < count; index += 1) {
    const [x, y] = [a(index), b(index)];
    // A bigint difference keeps what a number would round away.
    const error =
      typeof x === 'bigint' && typeof y === 'bigint' ? Math.abs(Number(x - y)) : Math.abs(Number(x) - Number(y));
    const same = isOpen(index) || x === y || (Number.isNaN(x) && Number.isNaN(y));
    if (!same && !Number.isFinite(error)) {
      reason ??= `element ${index} is ${y}, not ${x}`;
    } else if (!same && error > worst) {
      worst = error;
    }
  }
  return { match: reason === null && worst <= allowed, reason, worst, allowed };
}

/**
 * @param {Value} reference
 * @param {{ tolerance: Record<string, Tolerance>, output_tolerance: Record<string, Tolerance> }} cases
 * @returns {Tolerance | undefined}
 */
export function toleranceOf({ name, dtype }, { tolerance, output_tolerance }) {
  return Object.hasOwn(output_tolerance, name)
    ? output_tolerance[name]
    : Object.hasOwn(tolerance, dtype)
      ? tolerance[dtype]
      : undefined;
}
