/** @file The golden cases: replay them, and a preview of how each came out. */

import { preview, toleranceOf } from '../tolerance.js';
import { byId, control, element } from './dom.js';
import { numberText, timeText } from './words.js';

/**
 * @typedef {import('../golden-cases.js').GoldenCase} GoldenCase
 * @typedef {import('../golden-cases.js').GoldenCases} GoldenCases
 * @typedef {import('../run-record.js').CaseRun} CaseRun
 * @typedef {{ kind: 'pass' | 'fail' | 'none', text: string, detail: string }} Mark
 */

/**
 * @param {GoldenCase} entry
 * @param {CaseRun} run
 * @param {GoldenCases} cases
 * @returns {Mark}
 */
export function markOf(entry, run, cases) {
  if (run.status !== 'done') {
    return {
      kind: run.status === 'failed' ? 'fail' : 'none',
      text: run.status === 'failed' ? 'failed' : 'skipped',
      detail: run.error ?? '',
    };
  }
  const results = entry.outputs.flatMap((reference) => {
    const result = preview(
      reference,
      run.outputs.find(({ name }) => name === reference.name),
      toleranceOf(reference, cases),
      entry.left_open.find(({ name }) => name === reference.name),
    );
    return result === null ? [] : [{ name: reference.name, ...result }];
  });
  const wrong = results.filter(({ match }) => !match);
  if (results.length === 0) {
    return {
      kind: 'none',
      text: 'nothing to compare',
      detail: 'None of the outputs is a tensor that the standard defines.',
    };
  }
  if (wrong.length > 0) {
    const said = wrong.map(
      ({ name, reason, worst, allowed }) => `${name}: ${reason ?? `off by ${short(worst)}, ${short(allowed)} allowed`}`,
    );
    return { kind: 'fail', text: 'differs', detail: said.join(' · ') };
  }
  const near = results.reduce((a, b) => (ratio(b) > ratio(a) ? b : a));
  return {
    kind: 'pass',
    text: 'within tolerance',
    detail: near.worst === 0 ? 'equal' : `off by ${short(near.worst)} at most, ${short(near.allowed)} allowed`,
  };
}

/**
 * @param {{ worst: number, allowed: number }} result
 * @returns {number}
 */
function ratio({ worst, allowed }) {
  return worst === 0 ? 0 : worst / allowed;
}

/**
 * @param {number} value
 * @returns {string}
 */
function short(value) {
  return value > 0 && value < 1e-3 ? value.toExponential(1) : numberText(Number(value.toPrecision(2)));
}

/**
 * @param {Mark} mark
 * @returns {HTMLElement}
 */
export function markBadge({ kind, text }) {
  const sign = { pass: '✓', fail: '✗', none: '–' }[kind];
  return element('span', { class: `mark ${kind}` }, element('span', { 'aria-hidden': 'true' }, sign), ` ${text}`);
}

export class CasesView {
  /** @type {Map<string, { result: HTMLElement, time: HTMLElement }>} */
  #rows = new Map();

  /** @type {Map<string, Mark>} */
  #marks = new Map();

  /** @type {GoldenCases} */
  #cases;

  #summary = element('p', { class: 'summary', role: 'status', 'aria-live': 'polite' });

  /**
   * @param {GoldenCases} cases
   * @param {{ onLoad: (entry: GoldenCase) => void, onReplay: () => void } | null} actions null: a table to read only
   */
  constructor(cases, actions) {
    this.#cases = cases;
    const { reference } = cases;
    const about = `${cases.cases.length} ${cases.cases.length === 1 ? 'case' : 'cases'}: inputs, and the outputs that ${reference.name} (${reference.runtime} ${reference.runtime_version}, optimization ${reference.optimization}) gave. `;
    const judge = element(
      'p',
      { class: 'judge' },
      about,
      'The marks are a preview computed in this page. The verdict is edgekit’s: ',
      element('code', {}, 'edgekit parity'),
      '.',
    );
    const button =
      actions &&
      control(
        'button',
        actions.onReplay,
        'click',
        { type: 'button', class: 'primary', id: 'replay' },
        'Replay all cases',
      );
    const bar = element('div', { class: 'case-bar' }, button, this.#summary);
    byId('cases').replaceChildren(judge, bar, this.#table(actions));
    byId('cases-card').hidden = false;
  }

  /**
   * @param {{ onLoad: (entry: GoldenCase) => void } | null} actions
   * @returns {HTMLElement}
   */
  #table(actions) {
    const rows = this.#cases.cases.map((entry) => {
      const result = element(
        'td',
        { class: 'case-result' },
        markBadge({ kind: 'none', text: 'not replayed', detail: '' }),
      );
      const time = element('td', { class: 'number case-time' }, '–');
      this.#rows.set(entry.id, { result, time });
      const weak =
        entry.grade.weak.length > 0 ? element('span', { class: 'tag' }, `weak: ${entry.grade.weak.join('; ')}`) : null;
      const loop = entry.feed_back
        ? element('span', { class: 'tag' }, `outputs fed back, ${entry.feed_back.steps} steps`)
        : null;
      const load =
        actions &&
        control(
          'button',
          () => actions.onLoad(entry),
          'click',
          { type: 'button', 'aria-label': `Load the inputs of ${entry.id}` },
          'Load',
        );
      return element(
        'tr',
        {},
        element('th', { scope: 'row' }, element('code', {}, entry.id), element('small', {}, entry.origin), weak, loop),
        result,
        time,
        actions ? element('td', { class: 'case-action' }, load) : null,
      );
    });
    const head = ['Case', 'Preview', 'Time', ...(actions ? [''] : [])].map((text) =>
      text ? element('th', { scope: 'col' }, text) : element('td'),
    );
    return element(
      'table',
      { class: 'case-table' },
      element('thead', {}, element('tr', {}, ...head)),
      element('tbody', {}, ...rows),
    );
  }

  /**
   * @param {GoldenCase} entry
   * @param {CaseRun} run
   */
  show(entry, run) {
    const mark = markOf(entry, run, this.#cases);
    this.#marks.set(entry.id, mark);
    const row = this.#rows.get(entry.id);
    row?.result.replaceChildren(markBadge(mark), element('small', {}, mark.detail));
    row?.time.replaceChildren(timeText(run.run_ms));
  }

  /** @param {string} id */
  showRunning(id) {
    this.#rows.get(id)?.result.replaceChildren(element('span', { class: 'mark running' }, 'running…'));
  }

  /** Say in one sentence how all came out. */
  summarize() {
    const marks = [...this.#marks.values()];
    const [passed, failed] = ['pass', 'fail'].map((kind) => marks.filter((mark) => mark.kind === kind).length);
    const rest = this.#cases.cases.length - (passed ?? 0) - (failed ?? 0);
    const parts = [
      `${passed} within tolerance`,
      ...(failed ? [`${failed} not`] : []),
      ...(rest > 0 ? [`${rest} not compared`] : []),
    ];
    this.#summary.textContent = `Preview: ${failed || rest > 0 ? '' : 'all '}${parts.join(', ')}.`;
    this.#summary.dataset.kind = failed ? 'fail' : rest > 0 || !passed ? 'none' : 'pass';
  }
}
