/** @file What `edgekit doctor` asks a browser: not what it says it can do, but what works when it is tried. */

import { findAdapter, readEnvironment } from './environment.js';

const TRY_MS = 5000;

/**
 * Write to shared memory from a worker of this server's, as the runtime's threads are.
 *
 * @returns {Promise<boolean>}
 */
function tryThreads() {
  if (typeof SharedArrayBuffer !== 'function') {
    return Promise.resolve(false);
  }
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  return new Promise((resolve) => {
    const worker = new Worker(new URL('worker.js', import.meta.url));
    const end = () => {
      worker.terminate();
      resolve(Atomics.load(new Int32Array(memory.buffer), 0) === 42);
    };
    worker.onmessage = end;
    worker.onerror = end;
    setTimeout(end, TRY_MS);
    worker.postMessage(memory.buffer);
  });
}

/** @returns {Promise<object>} */
async function probe() {
  const environment = readEnvironment(globalThis);
  return {
    cross_origin_isolated: environment.isolated,
    secure_context: environment.secure,
    threads: await tryThreads(),
    cores: environment.cores,
    jspi: environment.jspi,
    webgpu: environment.webgpu,
    float16_array: typeof globalThis.Float16Array === 'function',
    adapter: await findAdapter(navigator.gpu),
  };
}

const answer = /** @type {HTMLElement} */ (document.getElementById('answer'));
try {
  answer.textContent = JSON.stringify(await probe());
} catch (error) {
  answer.textContent = JSON.stringify({ error: String(error) });
}
answer.dataset.done = '';
