/** @file What other code may import. */

export { browserHost, findAdapter, readEnvironment, threadsFor } from './environment.js';
export { Engine, EngineError } from './engine.js';
export { RemoteEngine } from './engine-client.js';
export { errorText } from './errors.js';
export { fetchCases, timingCase } from './golden-cases.js';
export { MissError, NettedRunner } from './net.js';
export { ModelSource, fetchModel, openFirst } from './open-model.js';
export { agentOptions, openBundle, postRecord, replay, runParity } from './parity-agent.js';
export { compileRuntime, loadRuntime } from './runtime-loader.js';
export { buildRecord } from './run-record.js';
export { Session } from './session.js';
export { CodecError, decodeTensors, encodeTensors, joinValues, splitValues } from './tensor-codec.js';
export { stringTensor, tensorFromBytes, tensorOf } from './tensor.js';
export { preview, toleranceOf } from './tolerance.js';
