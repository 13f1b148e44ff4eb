/** @file Whatever was thrown, as text a person can read. */

import { readable } from './runtime-messages.js';

const WEBASSEMBLY_ERRORS = new Set(['CompileError', 'LinkError', 'RuntimeError']);

/**
 * Errors of WebAssembly code arrive in many shapes: an Error, a bare number (the address of a C++ exception), a
 * WebAssembly.Exception without a message, or a string.
 *
 * @param {unknown} error
 * @returns {string} one line or more, never empty
 */
export function errorText(error) {
  if (error instanceof Error) {
    return withCause(describe(error), error.cause);
  }
  if (typeof error === 'number' || typeof error === 'bigint') {
    return `The runtime threw the bare number ${error}: a C++ exception that kept no message. Running out of memory is the usual cause.`;
  }
  if (typeof error === 'string' && error.trim() !== '') {
    return readable(error);
  }
  if (typeof WebAssembly !== 'undefined' && 'Exception' in WebAssembly && error instanceof WebAssembly.Exception) {
    return 'The runtime threw a C++ exception that kept no message. Running out of memory is the usual cause.';
  }
  if (
    typeof error === 'object' &&
    error !== null &&
    'message' in error &&
    typeof error.message === 'string' &&
    error.message
  ) {
    return readable(error.message);
  }
  return `Something was thrown that carries no message (${Object.prototype.toString.call(error)}).`;
}

/**
 * @param {Error} error
 * @returns {string}
 */
function describe(error) {
  const message = readable(error.message.trim());
  if (message === '') {
    return `${error.name || 'Error'} without a message.`;
  }
  // Names such as TypeError add nothing for a reader; "unreachable" needs "RuntimeError" beside it to be understood.
  return WEBASSEMBLY_ERRORS.has(error.name) ? `${error.name}: ${message}` : message;
}

/**
 * @param {string} text
 * @param {unknown} cause
 * @returns {string}
 */
function withCause(text, cause) {
  if (cause === undefined || cause === null) {
    return text;
  }
  const below = errorText(cause);
  return text.includes(below) ? text : `${text} (${below})`;
}

/**
 * @param {unknown} error
 * @returns {boolean} whether WebAssembly trapped or the runtime aborted: after that nothing it says means anything
 */
export function isTrap(error) {
  if (error instanceof WebAssembly.RuntimeError || (error instanceof RangeError && /call stack/i.test(error.message))) {
    return true;
  }
  return error instanceof Error && (/\bAborted\(/.test(error.message) || isTrap(error.cause));
}
