/** @file Build a run record: what this device reports. Numbers of tensors travel as safetensors, never as JSON. */

import { encodeTensors, splitValues } from './tensor-codec.js';

/**
 * @typedef {import('./records.js').RunRecord} RunRecord
 * @typedef {import('./tensor.js').Value} Value
 * @typedef {{ id: string, status: 'done' | 'failed' | 'skipped', error: string | null, run_ms: number | null, outputs: Value[] }} CaseRun
 * @typedef {{ id: string, session: 'same' | 'new', equal: boolean, error: string | null, outputs: Value[] }} AgainRun
 * @typedef {Omit<import('./records.js').SoakRun, 'outputs'> & { outputs: Value[] }} SoakRun
 * @typedef {Omit<RunRecord, 'format' | 'cases' | 'again' | 'soak'> & { cases: readonly CaseRun[], again?: readonly AgainRun[], soak?: SoakRun | null }} Report
 */

const SHA256 = /^[0-9a-f]{64}$/;
const CASE_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/**
 * @param {Report} report
 * @returns {{ document: RunRecord, tensors: Uint8Array<ArrayBuffer> }} record.json and record.safetensors
 * @throws {TypeError} when the report could not be a record: better here than as a refusal from afar
 */
export function buildRecord(report) {
  check(report);
  const tensors = new Map();
  /** @param {string} prefix @param {Value[]} outputs */
  const put = (prefix, outputs) => {
    const split = splitValues(prefix, outputs);
    split.tensors.forEach((tensor, key) => tensors.set(key, tensor));
    return split.entries;
  };
  const cases = report.cases.map((run) => ({ ...run, outputs: put(`${run.id}/output`, run.outputs) }));
  const again = (report.again ?? []).map((run) => ({
    ...run,
    outputs: put(`${run.id}/again-${run.session}`, run.outputs),
  }));
  const soak = report.soak ? { ...report.soak, outputs: put(`${report.soak.id}/soak`, report.soak.outputs) } : null;
  return { document: { format: 1, ...report, cases, again, soak }, tensors: encodeTensors(tensors) };
}

/** @param {Report} report */
function check({ run, hashes, timings, cases }) {
  if (run.length > 200) {
    throw new TypeError('The id of a run has at most 200 characters.');
  }
  for (const hash of [hashes.model, hashes.manifest, hashes.runtime]) {
    if (hash !== null && !SHA256.test(hash)) {
      throw new TypeError(`${JSON.stringify(hash)} is not a sha256.`);
    }
  }
  const { later_run_ms, ...single } = timings;
  for (const time of [...Object.values(single), ...later_run_ms, ...cases.map((entry) => entry.run_ms)]) {
    if (time !== null && !(Number.isFinite(time) && time >= 0)) {
      throw new TypeError(`${time} is not a time in milliseconds.`);
    }
  }
  const ids = cases.map((entry) => entry.id);
  const wrong = ids.find((id, index) => !CASE_ID.test(id) || ids.indexOf(id) !== index);
  if (wrong !== undefined) {
    throw new TypeError(`${JSON.stringify(wrong)} is not the id of one case.`);
  }
}
