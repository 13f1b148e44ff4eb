/**
 * @file Where the runtime put a model's nodes, from what it says in the console at its verbose level while a session is
 * created. Pure, but for listening to a console.
 */

/**
 * @typedef {import('./records.js').Placed} Placed
 * @typedef {import('./records.js').PlacedNode} PlacedNode
 */

/**
 * One execution provider's part as it is read. `named`: whether its nodes follow, one a line.
 *
 * @typedef {{ execution_provider: string, count: number, named: boolean, nodes: PlacedNode[] }} Group
 */

// A model may have hundreds of thousands of nodes, and its names any length: a record is to stay a few megabytes.
const MOST_NODES = 20_000;
const MOST_CHARACTERS = 500;

// "2026-11-30 00:03:23.595325 [V:onnxruntime:, session_state.cc:1377 VerifyEachNodeIsAssignedToAnEp] Node placements"
const LINE = /^(?:\x1b\[[\d;]*m)?\S+ \S+ \[([VIWEF]):onnxruntime:[^\]]*\] (.*)$/s; // eslint-disable-line no-control-regex
const GROUP = /^ (All nodes|Node\(s\)) placed on \[([^\]]+)\]\. Number of nodes: (\d+)$/;
const NODE = /^ {2}(.*?) \((.*)\)$/s;
const COPY_ADDED = /^Add Memcpy(?:To|From)Host (?:before|after) /;
const COPIES = new Set(['MemcpyToHost', 'MemcpyFromHost']);

/** Reads the runtime's report line by line. */
export class PlacementReader {
  /** Copies that were added, by the lines that say so. */
  #added = 0;

  /** @type {Group[] | null} null: no report so far */
  #groups = null;

  #reading = false;

  /** @type {string | null} a line that more may belong to: names may hold line ends */
  #pending = null;

  /** @param {string} said */
  hear(said) {
    const line = LINE.exec(said);
    if (line === null) {
      if (this.#pending !== null) {
        this.#pending += `\n${said}`;
      }
      return;
    }
    this.#settle();
    const [, level, text = ''] = line;
    if (level === 'V' && text === 'Node placements') {
      this.#groups = [];
      this.#reading = true;
    } else if (level !== 'V') {
      this.#reading = false;
      this.#added += COPY_ADDED.test(text) ? 1 : 0;
    } else if (this.#reading) {
      this.#pending = text;
    }
  }

  /**
   * @returns {Placed[] | null} in the runtime's order; null where it said nothing, or not all: a report that was cut
   *   short must not pass for a whole one
   */
  placement() {
    this.#settle();
    if (this.#groups === null || this.#groups.some(({ named, count, nodes }) => named && count !== nodes.length)) {
      return null;
    }
    const placed = this.#groups.map(({ execution_provider, count, named, nodes: all }) => {
      const nodes = all.filter(({ op_type }) => !COPIES.has(op_type));
      const copies = named ? all.length - nodes.length : Math.min(count, this.#added);
      return { execution_provider, node_count: count - copies, copies, nodes };
    });
    bound(placed);
    return placed;
  }

  #settle() {
    const text = this.#pending;
    this.#pending = null;
    if (text === null || this.#groups === null) {
      return;
    }
    const group = GROUP.exec(text);
    const node = NODE.exec(text);
    if (group !== null) {
      const [, all, execution_provider = '', count] = group;
      this.#groups.push({
        execution_provider: cut(execution_provider),
        count: Number(count),
        named: all !== 'All nodes',
        nodes: [],
      });
    } else if (node !== null && this.#groups.length > 0) {
      this.#groups.at(-1)?.nodes.push({ name: cut(node[2] ?? ''), op_type: cut(node[1] ?? '') });
    } else {
      this.#reading = false;
    }
  }
}

/**
 * Leave names out where there are too many: the smallest groups keep theirs, for what is rare is what is looked for.
 *
 * @param {Placed[]} placed is changed
 */
function bound(placed) {
  let left = MOST_NODES;
  for (const group of [...placed].sort((a, b) => a.nodes.length - b.nodes.length)) {
    group.nodes = group.nodes.slice(0, left);
    left -= group.nodes.length;
  }
}

/** @param {string} text */
function cut(text) {
  return text.length <= MOST_CHARACTERS ? text : text.slice(0, MOST_CHARACTERS);
}

/**
 * Hear what is said in a console, which is not shown there meanwhile: it is a flood.
 *
 * To be called before the runtime is loaded, which keeps the console's methods as they are then.
 *
 * @param {object} console its methods are replaced
 * @param {(said: string) => void} hear
 * @returns {() => void} puts the methods back
 */
export function eavesdrop(console, hear) {
  const methods = /** @type {Record<string, unknown>} */ (console);
  const own = Object.fromEntries(['log', 'info', 'debug', 'warn', 'error'].map((name) => [name, methods[name]]));
  for (const name of Object.keys(own)) {
    methods[name] = (/** @type {unknown[]} */ ...said) => hear(said.map(String).join(' '));
  }
  return () => void Object.assign(methods, own);
}
