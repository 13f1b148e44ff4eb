/** @file Fetch files of the bundle, with progress, and make sure that they are the right ones. */

import { errorText } from './errors.js';
import { sha256 } from './sha256.js';

/**
 * @typedef {Pick<import('./environment.js').Host, 'fetch' | 'baseUrl' | 'subtle'>} Source
 * @typedef {(loaded: number) => void} OnBytes
 * @typedef {{ bytes: Uint8Array<ArrayBuffer>, sha256: string }} Download
 */

/** A file that could not be fetched, or is not what the bundle was built with. */
export class DownloadError extends Error {
  name = 'DownloadError';
}

/**
 * @param {Source} source
 * @param {string} url relative to the page
 * @param {OnBytes} [onBytes] hears how many bytes have come, uncompressed
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 * @throws {DownloadError}
 */
export async function fetchBytes(source, url, onBytes = () => {}) {
  const name = pathOf(url);
  try {
    const response = await source.fetch(new URL(url, source.baseUrl).href);
    if (!response.ok) {
      throw new DownloadError(
        `${name} could not be fetched: the server answered ${response.status} ${response.statusText}`.trim(),
      );
    }
    return await readBody(response, onBytes);
  } catch (error) {
    throw error instanceof DownloadError
      ? error
      : new DownloadError(`${name} could not be fetched: ${errorText(error)}`, { cause: error });
  }
}

/**
 * @param {Response} response
 * @param {OnBytes} onBytes
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
async function readBody(response, onBytes) {
  if (response.body === null) {
    return new Uint8Array(await response.arrayBuffer());
  }
  /** @type {Uint8Array[]} */
  const chunks = [];
  let loaded = 0;
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    chunks.push(part.value);
    loaded += part.value.length;
    onBytes(loaded);
  }
  const bytes = new Uint8Array(loaded);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

/**
 * @param {Source} source
 * @param {string} url
 * @returns {Promise<unknown>} the JSON value
 * @throws {DownloadError}
 */
export async function fetchJson(source, url) {
  return parseJson(await fetchBytes(source, url), url);
}

/**
 * @param {Uint8Array} bytes
 * @param {string} url names the bytes in the error
 * @returns {unknown}
 * @throws {DownloadError}
 */
export function parseJson(bytes, url) {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw new DownloadError(`${pathOf(url)} is not JSON: ${errorText(error)}`, { cause: error });
  }
}

/**
 * @param {Source} source
 * @param {string} url
 * @param {string | undefined} expected the sha256 that the bundle was built with; undefined: not known
 * @param {OnBytes} [onBytes]
 * @returns {Promise<Download>}
 * @throws {DownloadError} also when the file is another one
 */
export async function fetchVerified(source, url, expected, onBytes) {
  const bytes = await fetchBytes(source, url, onBytes);
  const actual = await sha256(bytes, source.subtle);
  if (expected !== undefined && actual !== expected) {
    throw new WrongFileError(pathOf(url), actual, expected);
  }
  return { bytes, sha256: actual };
}

/** A file whose bytes are not those that the bundle was built with. */
export class WrongFileError extends DownloadError {
  name = 'WrongFileError';

  /**
   * @param {string} path
   * @param {string} actual sha256
   * @param {string} expected sha256
   */
  constructor(path, actual, expected) {
    super(
      `${path} is not the file that this bundle was built with: its sha256 is ${actual}, not ${expected}. Build the bundle again.`,
    );
    this.path = path;
    this.actual = actual;
  }
}

/**
 * @param {string} url relative, percent-encoded, perhaps with a query
 * @returns {string} the path inside the bundle, as a person writes it
 */
export function pathOf(url) {
  const [path = ''] = url.split('?');
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
