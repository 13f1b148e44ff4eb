/** @file The page's side of an engine in a worker. Whatever becomes of the worker, every question is answered. */

import { EngineError, readFlag } from './engine.js';

/**
 * @typedef {import('./engine.js').AnyEngine} AnyEngine
 * @typedef {import('./engine-server.js').Answer} Answer
 * @typedef {import('./engine-server.js').Question} Question
 * @typedef {import('./engine.js').OpenReply} OpenReply
 * @typedef {import('./engine.js').RunReply} RunReply
 * @typedef {{ resolve: (value: any) => void, reject: (error: Error) => void }} Waiting
 * @typedef {Question extends infer Q ? Q extends Question ? Omit<Q, 'id'> : never : never} Asked
 */

/**
 * What is needed of a Worker.
 *
 * @typedef {object} WorkerLike
 * @property {(message: Question, transfer: Transferable[]) => void} postMessage
 * @property {() => void} terminate
 * @property {((event: MessageEvent) => void) | null} onmessage
 * @property {((event: ErrorEvent) => void) | null} onerror
 * @property {((event: MessageEvent) => void) | null} onmessageerror
 */

/** @implements {AnyEngine} */
export class RemoteEngine {
  /** @type {WorkerLike} */
  #worker;

  /** @type {Map<number, Waiting>} */
  #waiting = new Map();

  #asked = 0;

  /** @type {EngineError | null} why nothing more can be asked */
  #ended = null;

  /** @type {WebAssembly.Memory | null} of the runtime, while it is shared with this page */
  #memory = null;

  /** @type {number | null} */
  #missAddress = null;

  /** What the worker said last of the miss address; never less than what this page saw itself. */
  #missed = 0;

  /** @type {(stage: import('./engine.js').Stage) => void} */
  #onStage = () => {};

  /** @type {(ready: boolean) => void} */
  #onStart = () => {};

  /** @param {WorkerLike} worker */
  constructor(worker) {
    this.#worker = worker;
    worker.onmessage = ({ data }) => this.#hear(/** @type {Answer} */ (data));
    worker.onerror = ({ message }) => this.#crash(message ?? '');
    worker.onmessageerror = () => this.#crash('a message could not be read');
  }

  /**
   * @param {() => WorkerLike} createWorker
   * @returns {Promise<RemoteEngine | null>} null where no worker starts: the browser, or a policy, does not let it
   */
  static async start(createWorker) {
    try {
      const engine = new RemoteEngine(createWorker());
      const ready = await new Promise((resolve) => {
        engine.#onStart = resolve;
      });
      return ready ? engine : null;
    } catch {
      return null;
    }
  }

  /** @type {AnyEngine['open']} */
  open(request, onStage) {
    this.#onStage = onStage;
    this.#missAddress = request.missAddress;
    // The model is copied: another variant may be given it next. The runtime's bytes are of no further use here.
    return this.#ask({ kind: 'open', request }, [request.wasm.buffer]);
  }

  /** @type {AnyEngine['run']} */
  run(feeds, fetches) {
    // Inputs are copied, for the caller keeps them: golden cases run again, and so does a call that missed.
    return this.#ask({ kind: 'run', feeds: new Map(feeds), fetches }, []);
  }

  /** @type {AnyEngine['place']} */
  place(request) {
    this.#missAddress = request.missAddress;
    return this.#ask({ kind: 'place', request }, [request.wasm.buffer]);
  }

  /** @type {AnyEngine['missed']} */
  missed() {
    this.#missed = readFlag(this.#memory, this.#missAddress) || this.#missed;
    return this.#missed;
  }

  /** @type {AnyEngine['terminate']} */
  terminate() {
    this.#end(new EngineError('The runtime was ended.', 'end'));
    this.#memory = null; // the page must not keep a memory that nobody uses any more
    return Promise.resolve();
  }

  /**
   * @param {Asked} question
   * @param {Transferable[]} transfer
   * @returns {Promise<any>}
   */
  #ask(question, transfer) {
    if (this.#ended !== null) {
      return Promise.reject(this.#ended);
    }
    this.#asked += 1;
    const id = this.#asked;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ ...question, id }, transfer);
    });
  }

  /** @param {Answer} answer */
  #hear(answer) {
    if (answer.kind === 'ready') {
      this.#onStart(true);
    } else if (answer.kind === 'stage') {
      this.#onStage(answer.stage);
    } else if (answer.kind === 'memory') {
      this.#memory = answer.memory;
    } else {
      this.#missed = answer.missed || this.#missed;
    }
    if (answer.kind === 'done' || answer.kind === 'failed') {
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if (answer.kind === 'done') {
        waiting?.resolve(answer.value);
      } else {
        waiting?.reject(new EngineError(answer.message, answer.failure));
      }
    }
  }

  /** @param {string} why in the browser's words, which may be none */
  #crash(why) {
    this.missed(); // while there is a memory to read
    const text = why.replace(/^Uncaught /, '');
    this.#end(
      new EngineError(
        `The worker of the runtime crashed${text === '' ? '.' : `: ${text}`}`,
        /\bRuntimeError\b/.test(text) ? 'trap' : 'end',
      ),
    );
    this.#onStart(false);
  }

  /** @param {EngineError} why */
  #end(why) {
    if (this.#ended === null) {
      this.#ended = why;
      this.#worker.terminate();
    }
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    waiting.forEach(({ reject }) => reject(why));
  }
}
