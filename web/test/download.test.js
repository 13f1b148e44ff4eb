import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WrongFileError, fetchBytes, fetchJson, fetchVerified, pathOf } from '../src/download.js';
import { digest, host } from './helpers/bundle.js';

const files = new Map([['a é.txt', 'hello']]);
const source = host(files);

test('a file is fetched relative to the page, with progress', async () => {
  /** @type {number[]} */
  const heard = [];
  const bytes = await fetchBytes(source, 'a%20%C3%A9.txt?v=1', (loaded) => heard.push(loaded));
  assert.equal(new TextDecoder().decode(bytes), 'hello');
  assert.equal(heard.at(-1), 5);
});

test('a file that comes in pieces is put together', async () => {
  const body = new ReadableStream({
    start(controller) {
      for (const piece of ['he', '', 'llo']) {
        controller.enqueue(new TextEncoder().encode(piece));
      }
      controller.close();
    },
  });
  const slow = host(files, { fetch: () => Promise.resolve(new Response(body)) });
  assert.equal(new TextDecoder().decode(await fetchBytes(slow, 'x')), 'hello');
});

test('failures name the file and the reason', async () => {
  await assert.rejects(
    fetchBytes(source, 'gone%20.bin?v=1'),
    /^DownloadError: gone \.bin could not be fetched.*404 Not Found$/,
  );
  const offline = host(files, { fetch: () => Promise.reject(new TypeError('Failed to fetch')) });
  await assert.rejects(fetchBytes(offline, 'a'), /a could not be fetched: Failed to fetch/);
  const torn = new ReadableStream({ start: (controller) => controller.error(new Error('connection lost')) });
  const breaking = host(files, { fetch: () => Promise.resolve(new Response(torn)) });
  await assert.rejects(fetchBytes(breaking, 'a'), /connection lost/);
  await assert.rejects(fetchJson(source, 'a%20é.txt'), /a é\.txt is not JSON/);
});

test('a file is checked against the sha256 that is expected', async () => {
  const download = await fetchVerified(source, 'a%20é.txt', digest('hello'));
  assert.equal(download.sha256, digest('hello'));
  assert.equal((await fetchVerified(source, 'a%20é.txt', undefined)).sha256, digest('hello'));
  const wrong = /** @type {unknown} */ (
    await fetchVerified(source, 'a%20é.txt', digest('other')).catch((error) => error)
  );
  assert.ok(wrong instanceof WrongFileError);
  assert.deepEqual([wrong.path, wrong.actual], ['a é.txt', digest('hello')]);
});

test('paths are shown as a person writes them, also where they are not well encoded', () => {
  assert.equal(pathOf('a%20b/c.bin?v=1'), 'a b/c.bin');
  assert.equal(pathOf('100%.bin'), '100%.bin');
});
