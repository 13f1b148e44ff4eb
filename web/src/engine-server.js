/** @file The worker's side: an engine that is asked by messages, and answers with messages. */

import { Engine } from './engine.js';

/**
 * @typedef {import('./engine.js').OpenRequest} OpenRequest
 * @typedef {import('./engine.js').OpenReply} OpenReply
 * @typedef {import('./engine.js').RunReply} RunReply
 * @typedef {import('./engine.js').PlaceReply} PlaceReply
 * @typedef {import('./tensor.js').Tensor} Tensor
 * @typedef {OpenReply | RunReply | PlaceReply} Reply
 * @typedef {{ id: number } & ({ kind: 'open' | 'place', request: OpenRequest } | { kind: 'run', feeds: Map<string, Tensor>, fetches: readonly string[] })} Question
 */

/**
 * `done` and `failed` answer a question. Each carries what stood at the miss address then, for a page that cannot look.
 *
 * @typedef {{ kind: 'ready' } | { kind: 'stage', stage: import('./engine.js').Stage }
 *   | { kind: 'memory', memory: WebAssembly.Memory } | { kind: 'missed', missed: number }
 *   | { kind: 'done', id: number, value: Reply, missed: number }
 *   | { kind: 'failed', id: number, message: string, failure: import('./engine.js').Failure, missed: number }} Answer
 */

/**
 * A worker's own scope, or one end of a channel.
 *
 * @typedef {object} Port
 * @property {((event: MessageEvent) => void) | null} onmessage
 * @property {(message: Answer, transfer: Transferable[]) => void} postMessage
 */

const LOOK_MS = 50;

/**
 * @param {Port} port is written to: it gets a listener
 * @param {object} scope
 * @param {() => number} scope.now milliseconds
 * @param {(url: string) => Promise<unknown>} scope.importModule
 * @param {boolean} scope.isolated whether memory can be shared with the page, which then looks for misses itself
 */
export function serveEngine(port, { now, importModule, isolated }) {
  const send = (/** @type {Answer} */ answer, /** @type {Transferable[]} */ transfer = []) =>
    port.postMessage(answer, transfer);
  const engine = new Engine({
    now,
    importModule,
    onMemory: (memory) => {
      if (isolated) {
        send({ kind: 'memory', memory });
      }
    },
  });
  /** @param {Question} question @returns {Promise<Reply>} */
  const work = (question) => {
    if (question.kind === 'run') {
      return engine.run(question.feeds, question.fetches);
    }
    return question.kind === 'place'
      ? engine.place(question.request)
      : engine.open(question.request, (stage) => send({ kind: 'stage', stage }));
  };
  /** @param {Question} question */
  const answer = async (question) => {
    const { id } = question;
    const looking = isolated ? undefined : lookForMisses(engine, (missed) => send({ kind: 'missed', missed }));
    try {
      const value = await work(question);
      send({ kind: 'done', id, value, missed: engine.missed() }, buffersOf(value));
    } catch (error) {
      const { message, kind } = /** @type {import('./engine.js').EngineError} */ (error);
      send({ kind: 'failed', id, message, failure: kind, missed: engine.missed() });
    } finally {
      clearInterval(looking);
    }
  };
  port.onmessage = ({ data }) => void answer(/** @type {Question} */ (data));
  send({ kind: 'ready' });
}

/**
 * A trap in a callback of the GPU is lost, and whoever waits for it waits on. The worker itself is then not blocked.
 *
 * @param {Engine} engine
 * @param {(missed: number) => void} onMiss
 * @returns {ReturnType<typeof setInterval>}
 */
function lookForMisses(engine, onMiss) {
  return setInterval(() => {
    const missed = engine.missed();
    if (missed !== 0) {
      onMiss(missed);
    }
  }, LOOK_MS);
}

/**
 * Outputs are fresh copies that nobody else holds, so they are handed over and not copied again.
 *
 * @param {Reply} value
 * @returns {Transferable[]}
 */
function buffersOf(value) {
  if (!('results' in value)) {
    return [];
  }
  return [...value.results.values()].flatMap((tensor) =>
    tensor.dtype === 'string' ? [] : [/** @type {ArrayBuffer} */ (tensor.data.buffer)],
  );
}
