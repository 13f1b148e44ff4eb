/**
 * @file Compile the modules that the tests of edgekit/wasm read: tests/wasm/*.wat to *.wasm beside them.
 * A test says when one is stale.
 */

import { readFile, readdir, writeFile } from 'node:fs/promises';
import wabt from 'wabt';

const FOLDER = new URL('../tests/wasm/', import.meta.url);
const FEATURES = {
  exceptions: true,
  threads: true,
  tail_call: true,
  memory64: true,
  extended_const: true,
  relaxed_simd: true,
  multi_memory: true,
};

/** @returns {Promise<Map<string, { place: URL, binary: Uint8Array }>>} by the name of the text, what it compiles to */
export async function compile() {
  const { parseWat } = await wabt();
  const compiled = new Map();
  for (const name of (await readdir(FOLDER)).filter((each) => each.endsWith('.wat')).sort()) {
    const module = parseWat(name, await readFile(new URL(name, FOLDER), 'utf8'), FEATURES);
    try {
      // Its types do not know that validate takes features too, and without them refuses what was just parsed.
      /** @type {{ validate(features: object): void }} */ (module).validate(FEATURES);
      // Numbers of several bytes, as wasm-ld leaves them for sections, or as short as they go.
      const canonical = !name.startsWith('padded');
      const { buffer } = module.toBinary({ write_debug_names: true, canonicalize_lebs: canonical });
      compiled.set(name, { place: new URL(name.replace(/t$/, 'sm'), FOLDER), binary: buffer });
    } finally {
      module.destroy();
    }
  }
  return compiled;
}

if (process.argv[1] === import.meta.filename) {
  for (const { place, binary } of (await compile()).values()) {
    await writeFile(place, binary);
  }
}
