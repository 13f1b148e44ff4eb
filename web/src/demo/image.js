/** @file A picture as a tensor, as edgekit/golden/images.py makes it. All but `readPicture` and `drawImage` are pure. */

import { isFloat, isNumberDtype, tensorOf } from '../tensor.js';
import { FillError } from './fill.js';
import { resample } from './resample.js';

/**
 * @typedef {import('../records.js').Argument} Argument
 * @typedef {NonNullable<import('../records.js').PageConfig['image']>} BuildOptions what `edgekit build` was told
 * @typedef {'NCHW' | 'NHWC'} Layout
 * @typedef {{ layout: Layout, channels: 1 | 3 | 4 }} ImageShape
 * @typedef {'unit' | 'signed' | 'imagenet' | 'bytes'} Scaling
 * @typedef {{ scale: number, mean: readonly number[], std: readonly number[] }} Normalisation
 *   a value is (byte * scale - mean) / std; one number for all channels, or one for each
 * @typedef {'stretch' | 'contain' | 'cover'} Fit
 */

const INTEGERS = new Set(['uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64']);
/** More than a phone's browser gives a canvas. */
const MOST_PIXELS = 16_000_000;

/** @type {Readonly<Record<Scaling, Normalisation>>} */
export const NORMALISATIONS = Object.freeze({
  unit: { scale: 1 / 255, mean: [0], std: [1] },
  signed: { scale: 1 / 255, mean: [0.5], std: [0.5] },
  // Per channel, red first, as torchvision's models were trained.
  imagenet: { scale: 1 / 255, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
  bytes: { scale: 1, mean: [0], std: [1] },
});

/**
 * @param {Argument} input
 * @param {BuildOptions['layout']} [asked] what `edgekit build` was told; null: read it off the shape
 * @returns {ImageShape | null} null where the shape does not look like an image
 */
export function imageLayout({ dtype, shape }, asked = null) {
  const axes = shape ?? [null, null, null, null];
  if ((axes.length !== 3 && axes.length !== 4) || !(isFloat(dtype) || INTEGERS.has(dtype))) {
    return null;
  }
  for (const [layout, size] of /** @type {[Layout, number | string | null | undefined][]} */ ([
    ['NCHW', axes.at(-3)],
    ['NHWC', axes.at(-1)],
  ])) {
    if (asked !== null && layout !== asked.toUpperCase()) {
      continue;
    }
    if (size === 1 || size === 3 || size === 4) {
      return { layout, channels: size };
    }
    if (asked !== null && typeof size !== 'number') {
      return { layout, channels: 3 };
    }
  }
  return null;
}

/**
 * How the page normalises a picture until a person chooses otherwise: as `edgekit build` did.
 *
 * @param {Argument} input
 * @param {number} channels
 * @param {BuildOptions | null} build
 * @returns {Scaling | Normalisation} a name where the numbers have one
 */
export function builtNormalisation({ dtype }, channels, build) {
  if (!isFloat(dtype)) {
    return 'bytes';
  }
  const fits = build !== null && [build.mean, build.std].every(({ length }) => length === 1 || length === channels);
  const { scale, mean, std } = fits ? build : NORMALISATIONS.unit;
  const text = JSON.stringify([scale, mean, std]);
  const named = /** @type {Scaling[]} */ (Object.keys(NORMALISATIONS)).find((name) => {
    const known = NORMALISATIONS[name];
    return JSON.stringify([known.scale, known.mean, known.std]) === text;
  });
  return named ?? { scale, mean, std };
}

/**
 * The shape to which a picture makes an input whose size is open, as `edgekit build` does.
 *
 * @param {Argument} input
 * @param {readonly number[]} shape with a size for each axis; four axes where the input's rank is unknown
 * @param {ImageShape} image
 * @param {readonly [number, number]} size [height, width] for axes without a fixed one
 * @returns {number[]}
 */
export function pictureShape(input, shape, { layout, channels }, [height, width]) {
  const made = [...shape];
  const first = made.length - 3;
  const sizes = layout === 'NCHW' ? [channels, height, width] : [height, width, channels];
  sizes.forEach((size, axis) => {
    if (typeof input.shape?.[first + axis] !== 'number') {
      made[first + axis] = size;
    }
  });
  return made;
}

/**
 * @param {readonly number[]} shape of the tensor
 * @param {Layout} layout
 * @returns {{ width: number, height: number }}
 */
export function imageSize(shape, layout) {
  const [height, width] = layout === 'NCHW' ? [shape.at(-2), shape.at(-1)] : [shape.at(-3), shape.at(-2)];
  return { width: width ?? 0, height: height ?? 0 };
}

/**
 * @param {Uint8ClampedArray} pixels RGBA, row by row
 * @param {readonly number[]} shape three or four axes; every image of a batch is the same picture
 * @param {{ dtype: string, layout: Layout, channels: number, normalisation: Normalisation }} options
 * @returns {import('../tensor.js').Tensor}
 */
export function pixelsToTensor(pixels, shape, { dtype, layout, channels, normalisation }) {
  const { width, height } = imageSize(shape, layout);
  if (!isNumberDtype(dtype) || pixels.length !== width * height * 4) {
    throw new FillError(`${pixels.length / 4} pixels do not make ${dtype} of ${width} × ${height}.`);
  }
  const area = width * height;
  const { scale, mean, std } = normalisation;
  return tensorOf(dtype, shape, (index) => {
    const within = index % (area * channels);
    const pixel = layout === 'NCHW' ? within % area : Math.floor(within / channels);
    const channel = layout === 'NCHW' ? Math.floor(within / area) : within % channels;
    const byte = channels === 1 ? luma(pixels, pixel * 4) : (pixels[pixel * 4 + channel] ?? 0);
    return (byte * scale - (mean[channel] ?? mean[0] ?? 0)) / (std[channel] ?? std[0] ?? 1);
  });
}

/**
 * @param {Uint8ClampedArray} pixels
 * @param {number} at
 * @returns {number} ITU-R BT.601 luma, bit for bit as Pillow's convert("L") computes it
 */
function luma(pixels, at) {
  const sum = (pixels[at] ?? 0) * 19595 + (pixels[at + 1] ?? 0) * 38470 + (pixels[at + 2] ?? 0) * 7471;
  return (sum + 0x8000) >> 16;
}

/**
 * @param {Blob} file
 * @returns {Promise<ImageBitmap>} upright, with the colours that stand in the file
 * @throws {FillError} when the browser cannot read the file as a picture
 */
export function readPicture(file) {
  return createImageBitmap(file, { colorSpaceConversion: 'none' }).catch(() => {
    throw new FillError('The browser cannot read this file as a picture.');
  });
}

/**
 * @param {ImageBitmap} picture
 * @param {{ width: number, height: number }} size
 * @param {{ fit: Fit, channels: number }} options 1 channel: grey before it is resized; below 4, transparency is dropped
 * @returns {{ pixels: Uint8ClampedArray, canvas: HTMLCanvasElement }}
 * @throws {FillError} when there is no such picture
 */
export function drawImage(picture, { width, height }, { fit, channels }) {
  if (width < 1 || height < 1) {
    throw new FillError(`A picture of ${width} × ${height} cannot be drawn.`);
  }
  const ratios = [width / picture.width, height / picture.height];
  const ratio = fit === 'cover' ? Math.max(...ratios) : Math.min(...ratios);
  const [w, h] =
    fit === 'contain'
      ? [picture.width * ratio, picture.height * ratio].map((size) => Math.max(1, Math.round(size)))
      : [width, height];
  const [cutWidth, cutHeight] = fit === 'cover' ? [width / ratio, height / ratio] : [picture.width, picture.height];
  const source = pixelsOf(picture, cutWidth, cutHeight);
  for (let at = 0; channels !== 4 && at < source.data.length; at += 4) {
    if (channels === 1) {
      source.data.fill(luma(source.data, at), at, at + 3);
    }
    source.data[at + 3] = 255;
  }
  const resized = resample(source, w ?? width, h ?? height);
  const { canvas, context } = newCanvas(width, height);
  context.fillRect(0, 0, width, height);
  context.putImageData(
    new ImageData(resized.data, resized.width, resized.height),
    Math.floor((width - resized.width) / 2),
    Math.floor((height - resized.height) / 2),
  );
  const filled = resized.width === width && resized.height === height;
  return { pixels: filled ? resized.data : context.getImageData(0, 0, width, height).data, canvas };
}

/**
 * @param {ImageBitmap} picture
 * @param {number} cutWidth of the middle part that is wanted
 * @param {number} cutHeight
 * @returns {ImageData}
 */
function pixelsOf(picture, cutWidth, cutHeight) {
  const shrink = Math.min(1, Math.sqrt(MOST_PIXELS / (cutWidth * cutHeight)));
  const [width, height] = [cutWidth, cutHeight].map((size) => Math.max(1, Math.round(size * shrink)));
  const { context } = newCanvas(width ?? 1, height ?? 1);
  const [left, top] = [(picture.width - cutWidth) / 2, (picture.height - cutHeight) / 2].map(Math.round);
  context.imageSmoothingQuality = 'high';
  context.imageSmoothingEnabled = shrink < 1;
  context.drawImage(picture, left ?? 0, top ?? 0, cutWidth, cutHeight, 0, 0, width ?? 1, height ?? 1);
  return context.getImageData(0, 0, width ?? 1, height ?? 1);
}

/**
 * @param {number} width
 * @param {number} height
 * @returns {{ canvas: HTMLCanvasElement, context: CanvasRenderingContext2D }}
 * @throws {FillError}
 */
function newCanvas(width, height) {
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  if (context === null) {
    throw new FillError(`A picture of ${width} × ${height} cannot be drawn.`);
  }
  return { canvas, context };
}
