// Generated from edgekit/records/schema by `npm run generate`. Do not edit.

export type Number = number | ('NaN' | 'Infinity' | '-Infinity');

export interface Value {
  name: string;
  dtype: string;
  shape: number[] | null;
  key?: string;
  strings?: string[];
  note?: string;
}
export interface Tolerance {
  relative: number;
  absolute: number;
}
export interface Reference {
  name: string;
  runtime: string;
  runtime_version: string;
  optimization: string;
}
export interface Case {
  id: string;
  origin: string;
  grade: {
    ulp_shift: number | null;
    weight_shift: number | null;
    weak: string[];
  };
  feed_back: {
    steps: number;
    links: {
      [k: string]: string;
    };
  } | null;
  inputs: Value[];
  outputs: Value[];
  /**
   * By output, bools of its shape: what the standard leaves open. Absent: nothing.
   */
  left_open?: Value[];
}
/**
 * cases.json: golden cases; their tensors lie beside it in cases.safetensors.
 */
export interface CaseSet {
  format: 1;
  model_sha256: string;
  original_sha256: string | null;
  reference: Reference;
  tolerance: {
    [k: string]: Tolerance;
  };
  output_tolerance: {
    [k: string]: Tolerance;
  };
  left_out: string[];
  cases: Case[];
}
/**
 * conditions.json: what was asked of a run and of its judge.
 */
export interface Conditions {
  format: 1;
  title: string;
  target: string | null;
  cases: string[] | null;
  tolerance: {
    [k: string]: Tolerance;
  };
  allow_fallback: boolean;
  manifest_sha256: string | null;
  no_record: string | null;
  command: string[];
  /**
   * What is right by the task itself. Absent in older runs.
   */
  labels?: {
    case: string;
    output: string | null;
    label: string;
  }[];
}
/**
 * How a session is created where that is not left to onnxruntime.
 */
export interface SessionSettings {
  /**
   * The level of graph optimization
   */
  optimization: 'all' | 'extended' | 'basic' | 'disabled';
  /**
   * The one that WebGPU turns convolutions to; null: its own choice
   */
  layout: 'NCHW' | 'NHWC' | null;
  /**
   * Names of the nodes that WebGPU leaves to the CPU
   */
  cpu_nodes: string[];
}
/**
 * manifest.json: every file of a bundle (itself not counted), and what it was made from.
 */
export interface Manifest {
  format: 1;
  edgekit_version: string;
  kind: string;
  target: string;
  title: string;
  model: {
    path: string;
    sha256: string;
    original_sha256: string | null;
  };
  runtime: {
    package: string;
    version: string;
    variants: string[];
  };
  /**
   * How sessions are created, by variant; absent, or without a variant: as onnxruntime does by itself
   */
  sessions?: {
    [k: string]: SessionSettings;
  };
  files: {
    path: string;
    sha256: string;
    bytes: number;
  }[];
}
export interface Argument {
  name: string;
  dtype: string;
  shape: (number | string | null)[] | null;
  readable: boolean;
}
/**
 * The JSON block of the page: all that the page's scripts know of this bundle.
 */
export interface PageConfig {
  format: 1;
  title: string;
  target: string;
  model: {
    url: string;
    sha256: string;
    bytes: number;
    external_data: {
      path: string;
      url: string;
      bytes: number;
    }[];
    inputs: Argument[];
    outputs: Argument[];
  };
  runtime: {
    package: string;
    version: string;
  };
  variants: {
    id: string;
    execution_provider: string;
    needs: ('webgpu' | 'jspi')[];
    api_url: string;
    mjs_url: string;
    wasm_url: string;
    wasm_sha256: string;
    wasm_bytes: number;
    /**
     * null: the wasm is the stock one. Otherwise functions were removed from it.
     */
    trimmed: {
      /**
       * Where in memory a removed function that is called leaves its index in the code section, plus 1, as a u32.
       */
      miss_address: number;
      /**
       * The id of the net that takes over after a miss; null: none does
       */
      net: string | null;
    } | null;
    /**
     * Absent: how the session is created is left to onnxruntime.
     */
    session?: SessionSettings;
  }[];
  /**
   * Stock runtimes that take over where a trimmed one misses a function; fetched only then.
   */
  nets: {
    id: string;
    execution_provider: string;
    api_url: string;
    mjs_url: string;
    wasm_url: string;
    wasm_sha256: string;
    wasm_bytes: number;
  }[];
  threads: number;
  /**
   * How edgekit build made pictures into inputs. null: stretched to the model's size, 0 to 1.
   */
  image: {
    /**
     * [height, width]; null: the model's size, and the picture's own where it fixes none
     */
    size: [number, number] | null;
    /**
     * @minItems 1
     */
    mean: [number, ...number[]];
    /**
     * @minItems 1
     */
    std: [number, ...number[]];
    scale: number;
    layout: 'nchw' | 'nhwc' | null;
  } | null;
  cases_url: string;
  tensors_url: string;
  manifest_url: string;
  records_url: string;
}
export interface Attempt {
  variant: string;
  execution_provider: string;
  status: 'created' | 'refused' | 'unavailable';
  reason: string | null;
}
/**
 * A trimmed runtime was asked for a function that was removed from it.
 */
export interface Miss {
  variant: string;
  /**
   * Indices in the code section of the variant's wasm; none where the trap left no trace
   */
  functions: number[];
  during: 'create' | 'run';
  /**
   * The id of the net that took over; null: none did
   */
  recovered_by: string | null;
  /**
   * trap: the call failed so; flag: the call came to an end, and the flag stood; silence: the flag stood, and no end came; kernel: a kernel was left out, as the message says
   */
  reason: 'trap' | 'flag' | 'silence' | 'kernel';
  message: string;
}
export interface PlacedNode {
  name: string;
  op_type: string;
}
/**
 * The nodes that one execution provider got.
 */
export interface Placed {
  /**
   * As the runtime spells it, such as WebGpuExecutionProvider
   */
  execution_provider: string;
  /**
   * Copies not counted
   */
  node_count: number;
  /**
   * Nodes that the runtime added to copy a tensor to or from the CPU's memory
   */
  copies: number;
  /**
   * Fewer than node_count where there are too many, and none where the runtime put all in one place and named none
   *
   * @maxItems 20000
   */
  nodes: PlacedNode[];
}
export interface Adapter {
  vendor: string;
  architecture: string;
  device: string;
  description: string;
  software: boolean;
  features: string[];
}
export interface Environment {
  runner: string;
  runtime: string;
  runtime_version: string;
  variant: string | null;
  execution_provider_asked: string;
  execution_provider: string | null;
  threads: number;
  cross_origin_isolated: boolean | null;
  adapter: Adapter | null;
  user_agent: string | null;
  device: string | null;
  /**
   * The processor was another one that played this one; absent or false: it was not
   */
  emulated?: boolean;
  /**
   * How the session was created; null, or absent: as onnxruntime does by itself
   */
  session?: SessionSettings | null;
}
export interface CaseRun {
  id: string;
  status: 'done' | 'failed' | 'skipped';
  error: string | null;
  run_ms: number | null;
  outputs: Value[];
}
/**
 * A case that was run once more, in the same session or in a new one.
 */
export interface AgainRun {
  id: string;
  session: 'same' | 'new';
  /**
   * Whether the outputs are the same in every bit
   */
  equal: boolean;
  error: string | null;
  /**
   * None where they are equal
   */
  outputs: Value[];
}
export interface MemorySample {
  run: number;
  /**
   * Of the runtime's WebAssembly memory; null: not known
   */
  wasm_bytes: number | null;
  /**
   * Of JavaScript in the page; null: the browser does not say
   */
  heap_bytes: number | null;
}
/**
 * One case, run many times in one session.
 */
export interface SoakRun {
  id: string;
  asked: number;
  /**
   * How many runs gave other bits than the first
   */
  different: number;
  first_different: number | null;
  error: string | null;
  /**
   * @maxItems 100000
   */
  run_ms: number[];
  /**
   * @maxItems 1000
   */
  memory: MemorySample[];
  /**
   * Of the last run that gave other bits; none where all were equal
   */
  outputs: Value[];
}
/**
 * record.json: what a device reports; its tensors lie beside it in record.safetensors.
 */
export interface RunRecord {
  format: 1;
  run: string;
  hashes: {
    manifest: string | null;
    model: string;
    runtime: string | null;
  };
  environment: Environment;
  attempts: Attempt[];
  timings: {
    fetch_ms: number | null;
    compile_ms: number | null;
    create_ms: number | null;
    first_run_ms: number | null;
    later_run_ms: number[];
  };
  error: string | null;
  /**
   * Absent in records of pages that knew no trimmed runtimes.
   */
  misses?: Miss[];
  /**
   * Where the runtime put the nodes of its own, optimized graph. null, or absent in records of older pages: not known.
   */
  placement?: Placed[] | null;
  /**
   * Cases that were run once more. Absent in records of older pages.
   */
  again?: AgainRun[];
  /**
   * One case, run many times. null, or absent in records of older pages: not asked for.
   */
  soak?: SoakRun | null;
  cases: CaseRun[];
}
export interface KindCount {
  kind: 'weight' | 'bias' | 'axis' | 'attribute' | 'zeroed';
  ran: number;
  caught: number;
}
/**
 * A node of which no fault was caught.
 */
export interface Unwatched {
  node: string;
  op_type: string;
  faults: number;
}
/**
 * A fault that no case caught.
 */
export interface MissedFault {
  kind: 'weight' | 'bias' | 'axis' | 'attribute' | 'zeroed';
  node: string;
  op_type: string;
  what: string;
  /**
   * The largest error that the fault made, in tolerances; 0: it changed nothing
   */
  share: number;
}
/**
 * strength.json: of many faulty models, how many the golden cases would have caught.
 */
export interface Strength {
  format: 1;
  model_sha256: string;
  seed: number;
  possible: number;
  tried: number;
  refused: number;
  kinds: KindCount[];
  watched_nodes: number;
  unwatched_nodes: number;
  /**
   * @maxItems 100
   */
  unwatched: Unwatched[];
  /**
   * @maxItems 100
   */
  missed: MissedFault[];
  problem: string | null;
}
export interface Metrics {
  max_abs: Number;
  max_rel: Number;
  rmse: Number;
  cosine: Number;
  snr_db: Number;
  scale: Number;
  nan_count: number;
  inf_count: number;
  reference_nan_count: number;
  reference_inf_count: number;
  first_nonfinite: number | null;
  worst_index: number[] | null;
  worst_value: Number | null;
  worst_reference: Number | null;
  passing_relative: Number;
  top1_agrees: number | null;
  top1_margin: Number | null;
}
export interface OutputVerdict {
  case: string;
  output: string;
  dtype: string;
  status: 'match' | 'mismatch' | 'missing' | 'wrong_shape' | 'wrong_dtype' | 'case_failed' | 'not_comparable';
  tolerance: Tolerance | null;
  metrics: Metrics | null;
  reason: string | null;
}
/**
 * What many runs of one case came to.
 */
export interface SoakResult {
  case: string;
  asked: number;
  runs: number;
  different: number;
  first_different: number | null;
  drift: Number;
  early_ms: number | null;
  late_ms: number | null;
  early_bytes: number | null;
  late_bytes: number | null;
  early_heap_bytes: number | null;
  late_heap_bytes: number | null;
  grew: boolean;
}
export interface Steadiness {
  same_session: number;
  same_session_equal: number;
  new_session: number;
  new_session_equal: number;
  furthest: Number;
  furthest_case: string | null;
  soak: SoakResult | null;
}
export interface LabelChange {
  case: string;
  row: number;
  label: string;
  desktop: string;
  device: string;
}
export interface LabelResult {
  output: string;
  labelled: number;
  desktop_right: number;
  device_right: number;
  not_computed: number;
  changed: LabelChange[];
}
export interface StrengthCount {
  tried: number;
  refused: number;
  ran: number;
  caught: number;
  watched_nodes: number;
  unwatched_nodes: number;
  problem: string | null;
}
/**
 * verdict.json: what compare concluded.
 */
export interface Verdict {
  format: 1;
  status: 'passed' | 'failed' | 'refused' | 'not_run';
  title: string;
  target: string | null;
  reference: Reference;
  environment: Environment | null;
  attempts: Attempt[];
  expected: number;
  compared: number;
  outputs: OutputVerdict[];
  reasons: string[];
  warnings: string[];
  /**
   * Whether the device said the same twice. null: nothing ran.
   */
  steadiness?: Steadiness | null;
  /**
   * The task's own result, by output.
   */
  labels?: LabelResult[];
  /**
   * Of many faulty models, how many the cases catch. null: not measured.
   */
  strength?: StrengthCount | null;
}
