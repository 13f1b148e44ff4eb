/**
 * @file Which functions and branches of a recording runtime were entered: a runtime in which each first sets a flag of
 * its own in memory. Many models run in one runtime, so the flags are read and cleared after each.
 */

/**
 * @typedef {{ flag_base: number, functions: number, branches: number }} Recording where the flags of functions lie, and
 *   behind them those of branches, and how many
 */

/**
 * @typedef {object} Recorder
 * @property {(memory: WebAssembly.Memory) => void} onMemory for `loadRuntime`
 * @property {() => Uint8Array<ArrayBuffer>} entered returns the functions entered since the last call, a bit each, the
 *   lowest bit of the first byte for the first; all zero before there is a runtime
 * @property {() => Uint8Array<ArrayBuffer>} branches does the same for branches
 */

/**
 * @param {Recording} recording
 * @returns {Recorder}
 */
export function flagRecorder({ flag_base: base, functions, branches }) {
  /** @type {WebAssembly.Memory | null} */
  let memory = null;
  /**
   * @param {number} start
   * @param {number} count
   */
  const taken = (start, count) => {
    const bits = new Uint8Array(Math.ceil(count / 8));
    // The buffer of a memory that grew is another one, so it is asked for each time.
    const flags = memory === null ? new Uint8Array() : new Uint8Array(memory.buffer, start, count);
    flags.forEach((flag, index) => {
      if (flag !== 0) {
        const byte = index >> 3;
        bits[byte] = (bits[byte] ?? 0) | (1 << (index & 7));
        // Only this one: another thread may just have set a flag that was looked at before.
        flags[index] = 0;
      }
    });
    return bits;
  };
  return {
    onMemory: (made) => {
      memory = made;
    },
    entered: () => taken(base, functions),
    branches: () => taken(base + functions, branches),
  };
}
