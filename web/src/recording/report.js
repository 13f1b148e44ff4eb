/** @file How a page that edgekit opens for itself answers: by calling what was put into it. */

/**
 * What whoever opened the page put there to hear the answer: JSON, and the bytes of a safetensors file as base64.
 *
 * @typedef {{ edgekitReport: (kind: string, document: string, tensors: string) => Promise<void> }} Listener
 */

/**
 * @param {string} kind
 * @param {unknown} document
 * @param {Uint8Array} [tensors]
 * @returns {Promise<void>} when it was heard
 */
export function report(kind, document, tensors = new Uint8Array()) {
  const { edgekitReport } = /** @type {Listener} */ (/** @type {unknown} */ (globalThis));
  return edgekitReport(kind, JSON.stringify(document), base64(tensors));
}

/**
 * @param {Uint8Array} bytes
 * @returns {string}
 */
function base64(bytes) {
  let text = '';
  for (let start = 0; start < bytes.length; start += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  }
  return btoa(text);
}
