/**
 * @file The one file that knows onnxruntime-web. Its files come from the bundle, never from elsewhere.
 *
 * Fetching, compiling and creating are separate here so that each can be timed: the WebAssembly is fetched and checked
 * by the caller, compiled once by `compileRuntime`, and that module is what onnxruntime-web then instantiates.
 */

import { errorText } from './errors.js';
import { bytesOfView, isNumberDtype, stringTensor, tensorFromBytes } from './tensor.js';

/**
 * @typedef {import('./tensor.js').Tensor} Tensor
 * @typedef {typeof import('onnxruntime-web')} Ort
 * @typedef {import('onnxruntime-web').Tensor} OrtTensor
 * @typedef {import('onnxruntime-web').InferenceSession} OrtSession
 */

/**
 * @typedef {object} RuntimeFiles
 * @property {string} apiUrl absolute
 * @property {string} mjsUrl absolute; the glue that belongs to the module
 * @property {WebAssembly.Module} module
 */

/**
 * @typedef {object} LoadOptions
 * @property {number} threads at least 1
 * @property {(url: string) => Promise<unknown>} importModule
 * @property {boolean} [verbose] have sessions say in the console, at length, what they do with the model
 * @property {(memory: WebAssembly.Memory) => void} [onMemory] gets the runtime's memory before any of its code runs
 */

/**
 * How a session is created where that is not left to onnxruntime. A provider without such an option ignores it.
 *
 * @typedef {import('./records.js').SessionSettings} SessionSettings
 */

/**
 * A session as the rest of the library sees it: tensors by name in, tensors by name out.
 *
 * @typedef {object} RawSession
 * @property {readonly string[]} inputNames
 * @property {readonly string[]} outputNames
 * @property {(feeds: ReadonlyMap<string, Tensor>, fetches: readonly string[]) => Promise<Map<string, Tensor>>} run
 * @property {() => Promise<void>} release
 */

/**
 * @typedef {object} Runtime
 * @property {string} version
 * @property {number} threads
 * @property {(model: Uint8Array, externalData: readonly { path: string, data: Uint8Array }[], executionProvider: string, settings?: SessionSettings) => Promise<RawSession>} createSession
 */

/** What onnxruntime-web threw, as text. */
export class OrtError extends Error {
  name = 'OrtError';

  /** @param {unknown} error */
  constructor(error) {
    super(errorText(error), { cause: error });
  }
}

/**
 * @param {Uint8Array<ArrayBuffer>} wasm
 * @returns {Promise<WebAssembly.Module>}
 * @throws {OrtError}
 */
export async function compileRuntime(wasm) {
  try {
    return await WebAssembly.compile(wasm);
  } catch (error) {
    throw new OrtError(error);
  }
}

/**
 * @param {RuntimeFiles} files
 * @param {LoadOptions} options
 * @returns {Promise<Runtime>}
 * @throws {OrtError} when the script of onnxruntime-web does not load
 */
export async function loadRuntime(files, { threads, importModule, verbose = false, onMemory = () => {} }) {
  /** @type {Ort} */
  let ort;
  try {
    ort = /** @type {Ort} */ (await importModule(files.apiUrl));
  } catch (error) {
    throw new OrtError(error);
  }
  // Warnings would flood the console of anyone who reads it; errors stay visible there.
  ort.env.logLevel = verbose ? 'verbose' : 'error';
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.proxy = false;
  ort.env.wasm.wasmPaths = { mjs: files.mjsUrl };
  ort.env.wasm.wasmBinary = STAND_IN;
  return {
    version: ort.env.versions.web ?? ort.env.versions.common,
    threads,
    createSession: (model, externalData, executionProvider, settings) =>
      withModule(files.module, onMemory, async () => {
        try {
          const session = await ort.InferenceSession.create(model, {
            ...optionsOf(executionProvider, settings),
            externalData: externalData.map(({ path, data }) => ({ path, data })),
            logSeverityLevel: verbose ? 0 : 3,
          });
          return rawSession(ort, session);
        } catch (error) {
          throw new OrtError(error);
        }
      }),
  };
}

/**
 * @param {string} executionProvider
 * @param {SessionSettings} [settings] none: all is left to onnxruntime
 * @returns {import('onnxruntime-web').InferenceSession.SessionOptions}
 */
function optionsOf(executionProvider, settings) {
  if (settings === undefined) {
    return { executionProviders: [executionProvider] };
  }
  const { optimization: graphOptimizationLevel, layout, cpu_nodes: forceCpuNodeNames } = settings;
  /** @type {{ name: string, preferredLayout?: 'NCHW' | 'NHWC', forceCpuNodeNames?: string[] }} */
  const provider = { name: executionProvider };
  if (executionProvider === 'webgpu') {
    if (layout !== null) {
      provider.preferredLayout = layout;
    }
    if (forceCpuNodeNames.length > 0) {
      provider.forceCpuNodeNames = forceCpuNodeNames;
    }
  }
  return { executionProviders: [provider], graphOptimizationLevel };
}

/**
 * @param {Ort} ort
 * @param {OrtSession} session
 * @returns {RawSession}
 */
function rawSession(ort, session) {
  return {
    inputNames: session.inputNames,
    outputNames: session.outputNames,
    async run(feeds, fetches) {
      if (fetches.length === 0) {
        throw new RangeError('None of the outputs is a tensor, so onnxruntime-web cannot return anything.');
      }
      try {
        // fromEntries, not assignment: a model may call an input "__proto__".
        const given = Object.fromEntries(Array.from(feeds, ([name, tensor]) => [name, toOrt(ort, name, tensor)]));
        const results = await session.run(given, [...fetches]);
        return new Map(
          fetches.map((name) => [name, fromOrt(name, Object.hasOwn(results, name) ? results[name] : undefined)]),
        );
      } catch (error) {
        throw new OrtError(error);
      }
    },
    async release() {
      try {
        await session.release();
      } catch (error) {
        throw new OrtError(error);
      }
    },
  };
}

/**
 * @param {Ort} ort
 * @param {string} name
 * @param {Tensor} tensor
 * @returns {OrtTensor}
 */
function toOrt(ort, name, tensor) {
  if (tensor.dtype === 'string') {
    return new ort.Tensor('string', [...tensor.data], tensor.shape);
  }
  if (tensor.dtype === 'bfloat16') {
    throw new TypeError(`The input ${JSON.stringify(name)} is bfloat16, which onnxruntime-web does not take.`);
  }
  // float16 goes in as its bits: onnxruntime-web wraps them in a Float16Array itself where there is one.
  return new ort.Tensor(tensor.dtype, /** @type {never} */ (tensor.data), tensor.shape);
}

/**
 * @param {string} name
 * @param {OrtTensor | undefined} result
 * @returns {Tensor}
 */
function fromOrt(name, result) {
  if (result === undefined) {
    throw new TypeError(`onnxruntime-web returned no output ${JSON.stringify(name)}.`);
  }
  const { type, dims, data } = result;
  if (type === 'string') {
    return stringTensor(dims, /** @type {string[]} */ (data));
  }
  if (!isNumberDtype(type)) {
    throw new TypeError(`The output ${JSON.stringify(name)} is ${type}, which edgekit does not read.`);
  }
  return tensorFromBytes(type, dims, bytesOfView(/** @type {ArrayBufferView} */ (data)));
}

// An empty module with a custom section of our own: 8 bytes of header, then section 0 of 8 bytes named "edgekit".
// onnxruntime-web is given this in place of the megabytes of the real file, which it would otherwise keep for good.
const STAND_IN = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 0, 8, 7, 0x65, 0x64, 0x67, 0x65, 0x6b, 0x69, 0x74);

/**
 * Do `work`, during which instantiating STAND_IN instantiates `module`.
 *
 * onnxruntime-web has no setting for a compiled module. Giving it bytes or a URL would compile the file a second time
 * (Firefox; Chromium shares modules of equal bytes), so compiling could not be timed without being paid for twice.
 *
 * @template T
 * @param {WebAssembly.Module} module
 * @param {(memory: WebAssembly.Memory) => void} onMemory
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
async function withModule(module, onMemory, work) {
  const { instantiate } = WebAssembly;
  /**
   * @param {BufferSource | WebAssembly.Module} source
   * @param {WebAssembly.Imports} [imports]
   */
  const swap = async (source, imports) => {
    if (!isStandIn(source)) {
      return source instanceof WebAssembly.Module ? instantiate(source, imports) : instantiate(source, imports);
    }
    // The glue makes the memory and imports it into the module, under a name that every build shortens differently.
    for (const value of Object.values(imports ?? {}).flatMap((names) => Object.values(names))) {
      if (value instanceof WebAssembly.Memory) {
        onMemory(value);
      }
    }
    return { module, instance: await instantiate(module, imports) };
  };
  WebAssembly.instantiate = /** @type {typeof WebAssembly.instantiate} */ (swap);
  try {
    return await work();
  } finally {
    WebAssembly.instantiate = instantiate;
  }
}

/**
 * @param {BufferSource | WebAssembly.Module} source
 * @returns {boolean}
 */
function isStandIn(source) {
  if (source instanceof WebAssembly.Module || source.byteLength !== STAND_IN.length) {
    return false;
  }
  const bytes = ArrayBuffer.isView(source) ? bytesOfView(source) : new Uint8Array(source);
  return STAND_IN.every((byte, index) => byte === bytes[index]);
}
