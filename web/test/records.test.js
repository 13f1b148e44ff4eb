/** @file The contract: its types are fresh, and the shared samples fit or do not fit, here as in Python. */

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { generate } from '../generate-types.js';
import { schema } from './helpers/schemas.js';

test('records.d.ts is what the schemas give', async () => {
  const now = readFileSync(new URL('../src/records.d.ts', import.meta.url), 'utf8');
  assert.equal(now, await generate(), 'It is stale: run `npm run generate`.');
});

const SAMPLES = new URL('../../tests/models/records/', import.meta.url);
for (const kind of ['valid', 'invalid']) {
  const files = readdirSync(new URL(`${kind}/`, SAMPLES));
  test(`there are ${kind} samples`, () => assert.ok(files.length > 5));
  for (const file of files) {
    test(`the sample ${kind}/${file} is ${kind}`, () => {
      // The first word of the name is that of its schema.
      const problem = schema(file.split('.')[0] ?? '')(
        JSON.parse(readFileSync(new URL(`${kind}/${file}`, SAMPLES), 'utf8')),
      );
      assert.equal(problem === null, kind === 'valid', problem ?? 'It fits, and must not.');
    });
  }
}
