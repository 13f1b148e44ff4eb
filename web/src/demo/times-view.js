/** @file How long each part took. */

import { byId, element } from './dom.js';
import { median, timeText } from './words.js';

/**
 * @typedef {import('../open-model.js').OpenTimings} OpenTimings
 */

/**
 * @param {OpenTimings} timings
 * @param {readonly number[]} later milliseconds of each later run
 * @param {boolean} software whether a software adapter stands in for a GPU
 */
export function showTimes(timings, later, software) {
  /** @type {[string, string, number | null][]} */
  const rows = [
    ['Fetch', 'model and runtime', timings.fetch_ms],
    ['Compile', 'WebAssembly', timings.compile_ms],
    ['Create', 'session', timings.create_ms],
    ['First run', 'warm-up', timings.first_run_ms],
    ['Later runs', later.length === 0 ? 'none yet' : `median of ${later.length}`, median(later)],
  ];
  const longest = Math.max(...rows.map(([, , time]) => time ?? 0), 1);
  const body = rows.map(([name, detail, time]) => {
    const bar = element('span', { class: 'bar-fill' });
    bar.style.setProperty('--part', String((time ?? 0) / longest));
    return element(
      'tr',
      {},
      element('th', { scope: 'row' }, name, ' ', element('small', {}, detail)),
      element('td', { class: 'bar', 'aria-hidden': 'true' }, bar),
      element('td', { class: 'number' }, timeText(time)),
    );
  });
  const caption = software
    ? 'On a software adapter: these times say nothing about a GPU.'
    : 'On this device, in this browser.';
  byId('times').replaceChildren(
    element('table', { class: 'times' }, element('caption', {}, caption), element('tbody', {}, ...body)),
  );
}
