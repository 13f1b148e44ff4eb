/** @file The agent on the real runtime: records that fit the contract, whatever happens. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sessionOf } from '../src/open-model.js';
import { agentOptions, postRecord, runParity } from '../src/parity-agent.js';
import { decodeTensors } from '../src/tensor-codec.js';
import { tensorOf } from '../src/tensor.js';
import { bundle, digest, host } from './helpers/bundle.js';
import { showInList } from './helpers/console.js';
import { model, node, tensorInfo } from './helpers/onnx.js';
import { schema } from './helpers/schemas.js';
import { channelWorker, toldWorker } from './helpers/worker.js';

/** @param {...number} values */
const floats = (...values) => tensorOf('float32', [values.length], (index) => values[index] ?? 0);

/** y = x + s, next = y + y; `bag` is a sequence, which cannot be read. */
const MODEL = model({
  nodes: [node('Add', ['x', 's'], ['y']), node('Add', ['y', 'y'], ['next']), node('SequenceConstruct', ['y'], ['bag'])],
  inputs: [tensorInfo('x', 'float32', ['N']), tensorInfo('s', 'float32', ['N'])],
  outputs: [tensorInfo('y', 'float32', ['N']), [[1, 'bag'], [2, [[4, [[1, [[1, [[1, 1]]]]]]]]]], tensorInfo('next', 'float32', ['N'])],
}); // prettier-ignore
const OUTPUTS = [
  { name: 'y', dtype: 'float32', shape: ['N'], readable: true },
  { name: 'bag', dtype: 'seq(tensor(float))', shape: null, readable: false },
  { name: 'next', dtype: 'float32', shape: ['N'], readable: true },
];

/**
 * @param {string} id
 * @param {import('../src/tensor.js').NumberTensor} x
 * @param {import('../src/tensor.js').NumberTensor} s
 */
const golden = (id, x, s) => ({
  id,
  inputs: [{ name: 'x', dtype: 'float32', tensor: x }, { name: 's', dtype: 'float32', tensor: s }],
  outputs: [{ name: 'y', dtype: 'float32', tensor: x }],
}); // prettier-ignore
const CASES = [
  { ...golden('loop', floats(1), floats(0)), feed_back: { steps: 3, links: { s: 'next' } } },
  golden('plain', floats(1, 2), floats(10, 20)),
  golden('broken', floats(1, 2), floats(1, 2, 3)),
];
const ASKED = {
  run: 'r',
  repeats: 2,
  variant: null,
  threads: null,
  cases: null,
  problem: null,
  again: false,
  soak: 0,
  placement_until_ms: null,
};
const fits = schema('record');
showInList();

/** A bundle of its own for each test: tests change it. */
const made = () => bundle(MODEL, CASES, { outputs: OUTPUTS });

/**
 * @param {ReturnType<typeof made>} bundled
 * @param {Partial<import('../src/bench.js').AgentOptions>} [options]
 * @param {Partial<import('../src/environment.js').Host>} [changes]
 */
async function report({ config, files }, options = {}, changes = {}) {
  const result = await runParity(config, host(files, changes), { ...ASKED, ...options }, () => {});
  assert.equal(fits(JSON.parse(JSON.stringify(result.document))), null);
  return result;
}

test('all golden cases are replayed and reported, the failing one too', async () => {
  const { document, tensors } = await report(made());
  assert.equal(document.error, null);
  assert.deepEqual(document.cases.map(({ id, status }) => [id, status]), [['loop', 'done'], ['plain', 'done'], ['broken', 'failed']]); // prettier-ignore
  assert.match(document.cases[2]?.error ?? '', /broadcast/);
  assert.match(document.cases[1]?.outputs[1]?.note ?? '', /tensors only/);
  const values = decodeTensors(tensors, 'record');
  assert.deepEqual([...(values.get('plain/output/y')?.data ?? [])], [11, 22]);
  // 1, then s = 2 gives 3, then s = 6 gives 7.
  assert.deepEqual([...(values.get('loop/output/y')?.data ?? [])], [7]);
  assert.deepEqual(document.attempts, [
    { variant: 'wasm', execution_provider: 'wasm', status: 'created', reason: null },
  ]);
});

test('hashes are of the bytes that were loaded, and the environment says what ran', async () => {
  const bundled = made();
  const { document } = await report(bundled);
  assert.deepEqual(document.hashes, {
    manifest: digest(bundled.files.get('manifest.json') ?? ''),
    model: digest(MODEL),
    runtime: bundled.config.variants[0]?.wasm_sha256,
  });
  const {
    runner,
    runtime_version,
    variant,
    execution_provider,
    execution_provider_asked,
    threads,
    cross_origin_isolated,
  } = document.environment;
  assert.deepEqual(
    { runner, runtime_version, variant, execution_provider, execution_provider_asked, threads, cross_origin_isolated },
    {
      runner: 'page',
      runtime_version: '1.30.0',
      variant: 'wasm',
      execution_provider: 'wasm',
      execution_provider_asked: 'wasm',
      threads: 1,
      cross_origin_isolated: false,
    },
  );
});

test('each part is timed apart, and later runs as often as asked', async () => {
  const { timings } = (await report(made(), { repeats: 4 })).document;
  for (const time of [timings.fetch_ms, timings.compile_ms, timings.create_ms, timings.first_run_ms]) {
    assert.ok(Number(time) > 0);
  }
  assert.equal(timings.later_run_ms.length, 4);
});

test('a selection of cases leaves the others as entries', async () => {
  const { document } = await report(made(), { cases: ['plain'] });
  assert.deepEqual(document.cases.map(({ id, status }) => [id, status]), [['loop', 'skipped'], ['plain', 'done'], ['broken', 'skipped']]); // prettier-ignore
});

/** Workers of which the first is real, and the second does what is told once it is asked where nodes went. */
const secondly = (/** @type {Parameters<typeof toldWorker>[0]} */ onQuestion) => {
  /** @type {(import('../src/engine-client.js').WorkerLike & { ended: boolean })[]} */
  const workers = [];
  const createWorker = () => {
    workers.push(workers.length === 0 ? channelWorker() : toldWorker(onQuestion));
    return /** @type {Worker} */ (/** @type {unknown} */ (workers.at(-1)));
  };
  return { workers, createWorker };
};
const HOUR = 3_600_000;

test('where nodes went is reported when it is asked for, and the times are those of the first session', async () => {
  const { document } = await report(made(), { placement_until_ms: HOUR });
  const placed = { execution_provider: 'CPUExecutionProvider', node_count: 3, copies: 0, nodes: [] };
  assert.deepEqual(document.placement, [placed]);
  assert.deepEqual(document.cases.map(({ status }) => status), ['done', 'done', 'failed']); // prettier-ignore
  const unasked = (await report(made())).document;
  assert.equal(unasked.placement, null);
  // The clock of these tests goes on by one step a look: equal times are equal numbers of looks.
  assert.deepEqual(unasked.timings, document.timings);
});

/** @type {[string, Parameters<typeof toldWorker>[0], number][]} */
const UNKNOWN = [
  ['a runtime that says nothing', ({ id }, answer) => answer({ kind: 'done', id, value: { placement: null }, missed: 0 }), HOUR],
  ['a runtime that traps', ({ id }, answer) => answer({ kind: 'failed', id, message: 'unreachable', failure: 'trap', missed: 0 }), HOUR],
  ['a runtime that falls silent', () => {}, 400],
  ['a time that is over', () => assert.fail('It was asked all the same.'), 0],
]; // prettier-ignore
for (const [what, onQuestion, until_ms] of UNKNOWN) {
  test(`${what} leaves the placement unknown and the rest of the record as it was`, async () => {
    const { workers, createWorker } = secondly(onQuestion);
    const { document } = await report(made(), { placement_until_ms: until_ms }, { createWorker });
    assert.deepEqual(
      [document.placement, document.error, document.misses, document.cases[1]?.status],
      [null, null, [], 'done'],
    );
    assert.deepEqual(workers.map(({ ended }) => ended), Array(until_ms === 0 ? 1 : 2).fill(true)); // prettier-ignore
  });
}

test('a trimmed runtime that lacks what writes the report is no miss, and a whole one of its provider is asked instead', async () => {
  const bundled = made();
  const [wasm] = /** @type {[import('../src/open-model.js').Variant]} */ (bundled.config.variants);
  wasm.trimmed = { miss_address: 16, net: null };
  /** @type {string[]} */
  const asked = [];
  const told = secondly((question, answer) => {
    asked.push(question.kind === 'run' ? '' : question.request.mjsUrl);
    answer({ kind: 'done', id: question.id, value: { placement: [] }, missed: asked.length === 1 ? 7 : 0 });
  });
  const alone = await report(bundled, { placement_until_ms: HOUR }, { createWorker: told.createWorker });
  assert.deepEqual([alone.document.placement, alone.document.misses], [null, []]);
  const net = { id: 'cpu', execution_provider: 'wasm', api_url: wasm.api_url, mjs_url: 'net.mjs', wasm_url: wasm.wasm_url, wasm_sha256: wasm.wasm_sha256, wasm_bytes: 1 };
  bundled.config.nets = [{ ...net, id: 'gpu', execution_provider: 'webgpu', mjs_url: 'gpu.mjs', wasm_sha256: '0'.repeat(64) }, net];
  const again = secondly((question, answer) => {
    asked.push(question.kind === 'run' ? '' : question.request.mjsUrl);
    answer({ kind: 'done', id: question.id, value: { placement: [] }, missed: 0 });
  });
  const helped = await report(bundled, { placement_until_ms: HOUR }, { createWorker: again.createWorker });
  assert.deepEqual(helped.document.placement, []);
  assert.deepEqual(asked.map((url) => url.split('/').at(-1)), [wasm.mjs_url.split('/').at(-1), 'net.mjs']);
}); // prettier-ignore

test('without crypto.subtle the hashes are the same', async () => {
  const [secure, insecure] = await Promise.all([report(made()), report(made(), {}, { subtle: undefined })]);
  assert.deepEqual(insecure.document.hashes, secure.document.hashes);
});

const adapter = { vendor: 'v', architecture: 'a', device: '', description: '', software: false, features: [] };
/** @type {import('../src/records.js').PageConfig['variants'][number]['needs'][]} */
const NEEDS = [['webgpu', 'jspi'], ['webgpu'], []]; // prettier-ignore

/** A chain of three, of which the first two are the CPU build under another name: it has no WebGPU, so it refuses. */
function chained() {
  const bundled = made();
  const [wasm] = /** @type {[import('../src/open-model.js').Variant]} */ (bundled.config.variants);
  bundled.config.variants = ['jspi', 'asyncify', 'wasm'].map((id, index) => ({
    ...wasm, id, needs: NEEDS[index] ?? [], execution_provider: id === 'wasm' ? 'wasm' : 'webgpu',
  })); // prettier-ignore
  return bundled;
}

test('variants that the browser cannot load are passed over, with what is missing', async () => {
  const { document } = await report(chained());
  assert.deepEqual(document.attempts.map(({ status }) => status), ['unavailable', 'unavailable', 'created']); // prettier-ignore
  assert.match(document.attempts[0]?.reason ?? '', /no WebGPU/);
  assert.deepEqual(
    [document.environment.execution_provider_asked, document.environment.execution_provider],
    ['webgpu', 'wasm'],
  );
});

test('over plain http the reason for missing WebGPU is the context', async () => {
  const environment = { ...host(new Map()).environment, secure: false };
  const { document } = await report(chained(), {}, { environment });
  assert.match(document.attempts[0]?.reason ?? '', /secure context/);
});

test('a provider that refuses is not asked again through another build of it', async () => {
  const environment = { ...host(new Map()).environment, webgpu: true, jspi: true };
  const { document } = await report(chained(), {}, { environment, findAdapter: () => Promise.resolve(adapter) });
  assert.deepEqual(document.attempts.map(({ status }) => status), ['refused', 'refused', 'created']); // prettier-ignore
  assert.match(document.attempts[0]?.reason ?? '', /webgpu/);
  assert.equal(document.attempts[1]?.reason, 'same execution provider as jspi');
  assert.deepEqual(document.environment.adapter, adapter);
});

test('a runtime file that does not load says nothing of its provider: the next build is asked', async () => {
  const bundled = chained();
  bundled.config.variants = bundled.config.variants.map((variant, index) =>
    index === 0 ? { ...variant, wasm_url: 'runtime/gone.wasm' } : variant,
  );
  const environment = { ...host(new Map()).environment, webgpu: true, jspi: true };
  const { document } = await report(bundled, {}, { environment, findAdapter: () => Promise.resolve(adapter) });
  assert.match(document.attempts[0]?.reason ?? '', /gone.wasm.*404/);
  assert.match(document.attempts[1]?.reason ?? '', /backend/);
});

test('one variant alone can be asked for', async () => {
  const { document } = await report(chained(), { variant: 'wasm' });
  assert.equal(document.attempts.length, 1);
  assert.equal(document.environment.execution_provider_asked, 'wasm');
});

test('a first run that throws is a refusal', async () => {
  const { document } = await report(
    bundle(MODEL, [golden('broken', floats(1, 2), floats(1, 2, 3))], { outputs: OUTPUTS }),
  );
  assert.equal(document.attempts[0]?.status, 'refused');
  assert.match(document.error ?? '', /No variant.*\nwasm: .*broadcast/s);
  assert.deepEqual(document.cases.map(({ status }) => status), ['skipped']); // prettier-ignore
});

/** @type {[string, (bundled: ReturnType<typeof made>) => object | void, RegExp, number][]} */
const BROKEN = [
  ['a manifest that is not there', ({ files }) => void files.delete('manifest.json'), /manifest\.json.*404/, 0],
  ['cases that are not there', ({ files }) => void files.delete('cases/cases.json'), /cases\.json.*404/, 0],
  ['cases that are not JSON', ({ files }) => void files.set('cases/cases.json', '{'), /cases\.json is not JSON/, 0],
  ['cases of another format', ({ files }) => void files.set('cases/cases.json', '{"format":9}'), /not of format 1/, 0],
  ['tensors that are garbage', ({ files }) => void files.set('cases/cases.safetensors', 'garbage!!'), /safetensors/, 0],
  ['a model that is not there', ({ files }) => void files.delete('model/model.onnx'), /model\.onnx.*404/, 3],
  ['a model of other bytes', ({ files }) => void files.set('model/model.onnx', 'other'), /not the file that this bundle was built with/, 3],
  ['a runtime of other bytes', ({ files }) => void files.set('runtime/ort.wasm', 'other'), /not the file that this bundle was built with/, 3],
  ['a runtime script that is not there', ({ config }) => void config.variants.forEach((variant) => (variant.api_url = 'file:///gone.mjs')), /gone\.mjs/, 3],
  ['a variant that the bundle has not', () => ({ variant: 'zzz' }), /no variant "zzz".*wasm/, 3],
  ['a case that the bundle has not', () => ({ cases: ['zzz'] }), /no golden case "zzz"/, 3],
  ['options that cannot be followed', () => ({ problem: 'repeats=x is not a number' }), /repeats=x/, 0],
]; // prettier-ignore
for (const [what, spoil, expected, cases] of BROKEN) {
  test(`${what} is reported, with every known case skipped`, async () => {
    const bundled = made();
    const { document } = await report(bundled, spoil(bundled) ?? {});
    assert.match(document.error ?? '', expected);
    assert.deepEqual(document.cases.map(({ status }) => status), Array(cases).fill('skipped')); // prettier-ignore
    assert.equal(document.environment.execution_provider, null);
  });
}

test('a record of another model names that model', async () => {
  const bundled = made();
  bundled.files.set('model/model.onnx', 'other');
  assert.equal((await report(bundled)).document.hashes.model, digest('other'));
});

test('external data is handed to the runtime, and other bytes than the manifest’s are refused', async () => {
  const bundled = made();
  const data = Uint8Array.of(1, 2, 3);
  bundled.files.set('model/weights é.bin', data);
  const manifest = JSON.parse(String(bundled.files.get('manifest.json')));
  manifest.files = [{ path: 'model/weights é.bin', sha256: digest(data), bytes: 3 }];
  bundled.files.set('manifest.json', JSON.stringify(manifest));
  bundled.config.model.external_data = [{ path: 'weights é.bin', url: 'model/weights%20%C3%A9.bin?v=1', bytes: 3 }];
  assert.equal((await report(bundled)).document.error, null);
  bundled.files.set('model/weights é.bin', Uint8Array.of(9));
  assert.match((await report(bundled)).document.error ?? '', /weights é\.bin is not the file/);
});

test('the record is posted in two parts, and the server’s answer comes back', async () => {
  const { config, files } = made();
  const record = await report({ config, files });
  /** @type {FormData | undefined} */
  let posted;
  const taking = host(files, {
    fetch: (address, init) => {
      assert.equal(String(address), 'http://bundle.test/page/records');
      posted = /** @type {FormData} */ (init?.body);
      return Promise.resolve(Response.json({ id: 'kept-7' }, { status: 201 }));
    },
  });
  assert.equal(await postRecord(record, config, taking), 'kept-7');
  const parts = Object.fromEntries(posted ?? []);
  const [json, tensors] = /** @type {[File, File]} */ ([parts.record, parts.tensors]);
  assert.deepEqual([json.type, tensors.type], ['application/json', 'application/octet-stream']);
  assert.deepEqual(JSON.parse(await json.text()), record.document);
  assert.deepEqual(new Uint8Array(await tensors.arrayBuffer()), record.tensors);
});

test('a server that does not take the record is quoted', async () => {
  const { config, files } = made();
  const record = await report({ config, files });
  const refusing = host(files, {
    fetch: () => Promise.resolve(Response.json({ error: 'The inbox is full.' }, { status: 507 })),
  });
  await assert.rejects(postRecord(record, config, refusing), /507 The inbox is full/);
  const mute = host(files, {
    fetch: () => Promise.resolve(new Response('<html>', { status: 405, statusText: 'Method Not Allowed' })),
  });
  await assert.rejects(postRecord(record, config, mute), /405 Method Not Allowed/);
});

test('the address of the page says what to run', () => {
  assert.equal(agentOptions(new URLSearchParams('')), null);
  assert.equal(agentOptions(new URLSearchParams('parity=0')), null);
  const all = 'parity=1&run=abc&repeats=7&variant=wasm&threads=0&cases=a,b&placement=240&again=1&soak=200';
  assert.deepEqual(agentOptions(new URLSearchParams(all)), {
    run: 'abc', repeats: 7, variant: 'wasm', threads: 0, cases: ['a', 'b'], problem: null, placement_until_ms: 240_000,
    again: true, soak: 200,
  }); // prettier-ignore
  assert.deepEqual(agentOptions(new URLSearchParams('parity=1')), { ...ASKED, run: '', repeats: 3 });
  for (const bad of [
    'repeats=-1',
    'repeats=x',
    'threads=1.5',
    'threads=9999',
    'repeats=',
    'placement=soon',
    'soak=-1',
  ]) {
    assert.match(agentOptions(new URLSearchParams(`parity=1&${bad}`))?.problem ?? '', /not a whole number/);
  }
});

test('a session is created as the bundle says, and the record tells how', async () => {
  const session = { optimization: /** @type {const} */ ('basic'), layout: null, cpu_nodes: [] };
  const bundled = made();
  const plain = (await report(bundled, { cases: ['plain'] })).document;
  assert.equal(plain.environment.session, null);
  for (const variant of bundled.config.variants) {
    variant.session = session;
  }
  const told = (await report(bundled, { cases: ['plain'] })).document;
  assert.deepEqual(told.environment.session, session);
  assert.equal(told.cases.find(({ id }) => id === 'plain')?.status, 'done');
  // The twin: what reaches onnxruntime, it refuses where there is no such level.
  for (const variant of bundled.config.variants) {
    variant.session = { ...session, optimization: /** @type {never} */ ('most') };
  }
  const refused = (await report(bundled, { cases: ['plain'] })).document;
  assert.match(refused.error ?? '', /graph optimization level/);
});

test('settings are of an execution provider, and say nothing of another one', () => {
  const { config } = made();
  const session = { optimization: /** @type {const} */ ('all'), layout: /** @type {const} */ ('NCHW'), cpu_nodes: [] };
  const [first] = config.variants;
  const variant = { .../** @type {NonNullable<typeof first>} */ (first), execution_provider: 'webgpu', session };
  const net = { .../** @type {NonNullable<typeof first>} */ (first), id: 'same' };
  assert.equal(sessionOf(variant, { ...net, execution_provider: 'webgpu' }), session);
  assert.equal(sessionOf(variant, { ...net, execution_provider: 'wasm' }), undefined);
});
