import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

const COPY = new URL('../../templates/report/uplot/', import.meta.url);
const PACKAGE = new URL('../node_modules/uplot/', import.meta.url);
const FILES = { 'uPlot.iife.min.js': 'dist/', 'uPlot.min.css': 'dist/', LICENSE: '' };

for (const [name, folder] of Object.entries(FILES)) {
  test(`the report's ${name} is that of the pinned package`, async () => {
    const copy = await readFile(new URL(name, COPY));
    assert.ok(copy.equals(await readFile(new URL(folder + name, PACKAGE))), 'run: python vendor_plot.py');
    assert.ok(!copy.equals(Buffer.concat([copy, Buffer.from('\n')])));
  });
}

test('what is copied is the version that package.json pins', async () => {
  const { devDependencies } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'));
  const script = await readFile(new URL('uPlot.iife.min.js', COPY), 'utf8');
  assert.ok(script.startsWith(`/*! https://github.com/leeoniya/uPlot (v${devDependencies.uplot}) */`));
});
