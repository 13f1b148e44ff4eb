/** @file The line that says what the page is doing, the bar under it, and notices. */

import { byId, element } from './dom.js';
import { bytesText } from './words.js';

/**
 * @typedef {import('../bench.js').AgentStep} AgentStep
 */

const SENTENCES = Object.freeze({
  download: 'Downloading the',
  compile: 'Compiling the',
  create: 'Creating the session with the',
  'first run': 'First run with the',
  case: 'Replaying golden case',
  timing: 'Timing runs of golden case',
  placement: 'Finding out where nodes ran with the runtime',
});

export class Status {
  #text = byId('status-text');

  #bar = /** @type {HTMLProgressElement} */ (byId('status-bar'));

  /**
   * The sentence is announced when it changes; the bar and the bytes move without being read out each time.
   *
   * @param {AgentStep} step
   */
  show(step) {
    this.say(`${SENTENCES[step.stage]} ${step.what}…`);
    const done = 'done' in step ? step.done : 'loaded' in step ? step.loaded : undefined;
    if (done === undefined || step.total === undefined) {
      this.#bar.removeAttribute('value');
      this.#bar.removeAttribute('title');
    } else {
      this.#bar.max = step.total || 1;
      this.#bar.value = done;
      this.#bar.title =
        step.stage === 'download' ? `${bytesText(done)} of ${bytesText(step.total)}` : `${done} of ${step.total}`;
    }
    this.#bar.hidden = false;
  }

  /**
   * @param {string} sentence
   * @param {'ready' | 'failed' | 'busy'} [state] 'busy' leaves the bar
   */
  say(sentence, state = 'busy') {
    if (this.#text.textContent !== sentence) {
      this.#text.textContent = sentence;
    }
    this.#bar.hidden = state !== 'busy';
    byId('status').dataset.state = state;
    byId('status').setAttribute('aria-busy', String(state === 'busy'));
  }
}

/**
 * @param {'good' | 'warning' | 'bad'} kind
 * @param {string} title
 * @param {...(Node | string)} body
 */
export function notice(kind, title, ...body) {
  byId('notices').append(
    element('div', { class: `notice ${kind}` }, element('strong', {}, title), element('p', {}, ...body)),
  );
}
