import assert from 'node:assert/strict';
import { createHash, webcrypto } from 'node:crypto';
import { test } from 'node:test';
import { sha256 } from '../src/sha256.js';

const subtle = /** @type {SubtleCrypto} */ (/** @type {unknown} */ (webcrypto.subtle));

test('with and without crypto.subtle the digest is that of node, at every length around a block', async () => {
  for (const length of [0, 1, 3, 54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129, 1000, 100_003]) {
    const bytes = Uint8Array.from({ length }, (_, index) => (index * 31 + length) % 256);
    const expected = createHash('sha256').update(bytes).digest('hex');
    assert.equal(await sha256(bytes, undefined), expected, `${length} bytes in script`);
    assert.equal(await sha256(bytes, subtle), expected, `${length} bytes by the platform`);
  }
});

test('a view into a larger buffer is hashed alone', async () => {
  const bytes = Uint8Array.from({ length: 200 }, (_, index) => index);
  const part = bytes.subarray(13, 150);
  assert.equal(await sha256(part, undefined), createHash('sha256').update(part).digest('hex'));
});
