/** @file Where the model ran: badges at the top, notices for what matters, and the details. */

import { byId, element } from './dom.js';
import { notice } from './status.js';

/**
 * @typedef {import('../bench.js').Bench} Bench
 * @typedef {import('../environment.js').Environment} Environment
 * @typedef {import('../records.js').PageConfig} PageConfig
 */

/** @type {ReadonlyMap<string, string>} */
const PROVIDERS = new Map([
  ['webgpu', 'WebGPU'],
  ['wasm', 'WebAssembly on the CPU'],
]);
const HEADERS = 'Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp';

/**
 * @param {string} id of an execution provider
 * @returns {string}
 */
function providerName(id) {
  return PROVIDERS.get(id) ?? id;
}

/**
 * @param {Bench} bench
 * @param {PageConfig} config
 * @param {Environment} environment
 */
export function showEnvironment(bench, config, environment) {
  showRunning(bench, config, environment);
  showNotices(bench, environment);
}

/**
 * What may change after a miss. The notices are not repeated.
 *
 * @param {Bench} bench
 * @param {PageConfig} config
 * @param {Environment} environment
 */
export function showRunning(bench, config, environment) {
  showBadges(bench, environment);
  byId('environment').replaceChildren(
    details(bench, config, environment),
    element('h3', {}, 'Variants, in order'),
    chain(bench, config),
  );
}

/** @param {import('../records.js').Miss} miss of a trimmed runtime */
export function showMiss({ variant, functions, recovered_by }) {
  const what = functions.length === 0 ? 'A function' : `Function ${functions.join(', ')}`;
  const how =
    recovered_by === null
      ? 'There was no stock runtime to take over.'
      : `The stock runtime ${recovered_by} took over, so the answers are right; this visit downloaded more.`;
  notice(
    recovered_by === null ? 'bad' : 'warning',
    `The trimmed runtime of variant ${variant} lacks what this model needs.`,
    `${what} was removed from it. ${how} Give a record of this page to edgekit build --add-profile to keep it.`,
  );
}

/**
 * @param {Bench} bench
 * @param {Environment} environment
 */
function showBadges({ opened, adapter, executionProviderAsked, misses }, { isolated }) {
  const badge = (/** @type {string} */ kind, /** @type {string} */ text) =>
    element('li', { class: `badge ${kind}` }, text);
  const badges = [];
  if (opened === null) {
    badges.push(badge('bad', 'The model does not run here'));
  } else {
    const { execution_provider: provider, threads } = opened.running();
    badges.push(badge('strong', providerName(provider)), badge('plain', `${opened.variant.id} variant`));
    if (provider !== executionProviderAsked) {
      badges.push(badge('warning', `Fell back from ${providerName(executionProviderAsked)}`));
    } else if (provider === 'webgpu' && adapter !== null) {
      badges.push(adapter.software ? badge('warning', 'Software GPU adapter') : badge('plain', adapterName(adapter)));
    }
    if (misses.some(({ recovered_by }) => recovered_by !== null)) {
      badges.push(badge('warning', 'Stock runtime after a miss'));
    }
    badges.push(badge(isolated ? 'plain' : 'warning', threadsText(threads)));
  }
  byId('badges').replaceChildren(...badges);
}

/**
 * @param {Bench} bench
 * @param {Environment} environment
 */
function showNotices({ opened, adapter, attempts, executionProviderAsked, misses }, { isolated, secure }) {
  const ran = opened?.running().execution_provider ?? null;
  if (ran !== null && ran !== executionProviderAsked && misses.length === 0) {
    const reasons = attempts
      .filter(({ status }) => status !== 'created')
      .map(({ variant, reason }) => `${variant}: ${reason}`);
    notice(
      'warning',
      `The model fell back from ${providerName(executionProviderAsked)} to ${providerName(ran)}.`,
      reasons.join(' · '),
    );
  }
  if (adapter?.software && ran === 'webgpu') {
    notice(
      'warning',
      'This GPU adapter is software.',
      `“${adapterName(adapter)}” computes on the CPU. Answers can be checked with it; its times say nothing about a GPU.`,
    );
  }
  if (!isolated && opened !== null) {
    const how = secure ? '' : ' Open the page over https, or as localhost.';
    notice(
      'warning',
      'The page is not cross-origin isolated, so it uses one thread.',
      `Serve it with the headers ${HEADERS} (edgekit serve sends them).${how}`,
    );
  }
}

/**
 * @param {Bench} bench
 * @param {PageConfig} config
 * @param {Environment} environment
 * @returns {HTMLElement}
 */
function details({ opened, adapter }, config, { isolated, cores, userAgent, device }) {
  const running = opened?.running() ?? null;
  /** @type {[string, string][]} */
  const rows = [
    ['Execution provider', running === null ? 'none' : providerName(running.execution_provider)],
    ['Variant', opened?.variant.id ?? 'none'],
    ['Runtime', `${config.runtime.package} ${running?.version ?? config.runtime.version}`],
  ];
  if (config.variants.some(({ execution_provider }) => execution_provider === 'webgpu')) {
    rows.push([
      'GPU adapter',
      adapter === null
        ? 'none'
        : `${adapterName(adapter)} (${adapter.software ? 'software, runs on the CPU' : 'hardware'})`,
    ]);
  }
  rows.push(
    ['Threads', running === null ? '–' : `${running.threads} of ${cores} ${cores === 1 ? 'core' : 'cores'}`],
    ['Cross-origin isolated', isolated ? 'yes' : 'no: one thread'],
    ['Device', device ?? 'not told'],
    ['Browser', userAgent ?? 'not told'],
  );
  return element(
    'dl',
    { class: 'facts' },
    ...rows.flatMap(([term, text]) => [element('dt', {}, term), element('dd', {}, text)]),
  );
}

/**
 * @param {Bench} bench
 * @param {PageConfig} config
 * @returns {HTMLElement}
 */
function chain({ attempts }, config) {
  const words = { created: 'runs', refused: 'refused', unavailable: 'not available' };
  const items = config.variants.map(({ id, execution_provider }) => {
    const attempt = attempts.find(({ variant }) => variant === id);
    const state = attempt === undefined ? 'not needed' : words[attempt.status];
    return element(
      'li',
      { class: `step ${attempt?.status ?? 'idle'}` },
      element('span', { class: 'step-name' }, element('code', {}, id), ` ${providerName(execution_provider)}`),
      element('span', { class: 'step-state' }, state),
      attempt?.reason ? element('p', { class: 'reason' }, attempt.reason) : null,
    );
  });
  return element('ol', { class: 'chain' }, ...items);
}

/**
 * @param {import('../records.js').Adapter} adapter
 * @returns {string}
 */
function adapterName({ vendor, architecture, description, device }) {
  const name = [vendor, architecture].filter(Boolean).join(' ');
  return description || name || device || 'unnamed adapter';
}

/**
 * @param {number} threads
 * @returns {string}
 */
function threadsText(threads) {
  return threads === 1 ? '1 thread' : `${threads} threads`;
}
