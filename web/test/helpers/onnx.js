/**
 * @file Write tiny ONNX models, as much of onnx.proto as these tests need. A message is a list of [field, value]; a
 * value is a whole number, a string, bytes, or a message.
 */

/**
 * @typedef {number | string | Uint8Array | Message} Field
 * @typedef {[number, Field][]} Message
 */

/** Element types of TensorProto. */
export const TYPES = Object.freeze({
  float32: 1, uint8: 2, int8: 3, uint16: 4, int16: 5, int32: 6, int64: 7, string: 8, bool: 9, float16: 10, float64: 11,
  uint32: 12, uint64: 13, bfloat16: 16,
}); // prettier-ignore

/**
 * @param {Message} message
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function encode(message) {
  return Uint8Array.from(message.flatMap(([field, value]) => encodeField(field, value)));
}

/**
 * @param {number} field
 * @param {Field} value
 * @returns {number[]}
 */
function encodeField(field, value) {
  if (typeof value === 'number') {
    return [...varint(field << 3), ...varint(value)];
  }
  const text = typeof value === 'string' ? new TextEncoder().encode(value) : value;
  const bytes = text instanceof Uint8Array ? text : encode(text);
  return [...varint((field << 3) | 2), ...varint(bytes.length), ...bytes];
}

/**
 * @param {number} value
 * @returns {number[]}
 */
function varint(value) {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
}

/**
 * @param {string} name
 * @param {keyof typeof TYPES} dtype
 * @param {(number | string)[]} shape
 * @returns {Message} a ValueInfoProto
 */
export function tensorInfo(name, dtype, shape) {
  const dims = shape.map(
    (size) => /** @type {[number, Field]} */ ([1, [typeof size === 'number' ? [1, size] : [2, size]]]),
  );
  return [[1, name], [2, [[1, [[1, TYPES[dtype]], [2, dims]]]]]]; // prettier-ignore
}

/**
 * @param {string} operator
 * @param {string[]} inputs
 * @param {string[]} outputs
 * @returns {Message} a NodeProto
 */
export function node(operator, inputs, outputs) {
  const names = [...inputs.map((name) => [1, name]), ...outputs.map((name) => [2, name])];
  return [.../** @type {Message} */ (names), [3, outputs.join()], [4, operator]];
}

/**
 * @param {{ nodes: Message[], inputs: Message[], outputs: Message[] }} graph
 * @returns {Uint8Array<ArrayBuffer>} a model of IR version 8 and opset 17
 */
export function model({ nodes, inputs, outputs }) {
  const of = (/** @type {number} */ field) => (/** @type {Message} */ message) =>
    /** @type {[number, Field]} */ ([field, message]);
  const graph = [
    ...nodes.map(of(1)),
    /** @type {[number, Field]} */ ([2, 'graph']),
    ...inputs.map(of(11)),
    ...outputs.map(of(12)),
  ];
  return encode([[1, 8], [7, graph], [8, [[1, ''], [2, 17]]]]); // prettier-ignore
}

/**
 * A model whose outputs are its inputs.
 *
 * @param {Record<string, [keyof typeof TYPES, (number | string)[]]>} values
 * @returns {Uint8Array<ArrayBuffer>} output `NAME_out` for each input `NAME`
 */
export function identity(values) {
  const entries = Object.entries(values);
  return model({
    nodes: entries.map(([name]) => node('Identity', [name], [`${name}_out`])),
    inputs: entries.map(([name, [dtype, shape]]) => tensorInfo(name, dtype, shape)),
    outputs: entries.map(([name, [dtype, shape]]) => tensorInfo(`${name}_out`, dtype, shape)),
  });
}
