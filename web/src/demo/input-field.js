/** @file One input of the model in the form: how it is filled, and with what. */

import { isNumberDtype, reader } from '../tensor.js';
import { errorText } from '../errors.js';
import { choice, element, labelled } from './dom.js';
import { FillError, adoptShape, makeTensor, parseText, shapeOf, tensorFromFile } from './fill.js';
import { statisticsLine, typeTag } from './outputs-view.js';
import { PictureField } from './picture-field.js';
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

  /** @type {PictureField | null} null: this input takes no pictures */
  #picture;

  /** @type {readonly number[]} of an input of unknown rank, as the picture makes it */
  #pictureShape = [];

  /** Why the values are no longer those of the golden case. */
  #note = '';

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
   * @param {() => void} options.onResize the sizes changed, for the other inputs too
   * @param {import('./image.js').BuildOptions | null} options.build how pictures became inputs of the golden cases
   */
  constructor(input, options) {
    this.input = input;
    this.options = options;
    this.#picture = PictureField.for(input, options.build, {
      onChoose: () => this.#adoptPicture(),
      onChange: () => this.collect(),
      onProblem: (error) => {
        this.#problem.textContent = errorText(error);
      },
    });
    const offered = /** @type {Way[]} */ (Object.keys(WAYS)).filter(
      (way) =>
        (way !== 'case' || options.example !== null) &&
        (way !== 'image' || this.#picture !== null) &&
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
    this.#note = '';
    this.#problem.textContent = '';
    this.#adopt();
    this.#draw();
  }

  /** Take note of sizes that were changed elsewhere: the golden case has values for its own sizes alone. */
  resize() {
    if (this.#way === 'case' && this.#tensor !== null && this.#tensor.shape.join() !== this.#shape().join()) {
      const { shape } = this.#tensor;
      this.#select.value = 'random';
      this.#setWay('random');
      this.#note = `Random now: the golden case has values for ${shapeText(shape)} only. `;
      this.#draw();
    } else if (this.#way === 'image') {
      this.#picture?.refresh();
    }
  }

  /**
   * @returns {Tensor | null} null when the value is not right; the note beside the input says why
   */
  collect() {
    this.#problem.textContent = '';
    try {
      const shape = this.#shape();
      const tensor = this.#make(shape);
      if (tensor.shape.join() !== shape.join()) {
        throw new FillError(
          `Its shape is ${shapeText(tensor.shape)}, but the sizes above ask for ${shapeText(shape)}.`,
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
    if (this.#way === 'image') {
      return this.#pictureShape;
    }
    return (this.#way === 'case' || this.#way === 'file' ? this.#tensor : this.options.example)?.shape ?? [];
  }

  /**
   * @param {readonly number[]} shape
   * @returns {Tensor}
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
        return /** @type {PictureField} */ (this.#picture).tensor(shape);
      default:
        return makeTensor(this.#way, this.input.dtype, shape, { random: Math.random, range: this.options.range });
    }
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
    this.#note = '';
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
        return this.#picture?.nodes() ?? [];
      default:
        return this.#way === 'random'
          ? [element('p', { class: 'hint', role: 'status' }, this.#note, this.#randomHint())]
          : [];
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
      this.options.onResize();
      this.#body.querySelector('.given')?.remove();
      this.#body.append(summary(tensor, `${file.name} · ${note}`));
    } catch (error) {
      this.#tensor = null;
      this.#body.querySelector('.given')?.remove();
      this.#problem.textContent = `${file.name}: ${errorText(error)}`;
    }
  }

  /** Take the sizes that the picture gives, and show at once how the model will get it. */
  #adoptPicture() {
    this.#problem.textContent = '';
    const { input, options } = this;
    const picture = /** @type {PictureField} */ (this.#picture);
    if (input.shape === null) {
      this.#pictureShape = picture.shapeFor([1, 1, 1, 1]);
    } else {
      options.onAdopt(adoptShape(input, picture.shapeFor(this.#shape()), options.sizes));
    }
    options.onResize();
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
