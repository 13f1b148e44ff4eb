/** @file The runtime in node writes to the process's streams; in a browser it speaks in the console, and so it does here. */

import fs from 'node:fs';
import { after, before } from 'node:test';

/**
 * For the tests of a file: send what the runtime writes to the console, and what reaches the console to a list.
 *
 * @returns {string[]} what was shown, in tests so far
 */
export function showInList() {
  const spoken = /** @type {{ error: (...said: unknown[]) => void }} */ (globalThis.console);
  const { error } = spoken;
  const { writeSync } = fs;
  /** @type {string[]} */
  const shown = [];
  before(() => {
    spoken.error = (...said) => void shown.push(said.join(' '));
    fs.writeSync = /** @type {typeof writeSync} */ (
      (/** @type {number} */ stream, /** @type {string} */ text) => {
        text.split(/\n(?!$)/).forEach((line) => spoken.error(line.replace(/\n$/, '')));
        return stream;
      }
    );
  });
  after(() => {
    spoken.error = error;
    fs.writeSync = writeSync;
  });
  return shown;
}
