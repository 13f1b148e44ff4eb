/** @file The fields with which a picture becomes an input: which one, and how it is laid out, resized and normalised. */

import { isFloat } from '../tensor.js';
import { choice, element, labelled } from './dom.js';
import { FillError } from './fill.js';
import {
  NORMALISATIONS,
  builtNormalisation,
  drawImage,
  imageLayout,
  imageSize,
  pictureShape,
  pixelsToTensor,
  readPicture,
} from './image.js';
import { numberText } from './words.js';

/**
 * @typedef {import('../records.js').Argument} Argument
 * @typedef {import('./image.js').BuildOptions} BuildOptions
 * @typedef {import('./image.js').ImageShape} ImageShape
 * @typedef {import('./image.js').Normalisation} Normalisation
 * @typedef {import('./image.js').Scaling} Scaling
 */

export class PictureField {
  /** @type {ImageBitmap | null} */
  #picture = null;

  /** @type {import('./image.js').Layout} */
  #layout;

  /** @type {import('./image.js').Fit} as `edgekit build` does */
  #fit = 'stretch';

  /** @type {Scaling | 'built'} */
  #scaling;

  /** @type {Normalisation | null} null: it has a name */
  #built;

  #preview = element('div');

  /**
   * @param {Argument} input
   * @param {ImageShape} image what its shape says
   * @param {BuildOptions | null} build
   * @param {object} listeners
   * @param {() => void} listeners.onChoose a new picture is there
   * @param {() => void} listeners.onChange it is to be made in another way
   * @param {(error: unknown) => void} listeners.onProblem the file is no picture
   */
  constructor(input, image, build, listeners) {
    this.input = input;
    this.image = image;
    this.build = build;
    this.listeners = listeners;
    this.#layout = image.layout;
    const built = builtNormalisation(input, image.channels, build);
    this.#scaling = typeof built === 'string' ? built : 'built';
    this.#built = typeof built === 'string' ? null : built;
  }

  /**
   * @param {Argument} input
   * @param {BuildOptions | null} build
   * @param {PictureField['listeners']} listeners
   * @returns {PictureField | null} null for an input that takes no pictures
   */
  static for(input, build, listeners) {
    const image = imageLayout(input, build?.layout ?? null);
    return image && new PictureField(input, image, build, listeners);
  }

  /**
   * @param {readonly number[]} shape
   * @returns {number[]} with the sizes that the picture gives to open axes
   */
  shapeFor(shape) {
    const { width, height } = this.#chosen();
    return pictureShape(
      this.input,
      shape,
      { ...this.image, layout: this.#layout },
      this.build?.size ?? [height, width],
    );
  }

  /**
   * @param {readonly number[]} shape
   * @returns {import('../tensor.js').Tensor}
   * @throws {FillError}
   */
  tensor(shape) {
    const layout = this.#layout;
    const channels = (layout === 'NCHW' ? shape.at(-3) : shape.at(-1)) ?? 1;
    const { pixels, canvas } = drawImage(this.#chosen(), imageSize(shape, layout), { fit: this.#fit, channels });
    canvas.className = 'thumbnail';
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', `The picture as the model gets it, ${canvas.width} by ${canvas.height}`);
    this.#preview.replaceChildren(canvas);
    const normalisation =
      (this.#scaling === 'built' ? this.#built : NORMALISATIONS[this.#scaling]) ?? NORMALISATIONS.unit;
    return pixelsToTensor(pixels, shape, { dtype: this.input.dtype, layout, channels, normalisation });
  }

  /** @returns {Node[]} */
  nodes() {
    const file = element('input', { type: 'file', accept: 'image/*' });
    file.addEventListener('change', () => void this.#choose(file.files?.[0]));
    this.#preview.replaceChildren();
    return [
      labelled('Picture', file),
      element('div', { class: 'image-options' }, this.#layoutChoice(), this.#fitChoice(), this.#scalingChoice()),
      this.#preview,
    ];
  }

  /** @returns {ImageBitmap} */
  #chosen() {
    if (this.#picture === null) {
      throw new FillError('Choose a picture.');
    }
    return this.#picture;
  }

  /** @param {File | undefined} file */
  async #choose(file) {
    this.#picture?.close();
    this.#picture = null;
    this.#preview.replaceChildren();
    if (file === undefined) {
      return;
    }
    try {
      this.#picture = await readPicture(file);
      this.listeners.onChoose();
    } catch (error) {
      this.listeners.onProblem(error);
    }
  }

  /** Make it again, where there is one. */
  refresh() {
    if (this.#picture !== null) {
      this.listeners.onChange();
    }
  }

  /** @returns {HTMLElement} */
  #layoutChoice() {
    const options = /** @type {const} */ ([
      ['NCHW', 'NCHW (channels first)'],
      ['NHWC', 'NHWC (channels last)'],
    ]);
    return choice('Layout', options, this.#layout, (value) => {
      this.#layout = value === 'NHWC' ? 'NHWC' : 'NCHW';
      this.refresh();
    });
  }

  /** @returns {HTMLElement} */
  #fitChoice() {
    const options = /** @type {const} */ ([
      ['stretch', 'Stretch (as the build did)'],
      ['contain', 'Fit inside, black border'],
      ['cover', 'Fill, cut the edges'],
    ]);
    return choice('Resize', options, this.#fit, (value) => {
      this.#fit = /** @type {import('./image.js').Fit} */ (value);
      this.refresh();
    });
  }

  /** @returns {HTMLElement} */
  #scalingChoice() {
    const all = /** @type {[Scaling | 'built', string][]} */ ([
      ['built', this.#built === null ? '' : normalisationText(this.#built)],
      ['unit', '0 to 1'],
      ['signed', '-1 to 1'],
      ['imagenet', 'ImageNet mean and deviation'],
      ['bytes', '0 to 255'],
    ]);
    // Integers take the pixels as they are.
    const options = all.filter(([name]) =>
      name === 'built' ? this.#built !== null : name === 'bytes' || isFloat(this.input.dtype),
    );
    return choice('Values', options, this.#scaling, (value) => {
      this.#scaling = /** @type {Scaling | 'built'} */ (value);
      this.refresh();
    });
  }
}

/**
 * @param {Normalisation} normalisation
 * @returns {string}
 */
function normalisationText({ scale, mean, std }) {
  const list = (/** @type {readonly number[]} */ numbers) => numbers.map(numberText).join(' ');
  return `As the build did: × ${numberText(scale)}, mean ${list(mean)}, std ${list(std)}`;
}
