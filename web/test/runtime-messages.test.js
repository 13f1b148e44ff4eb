/** @file The messages are those that edgekit cleans on the desktop, and the same words must remain. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readable } from '../src/runtime-messages.js';

const RUN = 'failed to call OrtRun(). ERROR_CODE: 2, ERROR_MESSAGE: ';
const NODE = 'Non-zero status code returned while running';

test('codes, source paths and signatures are removed', () => {
  const cases = [
    [
      `${RUN}Got invalid dimensions for input: x\n index: 1 Got: 3\n Fix it.`,
      'Got invalid dimensions for input: x index: 1 Got: 3 Fix it.',
    ],
    ["Can't create a session. ERROR_CODE: 9, ERROR_MESSAGE: No kernel.\nStacktrace:\n0x1", 'No kernel.'],
    [
      `${RUN}${NODE} Add node. Name:'<b>' Status Message: /onnxruntime_src/onnxruntime/core/providers/cpu/math/element_wise_ops.h:563 void onnxruntime::BroadcastIterator::Init(ptrdiff_t, ptrdiff_t) axis == 1 || axis == largest was false. Cannot broadcast. 2 by 3\n`,
      "Add node '<b>': Cannot broadcast. 2 by 3",
    ],
    [
      `${RUN}${NODE} Div node. Name:'' Status Message: element_wise_ops.cc:703 Compute Integer division by zero`,
      'Div node without a name: Integer division by zero',
    ],
  ];
  for (const [given, expected] of cases) {
    assert.equal(readable(String(given)), expected);
  }
  assert.equal(readable(`${RUN}${'word '.repeat(1000)}`).length, 500);
});

test('the twin: text of others stays as it is', () => {
  for (const text of ['', 'Two\nlines, a.b:3 c', 'https://a.test/b.cc:80 x(y)']) {
    assert.equal(readable(text), text);
  }
});
