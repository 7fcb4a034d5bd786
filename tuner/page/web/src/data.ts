// The data of the page, which tuner/page/page_data.hpp describes.

export type Column = { f4?: string; u1?: string; u2?: string; i4?: string };
export type Numbers = Float32Array | Uint8Array | Uint16Array | Int32Array;

export interface Spread {
  count: number;
  geometric_mean: number;
  least: number;
  quarter: number;
  half: number;
  three_quarters: number;
  most: number;
}

export interface Device {
  name: string;
  id: string;
  backend: string;
  vendor: string;
  architecture: string;
  driver: string;
  compiler: string;
  kind: string;
  units: number;
  hardware: number;
  ceilings: Record<string, number | null>;
  ceilings_utc: string;
  summary: {
    problems: number;
    beaten: number;
    stale: number;
    no_ratio: number;
    speedup: Spread;
    roofline: Spread;
  };
}

export interface Kernel {
  name: string;
  registers: number;
  lds_bytes: number;
  spills: number;
  code_bytes: number;
  matrix_instructions: number;
  waves: number;
}

/** A configuration that was timed in the certifying rounds. */
export interface Finalist {
  config: string;
  is_default: boolean;
  left: string | null;
  us: number | null;
  low_us: number | null;
  high_us: number | null;
  speedup: number | null;
  speedup_low: number | null;
  speedup_high: number | null;
  rounds_us: Column;
}

export interface Result {
  device: number;
  file: number;
  search: number | null;
  problem: string;
  op: string;
  dtype: string;
  out_dtype: string;
  dims: string;
  attributes: string;
  cold: boolean;
  current: boolean;
  config: string;
  variant: string;
  is_default: boolean;
  us: number | null;
  low_us: number | null;
  high_us: number | null;
  p99_us: number | null;
  default_us: number | null;
  speedup: number | null;
  speedup_low: number | null;
  speedup_high: number | null;
  confidence: number | null;
  rounds: number;
  dropped: number;
  roofline: number | null;
  regret: { neighbour: string; ratio: number | null; source: string } | null;
  stale: string[];
  flops: number | null;
  bytes: number | null;
  driver: string;
  compiler: string;
  version: string;
  utc: string;
  clocks: string;
  watts: number | null;
  verdict: string;
  ties: { config: string; ratio: number | null }[];
  finalists: Finalist[];
  rounds_us: Column;
  default_rounds_us: Column;
  kernels: Kernel[];
  command: string | null;
}

/** Times by the values of a parameter; −1: the variant. */
export interface Effect {
  parameter: number;
  /** Numbers of correct trials. */
  trials: number[];
  best_us: (number | null)[];
  quarter_us: (number | null)[];
  median_us: (number | null)[];
  three_quarters_us: (number | null)[];
}

export interface Search {
  recorded: boolean;
  device: number;
  file: number;
  session: number;
  result: number | null;
  problem: string;
  op: string;
  dtype: string;
  dims: string;
  attributes: string;
  cold: boolean;
  outcome: string | null;
  strategy: string;
  budget: string;
  utc: string;
  driver: string;
  version: string;
  flops: number | null;
  bytes: number | null;
  trials: number;
  statuses: string[];
  variants: string[];
  parameters: { name: string; values: (number | string)[] }[];
  messages: { text: string; log: string; count: number }[];
  columns: Record<string, Column>;
  best: { trial: Column; us: Column };
  fronts: { registers: Column; lds_bytes: Column };
  effects: Effect[];
  importance: {
    fit: number | null;
    rows: number;
    marginals: { parameter: number; share: number }[];
    pairs: { a: number; b: number; share: number }[];
  };
}

export interface BaselineGroup {
  device: string;
  /** Empty: unknown. */
  preset: string;
  files: { name: string; utc: string; driver: string; compiler: string; version: string; revision: string }[];
  rows: { name: string; status: string[]; us: Column; low_us: Column; high_us: Column }[];
  comparisons: {
    from: number;
    to: number;
    confidence: number;
    margin: number;
    regressions: number;
    /** Names of benchmarks that the other file lacks. */
    only_from: string[];
    only_to: string[];
    changes: Change[];
  }[];
}

export interface Change {
  name: string;
  finding: string;
  /** Whether the ratio is of processor times. */
  processor: boolean;
  ratio: number | null;
  low: number | null;
  high: number | null;
}

export interface PassOperation {
  name: string;
  problem: string;
  runs: number;
  us: number;
  launches: number;
  config: string;
  origin: string;
  speedup: number | null;
  regret: number | null;
}

export interface Pass {
  file: string;
  number: number;
  /** "tuned", "default", or empty in traces of older versions, as the device. */
  configurations: string;
  device: string;
  /** Rows that it computes: 1 in a decode step; null: unknown. */
  tokens: number | null;
  launches: number;
  wall_us: number;
  gaps_us: number;
  operations: PassOperation[];
}

export interface Report {
  format: string;
  made: { greta_version: string; utc: string; files: { name: string; kind: string; damaged?: number }[] };
  devices: Device[];
  rivals: {
    a: number;
    b: number;
    problems: { a: number; b: number; ratio: number; sure: boolean }[];
    spread: Spread;
  }[];
  results: Result[];
  searches: Search[];
  lookups: {
    device: number;
    cold: boolean;
    answers: {
      problem: string;
      op: string;
      dims: string;
      origin: string;
      regret: number | null;
      command: string | null;
    }[];
  }[];
  next: {
    problem: string;
    device: number;
    result: number;
    why: string;
    gain_us: number | null;
    stale: boolean;
    command: string;
  }[];
  baselines: BaselineGroup[];
  passes: Pass[];
}

function bytes_of(base64: string): Uint8Array<ArrayBuffer> {
  const made = Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };
  if (made.fromBase64) return made.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

const decoded = new WeakMap<Column, Numbers>();

/** Returns a column's numbers; they are decoded once. */
export function numbers(column: Column): Numbers {
  let array = decoded.get(column);
  if (array) return array;
  const bytes = bytes_of(column.f4 ?? column.u1 ?? column.u2 ?? column.i4 ?? "");
  if (column.f4 !== undefined) array = new Float32Array(bytes.buffer);
  else if (column.u2 !== undefined) array = new Uint16Array(bytes.buffer);
  else if (column.i4 !== undefined) array = new Int32Array(bytes.buffer);
  else array = bytes;
  decoded.set(column, array);
  return array;
}

export function read_report(text = document.getElementById("data")!.textContent!): Report {
  const report = JSON.parse(text) as Report;
  if (report.format !== "greta-report 1") throw new Error("The data of this page has another format.");
  return report;
}

/** Returns a device's name for readers, with the API where two devices have the same name. */
export function device_name(report: Report, index: number): string {
  const device = report.devices[index]!;
  const same = report.devices.filter((one) => one.name === device.name).length > 1;
  return same ? `${device.name} · ${api_name(device.backend)}` : device.name;
}

export function api_name(backend: string): string {
  return ({ hip: "HIP", vulkan: "Vulkan", "hip-host": "HIP on the CPU" } as Record<string, string>)[backend] ?? backend;
}

/** A problem's key as other texts name problems: "gemm dtype=f16 out=f16 m=1" is "gemm f16 m=1". */
export function key_text(key: string): string {
  return key.replace(/ dtype=(\S+) out=(\S+)/, (_, type: string, out: string) => (type === out ? ` ${type}` : ` ${type} to ${out}`));
}

export function problem_name(of: { op: string; dtype: string; dims: string; attributes: string }): string {
  return [of.op, of.dtype, of.dims, of.attributes].filter(Boolean).join(" ");
}
