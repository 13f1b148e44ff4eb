/** @file Inputs and models that onnxruntime refuses, so that its ways to say no are recorded as well. Pure. */

import { DTYPES, elementCount, stringTensor, tensorFromBytes } from '../tensor.js';

/**
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('../tensor.js').Value} Value
 * @typedef {import('../records.js').Argument} Argument
 */

/** How the steps are called that run with them; edgekit/runners/recording.py knows it too. */
export const WRONG_VALUES = 'wrong values of';

// Far from any index, and near enough that a loop over the range from it to a good value ends.
const FAR_BELOW = -1_000_000;

/**
 * Where a model takes anything (its input has no fixed size), it may well run with what is given here.
 *
 * @param {readonly Value[]} inputs good ones
 * @param {readonly Argument[]} declared what the model says of its inputs
 * @returns {{ name: string, inputs: Value[] }[]} in each, one of them is wrong
 */
export function spoiledInputs(inputs, declared) {
  const index = inputs.findIndex(({ tensor }) => tensor !== null);
  const tensor = inputs[index]?.tensor;
  if (!tensor) {
    return [];
  }
  const spoiled = [
    { name: 'wrong rank', inputs: inputs.with(index, changed(inputs, index, { ...tensor, shape: [1, ...tensor.shape] })) },
    { name: 'wrong dtype', inputs: inputs.with(index, changed(inputs, index, ofAnotherDtype(tensor))) },
    { name: 'missing input', inputs: inputs.toSpliced(index, 1) },
  ]; // prettier-ignore
  const place = firstDimension(inputs, declared);
  if (place !== null) {
    const longer = changed(inputs, place.index, withLonger(place.tensor, place.axis));
    spoiled.push({ name: 'wrong dimension', inputs: inputs.with(place.index, longer) });
  }
  return spoiled;
}

/**
 * Indices, sizes and axes may be inputs: values that fit the type, and that no operator can use as one of these.
 *
 * @param {readonly Value[]} inputs good ones
 * @returns {{ name: string, inputs: Value[] }[]} in each, the values of one integer input are far below zero
 */
export function spoiledValues(inputs) {
  return inputs.flatMap(({ name, tensor }, index) => {
    if (tensor === null || (tensor.dtype !== 'int32' && tensor.dtype !== 'int64') || elementCount(tensor.shape) === 0) {
      return [];
    }
    const { dtype, shape } = tensor;
    const count = elementCount(shape);
    const data =
      dtype === 'int64' ? new BigInt64Array(count).fill(BigInt(FAR_BELOW)) : new Int32Array(count).fill(FAR_BELOW);
    const values = changed(inputs, index, tensorFromBytes(dtype, shape, data));
    return [{ name: `${WRONG_VALUES} ${name}`, inputs: inputs.with(index, values) }];
  });
}

/**
 * @param {Uint8Array<ArrayBuffer>} model a good one
 * @returns {{ name: string, bytes: Uint8Array<ArrayBuffer> }[]}
 */
export function spoiledModels(model) {
  return [
    { name: 'truncated model', bytes: model.slice(0, model.length >> 1) },
    { name: 'garbage', bytes: new Uint8Array(64).fill(0xff) },
    { name: 'unknown operator', bytes: Uint8Array.from(atob(UNKNOWN_OPERATOR), (letter) => letter.charCodeAt(0)) },
  ];
}

// <ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = NoSuchOperator(x) }
const UNKNOWN_OPERATOR =
  'CAg6PwoYCgF4EgF5Ig5Ob1N1Y2hPcGVyYXRvcjoAEgFnWg8KAXgSCgoICAESBAoCCAFiDwoBeRIKCggIARIECgIIAUIECgAQEQ==';

/**
 * @param {readonly Value[]} inputs
 * @param {number} index
 * @param {Tensor} tensor
 * @returns {Value}
 */
function changed(inputs, index, tensor) {
  return { name: inputs[index]?.name ?? '', dtype: tensor.dtype, tensor };
}

/**
 * @param {readonly Value[]} inputs
 * @param {readonly Argument[]} declared
 * @returns {{ index: number, axis: number, tensor: Tensor } | null} a fixed one, else the last of an input, else null
 */
function firstDimension(inputs, declared) {
  let last = null;
  for (const [index, { name, tensor }] of inputs.entries()) {
    if (tensor === null || tensor.shape.length === 0) {
      continue;
    }
    const shape = declared.find((argument) => argument.name === name)?.shape ?? [];
    const axis = shape.findIndex((size) => typeof size === 'number');
    if (axis >= 0) {
      return { index, axis, tensor };
    }
    last ??= { index, axis: tensor.shape.length - 1, tensor };
  }
  return last;
}

/**
 * @param {Tensor} tensor
 * @param {number} axis
 * @returns {Tensor}
 */
function withLonger(tensor, axis) {
  return blank(tensor.dtype, tensor.shape.with(axis, (tensor.shape[axis] ?? 0) + 1));
}

/**
 * @param {Tensor} tensor
 * @returns {Tensor}
 */
function ofAnotherDtype({ dtype, shape }) {
  return blank(dtype === 'int32' ? 'float32' : 'int32', shape);
}

/**
 * @param {Tensor['dtype']} dtype
 * @param {readonly number[]} shape
 * @returns {Tensor} zeros, or empty strings
 */
function blank(dtype, shape) {
  const count = elementCount(shape);
  return dtype === 'string'
    ? stringTensor(
        shape,
        Array.from({ length: count }, () => ''),
      )
    : tensorFromBytes(dtype, shape, new Uint8Array(count * DTYPES[dtype].bytes));
}
