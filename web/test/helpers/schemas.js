/** @file The contract's JSON schemas, as checks. */

import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';

const SCHEMAS = new URL('../../../edgekit/records/schema/', import.meta.url);

/**
 * @param {string} name such as "record"
 * @returns {(document: unknown) => string | null} null: it fits; else what does not
 */
export function schema(name) {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false });
  const validate = ajv.compile(JSON.parse(readFileSync(new URL(`${name}.schema.json`, SCHEMAS), 'utf8')));
  return (document) => (validate(document) ? null : ajv.errorsText(validate.errors));
}
