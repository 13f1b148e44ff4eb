/**
 * @file Have WebGPU adapters go by another name. The runtime has code of its own for some GPUs, which it knows by name, and
 * what that code is can be recorded on any GPU: only the kernels' text goes to it.
 */

/** @typedef {{ vendor: string, architecture: string }} AdapterName */

const ENTRY = /@compute[^{]*?\bfn\s+main\s*\(/;
const BINDING = /@binding\(\s*\d+\s*\)\s*var\s*(?:<[^>]*>)?\s*(\w+)/g;

/**
 * @param {AdapterName} name
 * @param {Record<string, any>} realm whose runtime is to take adapters for that: a page or a worker
 */
export function poseAs(name, realm = globalThis) {
  for (const [key, value] of Object.entries(name)) {
    Object.defineProperty(realm.GPUAdapterInfo.prototype, key, { get: () => value, configurable: true });
  }
}

/**
 * Have kernels compute nothing, where nothing is asked of what they compute: a GPU on the CPU would spend seconds on
 * compiling them.
 *
 * @param {Record<string, any>} realm
 */
export function idleKernels(realm = globalThis) {
  const device = realm.GPUDevice.prototype;
  const { createShaderModule } = device;
  /** @param {{ code: string }} described */
  device.createShaderModule = function create(described) {
    return createShaderModule.call(this, { ...described, code: idle(described.code) });
  };
}

/**
 * @param {string} code WGSL
 * @returns {string} the same declarations with a `main` that only names what is bound, so that its layout stays; a text
 *   of another form as it is
 */
export function idle(code) {
  const entry = ENTRY.exec(code);
  if (entry === null) {
    return code;
  }
  const declared = code.slice(0, entry.index);
  const bound = [...declared.matchAll(BINDING)].map(([, variable]) => ` _ = &${variable};`);
  return `${declared}${entry[0]}) {${bound.join('')} }`;
}
