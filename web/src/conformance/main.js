/** @file The page that replays conformance cases: it fetches the suite and the runtime, and reports chunk by chunk. */

import { fetchBytes, fetchJson, fetchVerified } from '../download.js';
import { browserHost } from '../environment.js';
import { errorText } from '../errors.js';
import { functionRecorder } from '../recording/recorder.js';
import { report } from '../recording/report.js';
import { compileRuntime, loadRuntime } from '../runtime-loader.js';
import { decodeTensors } from '../tensor-codec.js';
import { placementListener, replay } from './replay.js';

/**
 * @typedef {object} Config
 * @property {{ api_url: string, mjs_url: string, wasm_url: string, wasm_sha256: string }} runtime
 * @property {string} execution_provider
 * @property {number} threads
 * @property {number} chunk
 * @property {boolean} placements whether to ask where nodes were placed, which makes the runtime verbose
 * @property {import('../recording/recorder.js').Recording | null} recording null: the runtime sets no flags
 * @property {import('./replay.js').SuiteEntry[]} entries
 */

/** @returns {Promise<void>} */
async function run() {
  const host = browserHost(globalThis);
  const config = /** @type {Config} */ (await fetchJson(host, 'suite.json'));
  const tensors = decodeTensors(await fetchBytes(host, 'suite.safetensors'), 'suite.safetensors');
  const { bytes } = await fetchVerified(host, config.runtime.wasm_url, config.runtime.wasm_sha256);
  const absolute = (/** @type {string} */ url) => new URL(url, host.baseUrl).href;
  const files = {
    apiUrl: absolute(config.runtime.api_url),
    mjsUrl: absolute(config.runtime.mjs_url),
    module: await compileRuntime(bytes),
  };
  const { threads, chunk, placements: verbose } = config;
  const recorder = config.recording === null ? null : functionRecorder(config.recording);
  const spoken = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (globalThis.console));
  const placements = verbose ? placementListener(spoken) : () => [];
  const onMemory = recorder?.onMemory ?? (() => {});
  const runtime = await loadRuntime(files, { threads, importModule: host.importModule, verbose, onMemory });
  const adapter = config.execution_provider === 'webgpu' ? await host.findAdapter() : null;
  await report('started', { runtime_version: runtime.version, adapter });
  const end = await replay(config.entries, tensors, {
    runtime,
    executionProvider: config.execution_provider,
    chunk,
    placements,
    entered: recorder?.entered ?? null,
    report: ({ replies, tensors: outputs, stopped }) => report('replies', { replies, stopped }, outputs),
  });
  await report('ended', { end });
}

try {
  await run();
} catch (error) {
  await report('broken', { error: errorText(error) });
}
