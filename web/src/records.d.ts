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
}
export interface CaseRun {
  id: string;
  status: 'done' | 'failed' | 'skipped';
  error: string | null;
  run_ms: number | null;
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
  cases: CaseRun[];
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
}
