/**
 * @file Resize pixels as Pillow's `resize(size, BILINEAR)` does: a triangle filter that widens when it shrinks, first
 * along the rows, then along the columns. A canvas smooths in a way of its own, and the model's answer changes with it.
 */

/**
 * @typedef {{ data: Uint8ClampedArray<ArrayBuffer>, width: number, height: number }} Pixels RGBA, row by row
 * @typedef {{ first: number, weights: Float64Array }} Window the input elements that make an output element
 */

/** Weights are whole parts of it, as Pillow's are, so that halves are rounded as there. */
const ONE = 2 ** 22;

/**
 * @param {Pixels} pixels
 * @param {number} width
 * @param {number} height
 * @returns {Pixels} `pixels` itself where it has that size
 */
export function resample(pixels, width, height) {
  const wide = width === pixels.width ? pixels : pass(pixels, width, true);
  return height === pixels.height ? wide : pass(wide, height, false);
}

/**
 * @param {Pixels} pixels
 * @param {number} size
 * @param {boolean} alongRows
 * @returns {Pixels}
 */
function pass({ data, width, height }, size, alongRows) {
  const windows = windowsOf(alongRows ? width : height, size);
  const made = alongRows ? { width: size, height } : { width, height: size };
  const out = new Uint8ClampedArray(made.width * made.height * 4);
  const step = (alongRows ? 1 : width) * 4;
  for (let y = 0; y < made.height; y += 1) {
    for (let x = 0; x < made.width; x += 1) {
      const { first, weights } = /** @type {Window} */ (windows[alongRows ? x : y]);
      const start = alongRows ? (y * width + first) * 4 : (first * width + x) * 4;
      for (let channel = 0; channel < 4; channel += 1) {
        let sum = ONE / 2;
        for (let k = 0; k < weights.length; k += 1) {
          sum += /** @type {number} */ (data[start + k * step + channel]) * /** @type {number} */ (weights[k]);
        }
        out[(y * made.width + x) * 4 + channel] = Math.floor(sum / ONE);
      }
    }
  }
  return { data: out, ...made };
}

/**
 * @param {number} from how many elements there are
 * @param {number} to how many there will be
 * @returns {Window[]}
 */
function windowsOf(from, to) {
  const scale = from / to;
  const support = Math.max(scale, 1);
  return Array.from({ length: to }, (_, index) => {
    const center = (index + 0.5) * scale;
    const first = Math.max(0, Math.floor(center - support + 0.5));
    const end = Math.min(from, Math.floor(center + support + 0.5));
    const weights = Float64Array.from({ length: end - first }, (_none, k) =>
      Math.max(0, 1 - Math.abs((first + k - center + 0.5) / support)),
    );
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    return { first, weights: weights.map((weight) => Math.round((weight / total) * ONE)) };
  });
}
