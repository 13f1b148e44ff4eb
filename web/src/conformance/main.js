/** @file The page that replays conformance cases: it fetches the suite and the runtime, and reports chunk by chunk. */

import { fetchBytes, fetchJson, fetchVerified } from '../download.js';
import { browserHost } from '../environment.js';
import { errorText } from '../errors.js';
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
 * @property {import('./replay.js').SuiteEntry[]} entries
 */

/**
 * What whoever opened the page put there to hear the answer: JSON, and the bytes of a safetensors file as base64.
 *
 * @typedef {{ edgekitReport: (kind: string, document: string, tensors: string) => Promise<void> }} Listener
 */

const { edgekitReport } = /** @type {Listener} */ (/** @type {unknown} */ (globalThis));

/**
 * @param {Uint8Array} bytes
 * @returns {string}
 */
function base64(bytes) {
  let text = '';
  for (let start = 0; start < bytes.length; start += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  }
  return btoa(text);
}

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
  const { threads, chunk } = config;
  const spoken = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (globalThis.console));
  const placements = config.placements ? placementListener(spoken) : () => [];
  const runtime = await loadRuntime(files, { threads, importModule: host.importModule, verbose: config.placements });
  const adapter = config.execution_provider === 'webgpu' ? await host.findAdapter() : null;
  await edgekitReport('started', JSON.stringify({ runtime_version: runtime.version, adapter }), '');
  const end = await replay(config.entries, tensors, {
    runtime,
    executionProvider: config.execution_provider,
    chunk,
    placements,
    report: ({ replies, tensors: outputs, stopped }) =>
      edgekitReport('replies', JSON.stringify({ replies, stopped }), base64(outputs)),
  });
  await edgekitReport('ended', JSON.stringify({ end }), '');
}

try {
  await run();
} catch (error) {
  await edgekitReport('broken', JSON.stringify({ error: errorText(error) }), '');
}
