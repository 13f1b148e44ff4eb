/**
 * @file The page that runs a bundle's golden cases on a recording build of the runtime, or on one that was trimmed, and
 * reports each step. No bundle has it: edgekit serves it beside one.
 */

import { fetchBytes, fetchJson } from '../download.js';
import { readFlag } from '../engine.js';
import { browserHost } from '../environment.js';
import { errorText } from '../errors.js';
import { runJob } from './job.js';
import { report } from './report.js';

/**
 * @typedef {import('./job.js').Job} Job
 * @typedef {import('../records.js').PageConfig} PageConfig
 * @typedef {import('./worker.js').Answer} Answer
 */

const LOOK_MS = 100;
/** A call that missed a function ends within milliseconds, or its thread waits for ever for one that trapped. */
const GRACE_MS = 2000;

const host = browserHost(globalThis);

/**
 * @param {Job} job
 * @param {PageConfig} config
 * @returns {Promise<void>} when it has ended, or hangs after a miss
 */
function runInWorker(job, config) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'edgekit-recording' });
    let told = Promise.resolve();
    /** @type {ReturnType<typeof setInterval> | undefined} a timer of either kind */
    let looking;
    /** @param {() => void} settle */
    const end = (settle) => {
      clearInterval(looking);
      worker.terminate();
      settle();
    };
    /** @param {WebAssembly.Memory} memory */
    const look = (memory) => {
      const missed = readFlag(memory, job.miss_address);
      if (missed !== 0) {
        clearInterval(looking);
        looking = setTimeout(() => {
          told = told.then(() => report('hangs', { missed }));
          end(() => told.then(resolve, reject));
        }, GRACE_MS);
      }
    };
    worker.onerror = ({ message }) => end(() => reject(new Error(`The worker of the runtime crashed: ${message}`)));
    worker.onmessage = (/** @type {MessageEvent<Answer>} */ { data }) => {
      if ('memory' in data) {
        looking = setInterval(() => look(data.memory), LOOK_MS);
        return;
      }
      told = told.then(() => report(data.kind, data.document, data.tensors));
      if (data.kind === 'ended' || data.kind === 'broken') {
        end(() => told.then(resolve, reject));
      }
    };
    worker.postMessage({ job, config, baseUrl: host.baseUrl });
  });
}

/** @returns {Promise<void>} */
async function run() {
  const job = /** @type {Job} */ (await fetchJson(host, 'job.json'));
  const page = new TextDecoder().decode(await fetchBytes(host, 'bundle/index.html'));
  const block = new DOMParser().parseFromString(page, 'text/html').getElementById('edgekit-config');
  const config = /** @type {PageConfig} */ (JSON.parse(block?.textContent ?? ''));
  if (job.execution_provider === 'webgpu') {
    await report('adapter', await host.findAdapter());
  }
  await (job.worker
    ? runInWorker(job, config)
    : runJob(job, config, { host, baseUrl: host.baseUrl, report, onMemory: () => {} }));
}

try {
  await run();
} catch (error) {
  await report('broken', { error: errorText(error) });
}
