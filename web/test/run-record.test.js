import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildRecord } from '../src/run-record.js';
import { decodeTensors } from '../src/tensor-codec.js';
import { tensorOf } from '../src/tensor.js';
import { schema } from './helpers/schemas.js';

/** @type {import('../src/run-record.js').Report} */
const REPORT = {
  run: 'r',
  hashes: { manifest: null, model: '0'.repeat(64), runtime: null },
  environment: {
    runner: 'page', runtime: 'onnxruntime-web', runtime_version: '1', variant: null, execution_provider_asked: 'wasm', execution_provider: null,
    threads: 1, cross_origin_isolated: null, adapter: null, user_agent: null, device: null,
  },
  attempts: [],
  timings: { fetch_ms: 1.5, compile_ms: null, create_ms: null, first_run_ms: null, later_run_ms: [0] },
  error: null,
  cases: [{ id: 'a', status: 'done', error: null, run_ms: 1, outputs: [{ name: 'y', dtype: 'float32', tensor: tensorOf('float32', [2], () => NaN) }] }],
}; // prettier-ignore

test('a report becomes a record that fits the contract, its numbers in the tensors alone', () => {
  const { document, tensors } = buildRecord(REPORT);
  assert.equal(schema('record')(JSON.parse(JSON.stringify(document))), null);
  assert.deepEqual([...(decodeTensors(tensors, 'it').get('a/output/y')?.data ?? [])], [NaN, NaN]);
  assert.ok(!JSON.stringify(document).includes('NaN'));
});

const one = /** @type {import('../src/run-record.js').CaseRun} */ (REPORT.cases[0]);
/** @type {[string, Partial<import('../src/run-record.js').Report>][]} */
const IMPOSSIBLE = [
  ['a run id that is too long', { run: 'x'.repeat(201) }],
  ['a hash that is none', { hashes: { ...REPORT.hashes, model: 'abc' } }],
  ['a time that is not a number', { timings: { ...REPORT.timings, create_ms: NaN } }],
  ['a negative time', { timings: { ...REPORT.timings, later_run_ms: [-1] } }],
  ['a case time that is infinite', { cases: [{ ...one, run_ms: Infinity }] }],
  ['a case without a proper id', { cases: [{ ...one, id: '../a' }] }],
  ['two cases of one id', { cases: [one, one] }],
];
for (const [what, change] of IMPOSSIBLE) {
  test(`${what} is noticed before it is sent`, () => {
    assert.throws(() => buildRecord({ ...REPORT, ...change }), TypeError);
  });
}
