/**
 * @file Write src/records.d.ts from the JSON schemas of the contract. A test says when it is stale.
 */

import { readFile, readdir, writeFile } from 'node:fs/promises';
import { compile } from 'json-schema-to-typescript';

const SCHEMAS = new URL('../edgekit/records/schema/', import.meta.url);
const DESTINATION = new URL('src/records.d.ts', import.meta.url);
const BANNER = '// Generated from edgekit/records/schema by `npm run generate`. Do not edit.';

/** @returns {Promise<string>} what src/records.d.ts must hold */
export async function generate() {
  const names = (await readdir(SCHEMAS)).filter((name) => name.endsWith('.schema.json')).sort();
  // One schema over all, so that a definition that several share (Value, Adapter) becomes one type.
  /** @type {Record<string, unknown>} */
  const shared = {};
  for (const name of names) {
    const schema = JSON.parse(await readFile(new URL(name, SCHEMAS), 'utf8'));
    const { $defs, ...document } = schema;
    delete document.$schema;
    for (const [key, value] of Object.entries({ ...$defs, [document.title]: document })) {
      if (key in shared && JSON.stringify(shared[key]) !== JSON.stringify(value)) {
        throw new Error(`${name} defines ${key} in another way than a schema before it.`);
      }
      shared[key] = value;
    }
  }
  const text = await compile(
    { title: 'Contract', type: 'object', additionalProperties: false, $defs: shared },
    'Contract',
    {
      bannerComment: BANNER,
      unreachableDefinitions: true,
      style: { printWidth: 120, singleQuote: true },
    },
  );
  // The generator's own remarks, and the empty type that only held the definitions.
  return text
    .replace(/ \*\n \* This interface was referenced by [^\n]+\n \* via the `definition` [^\n]+\n/g, '')
    .replace(/\/\*\*\n \* This interface was referenced by [^\n]+\n \* via the `definition` [^\n]+\n \*\/\n/g, '')
    .replace('export interface Contract {}\n', '');
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await writeFile(DESTINATION, await generate());
}
