/** @file The form in which a person fills the inputs. */

import { byId, choice, element, labelled } from './dom.js';
import { FillError, openAxes, rangeOf } from './fill.js';
import { InputField } from './input-field.js';

/**
 * @typedef {import('../records.js').Argument} Argument
 * @typedef {import('../golden-cases.js').GoldenCase} GoldenCase
 * @typedef {import('../tensor.js').Value} Value
 * @typedef {{ values: Value[], goldenCase: GoldenCase | null }} Filled `goldenCase`: set when the values are all its own
 */

export class InputsView {
  /** @type {readonly GoldenCase[]} */
  #cases;

  /** @type {InputField[]} */
  #fields;

  /** @type {Map<string, number>} */
  #sizes = new Map();

  /** @type {Map<string, HTMLInputElement>} */
  #sizeFields = new Map();

  /** @type {HTMLElement | null} */
  #caseChoice = null;

  /**
   * @param {readonly Argument[]} inputs
   * @param {readonly GoldenCase[]} cases
   * @param {import('./image.js').BuildOptions | null} build how pictures became inputs of the cases
   * @param {() => void} onRun
   */
  constructor(inputs, cases, build, onRun) {
    this.#cases = cases;
    this.#fields = inputs.map((input) => {
      const given = cases.flatMap((entry) => entry.inputs.find(({ name }) => name === input.name)?.tensor ?? []);
      return new InputField(input, {
        range: rangeOf(given.slice(0, 4)),
        example: given[0] ?? null,
        onAdopt: (sizes) => this.#adopt(sizes),
        onResize: () => this.#resize(),
        build,
        sizes: this.#sizes,
      });
    });
    const form = byId('inputs');
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      onRun();
    });
    const first = cases[0];
    if (first !== undefined) {
      const options = cases.map(({ id }) => /** @type {const} */ ([id, id]));
      this.#caseChoice = choice('Start from golden case', options, first.id, (id) => {
        const entry = cases.find((candidate) => candidate.id === id);
        if (entry !== undefined) {
          this.loadCase(entry);
        }
      });
    }
    const run = element('button', { type: 'submit', class: 'primary', id: 'run' }, 'Run the model');
    form.replaceChildren(
      ...(this.#caseChoice === null ? [] : [this.#caseChoice]),
      ...this.#sizeSection(inputs),
      ...this.#fields.map((field) => field.node),
      element('div', { class: 'form-end' }, run),
    );
    if (first !== undefined) {
      this.loadCase(first);
    }
  }

  /**
   * @param {readonly Argument[]} inputs
   * @returns {HTMLElement[]}
   */
  #sizeSection(inputs) {
    const fields = [];
    for (const { key, label } of inputs.flatMap(openAxes)) {
      if (!this.#sizes.has(key)) {
        this.#sizes.set(key, 1);
        const field = element('input', {
          type: 'number',
          min: 0,
          max: 1_000_000,
          step: 1,
          value: 1,
          inputmode: 'numeric',
        });
        field.addEventListener('change', () => {
          this.#sizes.set(key, Math.max(0, Math.trunc(field.valueAsNumber) || 0));
          this.#resize();
        });
        this.#sizeFields.set(key, field);
        fields.push(labelled(label, field));
      }
    }
    return fields.length === 0
      ? []
      : [element('fieldset', { class: 'sizes' }, element('legend', {}, 'Sizes of open dimensions'), ...fields)];
  }

  /** @param {ReadonlyMap<string, number>} sizes */
  #adopt(sizes) {
    for (const [key, size] of sizes) {
      this.#sizes.set(key, size);
      const field = this.#sizeFields.get(key);
      if (field !== undefined) {
        field.valueAsNumber = size;
      }
    }
  }

  #resize() {
    for (const field of this.#fields) {
      field.resize();
    }
  }

  /** @param {GoldenCase} entry */
  loadCase(entry) {
    for (const field of this.#fields) {
      const tensor = entry.inputs.find(({ name }) => name === field.input.name)?.tensor ?? null;
      field.useCase(entry.id, tensor);
    }
    const select = this.#caseChoice?.querySelector('select');
    if (select) {
      select.value = entry.id;
    }
  }

  /**
   * @returns {Filled}
   * @throws {FillError} when an input has no valid value; the form says which
   */
  collect() {
    /** @type {Value[]} */
    const values = [];
    let problems = 0;
    for (const field of this.#fields) {
      const tensor = field.collect();
      if (tensor === null) {
        problems += 1;
      } else {
        values.push({ name: field.input.name, dtype: tensor.dtype, tensor });
      }
    }
    if (problems > 0) {
      throw new FillError(
        problems === 1
          ? 'One input needs another value: see the note below it.'
          : `${problems} inputs need other values: see the notes below them.`,
      );
    }
    const ids = new Set(this.#fields.map((field) => field.caseId));
    const [only] = ids.size === 1 ? ids : [null];
    return { values, goldenCase: this.#cases.find(({ id }) => id === only) ?? null };
  }

  /** @param {boolean} busy */
  setBusy(busy) {
    /** @type {HTMLButtonElement} */ (byId('run')).disabled = busy;
  }
}
