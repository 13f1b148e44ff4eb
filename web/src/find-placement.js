/**
 * @file Find out which execution provider got which node. onnxruntime says it only at its verbose level, so a second
 * session is created for that, after everything that is timed, in a runtime of its own that is then thrown away.
 */

import { EngineError } from './engine.js';
import { watched } from './net.js';
import { launch, sessionOf } from './open-model.js';

/**
 * @typedef {import('./records.js').PageConfig} PageConfig
 * @typedef {import('./records.js').Placed} Placed
 * @typedef {import('./open-model.js').Opened} Opened
 * @typedef {PageConfig['variants'][number] | PageConfig['nets'][number]} Files
 */

// Creating a session of 60,000 nodes took 1.25 times as long where it said what it did (54 s in place of 43).
const LEAST_MS = 20_000;
const TIMES_LONGER = 4;

/**
 * Which files to ask: those that ran or, where functions were removed from them, a whole runtime of the bundle with the
 * same execution provider. What writes the report may be among the functions that were removed; then asking the trimmed
 * runtime ends in a trap, which is no miss, for nobody's run needs that function. The placement is then not known. A
 * whole runtime of another provider would place the nodes elsewhere.
 *
 * @param {PageConfig} config
 * @param {Opened} opened
 * @returns {Files}
 */
export function filesToAsk({ nets }, { variant, running }) {
  const { sha256, execution_provider } = running();
  if (sha256 === variant.wasm_sha256 && variant.trimmed === null) {
    return variant;
  }
  return (
    nets.find((net) => net.wasm_sha256 === sha256) ??
    nets.find((net) => net.execution_provider === execution_provider) ??
    variant
  );
}

/**
 * @param {Opened} opened
 * @param {object} options
 * @param {PageConfig} options.config
 * @param {import('./environment.js').Host} options.host
 * @param {import('./open-model.js').ModelSource} options.model
 * @param {number} options.until_ms on the host's clock: no answer is waited for after that
 * @returns {Promise<Placed[] | null>} never rejects; null: it is not known
 */
export async function findPlacement(opened, { config, host, model, until_ms }) {
  const files = filesToAsk(config, opened);
  const limit_ms = Math.min(until_ms - host.now(), LEAST_MS + TIMES_LONGER * opened.timings.create_ms);
  if (limit_ms <= 0) {
    return null;
  }
  const launching = launch(files, 'runtime', {
    host,
    model,
    threads: 1,
    session: sessionOf(opened.variant, files),
    onStep: () => {},
  });
  try {
    return await within(limit_ms, async () => {
      const { engine, place } = await launching;
      const trimmed = 'trimmed' in files && files.trimmed !== null;
      return (await (trimmed ? watched(engine, place()) : place())).placement;
    });
  } catch {
    return null;
  } finally {
    // Not waited for: what hangs may be the launch itself.
    launching.then(
      ({ engine }) => engine.terminate(),
      () => {},
    );
  }
}

/**
 * @template T
 * @param {number} limit_ms
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function within(limit_ms, work) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new EngineError('It took too long.', 'end')), limit_ms);
  });
  try {
    return await Promise.race([work(), /** @type {Promise<never>} */ (late)]);
  } finally {
    clearTimeout(timer);
  }
}
