/** @file The worker in which a job's runtime lives, as that of a bundle's page does. It is sent one job. */

import { errorText } from '../errors.js';
import { runJob } from './job.js';

/**
 * @typedef {{ job: import('./job.js').Job, config: import('../records.js').PageConfig, baseUrl: string }} Order
 * @typedef {{ memory: WebAssembly.Memory }
 *   | { kind: string, document: unknown, tensors: Uint8Array<ArrayBuffer> | undefined }} Answer
 */

const port = /** @type {{ onmessage: unknown, postMessage: (answer: Answer) => void }} */ (
  /** @type {unknown} */ (globalThis)
);

/** @param {MessageEvent<Order>} event */
port.onmessage = async ({ data: { job, config, baseUrl } }) => {
  /** @type {import('./job.js').Context['report']} */
  const report = (kind, document, tensors) => Promise.resolve(port.postMessage({ kind, document, tensors }));
  try {
    await runJob(job, config, {
      host: {
        fetch: globalThis.fetch.bind(globalThis),
        subtle: globalThis.crypto.subtle,
        now: () => globalThis.performance.now(),
        importModule: (url) => import(url),
      },
      baseUrl,
      report,
      onMemory: (memory) => port.postMessage({ memory }),
    });
  } catch (error) {
    await report('broken', { error: errorText(error) });
  }
};
