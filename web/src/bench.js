/**
 * @file How a bundle is asked to prove itself, and what stands once it is open.
 */

/**
 * @typedef {import('./golden-cases.js').GoldenCases} GoldenCases
 * @typedef {import('./open-model.js').ModelSource} ModelSource
 * @typedef {import('./open-model.js').Opened} Opened
 * @typedef {import('./open-model.js').Step | { stage: 'case' | 'timing', what: string, done: number, total: number } | { stage: 'placement', what: string, total?: undefined }} AgentStep
 */

/**
 * @typedef {object} AgentOptions
 * @property {string} run the id that whoever asked for the run gave
 * @property {number} repeats later runs that are timed
 * @property {string | null} variant one variant only; null: the chain
 * @property {number | null} threads null: as the bundle says
 * @property {readonly string[] | null} cases null: all
 * @property {number | null} placement_until_ms since the page was opened: until then it may be found out where nodes
 *   were placed; null: nobody asks
 * @property {boolean} again whether to look if the same is said twice, where that is cheap
 * @property {number} soak how often one case is run after all others, to look for drift
 * @property {string | null} problem why the options cannot be followed; it is then reported in place of a run
 */

/**
 * What stands once the bundle is open. The demo page works from it too.
 *
 * @typedef {object} Bench
 * @property {import('./records.js').Adapter | null} adapter
 * @property {string} executionProviderAsked
 * @property {string | null} manifestSha256
 * @property {string | null} modelSha256 of the bytes that were loaded, right or wrong; null: none were
 * @property {GoldenCases | null} cases
 * @property {ModelSource | null} model
 * @property {import('./records.js').Attempt[]} attempts
 * @property {Opened | null} opened
 * @property {import('./records.js').Miss[]} misses so far: later runs add to it
 * @property {string | null} error why there is no session
 */

/**
 * @param {string} executionProviderAsked
 * @returns {Bench}
 */
export function nothingYet(executionProviderAsked) {
  return {
    adapter: null,
    executionProviderAsked,
    manifestSha256: null,
    modelSha256: null,
    cases: null,
    model: null,
    attempts: [],
    opened: null,
    misses: [],
    error: null,
  };
}
