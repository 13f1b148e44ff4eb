/** @file Numbers and shapes as a person reads them. Pure. */

/**
 * @param {readonly (number | string | null)[] | null} shape
 * @returns {string} such as "[batch, 3, ?]"; "any shape" where the rank is unknown
 */
export function shapeText(shape) {
  return shape === null ? 'any shape' : `[${shape.map((size) => size ?? '?').join(', ')}]`;
}

/**
 * @param {number} bytes
 * @returns {string}
 */
export function bytesText(bytes) {
  if (bytes < 1000) {
    return `${bytes} B`;
  }
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/**
 * @param {number | null} milliseconds
 * @returns {string}
 */
export function timeText(milliseconds) {
  if (milliseconds === null) {
    return '–';
  }
  if (milliseconds >= 1000) {
    return `${(milliseconds / 1000).toFixed(2)} s`;
  }
  return `${milliseconds >= 100 ? milliseconds.toFixed(0) : milliseconds.toFixed(milliseconds >= 10 ? 1 : 2)} ms`;
}

/**
 * @param {number | bigint} value
 * @returns {string} at most seven significant digits
 */
export function numberText(value) {
  if (typeof value === 'bigint') {
    return value.toString();
  }
  if (Object.is(value, -0)) {
    return '-0';
  }
  if (Number.isInteger(value) && Math.abs(value) < 1e15) {
    return String(value);
  }
  return Number.isFinite(value) ? String(Number(value.toPrecision(7))) : String(value);
}

/**
 * @param {readonly number[]} values
 * @returns {number | null}
 */
export function median(values) {
  if (values.length === 0) {
    return null;
  }
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [low, high] = [sorted[middle - 1] ?? 0, sorted[middle] ?? 0];
  return sorted.length % 2 === 1 ? high : (low + high) / 2;
}
