/** @file The page of a bundle: a demo for a person, or the parity agent when it is asked for by its address. */

import { browserHost } from '../environment.js';
import { errorText } from '../errors.js';
import { agentOptions } from '../parity-agent.js';
import { showAgent } from './agent-page.js';
import { showDemo } from './demo-page.js';
import { byId } from './dom.js';
import { Status, notice } from './status.js';

/**
 * @typedef {import('../records.js').PageConfig} PageConfig
 */

const status = new Status();
try {
  const config = /** @type {PageConfig} */ (JSON.parse(byId('edgekit-config').textContent ?? ''));
  byId('lede').textContent =
    `Built by edgekit for the target “${config.target}” · ${config.runtime.package} ${config.runtime.version}`;
  const host = browserHost(globalThis);
  const options = agentOptions(new URLSearchParams(location.search));
  document.documentElement.dataset.edgekit = await (options === null
    ? showDemo(config, host, status)
    : showAgent(config, host, options, status));
} catch (error) {
  status.say('The page could not start.', 'failed');
  notice('bad', 'The page could not start.', errorText(error));
  document.documentElement.dataset.edgekit = 'failed';
}
