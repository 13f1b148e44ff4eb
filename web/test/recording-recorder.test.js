/** @file The reader of a recording runtime's flags, on real memory; and in the replay of conformance cases. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replay } from '../src/conformance/replay.js';
import { flagRecorder } from '../src/recording/recorder.js';
import { tensorFromBytes } from '../src/tensor.js';

const RECORDING = { flag_base: 100, functions: 20, branches: 4 };

/**
 * @param {WebAssembly.Memory} memory
 * @param {number[]} entered
 */
const enter = (memory, ...entered) => {
  const flags = new Uint8Array(memory.buffer, RECORDING.flag_base);
  entered.forEach((index) => (flags[index] = 1));
};

test('the functions entered since the last look are bits, the lowest first', () => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const { onMemory, entered } = flagRecorder(RECORDING);
  assert.deepEqual(entered(), new Uint8Array(3), 'before there is a runtime');
  onMemory(memory);
  enter(memory, 0, 9, 19);
  assert.deepEqual(entered(), Uint8Array.of(0b1, 0b10, 0b1000));
  assert.deepEqual(entered(), new Uint8Array(3), 'they are cleared');
});

test('the flags of branches follow those of functions, and are read on their own', () => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const { onMemory, entered, branches } = flagRecorder(RECORDING);
  onMemory(memory);
  enter(memory, 1, 20, 23);
  assert.deepEqual(branches(), Uint8Array.of(0b1001));
  assert.deepEqual(branches(), new Uint8Array(1), 'they are cleared');
  assert.deepEqual(entered(), Uint8Array.of(0b10, 0, 0));
});

test('bytes beside the flags are neither read nor cleared', () => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const { onMemory, entered } = flagRecorder(RECORDING);
  onMemory(memory);
  enter(memory, -1, 20, 24);
  const beside = new Uint8Array(memory.buffer);
  beside[99] = 7;
  assert.deepEqual(entered(), new Uint8Array(3));
  assert.deepEqual([beside[99], beside[120]], [7, 1]);
});

test('a memory that grew is read anew', () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 2 });
  const { onMemory, entered } = flagRecorder(RECORDING);
  onMemory(memory);
  memory.grow(1);
  enter(memory, 3);
  assert.deepEqual(entered(), Uint8Array.of(0b1000, 0, 0));
});

test('a replay says of each case which functions it entered, and of all at once which branches', async () => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const { onMemory, entered, branches } = flagRecorder(RECORDING);
  onMemory(memory);
  let created = 0;
  /** @type {import('../src/runtime-loader.js').Runtime} */
  const runtime = {
    version: '0',
    threads: 1,
    createSession: () => {
      created += 1;
      enter(memory, created, 20 + created);
      return Promise.reject(new Error('no'));
    },
  };
  const entries = [0, 1].map((index) => ({ index, model: 'model', inputs: [], run: true }));
  const { outputs } = await replay(entries, new Map([['model', tensorFromBytes('uint8', [0], new Uint8Array())]]), {
    runtime,
    executionProvider: 'wasm',
    placements: () => [],
    entered,
    branches,
  });
  assert.deepEqual(outputs.get('0/functions')?.data, Uint8Array.of(0b10, 0, 0));
  assert.deepEqual(outputs.get('1/functions')?.data, Uint8Array.of(0b100, 0, 0));
  assert.deepEqual(outputs.get('branches')?.data, Uint8Array.of(0b110));
});
