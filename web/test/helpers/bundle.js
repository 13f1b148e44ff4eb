/** @file A bundle in memory, with the real runtime, and a host that serves it. */

import { createHash, webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { encodeTensors, splitValues } from '../../src/tensor-codec.js';
import { DIST, FILES } from './runtime.js';

/**
 * @typedef {import('../../src/records.js').PageConfig} PageConfig
 * @typedef {import('../../src/environment.js').Host} Host
 * @typedef {import('../../src/tensor.js').Value} Value
 * @typedef {{ id: string, inputs: Value[], outputs: Value[], feed_back?: { steps: number, links: Record<string, string> } }} CaseData
 */

export const BASE = 'http://bundle.test/page/';

/** @param {Uint8Array | string} bytes */
export const digest = (bytes) => createHash('sha256').update(bytes).digest('hex');

/**
 * @param {Uint8Array} model
 * @param {CaseData[]} cases
 * @param {{ outputs: PageConfig['model']['outputs'], inputs?: PageConfig['model']['inputs'] }} facts
 * @returns {{ config: PageConfig, files: Map<string, Uint8Array | string> }}
 */
export function bundle(model, cases, facts) {
  /** @type {Map<string, import('../../src/tensor.js').NumberTensor>} */
  const tensors = new Map();
  const entries = cases.map(({ id, inputs, outputs, feed_back }) => {
    const [given, expected] = [splitValues(`${id}/input`, inputs), splitValues(`${id}/output`, outputs)];
    [...given.tensors, ...expected.tensors].forEach(([key, tensor]) => tensors.set(key, tensor));
    const grade = { ulp_shift: null, weight_shift: null, weak: [] };
    return {
      id,
      origin: 'by hand',
      grade,
      feed_back: feed_back ?? null,
      inputs: given.entries,
      outputs: expected.entries,
    };
  });
  const wasm = readFileSync(new URL(FILES.wasm, DIST));
  const document = {
    format: 1,
    model_sha256: digest(model),
    original_sha256: null,
    reference: { name: 'hand', runtime: 'none', runtime_version: '0', optimization: 'disabled' },
    tolerance: { float32: { relative: 1e-4, absolute: 1e-6 } },
    output_tolerance: {},
    left_out: [],
    cases: entries,
  };
  const manifest = {
    format: 1,
    edgekit_version: '0',
    kind: 'web',
    target: 'wasm',
    title: 'tiny',
    model: { path: 'model/model.onnx', sha256: digest(model) },
    runtime: { package: 'onnxruntime-web', version: '1.30.0', variants: ['wasm'] },
    files: [],
  };
  const files = new Map(
    /** @type {[string, Uint8Array | string][]} */ ([
      ['model/model.onnx', model],
      ['runtime/ort.wasm', wasm],
      ['cases/cases.json', JSON.stringify(document)],
      ['cases/cases.safetensors', encodeTensors(tensors)],
      ['manifest.json', JSON.stringify(manifest)],
    ]),
  );
  const variant = {
    id: 'wasm',
    execution_provider: 'wasm',
    needs: /** @type {('webgpu' | 'jspi')[]} */ ([]),
    api_url: new URL(FILES.api, DIST).href,
    mjs_url: new URL(FILES.mjs, DIST).href,
    wasm_url: 'runtime/ort.wasm?v=1',
    wasm_sha256: digest(wasm),
    wasm_bytes: wasm.length,
    trimmed: null,
  };
  /** @type {PageConfig} */
  const config = {
    format: 1,
    title: 'tiny',
    target: 'wasm',
    model: {
      url: 'model/model.onnx?v=0',
      sha256: digest(model),
      bytes: model.length,
      external_data: [],
      inputs: facts.inputs ?? [],
      outputs: facts.outputs,
    },
    runtime: { package: 'onnxruntime-web', version: '1.30.0' },
    variants: [variant],
    nets: [],
    threads: 0,
    image: null,
    cases_url: 'cases/cases.json',
    tensors_url: 'cases/cases.safetensors',
    manifest_url: 'manifest.json',
    records_url: 'records',
  };
  return { config, files };
}

/**
 * @param {ReadonlyMap<string, Uint8Array | string>} files
 * @param {Partial<Host>} [changes]
 * @returns {Host}
 */
export function host(files, changes = {}) {
  let time = 0;
  return {
    environment: {
      isolated: false,
      cores: 2,
      jspi: false,
      webgpu: false,
      secure: true,
      userAgent: 'node',
      device: null,
    },
    fetch: (address) => {
      const path = decodeURIComponent(new URL(String(address)).pathname.slice(new URL(BASE).pathname.length));
      const body = files.get(path);
      return Promise.resolve(
        body === undefined
          ? new Response(null, { status: 404, statusText: 'Not Found' })
          : new Response(/** @type {BodyInit} */ (body)),
      );
    },
    now: () => (time += 1.5),
    importModule: (url) => import(url),
    baseUrl: BASE,
    subtle: /** @type {SubtleCrypto} */ (/** @type {unknown} */ (webcrypto.subtle)),
    findAdapter: () => Promise.resolve(null),
    warn: () => {},
    createWorker: null,
    ...changes,
  };
}
