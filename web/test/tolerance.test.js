/** @file The preview judges the shared samples as edgekit.compare does (tests/contract/test_tolerance_samples.py). */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isNumberDtype, stringTensor, tensorOf } from '../src/tensor.js';
import { preview, toleranceOf } from '../src/tolerance.js';

/**
 * @typedef {{ name: string, dtype: string, value_dtype?: string, reference: (number | string)[], value: (number | string)[] | null,
 *   left_open?: boolean[], relative: number | null, absolute: number | null, match: boolean }} Sample
 */

/** @type {Sample[]} */
const SAMPLES = JSON.parse(readFileSync(new URL('../../tests/models/tolerance_samples.json', import.meta.url), 'utf8'));

/**
 * @param {string} dtype
 * @param {(number | string)[]} elements of which those that JSON cannot say are text
 * @returns {import('../src/tensor.js').Value}
 */
function value(dtype, elements) {
  if (!isNumberDtype(dtype)) {
    return { name: 'y', dtype, tensor: stringTensor([elements.length], elements.map(String)) };
  }
  const read = (/** @type {number} */ index) =>
    dtype === 'int64' ? BigInt(elements[index] ?? 0) : Number(elements[index]);
  return { name: 'y', dtype, tensor: tensorOf(dtype, [elements.length], read) };
}

test('there are samples of both kinds', () => {
  assert.ok(SAMPLES.some(({ match }) => match) && SAMPLES.some(({ match }) => !match));
});
for (const { name, dtype, value_dtype, reference, value: given, left_open, relative, absolute, match } of SAMPLES) {
  test(name, () => {
    // null: no tolerance is given, so nothing but equality passes.
    const tolerance = relative === null || absolute === null ? undefined : { relative, absolute };
    const actual = given === null ? undefined : value(value_dtype ?? dtype, given);
    const open = left_open === undefined ? undefined : value('bool', left_open.map(Number));
    assert.equal(preview(value(dtype, reference), actual, tolerance, open)?.match, match);
  });
}

test('what the standard leaves open as a whole is not compared', () => {
  assert.equal(preview(value('int32', [1]), value('int32', [2]), undefined, value('bool', [1])), null);
});

test('what is not a tensor is not compared', () => {
  assert.equal(preview({ name: 'm', dtype: 'map', tensor: null }, undefined, undefined), null);
});

test('without a tolerance nothing but equality passes', () => {
  assert.equal(preview(value('float32', [1]), value('float32', [1.0000001]), undefined)?.match, false);
});

test('the tolerance of an output goes before that of its dtype', () => {
  const [tight, loose] = [{ relative: 0, absolute: 0 }, { relative: 1, absolute: 1 }]; // prettier-ignore
  const cases = { tolerance: { float32: tight }, output_tolerance: { y: loose } };
  assert.equal(toleranceOf({ name: 'y', dtype: 'float32', tensor: null }, cases), loose);
  assert.equal(toleranceOf({ name: 'z', dtype: 'float32', tensor: null }, cases), tight);
  assert.equal(toleranceOf({ name: 'constructor', dtype: 'toString', tensor: null }, cases), undefined);
});
