/**
 * @file Replay the golden cases and report. The page does not judge: `edgekit parity` does, from the record.
 */

import { again, anew } from './again.js';
import { nothingYet } from './bench.js';
import { WrongFileError, fetchBytes, parseJson, pathOf } from './download.js';
import { threadsFor } from './environment.js';
import { errorText } from './errors.js';
import { findPlacement } from './find-placement.js';
import { fetchCases, timingCase } from './golden-cases.js';
import { ModelSource, fetchModel, openFirst } from './open-model.js';
import { buildRecord } from './run-record.js';
import { sha256 } from './sha256.js';

/**
 * @typedef {import('./records.js').PageConfig} PageConfig
 * @typedef {import('./records.js').RunRecord} RunRecord
 * @typedef {import('./records.js').Manifest} Manifest
 * @typedef {import('./run-record.js').CaseRun} CaseRun
 * @typedef {import('./environment.js').Host} Host
 * @typedef {import('./golden-cases.js').GoldenCase} GoldenCase
 * @typedef {import('./open-model.js').Opened} Opened
 * @typedef {import('./bench.js').AgentOptions} AgentOptions
 * @typedef {import('./bench.js').AgentStep} AgentStep
 * @typedef {import('./bench.js').Bench} Bench
 */

/**
 * Open the bundle: manifest, golden cases, model, runtime, session, and the very first run. Never rejects: what went
 * wrong is in `error`, and what was learnt before is kept.
 *
 * @param {PageConfig} config
 * @param {Host} host
 * @param {Omit<AgentOptions, 'run' | 'repeats' | 'again' | 'soak' | 'placement_until_ms'>} options
 * @param {(step: AgentStep) => void} onStep
 * @param {(miss: import('./records.js').Miss) => void} [onMiss] hears of each miss of a trimmed runtime
 * @returns {Promise<Bench>}
 */
export async function openBundle(config, host, options, onStep, onMiss = () => {}) {
  const variants =
    options.variant === null ? config.variants : config.variants.filter(({ id }) => id === options.variant);
  const bench = nothingYet((variants[0] ?? config.variants[0])?.execution_provider ?? 'none');
  try {
    if (options.problem !== null) {
      throw new RangeError(options.problem);
    }
    const manifestBytes = await fetchBytes(host, config.manifest_url);
    bench.manifestSha256 = await sha256(manifestBytes, host.subtle);
    bench.cases = await fetchCases(config, host);
    const chosen = chooseCases(bench.cases.cases, options.cases);
    if (variants.length === 0) {
      throw new TypeError(
        `This bundle has no variant ${JSON.stringify(options.variant)}. It has ${config.variants.map(({ id }) => id).join(', ')}.`,
      );
    }
    if (variants.some(({ needs }) => needs.includes('webgpu'))) {
      bench.adapter = await host.findAdapter();
    }
    const manifest = /** @type {Manifest} */ (parseJson(manifestBytes, config.manifest_url));
    const model = new ModelSource(() => fetchModel(config, host, manifest, onStep));
    bench.model = model;
    bench.modelSha256 = (await model.get()).sha256;
    const outcome = await openFirst(variants, {
      config,
      host,
      model,
      adapter: bench.adapter,
      threads: options.threads ?? config.threads,
      probe: timingCase(chosen)?.inputs ?? null,
      onStep,
      onMiss: (miss) => {
        bench.misses.push(miss);
        onMiss(miss);
      },
    });
    model.forget();
    bench.attempts = outcome.attempts;
    bench.opened = outcome.opened;
    if (outcome.opened === null) {
      const reasons = outcome.attempts.map(({ variant, reason }) => `${variant}: ${reason}`);
      bench.error = ['No variant of the runtime ran this model.', ...reasons].join('\n');
    }
  } catch (error) {
    bench.error = errorText(error);
    if (error instanceof WrongFileError && error.path === pathOf(config.model.url)) {
      bench.modelSha256 = error.actual;
    }
  }
  return bench;
}

/**
 * @param {readonly GoldenCase[]} cases
 * @param {readonly string[] | null} ids
 * @returns {readonly GoldenCase[]}
 * @throws {TypeError} when an id is of no case
 */
function chooseCases(cases, ids) {
  const unknown = ids?.find((id) => cases.every((entry) => entry.id !== id));
  if (unknown !== undefined) {
    throw new TypeError(`This bundle has no golden case ${JSON.stringify(unknown)}.`);
  }
  return ids === null ? cases : cases.filter(({ id }) => ids.includes(id));
}

/**
 * @param {Opened} opened
 * @param {GoldenCase} entry
 * @returns {Promise<CaseRun>} never rejects
 */
export async function replay({ session }, { id, inputs, feed_back }) {
  try {
    const { outputs, run_ms } = await session.run(inputs, feed_back);
    return { id, status: 'done', error: null, run_ms, outputs };
  } catch (error) {
    return { id, status: 'failed', error: errorText(error), run_ms: null, outputs: [] };
  }
}

/**
 * Replay the golden cases and build the record. Never rejects for what a device or a bundle can do wrong: that is
 * reported in the record.
 *
 * @param {PageConfig} config
 * @param {Host} host
 * @param {AgentOptions} options
 * @param {(step: AgentStep) => void} onStep
 * @returns {Promise<{ document: RunRecord, tensors: Uint8Array<ArrayBuffer>, bench: Bench, runs: CaseRun[] }>}
 */
export async function runParity(config, host, options, onStep) {
  const bench = await openBundle(config, host, options, onStep);
  const all = bench.cases?.cases ?? [];
  /** @type {CaseRun[]} */
  const runs = [];
  /** @type {number[]} */
  let later_run_ms = [];
  if (bench.opened !== null) {
    later_run_ms = await timeLaterRuns(
      bench.opened,
      timingCase(chooseCases(all, options.cases)),
      options.repeats,
      onStep,
    );
  }
  for (const [done, entry] of all.entries()) {
    const asked = options.cases === null || options.cases.includes(entry.id);
    if (bench.opened === null || !asked) {
      const error = asked ? 'The runtime did not start.' : 'Not asked for.';
      runs.push({ id: entry.id, status: 'skipped', error, run_ms: null, outputs: [] });
    } else {
      onStep({ stage: 'case', what: entry.id, done, total: all.length });
      runs.push(await replay(bench.opened, entry));
    }
  }
  const replayed = all.filter(({ id }) => runs.some((run) => run.id === id && run.status === 'done'));
  const repeated = await again(host, options, bench, replayed, runs, onStep);
  const placement = await placementOf(config, host, options, bench, onStep);
  const later = await anew(config, host, options, bench, replayed, runs);
  const said = report(config, host, options, bench, runs, later_run_ms);
  const steadiness = { again: [...repeated.again, ...later], soak: repeated.soak };
  return { ...buildRecord({ ...said, placement, ...steadiness }), bench, runs };
}

/**
 * @param {PageConfig} config
 * @param {Host} host
 * @param {AgentOptions} options
 * @param {Bench} bench its session is ended where placements are asked for: a device may not hold the model twice
 * @param {(step: AgentStep) => void} onStep
 * @returns {Promise<import('./records.js').Placed[] | null>}
 */
async function placementOf(config, host, { placement_until_ms: until_ms }, { opened, model }, onStep) {
  if (until_ms === null || opened === null || model === null) {
    return null;
  }
  onStep({ stage: 'placement', what: opened.variant.id });
  await opened.session.dispose();
  return findPlacement(opened, { config, host, model, until_ms });
}

/**
 * @param {Opened} opened
 * @param {GoldenCase | null} entry
 * @param {number} repeats
 * @param {(step: AgentStep) => void} onStep
 * @returns {Promise<number[]>} milliseconds of each run after the first; fewer than asked where one fails
 */
async function timeLaterRuns(opened, entry, repeats, onStep) {
  const times = [];
  for (let done = 0; entry !== null && done < repeats; done += 1) {
    onStep({ stage: 'timing', what: entry.id, done, total: repeats });
    const { run_ms, status } = await replay(opened, { ...entry, feed_back: null });
    if (status !== 'done' || run_ms === null) {
      break;
    }
    times.push(run_ms);
  }
  return times;
}

/**
 * @param {PageConfig} config
 * @param {Host} host
 * @param {AgentOptions} options
 * @param {Bench} bench
 * @param {readonly CaseRun[]} cases
 * @param {number[]} later_run_ms
 * @returns {Omit<import('./run-record.js').Report, 'placement' | 'again' | 'soak'>}
 */
function report(config, host, options, bench, cases, later_run_ms) {
  const { opened } = bench;
  const { environment } = host;
  // After a miss this is the net: what a record says of where it ran is true of its last case.
  const running = opened?.running();
  return {
    run: options.run,
    hashes: {
      manifest: bench.manifestSha256,
      // A record must name a model. Where none was loaded it names the one that was asked for, and `error` says so.
      model: bench.modelSha256 ?? config.model.sha256,
      runtime: running?.sha256 ?? null,
    },
    environment: {
      runner: 'page',
      runtime: config.runtime.package,
      runtime_version: running?.version ?? config.runtime.version,
      variant: opened?.variant.id ?? null,
      execution_provider_asked: bench.executionProviderAsked,
      execution_provider: running?.execution_provider ?? null,
      threads: running?.threads ?? threadsFor(options.threads ?? config.threads, environment),
      cross_origin_isolated: environment.isolated,
      adapter: bench.adapter,
      user_agent: environment.userAgent,
      device: environment.device,
      session: running?.session ?? null,
    },
    attempts: bench.attempts,
    timings: {
      fetch_ms: opened?.timings.fetch_ms ?? null,
      compile_ms: opened?.timings.compile_ms ?? null,
      create_ms: opened?.timings.create_ms ?? null,
      first_run_ms: opened?.timings.first_run_ms ?? null,
      later_run_ms,
    },
    error: bench.error,
    misses: bench.misses,
    cases,
  };
}

/**
 * @param {{ document: RunRecord, tensors: Uint8Array<ArrayBuffer> }} record
 * @param {{ records_url: string }} config
 * @param {Pick<Host, 'fetch' | 'baseUrl'>} host
 * @returns {Promise<string>} the id under which the server keeps it
 * @throws {Error} saying what the server answered
 */
export async function postRecord({ document, tensors }, config, host) {
  const form = new FormData();
  form.append('record', new Blob([JSON.stringify(document)], { type: 'application/json' }), 'record.json');
  form.append('tensors', new Blob([tensors], { type: 'application/octet-stream' }), 'record.safetensors');
  const response = await host.fetch(new URL(config.records_url, host.baseUrl).href, { method: 'POST', body: form });
  /** @type {unknown} */
  const answer = await response.json().catch(() => null);
  const field = (/** @type {string} */ name) =>
    typeof answer === 'object' && answer !== null ? /** @type {Record<string, unknown>} */ (answer)[name] : undefined;
  if (response.status !== 201) {
    throw new Error(
      `The record was not taken: the server answered ${response.status} ${field('error') ?? response.statusText}`.trim(),
    );
  }
  return String(field('id'));
}

/**
 * @param {URLSearchParams} query of the page
 * @returns {AgentOptions | null} null: the page was opened by a person
 */
export function agentOptions(query) {
  if (query.get('parity') !== '1') {
    return null;
  }
  /** @type {string[]} */
  const problems = [];
  const repeats = wholeNumber(query, 'repeats', 10_000, problems) ?? 3;
  const threads = wholeNumber(query, 'threads', 256, problems);
  const placement = wholeNumber(query, 'placement', 100_000, problems);
  return {
    run: (query.get('run') ?? '').slice(0, 200),
    repeats,
    variant: query.get('variant'),
    threads,
    again: query.get('again') === '1',
    soak: wholeNumber(query, 'soak', 100_000, problems) ?? 0,
    problem: problems[0] ?? null,
    placement_until_ms: placement === null ? null : placement * 1000,
    cases: query.has('cases') ? (query.get('cases') ?? '').split(',').filter((id) => id !== '') : null,
  };
}

/**
 * @param {URLSearchParams} query
 * @param {string} name
 * @param {number} most
 * @param {string[]} problems gains a sentence when the number is not one
 * @returns {number | null}
 */
function wholeNumber(query, name, most, problems) {
  const text = query.get(name);
  if (text === null) {
    return null;
  }
  if (!/^\d+$/.test(text) || Number(text) > most) {
    problems.push(`${name}=${text} is not a whole number from 0 to ${most}.`);
    return null;
  }
  return Number(text);
}
