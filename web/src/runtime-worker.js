/** @file The script of the worker in which the runtime lives, so that the page stays responsive while a model runs. */

import { serveEngine } from './engine-server.js';

serveEngine(/** @type {import('./engine-server.js').Port} */ (/** @type {unknown} */ (globalThis)), {
  now: () => globalThis.performance.now(),
  importModule: (url) => import(url),
  isolated: globalThis.crossOriginIsolated === true,
});
