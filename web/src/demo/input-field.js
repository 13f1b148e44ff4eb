/** @file One input of the model in the form: how it is filled, and with what. */

import { isNumberDtype, reader } from '../tensor.js';
import { errorText } from '../errors.js';
import { choice, element, labelled } from './dom.js';
import { FillError, adoptShape, makeTensor, parseText, shapeOf, tensorFromFile } from './fill.js';
import { drawImage, imageLayout, imageSize, pixelsToTensor } from './image.js';
import { statisticsLine, typeTag } from './outputs-view.js';
import { numberText, shapeText } from './words.js';

/**
 * @typedef {import('../records.js').Argument} Argument
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {'case' | 'random' | 'zeros' | 'ones' | 'text' | 'file' | 'image'} Way
 */

// Typing more than this by hand is not something a person wants to see in a text field.
const MOST_TYPED = 4096;

/** @type {Readonly<Record<Way, string>>} */
const WAYS = Object.freeze({
  case: 'Golden case',
  random: 'Random',
  zeros: 'Zeros',
  ones: 'Ones',
  text: 'Typed values',
  file: 'A file',
  image: 'A picture',
});

export class InputField {
  /** @type {Way} */
  #way;

  /** @type {string | null} */
  #caseId = null;

  /** @type {Tensor | null} of the golden case, or of the file */
  #tensor = null;

  #text = '';

  /** @type {Blob | null} */
  #picture = null;

  /** @type {{ layout: import('./image.js').Layout, scaling: import('./image.js').Scaling, fit: import('./image.js').Fit }} */
  #imageOptions;

  #problem = element('p', { class: 'problem', role: 'alert' });

  #body = element('div', { class: 'input-body' });

  /** @type {HTMLSelectElement} */
  #select;

  /**
   * @param {Argument} input
   * @param {object} options
   * @param {import('./fill.js').Range | null} options.range of the golden cases' values
   * @param {Tensor | null} options.example from a golden case
   * @param {ReadonlyMap<string, number>} options.sizes of open axes, shared by all inputs
   * @param {(sizes: ReadonlyMap<string, number>) => void} options.onAdopt hears the sizes that a given tensor brings
   */
  constructor(input, options) {
    this.input = input;
    this.options = options;
    const image = imageLayout(input);
    this.#imageOptions = {
      layout: image?.layout ?? 'NCHW',
      scaling: input.dtype === 'uint8' ? 'bytes' : 'unit',
      fit: 'contain',
    };
    const offered = /** @type {Way[]} */ (Object.keys(WAYS)).filter(
      (way) =>
        (way !== 'case' || options.example !== null) &&
        (way !== 'image' || image !== null) &&
        (way !== 'file' || isNumberDtype(input.dtype)),
    );
    this.#way = options.example === null ? 'random' : 'case';
    const field = choice(
      'Fill with',
      offered.map((way) => /** @type {const} */ ([way, WAYS[way]])),
      this.#way,
      (way) => this.#setWay(/** @type {Way} */ (way)),
    );
    this.#select = /** @type {HTMLSelectElement} */ (field.querySelector('select'));
    const legend = element(
      'legend',
      {},
      element('code', { class: 'name' }, input.name),
      typeTag(input.dtype, input.shape),
    );
    this.node = element('fieldset', { class: 'input' }, legend, field, this.#body, this.#problem);
    this.#draw();
  }

  /** The golden case whose value stands here, null when it is another value. */
  get caseId() {
    return this.#way === 'case' ? this.#caseId : null;
  }

  /**
   * @param {string} id
   * @param {Tensor | null} tensor null: the case gives this input no value
   */
  useCase(id, tensor) {
    this.#caseId = id;
    this.#tensor = tensor;
    this.#select.value = 'case';
    this.#way = 'case';
    this.#adopt();
    this.#draw();
  }

  /**
   * @returns {Promise<Tensor | null>} null when the value is not right; the note beside the input says why
   */
  async collect() {
    this.#problem.textContent = '';
    try {
      const shape = this.#shape();
      const tensor = await this.#make(shape);
      if (tensor.shape.join() !== shape.join()) {
        throw new FillError(
          `Its shape is ${shapeText(tensor.shape)}, but the sizes above make it ${shapeText(shape)}.`,
        );
      }
      return tensor;
    } catch (error) {
      this.#problem.textContent = errorText(error);
      return null;
    }
  }

  /** @returns {readonly number[]} */
  #shape() {
    if (this.input.shape !== null) {
      return shapeOf(this.input, this.options.sizes);
    }
    return (this.#way === 'case' || this.#way === 'file' ? this.#tensor : this.options.example)?.shape ?? [];
  }

  /**
   * @param {readonly number[]} shape
   * @returns {Tensor | Promise<Tensor>}
   */
  #make(shape) {
    switch (this.#way) {
      case 'case':
      case 'file':
        if (this.#tensor === null) {
          throw new FillError(this.#way === 'file' ? 'Choose a file.' : 'This golden case gives this input no value.');
        }
        return this.#tensor;
      case 'text':
        return parseText(this.#text, this.input.dtype, shape);
      case 'image':
        return this.#imageTensor(shape);
      default:
        return makeTensor(this.#way, this.input.dtype, shape, { random: Math.random, range: this.options.range });
    }
  }

  /**
   * @param {readonly number[]} shape
   * @returns {Promise<Tensor>}
   */
  async #imageTensor(shape) {
    if (this.#picture === null) {
      throw new FillError('Choose a picture.');
    }
    const { layout, scaling, fit } = this.#imageOptions;
    const channels = (layout === 'NCHW' ? shape.at(-3) : shape.at(-1)) ?? 1;
    const { pixels, canvas } = await drawImage(this.#picture, imageSize(shape, layout), fit);
    canvas.className = 'thumbnail';
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', `The picture as the model gets it, ${canvas.width} by ${canvas.height}`);
    this.#body.querySelector('canvas')?.remove();
    this.#body.append(canvas);
    return pixelsToTensor(pixels, shape, { dtype: this.input.dtype, layout, channels, scaling });
  }

  /** @param {Way} way */
  #setWay(way) {
    if (way === 'text' && this.#text === '' && this.#tensor !== null && this.#tensor.data.length <= 64) {
      this.#text = typedText(this.#tensor);
    }
    if (way === 'file' || this.#way === 'file') {
      this.#tensor = way === 'case' ? this.options.example : null;
      this.#caseId = null;
    }
    this.#way = way;
    this.#problem.textContent = '';
    this.#draw();
  }

  #adopt() {
    if (this.#tensor !== null) {
      this.options.onAdopt(adoptShape(this.input, this.#tensor.shape, this.options.sizes));
    }
  }

  #draw() {
    this.node.dataset.way = this.#way;
    this.#body.replaceChildren(...this.#controls());
  }

  /** @returns {(Node | string)[]} */
  #controls() {
    switch (this.#way) {
      case 'case':
        return this.#tensor === null ? [] : [summary(this.#tensor)];
      case 'text':
        return [this.#textField()];
      case 'file':
        return [this.#fileField(), ...(this.#tensor === null ? [] : [summary(this.#tensor)])];
      case 'image':
        return this.#imageFields();
      default:
        return this.#way === 'random' ? [element('p', { class: 'hint' }, this.#randomHint())] : [];
    }
  }

  /** @returns {string} */
  #randomHint() {
    const { range } = this.options;
    return range === null || !isNumberDtype(this.input.dtype) || this.input.dtype === 'bool'
      ? 'New values at each run.'
      : `New values at each run, from ${numberText(range.low)} to ${numberText(range.high)} as in the golden cases.`;
  }

  /** @returns {HTMLElement} */
  #textField() {
    const area = element('textarea', { rows: 3, spellcheck: 'false', autocomplete: 'off', maxlength: MOST_TYPED * 32 });
    area.value = this.#text;
    area.addEventListener('input', () => {
      this.#text = area.value;
    });
    const how = isNumberDtype(this.input.dtype)
      ? 'Numbers, row by row; one alone fills the whole tensor'
      : 'One text a line, or a JSON list';
    return labelled(how, area);
  }

  /** @returns {HTMLElement} */
  #fileField() {
    const field = element('input', { type: 'file', accept: '.npy,.safetensors,.bin,.raw,application/octet-stream' });
    field.addEventListener('change', () => this.#readFile(field.files?.[0]));
    return labelled(`.npy, .safetensors, or raw ${this.input.dtype} elements`, field);
  }

  /** @param {File | undefined} file */
  async #readFile(file) {
    if (file === undefined) {
      return;
    }
    this.#problem.textContent = '';
    try {
      const bytes = new Uint8Array(await file.arrayBuffer());
      const { tensor, note } = tensorFromFile(bytes, file.name, this.input, this.#shape());
      this.#tensor = tensor;
      this.#adopt();
      this.#body.querySelector('.given')?.remove();
      this.#body.append(summary(tensor, `${file.name} · ${note}`));
    } catch (error) {
      this.#tensor = null;
      this.#body.querySelector('.given')?.remove();
      this.#problem.textContent = `${file.name}: ${errorText(error)}`;
    }
  }

  /** @returns {Node[]} */
  #imageFields() {
    const file = element('input', { type: 'file', accept: 'image/*' });
    file.addEventListener('change', () => {
      this.#picture = file.files?.[0] ?? null;
      this.#collectPreview();
    });
    const { layout, scaling, fit } = this.#imageOptions;
    const set = (/** @type {'layout' | 'scaling' | 'fit'} */ name) => (/** @type {string} */ value) => {
      this.#imageOptions = { ...this.#imageOptions, [name]: value };
      this.#collectPreview();
    };
    return [
      labelled('Picture', file),
      element(
        'div',
        { class: 'image-options' },
        choice(
          'Layout',
          [
            ['NCHW', 'NCHW (channels first)'],
            ['NHWC', 'NHWC (channels last)'],
          ],
          layout,
          set('layout'),
        ),
        choice(
          'Resize',
          [
            ['contain', 'Fit inside, black border'],
            ['cover', 'Fill, cut the edges'],
            ['stretch', 'Stretch'],
          ],
          fit,
          set('fit'),
        ),
        choice(
          'Values',
          [
            ['unit', '0 to 1'],
            ['signed', '-1 to 1'],
            ['imagenet', 'ImageNet mean and deviation'],
            ['bytes', '0 to 255'],
          ],
          scaling,
          set('scaling'),
        ),
      ),
    ];
  }

  /** Show at once how the model will get the picture. */
  #collectPreview() {
    if (this.#picture !== null) {
      void this.collect();
    }
  }
}

/**
 * @param {Tensor} tensor
 * @param {string} [note]
 * @returns {HTMLElement}
 */
function summary(tensor, note) {
  const from = note === undefined ? null : element('p', { class: 'hint' }, note);
  const facts =
    tensor.dtype === 'string'
      ? element('p', { class: 'hint' }, `${tensor.data.length} texts, ${shapeText(tensor.shape)}`)
      : statisticsLine(tensor, true);
  return element('div', { class: 'given' }, from, facts);
}

/**
 * @param {Tensor} tensor
 * @returns {string}
 */
function typedText(tensor) {
  if (tensor.dtype === 'string') {
    return tensor.data.join('\n');
  }
  const read = reader(tensor);
  return Array.from({ length: tensor.data.length }, (_, index) => String(read(index))).join(', ');
}
