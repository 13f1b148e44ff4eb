/** @file One job: a bundle's model and golden cases on one runtime, in a page or in a worker. */

import { fetchJson, fetchVerified } from '../download.js';
import { readFlag } from '../engine.js';
import { fetchCases } from '../golden-cases.js';
import { fetchModel } from '../open-model.js';
import { eavesdrop } from '../placement.js';
import { compileRuntime, loadRuntime } from '../runtime-loader.js';
import { encodeTensors, splitValues } from '../tensor-codec.js';
import { tensorFromBytes } from '../tensor.js';
import { idleKernels, poseAs } from './pose.js';
import { flagRecorder } from './recorder.js';
import { takeSteps } from './steps.js';

/**
 * @typedef {import('../environment.js').Host} Host
 * @typedef {import('../records.js').PageConfig} PageConfig
 * @typedef {import('../records.js').Manifest} Manifest
 */

/**
 * @typedef {object} Job
 * @property {{ api_url: string, mjs_url: string, wasm_url: string, wasm_sha256: string }} runtime
 * @property {string} execution_provider
 * @property {number} threads
 * @property {boolean} worker whether the runtime lives in a worker, as where a bundle's page can start one
 * @property {import('./recorder.js').Recording | null} recording null: the runtime sets no flags
 * @property {number | null} miss_address null: the runtime lacks nothing
 * @property {boolean} verbose whether a session is only created, and says where it puts the nodes
 * @property {readonly import('./pose.js').AdapterName[]} posing_as what the adapter is to call itself, one name after
 *   the other; then only the first golden case is run, once under each
 * @property {import('../records.js').SessionSettings | null} session null: how it is created is left to onnxruntime
 */

/**
 * @typedef {object} Context
 * @property {Pick<Host, 'fetch' | 'subtle' | 'now' | 'importModule'>} host
 * @property {string} baseUrl of the page; the bundle lies in `bundle/` below it
 * @property {(kind: string, document: unknown, tensors?: Uint8Array<ArrayBuffer>) => Promise<void>} report
 * @property {(memory: WebAssembly.Memory) => void} onMemory gets the runtime's memory before any of its code runs
 */

/**
 * Reports `started`, then each `step`, its outputs and functions as tensors, then `ended`.
 *
 * @param {Job} job
 * @param {PageConfig} config of the bundle's page
 * @param {Context} context
 * @returns {Promise<void>}
 */
export async function runJob(job, config, { host, baseUrl, report, onMemory }) {
  const source = { ...host, baseUrl: new URL('bundle/', baseUrl).href };
  const manifest = /** @type {Manifest} */ (await fetchJson(source, config.manifest_url));
  const [model, cases] = [await fetchModel(config, source, manifest, () => {}), await fetchCases(config, source)];
  const wasm = await fetchVerified({ ...host, baseUrl }, job.runtime.wasm_url, job.runtime.wasm_sha256);
  const absolute = (/** @type {string} */ url) => new URL(url, baseUrl).href;
  const files = {
    apiUrl: absolute(job.runtime.api_url),
    mjsUrl: absolute(job.runtime.mjs_url),
    module: await compileRuntime(wasm.bytes),
  };
  /** @type {{ memory: WebAssembly.Memory | null }} */
  const made = { memory: null };
  const recorder = job.recording === null ? null : flagRecorder(job.recording);
  if (job.verbose) {
    // What it says is a flood, and nobody asks here what it says.
    eavesdrop(/** @type {Record<string, unknown>} */ (/** @type {unknown} */ (globalThis.console)), () => {});
  }
  if (job.posing_as.length > 0) {
    idleKernels();
  }
  const runtime = await loadRuntime(files, {
    threads: job.threads,
    verbose: job.verbose,
    importModule: host.importModule,
    onMemory: (memory) => {
      made.memory = memory;
      recorder?.onMemory(memory);
      onMemory(memory);
    },
  });
  await report('started', { runtime_version: runtime.version, threads: runtime.threads });
  const end = await takeSteps({
    runtime,
    executionProvider: job.execution_provider,
    session: job.session ?? undefined,
    facts: config.model,
    model,
    cases: cases.cases,
    only: job.verbose ? 'create' : 'all',
    turns: job.posing_as.map((name) => ({ name: `as ${name.vendor} ${name.architecture}`, begin: () => poseAs(name) })),
    now: host.now,
    missed: () => readFlag(made.memory, job.miss_address),
    entered: recorder === null ? null : () => ({ functions: recorder.entered(), branches: recorder.branches() }),
    onStep: ({ outputs, entered, ...step }) => {
      const split = splitValues('output', outputs);
      for (const [name, bits] of Object.entries(entered ?? {})) {
        split.tensors.set(name, tensorFromBytes('uint8', [bits.length], bits));
      }
      return report('step', { ...step, outputs: split.entries }, encodeTensors(split.tensors));
    },
  });
  await report('ended', { end });
}
