/** @file A session that runs one request at a time, and goes on after one that failed. */

/**
 * @typedef {import('./tensor.js').Value} Value
 * @typedef {import('./tensor.js').Tensor} Tensor
 * @typedef {import('./engine.js').RunReply} RunReply
 * @typedef {{ name: string, dtype: string, readable: boolean }} Output
 * @typedef {{ steps: number, links: Readonly<Record<string, string>> }} FeedBack
 * @typedef {{ outputs: Value[], run_ms: number, memory_bytes?: number | null }} Run
 */

/**
 * What runs the requests: tensors by name in, tensors by name out, and the time that it took where it was done.
 *
 * @typedef {object} Runner
 * @property {(feeds: ReadonlyMap<string, Tensor>, fetches: readonly string[]) => Promise<RunReply>} run
 * @property {() => Promise<void>} terminate
 */

export class Session {
  /** @type {Runner} */
  #runner;

  /** @type {readonly Output[]} */
  #outputs;

  /** @type {Promise<unknown>} settles, never rejects, when the last request is done */
  #last = Promise.resolve();

  #disposed = false;

  /**
   * @param {Runner} runner
   * @param {readonly Output[]} outputs the model's outputs, in order; those not readable are not fetched
   */
  constructor(runner, outputs) {
    this.#runner = runner;
    this.#outputs = outputs;
  }

  /**
   * @param {readonly Value[]} inputs
   * @param {FeedBack | null} [feedBack] run `steps` times, giving output `links[input]` back as that input
   * @returns {Promise<Run>} the outputs (of the last step) in the model's order, and the time of all steps together
   */
  run(inputs, feedBack = null) {
    return this.#enqueue(async () => {
      const feeds = feedsOf(inputs);
      const fetches = this.#outputs.filter((output) => output.readable).map((output) => output.name);
      let { results, run_ms, memory_bytes } = await this.#runner.run(feeds, fetches);
      for (let step = 1; step < (feedBack?.steps ?? 1); step += 1) {
        for (const [input, output] of Object.entries(feedBack?.links ?? {})) {
          feeds.set(input, named(results, output));
        }
        const reply = await this.#runner.run(feeds, fetches);
        results = reply.results;
        run_ms += reply.run_ms;
        memory_bytes = reply.memory_bytes;
      }
      return {
        outputs: this.#outputs.map((output) => valueOf(output, results)),
        run_ms,
        memory_bytes: memory_bytes ?? null,
      };
    });
  }

  /**
   * Give the memory back, after the requests made so far. Later ones are refused.
   *
   * @returns {Promise<void>}
   */
  async dispose() {
    if (this.#disposed) {
      return;
    }
    const released = this.#enqueue(() => this.#runner.terminate());
    this.#disposed = true;
    await released;
  }

  /**
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  #enqueue(work) {
    if (this.#disposed) {
      return Promise.reject(new Error('This session was disposed.'));
    }
    const result = this.#last.then(work);
    // A failure belongs to the caller who gets `result`; the next request must not inherit it.
    this.#last = result.catch(() => {});
    return result;
  }
}

/**
 * @param {readonly Value[]} inputs
 * @returns {Map<string, Tensor>}
 */
function feedsOf(inputs) {
  /** @type {Map<string, Tensor>} */
  const feeds = new Map();
  for (const { name, tensor, note } of inputs) {
    if (tensor === null) {
      throw new TypeError(`The input ${JSON.stringify(name)} is not a tensor${note === undefined ? '' : `: ${note}`}.`);
    }
    feeds.set(name, tensor);
  }
  return feeds;
}

/**
 * @param {ReadonlyMap<string, Tensor>} results
 * @param {string} name
 * @returns {Tensor}
 */
function named(results, name) {
  const tensor = results.get(name);
  if (tensor === undefined) {
    throw new TypeError(`The output ${JSON.stringify(name)} is to be fed back, but the model returns no such tensor.`);
  }
  return tensor;
}

/**
 * @param {Output} output
 * @param {ReadonlyMap<string, Tensor>} results
 * @returns {Value}
 */
function valueOf({ name, dtype, readable }, results) {
  if (!readable) {
    return { name, dtype, tensor: null, note: `onnxruntime-web returns tensors only, and this is ${dtype}` };
  }
  const tensor = named(results, name);
  return { name, dtype: tensor.dtype, tensor };
}
