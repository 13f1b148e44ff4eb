/** @file The page for a person: fill inputs, run, see outputs and times, replay the golden cases. */

import { errorText } from '../errors.js';
import { timingCase } from '../golden-cases.js';
import { openBundle, replay } from '../parity-agent.js';
import { CasesView, markBadge, markOf } from './cases-view.js';
import { byId, element, painted } from './dom.js';
import { showEnvironment, showMiss, showRunning } from './environment-view.js';
import { FillError } from './fill.js';
import { InputsView } from './inputs-view.js';
import { showNoOutputs, showOutputs } from './outputs-view.js';
import { notice } from './status.js';
import { showTimes } from './times-view.js';
import { timeText } from './words.js';

/**
 * @typedef {import('../golden-cases.js').GoldenCase} GoldenCase
 * @typedef {import('../golden-cases.js').GoldenCases} GoldenCases
 * @typedef {import('../run-record.js').CaseRun} CaseRun
 * @typedef {import('../open-model.js').Opened} Opened
 */

/**
 * @param {import('../records.js').PageConfig} config
 * @param {import('../environment.js').Host} host
 * @param {import('./status.js').Status} status
 * @returns {Promise<'ready' | 'failed'>}
 */
export async function showDemo(config, host, status) {
  await painted();
  const started = host.now();
  /** @type {{ bench?: import('../bench.js').Bench }} */
  const shown = {};
  const onMiss = (/** @type {import('../records.js').Miss} */ miss) => {
    showMiss(miss);
    if (shown.bench !== undefined) {
      showRunning(shown.bench, config, host.environment);
    }
  };
  const options = { variant: null, threads: null, cases: null, problem: null };
  const bench = await openBundle(config, host, options, (step) => status.show(step), onMiss);
  shown.bench = bench;
  showEnvironment(bench, config, host.environment);
  byId('facts').hidden = false;
  if (bench.opened === null || bench.cases === null) {
    status.say('The model does not run in this browser.', 'failed');
    notice('bad', 'The model does not run in this browser.', bench.error ?? '');
    return 'failed';
  }
  new Demo(config, bench.opened, bench.cases, bench.adapter?.software === true, status);
  status.say(`Ready after ${timeText(host.now() - started)}.`, 'ready');
  return 'ready';
}

class Demo {
  /** @type {number[]} */
  #later = [];

  /**
   * @param {import('../records.js').PageConfig} config
   * @param {Opened} opened
   * @param {GoldenCases} cases
   * @param {boolean} softwareAdapter
   * @param {import('./status.js').Status} status
   */
  constructor(config, opened, cases, softwareAdapter, status) {
    this.opened = opened;
    this.cases = cases;
    this.status = status;
    this.software = softwareAdapter && opened.running().execution_provider === 'webgpu';
    this.inputs = new InputsView(config.model.inputs, cases.cases, config.image, () =>
      this.#whileBusy(() => this.#run()),
    );
    this.casesView = new CasesView(cases, {
      onLoad: (entry) => this.#load(entry),
      onReplay: () => this.#whileBusy(() => this.#replayAll()),
    });
    byId('workbench').hidden = false;
    this.#showTimes();
    const first = timingCase(cases.cases);
    if (first !== null && opened.firstRun !== null) {
      this.inputs.loadCase(first);
      const shown =
        first.feed_back === null
          ? this.#headlineOf(first, { id: first.id, status: 'done', error: null, ...opened.firstRun })
          : headline('First step of', first.id, opened.firstRun.run_ms);
      showOutputs(opened.firstRun.outputs, shown);
    } else {
      byId('outputs').replaceChildren(element('p', { class: 'muted' }, 'Fill the inputs and run the model.'));
    }
  }

  /** @param {GoldenCase} entry */
  #load(entry) {
    this.inputs.loadCase(entry);
    this.status.say(`The inputs of golden case ${entry.id} are loaded.`, 'ready');
    byId('inputs-title').scrollIntoView({ block: 'start' });
    byId('run').focus({ preventScroll: true });
  }

  /** @param {() => Promise<void>} work */
  async #whileBusy(work) {
    this.#setBusy(true);
    try {
      await work();
    } catch (error) {
      this.status.say(errorText(error), 'failed');
    } finally {
      this.#setBusy(false);
    }
  }

  /** @param {boolean} busy */
  #setBusy(busy) {
    this.inputs.setBusy(busy);
    /** @type {HTMLButtonElement} */ (byId('replay')).disabled = busy;
  }

  async #run() {
    /** @type {import('./inputs-view.js').Filled} */
    let filled;
    /** @type {import('../session.js').Run} */
    let run;
    try {
      filled = this.inputs.collect();
      this.status.say('Running…');
      await painted();
      run = await this.opened.session.run(filled.values, filled.goldenCase?.feed_back ?? null);
    } catch (error) {
      showNoOutputs(errorText(error));
      this.status.say(
        error instanceof FillError ? error.message : 'The run failed. The reason stands under Outputs.',
        'failed',
      );
      return;
    }
    const { goldenCase } = filled;
    this.#later.push(run.run_ms);
    this.#showTimes();
    const shown =
      goldenCase === null
        ? headline('Run with', 'your inputs', run.run_ms)
        : this.#headlineOf(goldenCase, { id: goldenCase.id, status: 'done', error: null, ...run });
    showOutputs(run.outputs, shown);
    this.status.say(`Ran in ${timeText(run.run_ms)}.`, 'ready');
  }

  async #replayAll() {
    const { cases } = this.cases;
    for (const [done, entry] of cases.entries()) {
      this.status.show({ stage: 'case', what: entry.id, done, total: cases.length });
      this.casesView.showRunning(entry.id);
      await painted();
      const run = await replay(this.opened, entry);
      if (run.run_ms !== null && entry.feed_back === null) {
        this.#later.push(run.run_ms);
      }
      this.casesView.show(entry, run);
    }
    this.casesView.summarize();
    this.#showTimes();
    this.status.say(`Replayed ${cases.length} golden ${cases.length === 1 ? 'case' : 'cases'}.`, 'ready');
  }

  #showTimes() {
    showTimes(this.opened.timings, this.#later, this.software);
  }

  /**
   * @param {GoldenCase} entry
   * @param {CaseRun} run
   * @returns {HTMLElement}
   */
  #headlineOf(entry, run) {
    const mark = markOf(entry, run, this.cases);
    const line = headline('Golden case', entry.id, run.run_ms ?? 0);
    line.append(markBadge(mark), element('small', { class: 'muted' }, mark.detail));
    return line;
  }
}

/**
 * @param {string} what
 * @param {string} name
 * @param {number} run_ms
 * @returns {HTMLElement}
 */
function headline(what, name, run_ms) {
  return element(
    'p',
    { class: 'headline' },
    element('span', {}, `${what} `, element('code', {}, name)),
    element('span', { class: 'number' }, timeText(run_ms)),
  );
}
