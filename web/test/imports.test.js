import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

const SOURCE = new URL('../src/', import.meta.url);

// A file imports only from rows below its own. Files of one row do not import each other.
const ROWS = [
  ['index', 'demo/main', 'conformance/main', 'recording/main', 'runtime-worker'],
  ['demo/demo-page', 'demo/agent-page', 'recording/worker'],
  ['recording/job'],
  ['demo/inputs-view', 'demo/cases-view', 'demo/environment-view', 'demo/times-view'],
  ['demo/input-field'],
  ['demo/picture-field'],
  ['demo/outputs-view', 'demo/status', 'demo/image'],
  ['demo/fill', 'demo/statistics', 'demo/resample'],
  ['demo/dom', 'demo/npy', 'demo/words'],
  ['parity-agent', 'conformance/replay', 'recording/steps'],
  ['again'],
  ['find-placement', 'bench'],
  ['open-model', 'golden-cases', 'run-record', 'tolerance', 'recording/spoiled'],
  ['session', 'download', 'tensor-codec', 'engine-client', 'net'],
  ['engine-server'],
  ['engine'],
  ['runtime-loader', 'environment'],
  ['errors', 'tensor', 'sha256', 'placement', 'recording/pose', 'recording/recorder', 'recording/report'],
  ['runtime-messages'],
];

/**
 * @param {string} name
 * @returns {string} the script's text
 */
const read = (name) => readFileSync(new URL(`${name}.js`, SOURCE), 'utf8');

/**
 * @param {string} text
 * @param {string} name of the file that holds it
 * @returns {string[]} what it imports, types included
 */
function importsOf(text, name) {
  const paths = [...text.matchAll(/(?:from |import\(|import )'([^']+)'/g)].map((match) => match[1] ?? '');
  return paths.map((path) => {
    const resolved = path.startsWith('.')
      ? new URL(path, new URL(`${name}.js`, SOURCE)).href.slice(SOURCE.href.length)
      : path;
    return resolved.replace(/\.js$/, '');
  });
}

/**
 * @param {ReadonlyMap<string, readonly string[]>} imports
 * @returns {string[]} sentences about imports that go up or sideways
 */
function violations(imports) {
  const row = (/** @type {string} */ name) => ROWS.findIndex((names) => names.includes(name));
  return [...imports].flatMap(([name, targets]) =>
    targets
      .filter((target) => target !== 'records' && row(target) <= row(name))
      .map((target) => `${name} imports ${target}`),
  );
}

const names = readdirSync(SOURCE, { recursive: true }).map(String).filter((name) => name.endsWith('.js')).map((name) => name.slice(0, -3)); // prettier-ignore

test('every file has a row', () => {
  assert.deepEqual(names.toSorted(), ROWS.flat().toSorted());
});

test('imports go down only, so there is no cycle', () => {
  const imports = new Map(
    names.map((name) => [name, importsOf(read(name), name).filter((target) => target !== 'onnxruntime-web')]),
  );
  assert.deepEqual(violations(imports), []);
});

test('an import that goes up, and a cycle, would be seen', () => {
  assert.deepEqual(violations(new Map([['session', importsOf("import { x } from './demo/dom.js';", 'session')]])), [
    'session imports demo/dom',
  ]);
  assert.equal(violations(new Map([['tensor', ['errors']], ['errors', ['tensor']]])).length, 2); // prettier-ignore
});

test('one file knows onnxruntime-web, and no file names another host', () => {
  const knowing = names.filter((name) => importsOf(read(name), name).includes('onnxruntime-web'));
  assert.deepEqual(knowing, ['runtime-loader']);
  assert.deepEqual(names.filter((name) => /https?:\/\//.test(read(name))), []); // prettier-ignore
});
