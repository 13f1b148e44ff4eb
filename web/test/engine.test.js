/** @file The engine behind messages: the real onnxruntime-web at the other end, and workers that fail on purpose. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, test } from 'node:test';
import { RemoteEngine } from '../src/engine-client.js';
import { Engine } from '../src/engine.js';
import { tensorFromBytes, tensorOf } from '../src/tensor.js';
import { showInList } from './helpers/console.js';
import { identity } from './helpers/onnx.js';
import { DIST, FILES } from './helpers/runtime.js';
import { channelWorker, crash, toldWorker } from './helpers/worker.js';

const shown = showInList();
const request = (changes = {}) => ({
  wasm: new Uint8Array(readFileSync(new URL(FILES.wasm, DIST))),
  apiUrl: new URL(FILES.api, DIST).href,
  mjsUrl: new URL(FILES.mjs, DIST).href,
  threads: 1,
  model: identity({ x: ['float32', [2]], words: ['string', [1]] }),
  externalData: [],
  executionProvider: 'wasm',
  missAddress: null,
  ...changes,
});
const x = tensorFromBytes('float32', [2], Uint32Array.of(0x7fc12345, 0x80000000));
const words = /** @type {const} */ ({ dtype: 'string', shape: [1], data: ['é☃'] });
const feeds = new Map(Object.entries({ x, words }));

/** @type {import('../src/engine.js').AnyEngine[]} */
const started = [];
/** @template {import('../src/engine.js').AnyEngine} E @param {E} engine */
const kept = (engine) => {
  started.push(engine);
  return engine;
};
afterEach(() => Promise.all(started.splice(0).map((engine) => engine.terminate()))); // open channels keep node awake

const local = () =>
  Promise.resolve(
    kept(new Engine({ now: () => performance.now(), importModule: (/** @type {string} */ url) => import(url) })),
  );
const remote = async (/** @type {() => import('../src/engine-client.js').WorkerLike} */ worker = channelWorker) =>
  kept(/** @type {RemoteEngine} */ (await RemoteEngine.start(worker)));

for (const [where, start] of /** @type {const} */ ([['in the page', local], ['behind messages', () => remote()]])) {
  test(`${where}: what is given comes back bit for bit, timed, and the caller keeps its inputs`, async () => {
    const engine = await start();
    /** @type {string[]} */
    const stages = [];
    const opened = await engine.open(request(), (stage) => stages.push(stage));
    assert.deepEqual([opened.version, opened.threads, stages], ['1.30.0', 1, ['compile', 'create']]);
    assert.ok(opened.compile_ms > 0 && opened.create_ms > 0);
    for (let again = 0; again < 2; again += 1) {
      const { results, run_ms } = await engine.run(feeds, ['x_out', 'words_out']);
      assert.deepEqual(new Uint32Array(/** @type {any} */ (results.get('x_out')).data.buffer), Uint32Array.of(0x7fc12345, 0x80000000));
      assert.deepEqual(results.get('words_out'), words);
      assert.ok(run_ms > 0);
    }
    assert.equal(engine.missed(), 0);
    await engine.terminate();
    await assert.rejects(engine.run(feeds, ['x_out']), /ended|no session/);
  });

  test(`${where}: where nodes went is asked of a session of its own, and nothing of it is shown`, async () => {
    const engine = await start();
    const placed = [{ execution_provider: 'CPUExecutionProvider', node_count: 2, copies: 0, nodes: [] }];
    assert.deepEqual(await engine.place(request()), { placement: placed });
    assert.deepEqual(shown.filter((line) => line.includes('[V:onnx')), []);
    const refusing = await start();
    await assert.rejects(refusing.place(request({ model: Uint8Array.of(1, 2) })), { kind: 'refusal', message: /protobuf/i });
    const { error } = globalThis.console;
    error('seen');
    assert.equal(shown.at(-1), 'seen', 'The console was not given back.');
  });

  test(`${where}: onnxruntime's own words come out, and say whether the model or the files are to blame`, async () => {
    const refusing = await start();
    await assert.rejects(refusing.open(request({ model: Uint8Array.of(1, 2) }), () => {}), { kind: 'refusal', message: /protobuf/i });
    const broken = await start();
    await assert.rejects(broken.open(request({ wasm: Uint8Array.of(1, 2) }), () => {}), { kind: 'load', message: /^CompileError/ });
    const scriptless = await start();
    await assert.rejects(scriptless.open(request({ apiUrl: 'file:///gone.mjs' }), () => {}), { kind: 'load', message: /gone\.mjs/ });
    const running = await start();
    await running.open(request(), () => {});
    const wrong = new Map([...feeds, ['x', tensorOf('float32', [3], () => 0)]]);
    await assert.rejects(running.run(wrong, ['x_out']), { kind: 'refusal', message: /Got: 3|invalid dimensions/ });
  });
} // prettier-ignore

test('a worker that crashes answers every question, those asked later too', async () => {
  const worker = toldWorker(() => {});
  const engine = await remote(() => worker);
  const asked = [engine.run(feeds, ['a']), engine.run(feeds, ['b'])];
  crash(worker, 'Uncaught RangeError: Out of memory');
  for (const question of [...asked, engine.run(feeds, ['c'])]) {
    await assert.rejects(question, { kind: 'end', message: 'The worker of the runtime crashed: RangeError: Out of memory' });
  }
  assert.ok(worker.ended);
}); // prettier-ignore

test('a trap in one of the runtime’s threads, which reaches the page as a crash, is called a trap', async () => {
  const worker = toldWorker(() => {});
  const engine = await remote(() => worker);
  const asked = engine.run(feeds, ['a']);
  crash(worker, 'Uncaught RuntimeError: unreachable');
  await assert.rejects(asked, { kind: 'trap' });
});

test('ending an engine answers what was asked of it', async () => {
  const worker = toldWorker(() => {});
  const engine = await remote(() => worker);
  const asked = engine.run(feeds, ['a']);
  await engine.terminate();
  await assert.rejects(asked, /was ended/);
  assert.ok(worker.ended);
});

test('where no worker starts, there is none', async () => {
  const dying = toldWorker(() => {});
  const start = RemoteEngine.start(() => dying);
  crash(dying, '');
  assert.equal(await start, null);
  const forbidden = RemoteEngine.start(() => {
    throw new Error('SecurityError');
  });
  assert.equal(await forbidden, null);
});

test('the miss address is read in the memory that the worker shares, also after it has grown', async () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 4, shared: true });
  const worker = toldWorker((_, answer) => answer({ kind: 'memory', memory }));
  const engine = await remote(() => worker);
  void engine.open(request({ missAddress: 16 }), () => {}).catch(() => {});
  await new Promise((resolve) => {
    setTimeout(resolve, 20);
  });
  assert.equal(engine.missed(), 0);
  memory.grow(2);
  Atomics.store(new Uint32Array(memory.buffer), 4, 0xfffffff0);
  assert.equal(engine.missed(), 0xfffffff0);
  await engine.terminate();
  assert.equal(engine.missed(), 0xfffffff0, 'what was seen stays known');
});
