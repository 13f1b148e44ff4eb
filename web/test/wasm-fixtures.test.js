/** @file The modules that the tests of edgekit/wasm read are what their texts compile to. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { compile } from '../compile-wat.js';

test('each module in tests/wasm is what its text compiles to', async () => {
  const compiled = await compile();
  assert.ok(compiled.size > 3);
  for (const [name, { place, binary }] of compiled) {
    assert.deepEqual(readFileSync(place), Buffer.from(binary), `${name} was changed: run \`npm run fixtures\`.`);
  }
});
