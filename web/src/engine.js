/**
 * @file One runtime with one session, timed. It lives in a worker where there is one, and in the page where there is not.
 */

import { errorText, isTrap } from './errors.js';
import { PlacementReader, eavesdrop } from './placement.js';
import { compileRuntime, loadRuntime } from './runtime-loader.js';

/**
 * @typedef {import('./tensor.js').Tensor} Tensor
 * @typedef {import('./runtime-loader.js').RawSession} RawSession
 */

/**
 * @typedef {object} OpenRequest
 * @property {Uint8Array<ArrayBuffer>} wasm given away: a worker's client transfers it
 * @property {string} apiUrl absolute
 * @property {string} mjsUrl absolute
 * @property {number} threads at least 1
 * @property {Uint8Array} model
 * @property {readonly { path: string, data: Uint8Array }[]} externalData
 * @property {string} executionProvider
 * @property {number | null} missAddress where a trimmed runtime says that a removed function was called; null: it is whole
 * @property {import('./records.js').SessionSettings | undefined} [session] none: left to onnxruntime
 */

/**
 * @typedef {'compile' | 'create'} Stage
 * @typedef {{ version: string, threads: number, compile_ms: number, create_ms: number }} OpenReply
 * @typedef {ReadonlyMap<string, Tensor>} Feeds
 * @typedef {{ results: Map<string, Tensor>, run_ms: number, memory_bytes?: number | null }} RunReply `memory_bytes`: of the
 *   runtime's WebAssembly memory after the run; it never shrinks
 * @typedef {{ placement: import('./records.js').Placed[] | null }} PlaceReply
 */

/**
 * `load`: the runtime itself did not load, which says nothing of the model; `refusal`: onnxruntime said no; `trap`: its
 * WebAssembly trapped, and nothing more may be asked of it; `end`: the worker is no more; `miss`: a trimmed runtime lacks
 * what was needed, which says nothing of the model either.
 *
 * @typedef {'load' | 'refusal' | 'trap' | 'end' | 'miss'} Failure
 */

/**
 * What an engine does, wherever it lives. Open it once; then one run at a time. Or ask it for a placement, and for
 * nothing else: that creates a session that says at length what it does, and ends it.
 *
 * @typedef {object} AnyEngine
 * @property {(request: OpenRequest, onStage: (stage: Stage) => void) => Promise<OpenReply>} open
 * @property {(feeds: Feeds, fetches: readonly string[]) => Promise<RunReply>} run
 * @property {(request: OpenRequest) => Promise<PlaceReply>} place null: the runtime did not say where the nodes went
 * @property {() => number} missed what stands at the miss address: 0, or a removed function's code index + 1
 * @property {() => Promise<void>} terminate gives the memory back; what is still asked of it then rejects
 */

/** Why an engine could not do what it was asked, as text a person can read. */
export class EngineError extends Error {
  name = 'EngineError';

  /**
   * @param {string} message
   * @param {Failure} kind
   * @param {unknown} [cause]
   */
  constructor(message, kind, cause) {
    super(message, { cause });
    this.kind = kind;
  }
}

/** @implements {AnyEngine} */
export class Engine {
  /** How many were opened in this page or worker. */
  static #opened = 0;

  /** @type {RawSession | null} */
  #session = null;

  /** @type {WebAssembly.Memory | null} */
  #memory = null;

  /** @type {number | null} */
  #missAddress = null;

  /**
   * @param {object} scope
   * @param {() => number} scope.now milliseconds
   * @param {(url: string) => Promise<unknown>} scope.importModule
   * @param {(memory: WebAssembly.Memory) => void} [scope.onMemory]
   * @param {object} [scope.console] in which the runtime speaks
   */
  constructor({ now, importModule, onMemory = () => {}, console = globalThis.console }) {
    this.now = now;
    this.importModule = importModule;
    this.onMemory = onMemory;
    this.console = console;
  }

  /** @type {AnyEngine['open']} */
  open(request, onStage) {
    return this.#open(request, onStage, false);
  }

  /** @type {AnyEngine['place']} */
  async place(request) {
    const reader = new PlacementReader();
    const silence = eavesdrop(this.console, (said) => reader.hear(said));
    try {
      // One thread: where nodes go does not depend on it, and other threads would speak in consoles of their own.
      await this.#open({ ...request, threads: 1 }, () => {}, true);
      return { placement: reader.placement() };
    } finally {
      await this.terminate();
      silence();
    }
  }

  /**
   * @param {OpenRequest} request
   * @param {(stage: Stage) => void} onStage
   * @param {boolean} verbose
   * @returns {Promise<OpenReply>}
   */
  async #open(request, onStage, verbose) {
    this.#missAddress = request.missAddress;
    const started = this.now();
    onStage('compile');
    const module = await explained('load', () => compileRuntime(request.wasm));
    const compiled = this.now();
    onStage('create');
    const onMemory = (/** @type {WebAssembly.Memory} */ memory) => {
      this.#memory = memory;
      this.onMemory(memory);
    };
    const { mjsUrl, model, externalData, executionProvider, session } = request;
    // onnxruntime-web keeps the first WebAssembly that it loads, be it one that trapped. Behind another fragment it is a
    // module of its own, from the same file.
    const apiUrl = Engine.#opened === 0 ? request.apiUrl : `${request.apiUrl}#${Engine.#opened}`;
    Engine.#opened += 1;
    const { version, threads, createSession } = await explained('load', () =>
      loadRuntime(
        { apiUrl, mjsUrl, module },
        { threads: request.threads, importModule: this.importModule, verbose, onMemory },
      ),
    );
    this.#session = await explained('refusal', () => createSession(model, externalData, executionProvider, session));
    return { version, threads, compile_ms: compiled - started, create_ms: this.now() - compiled };
  }

  /** @type {AnyEngine['run']} */
  run(feeds, fetches) {
    return explained('refusal', async () => {
      if (this.#session === null) {
        throw new Error('There is no session.');
      }
      const started = this.now();
      const results = await this.#session.run(feeds, fetches);
      const run_ms = this.now() - started;
      return { results, run_ms, memory_bytes: this.#memory?.buffer.byteLength ?? null };
    });
  }

  /** @type {AnyEngine['missed']} */
  missed() {
    return readFlag(this.#memory, this.#missAddress);
  }

  /** @type {AnyEngine['terminate']} */
  async terminate() {
    const session = this.#session;
    this.#session = null;
    this.#memory = null;
    await session?.release().catch(() => {}); // a runtime that trapped cannot, and nothing is asked of it again
  }
}

/**
 * @param {WebAssembly.Memory | null} memory
 * @param {number | null} address
 * @returns {number} what stands there; 0 where there is nothing to read
 */
export function readFlag(memory, address) {
  if (memory === null || address === null) {
    return 0;
  }
  // The buffer is asked for each time: it is another one once the memory has grown.
  return Atomics.load(new Uint32Array(memory.buffer, address, 1), 0);
}

/**
 * @template T
 * @param {Failure} kind of what `work` throws, where it is not a trap
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 * @throws {EngineError}
 */
async function explained(kind, work) {
  try {
    return await work();
  } catch (error) {
    throw new EngineError(errorText(error), isTrap(error) ? 'trap' : kind, error);
  }
}
