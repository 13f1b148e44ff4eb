/** @file Where nodes went, read from what onnxruntime-web 1.30.0 really said of three models on each of its builds. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { PlacementReader, eavesdrop } from '../src/placement.js';

/** @param {string} name */
const captured = (name) =>
  readFileSync(new URL(`captured/${name}.txt`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n');

/** @param {readonly string[]} lines */
function read(lines) {
  const reader = new PlacementReader();
  lines.forEach((line) => reader.hear(line));
  return reader.placement();
}

/** @param {string} text @param {string} [level] */
const says = (text, level = 'V') =>
  `2026-11-30 00:01:22.252374 [${level}:onnxruntime:, session_state.cc:1380 Verify] ${text}`;
/** @param {string} provider @param {number} count */
const heads = (provider, count) => says(` Node(s) placed on [${provider}]. Number of nodes: ${count}`); // prettier-ignore
const BEGIN = says('Node placements');

/** @param {ReturnType<typeof read>} placement */
const counts = (placement) => placement?.map(({ execution_provider, node_count, copies, nodes }) => [execution_provider, node_count, copies, nodes.length]); // prettier-ignore

for (const [name, expected] of /** @type {const} */ ([
  ['digits.wasm', [['CPUExecutionProvider', 8, 0, 0]]],
  ['digits.jspi', [['WebGpuExecutionProvider', 11, 0, 0]]],
  ['digits.asyncify', [['WebGpuExecutionProvider', 11, 0, 0]]],
  ['silero.wasm', [['CPUExecutionProvider', 78, 0, 0]]],
  ['silero.jspi', [['WebGpuExecutionProvider', 81, 0, 81], ['CPUExecutionProvider', 3, 0, 3]]],
  ['silero.asyncify', [['WebGpuExecutionProvider', 81, 0, 81], ['CPUExecutionProvider', 3, 0, 3]]],
  ['det.jspi', [['CPUExecutionProvider', 1, 0, 1], ['WebGpuExecutionProvider', 2, 2, 2]]],
  ['det.asyncify', [['CPUExecutionProvider', 1, 0, 1], ['WebGpuExecutionProvider', 2, 2, 2]]],
  ['shrink.jspi', [['CPUExecutionProvider', 2, 0, 2], ['WebGpuExecutionProvider', 3, 4, 3]]],
])) {
  test(`what was captured of ${name} is read`, () => assert.deepEqual(counts(read(captured(name))), expected));
} // prettier-ignore

test('nodes keep their names and operators, in branches too', () => {
  const [gpu, cpu] = read(captured('silero.jspi')) ?? [];
  assert.deepEqual(gpu?.nodes[0], { name: 'node_cond__1', op_type: 'If' });
  assert.deepEqual(cpu?.nodes, [
    { name: 'node_Reshape_1', op_type: 'Reshape' },
    { name: 'node_Gather_3', op_type: 'Gather' },
    { name: 'node_eq_2', op_type: 'Equal' },
  ]);
  assert.deepEqual(read(captured('det.jspi'))?.[0]?.nodes, [{ name: '', op_type: 'Det' }]);
});

test('a report that was cut short, or never came, is none', () => {
  const whole = captured('silero.jspi');
  const last = whole.findIndex((line) => line.includes('(node_eq_2)'));
  assert.notEqual(read(whole.slice(0, last + 1)), null);
  assert.equal(read(whole.slice(0, last)), null);
  assert.equal(read(whole.filter((line) => !line.includes('(node_pad)'))), null);
  assert.equal(read(whole.filter((line) => !line.includes('Node placements'))), null);
  assert.equal(read([]), null);
});

test('copies are counted where the runtime names no node, and a model may have none', () => {
  const added = says('Add MemcpyToHost before a for WebGpuExecutionProvider', 'I');
  const all = says(' All nodes placed on [WebGpuExecutionProvider]. Number of nodes: 5');
  assert.deepEqual(counts(read([added, added, BEGIN, all])), [['WebGpuExecutionProvider', 3, 2, 0]]);
  assert.deepEqual(read([BEGIN, says('Saving')]), []);
});

test('names may hold parentheses and line ends, and may not hold the record up', () => {
  const [first, ...rest] = says('  Relu (a) (b\nPad (c)').split('\n');
  const long = says(`  Relu (${'n'.repeat(700)})`);
  const [placed] = read([BEGIN, heads('X', 3), String(first), ...rest, long, says('  Neg ()'), says('Saving'), says('  Abs (later)')]) ?? [];
  assert.deepEqual(placed?.nodes[0], { name: 'a) (b\nPad (c', op_type: 'Relu' });
  assert.equal(placed?.nodes[1]?.name.length, 500);
  assert.equal(placed?.nodes.length, 3);
}); // prettier-ignore

test('of a hundred thousand nodes the counts are kept, and the names of those in the smallest part', () => {
  const many = Array.from({ length: 100_000 }, (_, index) => says(`  Add (node_${index})`));
  const few = Array.from({ length: 30 }, (_, index) => says(`  Gather (g_${index})`));
  const placement = read([BEGIN, heads('Gpu', many.length), ...many, heads('Cpu', few.length), ...few]);
  assert.deepEqual(counts(placement), [['Gpu', 100_000, 0, 19_970], ['Cpu', 30, 0, 30]]); // prettier-ignore
  assert.ok(JSON.stringify(placement).length < 1_000_000);
});

test('a console that is listened to shows nothing, and is given back', () => {
  /** @type {string[]} */
  const shown = [];
  const spoken = { error: (/** @type {string[]} */ ...said) => void shown.push(said.join(' ')), log() {}, info() {}, debug() {}, warn() {} };
  const own = spoken.error;
  /** @type {string[]} */
  const heard = [];
  const restore = eavesdrop(spoken, (said) => heard.push(said));
  spoken.error('a', '1');
  restore();
  spoken.error('b');
  assert.deepEqual([heard, shown, spoken.error === own], [['a 1'], ['b'], true]);
}); // prettier-ignore
