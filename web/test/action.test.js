/** @file The GitHub Action is a valid composite action, and nothing of a workflow is pasted into a script. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { load } from 'js-yaml';

const TEXT = readFileSync(new URL('../../action.yml', import.meta.url), 'utf8');

/**
 * @typedef {{ name: string, if?: string, uses?: string, with?: Record<string, string>, run?: string, shell?: string,
 *   env?: Record<string, string> }} Step
 * @typedef {{ name: string, description: string, inputs: Record<string, { description: string, required?: boolean,
 *   default?: string }>, outputs: Record<string, { description: string, value: string }>,
 *   runs: { using: string, steps: Step[] } }} Action
 */

/** @param {string} text */
const parse = (text) => /** @type {Action} */ (load(text));

/** @param {string} text @returns {Set<string>} the inputs that it reads */
const read = (text) => new Set([...text.matchAll(/inputs\.([a-z-]+)/g)].map((match) => match[1] ?? ''));

/** @param {Action} action @returns {string[]} what is wrong with it */
function faults(action) {
  const found = [];
  if (action.runs.using !== 'composite') {
    found.push('not composite');
  }
  for (const step of action.runs.steps) {
    if (step.run !== undefined && step.run.includes('${{')) {
      found.push(`${step.name}: an expression in a script`);
    }
    if ((step.run === undefined) === (step.uses === undefined)) {
      found.push(`${step.name}: neither a script nor an action, or both`);
    }
    if (step.run !== undefined && step.shell !== 'bash') {
      found.push(`${step.name}: no shell`);
    }
    if (step.uses !== undefined && !/^actions\/[a-z-]+@v\d+$/.test(step.uses)) {
      found.push(`${step.name}: not pinned by its major version`);
    }
    for (const name of Object.keys(step.env ?? {})) {
      if (!new RegExp(`\\$\\{?${name}\\b`).test(step.run ?? '')) {
        found.push(`${step.name}: ${name} is not used`);
      }
    }
  }
  const used = read(JSON.stringify(action.runs));
  for (const [name, input] of Object.entries(action.inputs)) {
    if (!used.delete(name)) {
      found.push(`the input ${name} is not used`);
    }
    if ((input.required === true) === (input.default !== undefined)) {
      found.push(`the input ${name} needs either a default or to be required`);
    }
  }
  return [...found, ...[...used].map((name) => `there is no input ${name}`)];
}

test('the action is whole', () => {
  assert.deepEqual(faults(parse(TEXT)), []);
});

test('the report is kept whatever became of parity', () => {
  const step = parse(TEXT).runs.steps.at(-1);
  assert.match(step?.uses ?? '', /upload-artifact/);
  assert.match(step?.if ?? '', /always\(\)/);
  assert.match(step?.with?.path ?? '', /report\.html\n.*junit\.xml\n.*\n.*runs\n$/);
});

test('the twins: each fault is noticed', () => {
  /** @type {[string, string, string][]} */
  const wrong = [
    ['using: composite', 'using: node20', 'not composite'],
    ['upload-artifact@v6', 'upload-artifact@main', 'Keep the report: not pinned by its major version'],
    ['--target "$TARGET"', `--target \${{ inputs.target }}`, 'Build: an expression in a script'],
    [`\${{ inputs.threads }}`, '1', 'the input threads is not used'],
    ['inputs.variants', 'inputs.variant', 'there is no input variant'],
    ['    required: true', '    required: false', 'the input model needs either a default or to be required'],
  ];
  for (const [before, after, fault] of wrong) {
    assert.ok(TEXT.includes(before));
    assert.ok(faults(parse(TEXT.replace(before, after))).includes(fault), fault);
  }
});
