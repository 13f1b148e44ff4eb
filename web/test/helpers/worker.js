/** @file Workers without a browser: the real server at the other end of a channel, and one that does as it is told. */

import { serveEngine } from '../../src/engine-server.js';

/** @typedef {import('../../src/engine-client.js').WorkerLike} WorkerLike */

/** @param {WorkerLike} worker @param {string} message */
export const crash = (worker, message) => worker.onerror?.(/** @type {ErrorEvent} */ ({ message }));

/**
 * The real engine and the real onnxruntime-web in this thread; what crosses is really copied or transferred.
 *
 * @param {boolean} [isolated]
 * @returns {WorkerLike & { ended: boolean }}
 */
export function channelWorker(isolated = false) {
  const { port1, port2 } = new MessageChannel();
  /** @type {WorkerLike & { ended: boolean }} */
  const worker = {
    ended: false,
    onmessage: null,
    onerror: null,
    onmessageerror: null,
    postMessage: (message, transfer) => port1.postMessage(message, transfer),
    terminate() {
      this.ended = true;
      port1.close();
    },
  };
  port1.onmessage = (event) => worker.onmessage?.(/** @type {MessageEvent} */ (event));
  const scope = { now: () => performance.now(), importModule: (/** @type {string} */ url) => import(url), isolated };
  serveEngine(/** @type {import('../../src/engine-server.js').Port} */ (/** @type {unknown} */ (port2)), scope);
  return worker;
}

/**
 * @param {(question: import('../../src/engine-server.js').Question, answer: (answer: import('../../src/engine-server.js').Answer) => void) => void} onQuestion
 * @returns {WorkerLike & { ended: boolean }} it says that it is ready, and then only what `onQuestion` says
 */
export function toldWorker(onQuestion) {
  /** @type {WorkerLike & { ended: boolean }} */
  const worker = {
    ended: false,
    onmessage: null,
    onerror: null,
    onmessageerror: null,
    postMessage(message) {
      onQuestion(message, (answer) =>
        setTimeout(() => this.onmessage?.(/** @type {MessageEvent} */ ({ data: answer }))),
      );
    },
    terminate() {
      this.ended = true;
    },
  };
  setTimeout(() => worker.onmessage?.(/** @type {MessageEvent} */ ({ data: { kind: 'ready' } })));
  return worker;
}
