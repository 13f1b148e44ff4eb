/** @file The page as parity agent: replay, send the record, show what was sent. */

import { errorText } from '../errors.js';
import { postRecord, runParity } from '../parity-agent.js';
import { CasesView } from './cases-view.js';
import { byId, element, painted } from './dom.js';
import { showEnvironment, showMiss } from './environment-view.js';
import { notice } from './status.js';
import { showTimes } from './times-view.js';

/**
 * @param {import('../records.js').PageConfig} config
 * @param {import('../environment.js').Host} host
 * @param {import('../bench.js').AgentOptions} options
 * @param {import('./status.js').Status} status
 * @returns {Promise<'done' | 'failed'>} 'done' once the server has the record, whatever is in it
 */
export async function showAgent(config, host, options, status) {
  await painted();
  const result = await runParity(config, host, options, (step) => status.show(step));
  const { bench, runs, document: record } = result;
  showEnvironment(bench, config, host.environment);
  bench.misses.forEach(showMiss);
  byId('facts').hidden = false;
  if (bench.opened !== null) {
    showTimes(
      bench.opened.timings,
      record.timings.later_run_ms,
      bench.adapter?.software === true && bench.opened.running().execution_provider === 'webgpu',
    );
  }
  if (bench.cases !== null) {
    const view = new CasesView(bench.cases, null);
    bench.cases.cases.forEach((entry, index) => {
      const run = runs[index];
      if (run !== undefined) {
        view.show(entry, run);
      }
    });
    view.summarize();
  }
  if (record.error !== null) {
    notice('bad', 'No golden case could be replayed.', record.error);
  }
  try {
    const id = await postRecord(result, config, host);
    status.say(
      `The record of this device was sent. edgekit keeps it as ${id}; the verdict is edgekit’s.`,
      record.error === null ? 'ready' : 'failed',
    );
    notice(
      'good',
      'How this record is judged',
      'edgekit parity judges it at once. A record that went to edgekit serve waits for: ',
      element('code', {}, `edgekit report RECORDS/${id} `, element('span', { class: 'unbroken' }, '--bundle BUNDLE')),
      ' with the folder that edgekit serve named for records, and that of this bundle.',
    );
    return 'done';
  } catch (error) {
    status.say('The record of this device could not be sent.', 'failed');
    notice(
      'bad',
      'The record could not be sent.',
      `${errorText(error)} Records go to the server that serves this page; edgekit serve and edgekit parity take them.`,
    );
    return 'failed';
  }
}
