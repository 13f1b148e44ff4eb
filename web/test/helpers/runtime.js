/** @file The real onnxruntime-web, in node. */

import { readFileSync } from 'node:fs';
import { compileRuntime, loadRuntime } from '../../src/runtime-loader.js';

export const DIST = new URL('../../node_modules/onnxruntime-web/dist/', import.meta.url);
export const FILES = Object.freeze({
  api: 'ort.wasm.min.mjs',
  mjs: 'ort-wasm-simd-threaded.mjs',
  wasm: 'ort-wasm-simd-threaded.wasm',
});

/** @returns {Promise<import('../../src/runtime-loader.js').Runtime>} */
export async function runtime() {
  const module = await compileRuntime(new Uint8Array(readFileSync(new URL(FILES.wasm, DIST))));
  const files = { apiUrl: new URL(FILES.api, DIST).href, mjsUrl: new URL(FILES.mjs, DIST).href, module };
  return loadRuntime(files, { threads: 1, importModule: (url) => import(url) });
}
