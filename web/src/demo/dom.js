/** @file Build elements. Text is always set as text: names from a model may hold anything. */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number | boolean | null | undefined>} [attributes] true: present; false, null, undefined: absent
 * @param {...(Node | string | null)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value !== null && value !== undefined) {
      made.setAttribute(name, value === true ? '' : String(value));
    }
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/**
 * @param {string} id of an element of the page
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) {
    throw new Error(`The page has no element "${id}".`);
  }
  return found;
}

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {() => void} listener
 * @param {'click' | 'change' | 'input'} event
 * @param {Record<string, string | number | boolean | null | undefined>} attributes
 * @param {...(Node | string | null)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function control(tag, listener, event, attributes, ...children) {
  const made = element(tag, attributes, ...children);
  made.addEventListener(event, () => listener());
  return made;
}

/**
 * A label with its control below it.
 *
 * @param {string} text
 * @param {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} field
 * @returns {HTMLElement}
 */
export function labelled(text, field) {
  return element('label', { class: 'field' }, element('span', { class: 'field-name' }, text), field);
}

/**
 * @param {string} label
 * @param {readonly (readonly [string, string])[]} options value and text
 * @param {string} value
 * @param {(value: string) => void} onChange
 * @returns {HTMLElement}
 */
export function choice(label, options, value, onChange) {
  const select = element(
    'select',
    {},
    ...options.map(([key, text]) => element('option', { value: key, selected: key === value }, text)),
  );
  select.addEventListener('change', () => onChange(select.value));
  return labelled(label, select);
}

/**
 * Let the browser draw what was said before the processor is kept busy. In a hidden page nothing is drawn, and nothing
 * is waited for long.
 *
 * @returns {Promise<void>}
 */
export function painted() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve));
    setTimeout(resolve, 100);
  });
}
