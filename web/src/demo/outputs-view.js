/** @file Outputs of a run: shape, statistics, first values, and bars for scores. */

import { reader } from '../tensor.js';
import { byId, element } from './dom.js';
import { scoresOf, statisticsOf } from './statistics.js';
import { numberText, shapeText } from './words.js';

/**
 * @typedef {import('../tensor.js').Value} Value
 * @typedef {import('../tensor.js').NumberTensor} NumberTensor
 */

const FIRST_VALUES = 12;
const MOST_CHARACTERS = 200;

/**
 * @param {readonly Value[]} outputs
 * @param {Node} headline what was run, and how long it took
 */
export function showOutputs(outputs, headline) {
  byId('outputs').replaceChildren(headline, ...outputs.map(outputBlock));
}

/**
 * Say why there are no outputs. Those of an earlier run stay, below, without a mark and dimmed.
 *
 * @param {string} reason
 */
export function showNoOutputs(reason) {
  const place = byId('outputs');
  const earlier = place.querySelector('.earlier') ?? element('div', { class: 'earlier' });
  if (!earlier.isConnected && place.querySelector('.headline') !== null) {
    earlier.append(element('p', { class: 'earlier-note' }, 'Outputs of an earlier run'), ...place.childNodes);
    earlier.querySelectorAll('.headline .mark, .headline small').forEach((mark) => mark.remove());
  }
  const why = element(
    'div',
    { class: 'notice bad' },
    element('strong', {}, 'This run gave no outputs.'),
    element('p', {}, reason),
  );
  place.replaceChildren(why, ...(earlier.hasChildNodes() ? [earlier] : []));
}

/**
 * @param {Value} output
 * @returns {HTMLElement}
 */
function outputBlock({ name, dtype, tensor, note }) {
  const head = element(
    'h3',
    { class: 'value-head' },
    element('code', { class: 'name' }, name),
    typeTag(dtype, tensor?.shape ?? null),
  );
  if (tensor === null) {
    return element(
      'article',
      { class: 'value' },
      head,
      element('p', { class: 'muted' }, `Not shown: ${note ?? 'not a tensor'}.`),
    );
  }
  if (tensor.dtype === 'string') {
    const shown = tensor.data
      .slice(0, FIRST_VALUES)
      .map((text) => element('li', {}, element('code', {}, text.slice(0, MOST_CHARACTERS) || '(empty)')));
    return element(
      'article',
      { class: 'value' },
      head,
      element('ul', { class: 'strings' }, ...shown),
      more(tensor.data.length),
    );
  }
  return element('article', { class: 'value' }, head, statisticsLine(tensor), scoreBars(tensor), firstValues(tensor));
}

/**
 * @param {string} dtype
 * @param {readonly (number | string | null)[] | null} shape
 * @returns {HTMLElement}
 */
export function typeTag(dtype, shape) {
  return element(
    'span',
    { class: 'type' },
    element('span', { class: 'dtype' }, dtype),
    shape === null ? '' : ` ${shapeText(shape)}`,
  );
}

/**
 * @param {NumberTensor} tensor
 * @param {boolean} [withShape]
 * @returns {HTMLElement}
 */
export function statisticsLine(tensor, withShape = false) {
  const { count, nan, infinite, range } = statisticsOf(tensor);
  /** @type {[string, string][]} */
  const facts = withShape && tensor.shape.length > 0 ? [['shape', shapeText(tensor.shape)]] : [];
  if (count === 1) {
    facts.push(['value', numberText(reader(tensor)(0))]);
  } else {
    facts.push(['values', String(count)]);
    if (range !== null) {
      facts.push(['min', numberText(range.min)], ['max', numberText(range.max)], ['mean', numberText(range.mean)]);
    }
    facts.push(...(nan > 0 ? [/** @type {[string, string]} */ (['NaN', String(nan)])] : []));
    facts.push(...(infinite > 0 ? [/** @type {[string, string]} */ (['infinite', String(infinite)])] : []));
  }
  const items = facts.map(([term, text]) => element('div', {}, element('dt', {}, term), element('dd', {}, text)));
  return element('dl', { class: 'statistics' }, ...items);
}

/**
 * @param {NumberTensor} tensor
 * @returns {HTMLElement | null}
 */
function scoreBars(tensor) {
  const scores = scoresOf(tensor);
  if (scores === null) {
    return null;
  }
  const { rows, classes, top } = scores;
  const high = Math.max(...top.map(({ value }) => value), 0);
  const low = Math.min(...top.map(({ value }) => value), 0);
  const items = top.map(({ label, value }, index) => {
    const bar = element('span', { class: 'bar-fill' });
    bar.style.setProperty('--part', String(high === low ? 0 : (value - low) / (high - low)));
    return element(
      'li',
      { class: index === 0 ? 'score first' : 'score' },
      element('span', { class: 'score-label' }, label),
      element('span', { class: 'bar', 'aria-hidden': 'true' }, bar),
      element('span', { class: 'number' }, numberText(Number(value.toPrecision(4)))),
    );
  });
  const which = classes > top.length ? `Largest ${top.length} of ${classes} entries` : 'Entries, largest first';
  return element(
    'figure',
    { class: 'scores' },
    element('figcaption', {}, rows > 1 ? `${which}, row 0 of ${rows}` : which),
    element('ol', {}, ...items),
  );
}

/**
 * @param {NumberTensor} tensor
 * @returns {HTMLElement | null} null for a single value, which the statistics show
 */
function firstValues(tensor) {
  const read = reader(tensor);
  const count = Math.min(tensor.data.length, FIRST_VALUES);
  if (tensor.data.length === 1) {
    return null;
  }
  const text = Array.from({ length: count }, (_, index) => numberText(read(index))).join(', ');
  return element(
    'p',
    { class: 'first-values' },
    element('span', { class: 'muted' }, 'First values '),
    element('code', {}, text || '(none)'),
    more(tensor.data.length),
  );
}

/**
 * @param {number} count
 * @returns {HTMLElement | null}
 */
function more(count) {
  return count > FIRST_VALUES ? element('span', { class: 'muted' }, ` … ${count - FIRST_VALUES} more`) : null;
}
