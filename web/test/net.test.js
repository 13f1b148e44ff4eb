/** @file The net, with workers that miss, hang, crash and refuse on purpose. The real ones are tried in a browser. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RemoteEngine } from '../src/engine-client.js';
import { NettedRunner } from '../src/net.js';
import { tensorOf } from '../src/tensor.js';
import { crash, toldWorker } from './helpers/worker.js';

/** @typedef {import('../src/engine-server.js').Answer} Answer */
/** @typedef {import('../src/engine-server.js').Question} Question */
/** @typedef {(question: Question, answer: (answer: Answer) => void, worker: import('../src/engine-client.js').WorkerLike) => void} Behaviour */

const FILES = { api_url: 'a', mjs_url: 'm', wasm_url: 'w', wasm_sha256: '0'.repeat(64), wasm_bytes: 1 };
const VARIANT = { ...FILES, id: 'jspi', execution_provider: 'webgpu', needs: [], trimmed: { miss_address: 16, net: 'cpu' } }; // prettier-ignore
const NET = { ...FILES, id: 'cpu', execution_provider: 'wasm' };

const opened = { version: '1', threads: 1, compile_ms: 1, create_ms: 2 };
const results = (/** @type {number} */ value) => ({ results: new Map([['y', tensorOf('float32', [], () => value)]]), run_ms: 3 }); // prettier-ignore

/** @type {Behaviour} */
const stock = ({ id, kind }, answer) =>
  answer({ id, kind: 'done', value: kind === 'open' ? opened : results(7), missed: 0 });

/** @param {Behaviour} run @returns {Behaviour} a trimmed runtime that opens, and then does `run` */
const opensThen = (run) => (question, answer, worker) =>
  question.kind === 'open' ? stock(question, answer, worker) : run(question, answer, worker);

/**
 * @param {Behaviour} trimmed
 * @param {Behaviour | null} [net] null: there is none
 */
function netted(trimmed, net = stock) {
  /** @type {string[]} */
  const launched = [];
  /** @type {ReturnType<typeof toldWorker>[]} */
  const workers = [];
  const runner = new NettedRunner({
    variant: VARIANT,
    net: net === null ? null : NET,
    launch: async (files) => {
      launched.push(files.id);
      const does = files.id === VARIANT.id ? trimmed : /** @type {Behaviour} */ (net);
      /** @type {ReturnType<typeof toldWorker>} */
      const worker = toldWorker((question, answer) => does(question, answer, worker));
      workers.push(worker);
      const engine = /** @type {RemoteEngine} */ (await RemoteEngine.start(() => worker));
      const request = /** @type {import('../src/engine.js').OpenRequest} */ (
        /** @type {unknown} */ ({ wasm: new Uint8Array(1), missAddress: files.id === VARIANT.id ? 16 : null })
      );
      return { engine, sha256: files.id, fetch_ms: 10, open: () => engine.open(request, () => {}) };
    },
    onMiss: (_, text) => said.push(text),
  });
  /** @type {string[]} */
  const said = [];
  return { runner, launched, workers, said };
}

const run = async (/** @type {NettedRunner} */ runner) => {
  const reply = await runner.run(new Map(), ['y']);
  return reply.results.get('y')?.data[0];
};

/** @type {[string, Behaviour, object][]} */
const MISSES = [
  ['a trap', ({ id }, answer) => answer({ id, kind: 'failed', failure: 'trap', message: 'RuntimeError: unreachable', missed: 5 }), { reason: 'trap', functions: [4], message: 'RuntimeError: unreachable' }],
  ['a trap that left no flag', ({ id }, answer) => answer({ id, kind: 'failed', failure: 'trap', message: 'RuntimeError: unreachable', missed: 0 }), { reason: 'trap', functions: [] }],
  ['an answer with the flag up', ({ id }, answer) => answer({ id, kind: 'done', value: results(1), missed: 5 }), { reason: 'flag', functions: [4] }],
  ['a refusal with the flag up', ({ id }, answer) => answer({ id, kind: 'failed', failure: 'refusal', message: 'odd', missed: 5 }), { reason: 'flag', functions: [4], message: 'odd' }],
  ['silence after the flag went up, twice', (_, answer) => { answer({ kind: 'missed', missed: 9 }); setTimeout(() => answer({ kind: 'missed', missed: 5 }), 200); }, { reason: 'silence', functions: [4, 8] }],
  ['a crash in a thread', (_, __, worker) => crash(worker, 'Uncaught RuntimeError: unreachable'), { reason: 'trap', functions: [] }],
]; // prettier-ignore
for (const [what, behaviour, expected] of MISSES) {
  test(`${what} is a miss: the runtime is ended, the net answers, and goes on answering`, async () => {
    const { runner, launched, workers, said } = netted(opensThen(behaviour));
    await runner.open();
    assert.equal(runner.running?.execution_provider, 'webgpu');
    assert.deepEqual(launched, ['jspi'], 'the net is not fetched before a miss');
    assert.deepEqual([await run(runner), await run(runner)], [7, 7]);
    assert.deepEqual(launched, ['jspi', 'cpu']);
    assert.deepEqual(workers.map(({ ended }) => ended), [true, false]); // prettier-ignore
    assert.partialDeepStrictEqual(runner.misses, [
      { variant: 'jspi', during: 'run', recovered_by: 'cpu', ...expected },
    ]);
    assert.partialDeepStrictEqual(runner.running, { execution_provider: 'wasm', sha256: 'cpu', fetch_ms: 20 });
    assert.equal(said.length, 1);
    assert.match(said[0] ?? '', /trimmed runtime of variant jspi lacks/);
    await runner.terminate();
    assert.ok(workers[1]?.ended);
  });
}

test('a miss while the session is created is recovered there', async () => {
  const { runner, launched } = netted(({ id }, answer) =>
    answer({ id, kind: 'failed', failure: 'trap', message: 't', missed: 2 }),
  );
  await runner.open();
  assert.equal(await run(runner), 7);
  assert.deepEqual(launched, ['jspi', 'cpu']);
  assert.partialDeepStrictEqual(runner.misses, [{ during: 'create', functions: [1], recovered_by: 'cpu' }]);
});

test('what onnxruntime refuses with the flag down comes through, and is no miss', async () => {
  const { runner, launched } = netted(
    opensThen(({ id }, answer) => answer({ id, kind: 'failed', failure: 'refusal', message: 'Got: 3', missed: 0 })),
  );
  await runner.open();
  await assert.rejects(run(runner), { kind: 'refusal', message: 'Got: 3' });
  assert.deepEqual([launched, runner.misses], [['jspi'], []]);
});

const NO_KERNEL = "Could not find an implementation for Acosh(9) node with name ''";
/** @type {(message: string) => Behaviour} */
const refuses =
  (message) =>
  ({ id }, answer) =>
    answer({ id, kind: 'failed', failure: 'refusal', message, missed: 0 });

test('a kernel that was left out is a miss: the net has it', async () => {
  const { runner, launched, said } = netted(refuses(NO_KERNEL));
  await runner.open();
  assert.equal(await run(runner), 7);
  assert.deepEqual(launched, ['jspi', 'cpu']);
  assert.deepEqual(runner.misses, [
    { variant: 'jspi', functions: [], during: 'create', recovered_by: 'cpu', reason: 'kernel', message: NO_KERNEL },
  ]);
  assert.match(said[0] ?? '', /lacks a kernel \(Could not find an implementation for Acosh/);
});

test('a kernel that the stock runtime lacks as well was not missed, and its words come through', async () => {
  const { runner, said } = netted(refuses(NO_KERNEL), refuses(NO_KERNEL));
  await assert.rejects(runner.open(), { kind: 'refusal', message: NO_KERNEL });
  assert.deepEqual([runner.misses, said], [[], []]);
});

test('without a net, a kernel that was left out is an error that says so', async () => {
  const { runner } = netted(refuses(NO_KERNEL), null);
  await assert.rejects(runner.open(), { kind: 'miss', message: /Acosh.*--net none.*--add-profile/ });
  assert.partialDeepStrictEqual(runner.misses, [{ recovered_by: null, reason: 'kernel' }]);
});

for (const message of ['No Op registered for Frob with domain_version of 17', 'Failed to load model']) {
  test(`another refusal of a session is no miss: ${message}`, async () => {
    const { runner, launched } = netted(refuses(message));
    await assert.rejects(runner.open(), { kind: 'refusal', message });
    assert.deepEqual([launched, runner.misses], [['jspi'], []]);
  });
}

test('a run that is refused in such words is no miss: kernels are looked up when a session is created', async () => {
  const { runner, launched } = netted(opensThen(refuses(NO_KERNEL)));
  await runner.open();
  await assert.rejects(run(runner), { kind: 'refusal', message: NO_KERNEL });
  assert.deepEqual(launched, ['jspi']);
});

test('silence without the flag is waited out: it is honest work', async () => {
  const { runner } = netted(
    opensThen(({ id }, answer) => setTimeout(() => answer({ id, kind: 'done', value: results(1), missed: 0 }), 1500)),
  );
  await runner.open();
  assert.equal(await run(runner), 1);
  assert.deepEqual(runner.misses, []);
});

test('a crash that is no trap, with the flag down, is an error and no miss', async () => {
  const { runner, launched } = netted(
    opensThen((_, __, worker) => crash(worker, 'Uncaught RangeError: Out of memory')),
  );
  await runner.open();
  await assert.rejects(run(runner), { kind: 'end', message: /Out of memory/ });
  assert.deepEqual([launched, runner.misses], [['jspi'], []]);
});

/** @type {Behaviour} */
const traps = ({ id }, answer) =>
  answer({ id, kind: 'failed', failure: 'trap', message: 'RuntimeError: t', missed: 5 });

test('without a net the error says which function and what to do, and the next call gets a runtime again', async () => {
  let calls = 0;
  const { runner, launched } = netted(
    opensThen((question, answer, worker) => {
      calls += 1;
      (calls === 1 ? traps : stock)(question, answer, worker);
    }),
    null,
  );
  await runner.open();
  await assert.rejects(run(runner), {
    kind: 'miss',
    message: /lacks group 4 of its functions, .*--net cpu.*--add-profile/,
  });
  assert.partialDeepStrictEqual(runner.misses, [{ recovered_by: null, functions: [4] }]);
  assert.equal(await run(runner), 7);
  assert.deepEqual(launched, ['jspi', 'jspi']);
});

test('what the net’s runtime refuses is its own answer', async () => {
  const { runner } = netted(traps, ({ id }, answer) =>
    answer({ id, kind: 'failed', failure: 'refusal', message: 'no such operator', missed: 0 }),
  );
  await assert.rejects(runner.open(), { kind: 'refusal', message: 'no such operator' });
  assert.partialDeepStrictEqual(runner.misses, [{ during: 'create', recovered_by: 'cpu' }]);
});

test('a net that does not start is said, with what was missed', async () => {
  const { runner } = netted(traps, (_, __, worker) => crash(worker, 'it fell'));
  await assert.rejects(runner.open(), { kind: 'miss', message: /lacks group 4.*did not start.*it fell/ });
  assert.partialDeepStrictEqual(runner.misses, [{ recovered_by: null }]);
});

test('a stock runtime that traps is a plain error', async () => {
  const { runner, launched } = netted(opensThen(traps), opensThen(traps));
  await runner.open();
  await assert.rejects(run(runner), { kind: 'trap', message: 'RuntimeError: t' });
  assert.deepEqual(launched, ['jspi', 'cpu']);
  assert.equal(runner.misses.length, 1);
});
