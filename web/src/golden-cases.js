/** @file The bundle's golden cases, read and checked. */

import { fetchBytes, fetchJson } from './download.js';
import { decodeTensors, joinValues } from './tensor-codec.js';

/**
 * @typedef {import('./records.js').CaseSet} CaseSet
 * @typedef {import('./records.js').Case} CaseEntry
 * @typedef {import('./tensor.js').Value} Value
 * @typedef {Omit<CaseEntry, 'inputs' | 'outputs' | 'left_open'> & { inputs: Value[], outputs: Value[], left_open: Value[] }} GoldenCase
 *   `left_open`: by the name of an output, where the standard does not define it
 * @typedef {Omit<CaseSet, 'cases'> & { cases: GoldenCase[] }} GoldenCases
 */

/**
 * @param {{ cases_url: string, tensors_url: string }} config
 * @param {import('./download.js').Source} source
 * @returns {Promise<GoldenCases>}
 * @throws {Error} when the files cannot be fetched, are of another format, or do not fit each other
 */
export async function fetchCases(config, source) {
  const [document, bytes] = await Promise.all([
    fetchJson(source, config.cases_url),
    fetchBytes(source, config.tensors_url),
  ]);
  if (typeof document !== 'object' || document === null || !('format' in document) || document.format !== 1) {
    throw new TypeError('cases.json is not of format 1, which is the one that this page reads.');
  }
  const set = /** @type {CaseSet} */ (document);
  const tensors = decodeTensors(bytes, 'cases.safetensors');
  return {
    ...set,
    cases: set.cases.map((entry) => ({
      ...entry,
      inputs: joinValues(entry.inputs, tensors),
      outputs: joinValues(entry.outputs, tensors),
      left_open: joinValues(entry.left_open ?? [], tensors),
    })),
  };
}

/**
 * The case whose inputs are run first, and timed: one that feeds nothing back, where there is one.
 *
 * @param {readonly GoldenCase[]} cases
 * @returns {GoldenCase | null}
 */
export function timingCase(cases) {
  return cases.find((entry) => entry.feed_back === null) ?? cases[0] ?? null;
}
