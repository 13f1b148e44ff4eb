/** @file Where the model ran: badges at the top, notices for what matters, and the details. */

import { byId, element } from './dom.js';
import { notice } from './status.js';

/**
 * @typedef {import('../parity-agent.js').Bench} Bench
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
  showBadges(bench, environment);
  showNotices(bench, environment);
  byId('environment').replaceChildren(
    details(bench, config, environment),
    element('h3', {}, 'Variants, in order'),
    chain(bench, config),
  );
}

/**
 * @param {Bench} bench
 * @param {Environment} environment
 */
function showBadges({ opened, adapter, executionProviderAsked }, { isolated }) {
  const badge = (/** @type {string} */ kind, /** @type {string} */ text) =>
    element('li', { class: `badge ${kind}` }, text);
  const badges = [];
  if (opened === null) {
    badges.push(badge('bad', 'The model does not run here'));
  } else {
    const provider = opened.variant.execution_provider;
    badges.push(badge('strong', providerName(provider)), badge('plain', `${opened.variant.id} variant`));
    if (provider !== executionProviderAsked) {
      badges.push(badge('warning', `Fell back from ${providerName(executionProviderAsked)}`));
    } else if (provider === 'webgpu' && adapter !== null) {
      badges.push(adapter.software ? badge('warning', 'Software GPU adapter') : badge('plain', adapterName(adapter)));
    }
    badges.push(badge(isolated ? 'plain' : 'warning', threadsText(opened.threads)));
  }
  byId('badges').replaceChildren(...badges);
}

/**
 * @param {Bench} bench
 * @param {Environment} environment
 */
function showNotices({ opened, adapter, attempts, executionProviderAsked }, { isolated, secure }) {
  if (opened !== null && opened.variant.execution_provider !== executionProviderAsked) {
    const reasons = attempts
      .filter(({ status }) => status !== 'created')
      .map(({ variant, reason }) => `${variant}: ${reason}`);
    notice(
      'warning',
      `The model fell back from ${providerName(executionProviderAsked)} to ${providerName(opened.variant.execution_provider)}.`,
      reasons.join(' · '),
    );
  }
  if (adapter?.software && opened?.variant.execution_provider === 'webgpu') {
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
  /** @type {[string, string][]} */
  const rows = [
    ['Execution provider', opened === null ? 'none' : providerName(opened.variant.execution_provider)],
    ['Variant', opened?.variant.id ?? 'none'],
    ['Runtime', `${config.runtime.package} ${opened?.runtime_version ?? config.runtime.version}`],
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
    ['Threads', opened === null ? '–' : `${opened.threads} of ${cores} ${cores === 1 ? 'core' : 'cores'}`],
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
