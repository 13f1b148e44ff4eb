/**
 * @file From a bundle's configuration to a session: download, compile, create, and go down the chain of variants until
 * one runs.
 */

import { fetchVerified, pathOf } from './download.js';
import { Engine, EngineError } from './engine.js';
import { RemoteEngine } from './engine-client.js';
import { threadsFor } from './environment.js';
import { errorText } from './errors.js';
import { NettedRunner } from './net.js';
import { Session } from './session.js';

/**
 * @typedef {import('./records.js').PageConfig} PageConfig
 * @typedef {import('./records.js').Manifest} Manifest
 * @typedef {import('./records.js').Attempt} Attempt
 * @typedef {import('./records.js').Adapter} Adapter
 * @typedef {import('./records.js').Miss} Miss
 * @typedef {import('./net.js').Net} Net
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
 * The model's files. They are kept until `forget`, so that each variant that is tried gets the same bytes, and fetched
 * anew for what asks later: a page with a large model must not hold it twice for a miss that hardly ever comes.
 */
export class ModelSource {
  /** @type {() => Promise<Model>} */
  #fetch;

  /** @type {Promise<Model> | null} */
  #kept = null;

  #keep = true;

  /** @param {() => Promise<Model>} fetch */
  constructor(fetch) {
    this.#fetch = fetch;
  }

  /** @returns {Promise<Model>} */
  get() {
    if (!this.#keep) {
      return this.#fetch();
    }
    this.#kept ??= this.#fetch();
    return this.#kept;
  }

  forget() {
    this.#keep = false;
    this.#kept = null;
  }
}

/**
 * @typedef {object} OpenOptions
 * @property {PageConfig} config
 * @property {Host} host
 * @property {ModelSource} model
 * @property {Adapter | null} adapter
 * @property {number} threads 0: the page chooses
 * @property {readonly Value[] | null} probe inputs of the very first run; null: none is made
 * @property {(step: Step) => void} onStep
 * @property {(miss: Miss) => void} onMiss hears of each miss, during opening and of later runs too
 */

/**
 * @typedef {object} Opened
 * @property {Session} session
 * @property {Variant} variant
 * @property {() => import('./net.js').Running} running what runs now; after a miss, the net
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
 * @param {import('./download.js').Source & Pick<Host, 'now'>} host
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
 * @param {OpenOptions} options
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
        // Files that do not load, and what was removed from them, say nothing about the provider: another build may do.
        if (error instanceof EngineError && error.kind !== 'load' && error.kind !== 'miss') {
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
 * @param {OpenOptions} options
 * @returns {Promise<Opened>}
 */
async function open(variant, { config, host, model, threads, probe, onStep, onMiss }) {
  const net = config.nets.find(({ id }) => id === variant.trimmed?.net) ?? null;
  const runner = new NettedRunner({
    variant,
    net,
    launch: (files, what) => launch(files, what, { host, model, threads, session: sessionOf(variant, files), onStep }),
    onMiss: (miss, text) => {
      host.warn(
        `edgekit: ${text}${miss.recovered_by === null ? '' : ` The stock runtime ${miss.recovered_by} took its place.`}`,
      );
      onMiss(miss);
    },
  });
  const { fetch_ms } = await model.get();
  try {
    await runner.open();
    const session = new Session(runner, config.model.outputs);
    let firstRun = null;
    if (probe !== null) {
      onStep({ stage: 'first run', what: `${variant.id} runtime` });
      firstRun = await session.run(probe);
    }
    const running = () => /** @type {import('./net.js').Running} */ (runner.running);
    const { compile_ms, create_ms, fetch_ms: runtime_fetch_ms } = running();
    return {
      session,
      variant,
      running,
      timings: {
        fetch_ms: fetch_ms + runtime_fetch_ms,
        compile_ms,
        create_ms,
        first_run_ms: firstRun?.run_ms ?? null,
      },
      firstRun,
    };
  } catch (error) {
    await runner.terminate();
    throw error;
  }
}

/**
 * How the session of a runtime that runs in a variant's place is created: settings are of an execution provider, and say
 * nothing of another one.
 *
 * @param {Variant} variant
 * @param {Variant | Net} files
 * @returns {import('./records.js').SessionSettings | undefined} undefined: left to onnxruntime
 */
export function sessionOf({ execution_provider, session }, files) {
  return files.execution_provider === execution_provider ? session : undefined;
}

/**
 * Fetch a runtime, and start the engine that is to run it.
 *
 * @param {Variant | Net} files
 * @param {string} what
 * @param {Pick<OpenOptions, 'host' | 'model' | 'threads' | 'onStep'> & { session: import('./records.js').SessionSettings | undefined }} options
 * @returns {Promise<import('./net.js').Launched & { place: () => Promise<import('./engine.js').PlaceReply> }>}
 */
export async function launch(files, what, { host, model, threads, session, onStep }) {
  const started = host.now();
  const { engine, wasm, threads: most } = await fetchRuntime(files, what, { host, onStep });
  const fetch_ms = host.now() - started;
  const absolute = (/** @type {string} */ url) => new URL(url, host.baseUrl).href;
  const request = async () => {
    const { bytes, externalData } = await model.get();
    return {
      wasm: wasm.bytes,
      apiUrl: absolute(files.api_url),
      mjsUrl: absolute(files.mjs_url),
      threads: Math.min(most, threadsFor(threads, host.environment)),
      model: bytes,
      externalData,
      executionProvider: files.execution_provider,
      missAddress: 'trimmed' in files ? (files.trimmed?.miss_address ?? null) : null,
      session,
    };
  };
  return {
    engine,
    sha256: wasm.sha256,
    fetch_ms,
    ...(session === undefined ? {} : { session }),
    open: async () => engine.open(await request(), (stage) => onStep({ stage, what })),
    place: async () => engine.place(await request()),
  };
}

/**
 * Fetch a runtime while the worker for it starts.
 *
 * @param {Variant | Net} files
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
