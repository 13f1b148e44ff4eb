/** @file The page that replays conformance cases: it asks for batch after batch, and reports what became of each. */

import { fetchBytes, fetchJson, fetchVerified } from '../download.js';
import { browserHost } from '../environment.js';
import { errorText } from '../errors.js';
import { flagRecorder } from '../recording/recorder.js';
import { poseAs } from '../recording/pose.js';
import { report } from '../recording/report.js';
import { compileRuntime, loadRuntime } from '../runtime-loader.js';
import { decodeTensors, encodeTensors } from '../tensor-codec.js';
import { placementListener, replay } from './replay.js';

/**
 * @typedef {object} Config
 * @property {{ api_url: string, mjs_url: string, wasm_url: string, wasm_sha256: string }} runtime
 * @property {string} execution_provider
 * @property {number} threads
 * @property {boolean} placements whether to ask where nodes were placed, which makes the runtime verbose
 * @property {import('../recording/recorder.js').Recording | null} recording null: the runtime sets no flags
 * @property {import('../recording/pose.js').AdapterName | null} posing_as what the adapter is to call itself
 */

/**
 * What whoever opened the page put there: returns the name of the next batch's files, null when there is none.
 *
 * @typedef {{ edgekitNext: () => Promise<string | null> }} Giver
 */

/** @typedef {{ entries: import('./replay.js').SuiteEntry[] }} Batch */

/** @returns {Promise<void>} */
async function run() {
  const host = browserHost(globalThis);
  const config = /** @type {Config} */ (await fetchJson(host, 'config.json'));
  const { bytes } = await fetchVerified(host, config.runtime.wasm_url, config.runtime.wasm_sha256);
  const absolute = (/** @type {string} */ url) => new URL(url, host.baseUrl).href;
  const files = {
    apiUrl: absolute(config.runtime.api_url),
    mjsUrl: absolute(config.runtime.mjs_url),
    module: await compileRuntime(bytes),
  };
  const { threads, placements: verbose } = config;
  const recorder = config.recording === null ? null : flagRecorder(config.recording);
  const spoken = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (globalThis.console));
  const placements = verbose ? placementListener(spoken) : () => [];
  const onMemory = recorder?.onMemory ?? (() => {});
  const adapter = config.execution_provider === 'webgpu' ? await host.findAdapter() : null;
  if (config.posing_as !== null) {
    poseAs(config.posing_as);
  }
  const runtime = await loadRuntime(files, { threads, importModule: host.importModule, verbose, onMemory });
  await report('started', { runtime_version: runtime.version, adapter });
  const { edgekitNext } = /** @type {Giver} */ (/** @type {unknown} */ (globalThis));
  for (let name = await edgekitNext(); name !== null; name = await edgekitNext()) {
    const { entries } = /** @type {Batch} */ (await fetchJson(host, `${name}.json`));
    const tensors = decodeTensors(await fetchBytes(host, `${name}.safetensors`), `${name}.safetensors`);
    const { replies, outputs, stopped } = await replay(entries, tensors, {
      runtime,
      executionProvider: config.execution_provider,
      placements,
      entered: recorder?.entered ?? null,
      branches: recorder?.branches ?? null,
    });
    await report('replies', { replies, stopped }, encodeTensors(outputs));
    if (stopped) {
      return;
    }
  }
  await report('ended', {});
}

try {
  await run();
} catch (error) {
  await report('broken', { error: errorText(error) });
}
