/**
 * @file From a bundle's configuration to a session: download, compile, create, and go down the chain of variants until
 * one runs.
 */

import { fetchVerified, pathOf } from './download.js';
import { threadsFor } from './environment.js';
import { errorText } from './errors.js';
import { compileRuntime, loadRuntime } from './runtime-loader.js';
import { Session } from './session.js';

/**
 * @typedef {import('./records.js').PageConfig} PageConfig
 * @typedef {import('./records.js').Manifest} Manifest
 * @typedef {import('./records.js').Attempt} Attempt
 * @typedef {import('./records.js').Adapter} Adapter
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
        if (error instanceof Refusal) {
          refusedBy.set(execution_provider, id);
        }
      }
    }
  }
  return { opened: null, attempts };
}

/** The runtime is there, and it cannot run this model. */
class Refusal extends Error {
  name = 'Error';
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
async function open(variant, { config, host, model, threads, probe, onStep }) {
  const { now } = host;
  const what = `${variant.id} runtime`;
  let started = now();
  /** @returns {number} */
  const lap = () => {
    const begun = started;
    started = now();
    return started - begun;
  };
  const total = variant.wasm_bytes;
  const wasm = await fetchVerified(host, variant.wasm_url, variant.wasm_sha256, (loaded) =>
    onStep({ stage: 'download', what, loaded, total }),
  );
  const fetch_ms = model.fetch_ms + lap();
  onStep({ stage: 'compile', what });
  const module = await compileRuntime(wasm.bytes);
  const compile_ms = lap();
  onStep({ stage: 'create', what });
  const absolute = (/** @type {string} */ url) => new URL(url, host.baseUrl).href;
  const runtime = await loadRuntime(
    { apiUrl: absolute(variant.api_url), mjsUrl: absolute(variant.mjs_url), module },
    { threads: threadsFor(threads, host.environment), importModule: host.importModule },
  );
  const raw = await runtime.createSession(model.bytes, model.externalData, variant.execution_provider).catch(refuse);
  const create_ms = lap();
  const session = new Session(raw, config.model.outputs, now);
  let firstRun = null;
  if (probe !== null) {
    onStep({ stage: 'first run', what });
    try {
      firstRun = await session.run(probe);
    } catch (error) {
      await session.dispose().catch(() => {}); // what matters is why the run failed
      refuse(error);
    }
  }
  return {
    session,
    variant,
    runtime_version: runtime.version,
    threads: runtime.threads,
    runtime_sha256: wasm.sha256,
    timings: { fetch_ms, compile_ms, create_ms, first_run_ms: firstRun?.run_ms ?? null },
    firstRun,
  };
}

/**
 * @param {unknown} error
 * @returns {never}
 */
function refuse(error) {
  throw new Refusal(errorText(error), { cause: error });
}
