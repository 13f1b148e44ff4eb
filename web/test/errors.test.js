import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorText } from '../src/errors.js';

test('whatever is thrown becomes text', () => {
  const wasm = new WebAssembly.Tag({ parameters: [] });
  const cases = /** @type {[unknown, RegExp][]} */ ([
    [new Error('plain'), /^plain$/],
    [new TypeError('typed'), /^typed$/],
    [new WebAssembly.RuntimeError('unreachable'), /^RuntimeError: unreachable$/],
    [new Error(''), /^Error without a message/],
    [new Error('outer', { cause: new Error('inner') }), /^outer \(inner\)$/],
    [new Error('same words', { cause: new Error('same words') }), /^same words$/],
    [new Error('outer', { cause: 7 }), /outer \(The runtime threw the bare number 7/],
    [123_456, /bare number 123456.*memory/],
    ['text', /^text$/],
    ['', /no message/],
    [undefined, /no message/],
    [null, /no message/],
    [{}, /no message/],
    [{ message: 'like an error' }, /^like an error$/],
    [new WebAssembly.Exception(wasm, []), /C\+\+ exception/],
  ]);
  for (const [thrown, expected] of cases) {
    assert.match(errorText(thrown), expected);
  }
});
