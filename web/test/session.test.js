import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Session } from '../src/session.js';
import { tensorOf } from '../src/tensor.js';

/** @typedef {import('../src/tensor.js').Tensor} Tensor */

const OUTPUTS = [
  { name: 'y', dtype: 'float32', readable: true },
  { name: 'odd', dtype: 'seq(tensor(float))', readable: false },
  { name: 'next', dtype: 'float32', readable: true },
];

/** @param {number} value */
const scalar = (value) => tensorOf('float32', [], () => value);

/** @param {number} value */
const inputs = (value) => [{ name: 'x', dtype: 'float32', tensor: scalar(value) }];

/**
 * A runner that doubles x into y and adds one into next; it fails on 13, and keeps a log.
 *
 * @param {string[]} log
 * @returns {import('../src/session.js').Runner}
 */
function doubling(log) {
  return {
    async run(feeds, fetches) {
      const x = Number(feeds.get('x')?.data[0]);
      log.push(`start ${x}`);
      await new Promise((resolve) => {
        setTimeout(resolve, 5 - (x % 5));
      });
      log.push(`end ${x}`);
      if (x === 13) {
        throw new Error('thirteen');
      }
      const all = new Map([['y', scalar(2 * x)], ['next', scalar(x + 1)]]); // prettier-ignore
      return { results: new Map(fetches.map((name) => [name, /** @type {Tensor} */ (all.get(name))])), run_ms: 10 };
    },
    terminate() {
      log.push('released');
      return Promise.resolve();
    },
  };
}

test('requests run one at a time, in order, and go on after one that failed', async () => {
  /** @type {string[]} */
  const log = [];
  const session = new Session(doubling(log), OUTPUTS);
  const results = await Promise.allSettled([1, 13, 3].map((value) => session.run(inputs(value))));
  assert.deepEqual(log, ['start 1', 'end 1', 'start 13', 'end 13', 'start 3', 'end 3']);
  assert.deepEqual(results.map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled']); // prettier-ignore
  assert.match(String(results[1]?.status === 'rejected' && results[1].reason), /thirteen/);
});

test('outputs come in the model’s order, with a note where they cannot be read', async () => {
  const { outputs, run_ms } = await new Session(doubling([]), OUTPUTS).run(inputs(4));
  assert.deepEqual(outputs.map(({ name, dtype }) => [name, dtype]), [['y', 'float32'], ['odd', 'seq(tensor(float))'], ['next', 'float32']]); // prettier-ignore
  assert.deepEqual(outputs.map(({ tensor }) => tensor?.data[0]), [8, undefined, 5]); // prettier-ignore
  assert.match(outputs[1]?.note ?? '', /tensors only/);
  assert.equal(run_ms, 10);
});

test('fed-back outputs reach the next step, and the last step is reported', async () => {
  /** @type {string[]} */
  const log = [];
  const given = inputs(1);
  const { outputs, run_ms } = await new Session(doubling(log), OUTPUTS).run(given, { steps: 3, links: { x: 'next' } });
  assert.deepEqual(log.filter((line) => line.startsWith('start')), ['start 1', 'start 2', 'start 3']); // prettier-ignore
  assert.equal(outputs[0]?.tensor?.data[0], 6);
  assert.equal(run_ms, 30, 'the time is that of all steps together');
  assert.equal(given[0]?.tensor.data[0], 1, 'the inputs of the case stay as they were');
});

test('a link to an output that is not a tensor is said by name', async () => {
  const run = new Session(doubling([]), OUTPUTS).run(inputs(1), { steps: 2, links: { x: 'odd' } });
  await assert.rejects(run, /"odd" is to be fed back/);
});

test('an input that is not a tensor is said by name', async () => {
  const run = new Session(doubling([]), OUTPUTS).run([{ name: 'm', dtype: 'map', tensor: null, note: 'a map' }]);
  await assert.rejects(run, /"m" is not a tensor: a map/);
});

test('disposing waits for the runs before it, and refuses those after it', async () => {
  /** @type {string[]} */
  const log = [];
  const session = new Session(doubling(log), OUTPUTS);
  const before = session.run(inputs(2));
  const disposed = session.dispose();
  await assert.rejects(session.run(inputs(3)), /disposed/);
  await Promise.all([before, disposed, session.dispose()]);
  assert.deepEqual(log, ['start 2', 'end 2', 'released']);
});
