/** @file A picture as a tensor. `imageLayout` and `pixelsToTensor` are pure. */

import { isFloat, isNumberDtype, tensorOf } from '../tensor.js';
import { FillError } from './fill.js';

/**
 * @typedef {import('../records.js').Argument} Argument
 * @typedef {'NCHW' | 'NHWC'} Layout
 * @typedef {{ layout: Layout, channels: 1 | 3 | 4 }} ImageShape
 * @typedef {'unit' | 'signed' | 'imagenet' | 'bytes'} Scaling
 * @typedef {'stretch' | 'contain' | 'cover'} Fit
 */

/** Per channel, red first, as torchvision's models were trained. */
const IMAGENET = { mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225] };

/**
 * @param {Argument} input
 * @returns {ImageShape | null} null where the shape does not look like an image
 */
export function imageLayout({ dtype, shape }) {
  if (shape === null || (shape.length !== 3 && shape.length !== 4) || !(isFloat(dtype) || dtype === 'uint8')) {
    return null;
  }
  for (const [layout, size] of /** @type {[Layout, unknown][]} */ ([
    ['NCHW', shape.at(-3)],
    ['NHWC', shape.at(-1)],
  ])) {
    if (size === 1 || size === 3 || size === 4) {
      return { layout, channels: size };
    }
  }
  return null;
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
 * @param {{ dtype: string, layout: Layout, channels: number, scaling: Scaling }} options
 * @returns {import('../tensor.js').Tensor}
 */
export function pixelsToTensor(pixels, shape, { dtype, layout, channels, scaling }) {
  const { width, height } = imageSize(shape, layout);
  if (!isNumberDtype(dtype) || pixels.length !== width * height * 4) {
    throw new FillError(`${pixels.length / 4} pixels do not make ${dtype} of ${width} × ${height}.`);
  }
  const area = width * height;
  return tensorOf(dtype, shape, (index) => {
    const within = index % (area * channels);
    const pixel = layout === 'NCHW' ? within % area : Math.floor(within / channels);
    const channel = layout === 'NCHW' ? Math.floor(within / area) : within % channels;
    const byte = channels === 1 ? luma(pixels, pixel * 4) : (pixels[pixel * 4 + channel] ?? 0);
    return scaled(byte, channel, scaling);
  });
}

/**
 * @param {Uint8ClampedArray} pixels
 * @param {number} at
 * @returns {number} ITU-R BT.601 luma, as Pillow's convert("L") computes it
 */
function luma(pixels, at) {
  return Math.round(((pixels[at] ?? 0) * 299 + (pixels[at + 1] ?? 0) * 587 + (pixels[at + 2] ?? 0) * 114) / 1000);
}

/**
 * @param {number} byte
 * @param {number} channel
 * @param {Scaling} scaling
 * @returns {number}
 */
function scaled(byte, channel, scaling) {
  switch (scaling) {
    case 'bytes':
      return byte;
    case 'signed':
      return byte / 127.5 - 1;
    case 'imagenet':
      return (byte / 255 - (IMAGENET.mean[channel] ?? 0)) / (IMAGENET.deviation[channel] ?? 1);
    default:
      return byte / 255;
  }
}

/**
 * @param {Blob} file
 * @param {{ width: number, height: number }} size
 * @param {Fit} fit
 * @returns {Promise<{ pixels: Uint8ClampedArray, canvas: HTMLCanvasElement }>}
 * @throws {FillError} when the browser cannot read the file as a picture
 */
export async function drawImage(file, { width, height }, fit) {
  const picture = await createImageBitmap(file).catch(() => {
    throw new FillError('The browser cannot read this file as a picture.');
  });
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  if (context === null || width === 0 || height === 0) {
    throw new FillError(`A picture of ${width} × ${height} cannot be drawn.`);
  }
  const ratios = [width / picture.width, height / picture.height];
  const ratio = fit === 'cover' ? Math.max(...ratios) : Math.min(...ratios);
  const [w, h] = fit === 'stretch' ? [width, height] : [picture.width * ratio, picture.height * ratio];
  context.imageSmoothingQuality = 'high';
  context.fillRect(0, 0, width, height);
  context.drawImage(picture, (width - w) / 2, (height - h) / 2, w, h);
  picture.close();
  return { pixels: context.getImageData(0, 0, width, height).data, canvas };
}
