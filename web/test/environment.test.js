import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findAdapter, readEnvironment, threadsFor } from '../src/environment.js';

/**
 * @param {object} scope
 * @returns {typeof globalThis}
 */
const as = (scope) => /** @type {typeof globalThis} */ (/** @type {unknown} */ (scope));

test('a browser with everything', () => {
  const navigator = { hardwareConcurrency: 8, gpu: {}, userAgent: 'agent', userAgentData: { platform: 'Linux' } };
  const scope = {
    crossOriginIsolated: true,
    SharedArrayBuffer,
    isSecureContext: true,
    WebAssembly: { Suspending: class {} },
    navigator,
  };
  assert.deepEqual(readEnvironment(as(scope)), {
    isolated: true, cores: 8, jspi: true, webgpu: true, secure: true, userAgent: 'agent', device: 'Linux',
  }); // prettier-ignore
});

test('a browser with nothing', () => {
  const scope = {
    crossOriginIsolated: false,
    isSecureContext: false,
    WebAssembly: {},
    navigator: { userAgent: 'old', platform: '' },
  };
  assert.deepEqual(readEnvironment(as(scope)), {
    isolated: false, cores: 1, jspi: false, webgpu: false, secure: false, userAgent: 'old', device: null,
  }); // prettier-ignore
});

test('threads need isolation, and are four at most unless asked for', () => {
  const environment = readEnvironment(
    as({ crossOriginIsolated: true, SharedArrayBuffer, WebAssembly: {}, navigator: { hardwareConcurrency: 16 } }),
  );
  assert.equal(threadsFor(0, environment), 4);
  assert.equal(threadsFor(0, { ...environment, cores: 2 }), 2);
  assert.equal(threadsFor(7, environment), 7);
  assert.equal(threadsFor(7, { ...environment, isolated: false }), 1);
});

/**
 * @param {Partial<GPUAdapterInfo>} info
 * @param {object} [more]
 * @returns {Pick<GPU, 'requestAdapter'>}
 */
function gpu(info, more = {}) {
  const adapter = {
    info: { vendor: '', architecture: '', device: '', description: '', ...info },
    features: new Set(['b', 'a']),
    ...more,
  };
  return { requestAdapter: () => Promise.resolve(/** @type {GPUAdapter} */ (/** @type {unknown} */ (adapter))) };
}

test('software adapters are known as such, hardware is not', async () => {
  for (const software of [
    gpu({ vendor: 'google', architecture: 'swiftshader' }),
    gpu({ description: 'llvmpipe (LLVM 15.0.6, 256 bits)' }),
    gpu({ vendor: 'mesa', device: 'lavapipe' }),
    gpu({ description: 'Microsoft Basic Render Driver' }),
    gpu({ vendor: 'x', isFallbackAdapter: true }),
    gpu({ vendor: 'x' }, { isFallbackAdapter: true }),
  ]) {
    assert.equal((await findAdapter(software))?.software, true);
  }
  const hardware = await findAdapter(gpu({ vendor: 'nvidia', architecture: 'ampere', isFallbackAdapter: false }));
  assert.deepEqual(hardware, {
    vendor: 'nvidia',
    architecture: 'ampere',
    device: '',
    description: '',
    software: false,
    features: ['a', 'b'],
  });
});

test('no WebGPU and no adapter are both null', async () => {
  assert.equal(await findAdapter(undefined), null);
  assert.equal(await findAdapter({ requestAdapter: () => Promise.resolve(null) }), null);
});
