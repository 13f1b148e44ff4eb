/**
 * @file From a bundle's configuration to a session: download, compile, create, and go down the chain of variants until
 * one runs.
 */

import { fetchVerified, pathOf } from './download.js';
import { Engine, EngineError } from './engine.js';
import { RemoteEngine } from './engine-client.js';
import { threadsFor } from './environment.js';
import { errorText } from './errors.js';
import { Session } from './session.js';

/**
 * @typedef {import('./records.js').PageConfig} PageConfig
 * @typedef {import('./records.js').Manifest} Manifest
 * @typedef {import('./records.js').Attempt} Attempt
 * @typedef {import('./records.js').Adapter} Adapter
 * @typedef {import('./engine.js').AnyEngine} AnyEngine
 * @typedef {import('./environment.js').Host} Host
 * @typedef {import('./tensor.js').Value} Value
 * @typedef {import('./session.js').Run} Run
 * @typedef {PageConfig['variants'][number]} Variant
 * @typedef {{ fetch_ms: number, compile_ms: number, create_ms: number, first_run_ms: number | null }} OpenTimings
 * @typedef {{ stage: 'download' | 'compile' | 'create' | 'first run', what: string, loaded?: number, total?: number }} Step
 */

/**
 * @typedef {object} Model
 * @property {Uint8Array<ArrayBuffer>} bytes
 * @property {string} sha256
 * @property {{ path: string, data: Uint8Array<ArrayBuffer> }[]} externalData
 * @property {number} fetch_ms
 */

/**
 * @typedef {object} Opened
 * @property {Session} session
 * @property {Variant} variant
 * @property {string} runtime_version
 * @property {number} threads
 * @property {string} runtime_sha256
 * @property {OpenTimings} timings
 * @property {Run | null} firstRun of the probe, null when there is none
 */

/**
 * What came of going down the chain. `opened` is null where no variant ran the model; the attempts say why.
 *
 * @typedef {{ opened: Opened | null, attempts: Attempt[] }} Outcome
 */

/**
 * @param {PageConfig} config
 * @param {Host} host
 * @param {Manifest | null} manifest names the sha256 of external data; null: not known
 * @param {(step: Step) => void} onStep
 * @returns {Promise<Model>}
 * @throws {import('./download.js').DownloadError}
 */
export async function fetchModel(config, host, manifest, onStep) {
  const { model } = config;
  const total = model.external_data.reduce((sum, file) => sum + file.bytes, model.bytes);
  const started = host.now();
  let before = 0;
  /** @param {{ url: string, bytes: number, sha256: string | undefined }} file */
  const load = async ({ url, bytes, sha256 }) => {
    const download = await fetchVerified(host, url, sha256, (loaded) => {
      onStep({ stage: 'download', what: 'model', loaded: before + loaded, total });
    });
    before += bytes;
    return download;
  };
  const main = await load({ url: model.url, bytes: model.bytes, sha256: model.sha256 });
  const externalData = [];
  for (const { path, url, bytes } of model.external_data) {
    const entry = manifest?.files.find((file) => file.path === pathOf(url));
    externalData.push({ path, data: (await load({ url, bytes, sha256: entry?.sha256 })).bytes });
  }
  return { ...main, externalData, fetch_ms: host.now() - started };
}

/**
 * Try the variants in order. A variant that the browser cannot load is unavailable; one whose session is not created, or
 * whose very first run throws, is refused, and the next one with another execution provider is tried: another build of
 * the same provider would refuse too.
 *
 * @param {readonly Variant[]} variants
 * @param {object} options
 * @param {PageConfig} options.config
 * @param {Host} options.host
 * @param {Model} options.model
 * @param {Adapter | null} options.adapter
 * @param {number} options.threads 0: the page chooses
 * @param {readonly Value[] | null} options.probe inputs of the very first run; null: none is made
 * @param {(step: Step) => void} options.onStep
 * @returns {Promise<Outcome>}
 */
export async function openFirst(variants, options) {
  /** @type {Attempt[]} */
  const attempts = [];
  /** @type {Map<string, string>} */
  const refusedBy = new Map();
  for (const variant of variants) {
    const { id, execution_provider } = variant;
    /** @param {'created' | 'refused' | 'unavailable'} status @param {string | null} reason */
    const note = (status, reason) => attempts.push({ variant: id, execution_provider, status, reason });
    const missing = whatIsMissing(variant, options.host, options.adapter);
    const refuser = refusedBy.get(execution_provider);
    if (missing !== null) {
      note('unavailable', missing);
    } else if (refuser !== undefined) {
      note('refused', `same execution provider as ${refuser}`);
    } else {
      try {
        const opened = await open(variant, options);
        note('created', null);
        return { opened, attempts };
      } catch (error) {
        note('refused', errorText(error));
        // Files that do not load say nothing about the provider: another build of it may load.
        if (error instanceof EngineError && error.kind !== 'load') {
          refusedBy.set(execution_provider, id);
        }
      }
    }
  }
  return { opened: null, attempts };
}

/**
 * @param {Variant} variant
 * @param {Host} host
 * @param {Adapter | null} adapter
 * @returns {string | null} null where nothing is missing
 */
function whatIsMissing(variant, host, adapter) {
  if (variant.needs.includes('webgpu') && adapter === null) {
    if (host.environment.webgpu) {
      return 'The browser gave no GPU adapter.';
    }
    return host.environment.secure
      ? 'This browser has no WebGPU (navigator.gpu is missing).'
      : 'WebGPU needs a secure context: open the page over https, or as localhost.';
  }
  if (variant.needs.includes('jspi') && !host.environment.jspi) {
    return 'This browser has no JavaScript Promise Integration (WebAssembly.Suspending is missing).';
  }
  return null;
}

/**
 * @param {Variant} variant
 * @param {Parameters<typeof openFirst>[1]} options
 * @returns {Promise<Opened>}
 */
async function open(variant, options) {
  const { config, host, model, threads, probe, onStep } = options;
  const what = `${variant.id} runtime`;
  const started = host.now();
  const { engine, wasm, threads: most } = await fetchRuntime(variant, what, options);
  const fetch_ms = model.fetch_ms + host.now() - started;
  const absolute = (/** @type {string} */ url) => new URL(url, host.baseUrl).href;
  const request = {
    wasm: wasm.bytes,
    apiUrl: absolute(variant.api_url),
    mjsUrl: absolute(variant.mjs_url),
    threads: Math.min(most, threadsFor(threads, host.environment)),
    model: model.bytes,
    externalData: model.externalData,
    executionProvider: variant.execution_provider,
    missAddress: null,
  };
  try {
    const { compile_ms, create_ms, ...running } = await engine.open(request, (stage) => onStep({ stage, what }));
    const session = new Session(engine, config.model.outputs);
    let firstRun = null;
    if (probe !== null) {
      onStep({ stage: 'first run', what });
      firstRun = await session.run(probe);
    }
    return {
      session,
      variant,
      runtime_version: running.version,
      threads: running.threads,
      runtime_sha256: wasm.sha256,
      timings: { fetch_ms, compile_ms, create_ms, first_run_ms: firstRun?.run_ms ?? null },
      firstRun,
    };
  } catch (error) {
    await engine.terminate();
    throw error;
  }
}

/**
 * Fetch a runtime while the worker for it starts.
 *
 * @param {Variant} variant
 * @param {string} what
 * @param {{ host: Host, onStep: (step: Step) => void }} options
 * @returns {Promise<{ engine: AnyEngine, wasm: import('./download.js').Download, threads: number }>} `threads`: at most
 */
async function fetchRuntime({ wasm_url, wasm_sha256, wasm_bytes: total }, what, { host, onStep }) {
  const starting = host.createWorker === null ? null : RemoteEngine.start(host.createWorker);
  try {
    const wasm = await fetchVerified(host, wasm_url, wasm_sha256, (loaded) =>
      onStep({ stage: 'download', what, loaded, total }),
    );
    const remote = await starting;
    // onnxruntime-web's threads are module workers as well: where ours does not start, theirs would be waited for in vain.
    return remote === null
      ? { engine: new Engine(host), wasm, threads: 1 }
      : { engine: remote, wasm, threads: Infinity };
  } catch (error) {
    await (await starting)?.terminate();
    throw error;
  }
}
