// Runs the model of this folder and compares. It uses onnxruntime-web alone, so that whoever mends a fault there
// need not know anything else.

const MOST_ROWS = 50;

const repro = JSON.parse(document.getElementById('repro').textContent);
const show = (id, text) => {
  document.getElementById(id).textContent = text;
};

/** The bytes of base64 text. */
function bytesOf(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** What onnxruntime-web takes as the data of a tensor of this dtype. */
function elements(dtype, bytes) {
  const arrays = {
    bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array,
    uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array, float32: Float32Array, float64: Float64Array,
    float16: Uint16Array,
  };
  return new arrays[dtype](bytes.buffer);
}

/** The elements as numbers (or strings, bigints), float16 decoded. */
function numbers(dtype, data) {
  const bits = dtype === 'float16' && data instanceof Uint16Array;
  return Array.from(data, bits ? fromHalf : (value) => value);
}

function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) {
    return fraction ? NaN : sign * Infinity;
  }
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : (fraction / 1024) * 2 ** -14);
}

const valuesOf = (value) => value.strings ?? numbers(value.dtype, elements(value.dtype, bytesOf(value.data)));

/** The session's options: those that the fault was seen with. */
function options() {
  const { execution_provider: name, settings } = repro;
  const provider = { name };
  if (name === 'webgpu' && settings.layout !== null) {
    provider.preferredLayout = settings.layout;
  }
  if (name === 'webgpu' && settings.cpu_nodes.length > 0) {
    provider.forceCpuNodeNames = settings.cpu_nodes;
  }
  return { executionProviders: [provider], graphOptimizationLevel: settings.optimization };
}

/** Whether two elements are equal within the tolerance; NaN and infinities must meet their like. */
function isNear(value, expected, allowed) {
  if (Object.is(value, expected) || value === expected) {
    return true;
  }
  return typeof value === 'number' && Math.abs(value - expected) <= allowed;
}

/** The digits that tell two numbers of a dtype apart, and no more; -0 with its sign. */
function textOf(value, dtype) {
  const digits = { float16: 5, bfloat16: 4, float32: 9 }[dtype];
  if (Object.is(value, -0)) {
    return '-0';
  }
  return digits && Number.isFinite(value) ? String(Number(value.toPrecision(digits))) : String(value);
}

function addRow(cells, wrong) {
  const row = document.createElement('tr');
  row.className = wrong ? 'wrong' : '';
  for (const cell of cells) {
    row.append(Object.assign(document.createElement('td'), { textContent: cell }));
  }
  document.getElementById('rows').append(row);
}

/** Compare one output, list its elements (wrong ones first), and return how many are wrong. */
function compare(expected, tensor) {
  const before = repro.got.find((value) => value.name === expected.name);
  const seen = before ? valuesOf(before) : [];
  const right = valuesOf(expected);
  const given = tensor ? numbers(tensor.type, tensor.data) : [];
  const floats = expected.dtype.startsWith('float');
  const scale = floats ? right.reduce((most, value) => (Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most), 0) : 0;
  const allowed = floats ? repro.absolute + repro.relative * scale : 0;
  const rows = right.map((value, index) => ({ index, wrong: !isNear(given[index], value, allowed) }));
  const wrong = rows.filter((row) => row.wrong);
  const shown = [...wrong, ...rows.filter((row) => !row.wrong)].slice(0, MOST_ROWS);
  shown.sort((a, b) => a.index - b.index);
  for (const { index, wrong: isWrong } of shown) {
    const cells = [given[index], right[index], seen[index] ?? ''].map((value) => textOf(value, expected.dtype));
    addRow([expected.name, String(index), ...cells], isWrong);
  }
  return wrong.length + Math.max(0, given.length - right.length);
}

async function adapter() {
  const found = await navigator.gpu?.requestAdapter();
  const { vendor = '', architecture = '', description = '' } = found?.info ?? {};
  return found ? [vendor, architecture, description].filter(Boolean).join(' ') || 'unnamed' : 'none';
}

/** Why the model cannot be tried here: nothing then is known of it. Empty where it can. */
async function hindrance() {
  show('browser', navigator.userAgent);
  const found = await adapter();
  show('adapter', found);
  if (repro.execution_provider !== 'webgpu' || found !== 'none') {
    return '';
  }
  const flags = repro.flags.length > 0 ? ` Start Chromium with ${repro.flags.join(' ')}.` : '';
  return `Not tested: this browser has no WebGPU adapter.${flags}`;
}

async function run() {
  const absolute = (url) => new URL(url, document.baseURI).href;
  const ort = await import(absolute(repro.api_url));
  ort.env.wasm.wasmPaths = { mjs: absolute(repro.mjs_url), wasm: absolute(repro.wasm_url) };
  ort.env.wasm.numThreads = globalThis.crossOriginIsolated ? repro.threads : 1;
  const model = new Uint8Array(await (await fetch('model.onnx')).arrayBuffer());
  const session = await ort.InferenceSession.create(model, options());
  const feeds = Object.fromEntries(
    repro.inputs.map(({ name, dtype, shape, data, strings }) => [
      name,
      new ort.Tensor(dtype, strings ?? elements(dtype, bytesOf(data)), shape),
    ]),
  );
  const results = await session.run(feeds);
  return repro.expected.reduce((sum, value) => sum + compare(value, results[value.name]), 0);
}

try {
  const why = await hindrance();
  if (why) {
    show('status', why);
    document.body.dataset.result = 'not tested';
  } else {
    const wrong = await run();
    show('status', wrong === 0 ? 'Right: every element is as expected.' : `Wrong: ${wrong} element${wrong === 1 ? ' differs' : 's differ'}.`);
    document.body.dataset.result = wrong === 0 ? 'right' : 'wrong';
  }
} catch (error) {
  show('status', `It fails: ${error instanceof Error ? error.message : String(error)}`);
  document.body.dataset.result = 'failed';
}
