/**
 * @file Have WebGPU adapters go by another name. The runtime has code of its own for some GPUs, which it knows by name, and
 * what that code is can be recorded on any GPU: only the kernels' text goes to it.
 */

/** @typedef {{ vendor: string, architecture: string }} AdapterName */

/**
 * @param {AdapterName | null} name null: adapters keep their own
 * @param {Record<string, any>} realm whose runtime is to take them for that: a page or a worker
 */
export function poseAs(name, realm = globalThis) {
  for (const [key, value] of Object.entries(name ?? {})) {
    Object.defineProperty(realm.GPUAdapterInfo.prototype, key, { get: () => value, configurable: true });
  }
}
