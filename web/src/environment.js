/** @file What this browser has, looked up once and frozen; and everything of the browser that other files may use. */

/**
 * @typedef {object} Environment
 * @property {boolean} isolated whether the page is cross-origin isolated, which threads need
 * @property {number} cores logical processors, at least 1
 * @property {boolean} jspi whether WebAssembly may wait for promises (JavaScript Promise Integration)
 * @property {boolean} webgpu whether navigator.gpu is there; an adapter may still be missing
 * @property {boolean} secure whether the context is secure; over plain http from another machine it is not
 * @property {string | null} userAgent
 * @property {string | null} device
 */

/**
 * @typedef {import('./records.js').Adapter} Adapter
 */

/**
 * The browser, as far as this library touches it. Tests pass their own.
 *
 * @typedef {object} Host
 * @property {Environment} environment
 * @property {typeof globalThis.fetch} fetch
 * @property {() => number} now milliseconds, only differences mean anything
 * @property {(url: string) => Promise<unknown>} importModule
 * @property {string} baseUrl what relative URLs are relative to
 * @property {SubtleCrypto | undefined} subtle
 * @property {() => Promise<Adapter | null>} findAdapter
 * @property {(text: string) => void} warn writes to the console
 * @property {() => number | null} [heapBytes] of JavaScript in this page, where the browser says it
 * @property {(() => Worker) | null} createWorker starts the runtime's worker; null: there are none here
 */

/**
 * @param {typeof globalThis} scope
 * @returns {Readonly<Environment>}
 */
export function readEnvironment(scope) {
  const navigator = /** @type {(Navigator & { userAgentData?: { platform?: string } }) | undefined} */ (
    scope.navigator
  );
  return Object.freeze({
    isolated: scope.crossOriginIsolated === true && typeof scope.SharedArrayBuffer === 'function',
    cores: Math.max(1, navigator?.hardwareConcurrency ?? 1),
    jspi: 'Suspending' in scope.WebAssembly,
    webgpu: Boolean(navigator && 'gpu' in navigator && navigator.gpu),
    secure: scope.isSecureContext !== false,
    userAgent: navigator?.userAgent ?? null,
    device: navigator?.userAgentData?.platform || navigator?.platform || null,
  });
}

/**
 * @param {number} asked 0: as many as there are cores, at most four
 * @param {Environment} environment
 * @returns {number} at least 1; 1 where the page is not isolated
 */
export function threadsFor(asked, environment) {
  if (!environment.isolated) {
    return 1;
  }
  return asked === 0 ? Math.min(4, environment.cores) : asked;
}

/**
 * @param {Pick<GPU, 'requestAdapter'> | undefined} gpu
 * @returns {Promise<Adapter | null>} null where there is no adapter
 */
export async function findAdapter(gpu) {
  const adapter = gpu === undefined ? null : await gpu.requestAdapter();
  if (adapter === null) {
    return null;
  }
  const { vendor, architecture, device, description } = adapter.info;
  // isFallbackAdapter moved from the adapter to its info; browsers in use have one or the other.
  const fallback = [adapter, adapter.info].some(
    (place) => 'isFallbackAdapter' in place && place.isFallbackAdapter === true,
  );
  return {
    vendor,
    architecture,
    device,
    description,
    software:
      fallback ||
      /swiftshader|llvmpipe|lavapipe|software|basic render/i.test(`${vendor} ${architecture} ${device} ${description}`),
    features: [...adapter.features].sort(),
  };
}

/**
 * @param {typeof globalThis} scope
 * @returns {Host}
 */
export function browserHost(scope) {
  return {
    environment: readEnvironment(scope),
    fetch: scope.fetch.bind(scope),
    now: () => scope.performance.now(),
    importModule: (url) => import(url),
    baseUrl: scope.document.baseURI,
    subtle: scope.crypto?.subtle,
    findAdapter: () => findAdapter(scope.navigator.gpu),
    warn: (text) => scope.console.warn(text),
    heapBytes: () => {
      const { memory } = /** @type {Performance & { memory?: { usedJSHeapSize: number } }} */ (scope.performance);
      return memory?.usedJSHeapSize ?? null;
    },
    createWorker: () =>
      new scope.Worker(new URL('./runtime-worker.js', import.meta.url), { type: 'module', name: 'edgekit-runtime' }),
  };
}
