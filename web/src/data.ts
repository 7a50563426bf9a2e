// What src/report/page.cpp writes into the page, and how the rows of metrics.csv are read out of it.

export interface Sentence {
  topic: string;
  sentence: string;
  known: boolean;
  layer: number | null;
  head: number | null;
  value: Num;
  baseline: Num;
  threshold: Num;
  found?: boolean; // it says that something is there; results from before it was kept do not have it
  asked?: boolean; // about what the user asked for: told in full, neither found nor normal
}

/** JSON has no word for infinity: it comes as a string. null is "does not apply" or "not a number". */
export type Num = number | null | "inf" | "-inf";

/** Rows that differ in the head alone: variant, site, layer, metric, tokens, depth, first head, n, values, errors, and the stream of a network that has several. */
export type Group = [number, number, number | null, number, number, number | null, number | null, number | number[], Num[], Num[], number?];

export interface ShownTokens {
  tokens: string[];
  length: number;
}

export interface Shown extends ShownTokens {
  sample: number;
  layers: ShownLayer[];
  keys?: ShownTokens; // what the queries look at, where it is another stream
  streams?: Record<string, Shown>; // "encoder", "cross": beside the decoder's
}

export interface ShownLayer {
  layer: number;
  heads: number;
  side: number; // maps are side x side, pooled: mean over queries, sum over keys
  rows?: number; // or rows x side, where queries and keys differ
  maps: string; // base64, heads * rows * side bytes; a byte b stands for (b / 255)^2 * peak
  peaks: number[]; // by head
  received: [number, number][][]; // by head: position, mean attention it gets from queries that may see it
  spectra: Record<string, { at: number[]; values: number[][] }>; // "pattern", "qk", "ov": index from 1, by head
}

/** Of `rankscope operator`: side x side, row by row, pooled: mean over outputs, sum over inputs. */
export interface TokenMap {
  side: number;
  in: (number | null)[];
  in_out: (number | null)[];
}

export interface ScanData {
  name: string;
  manifest: Record<string, unknown>;
  verdict: Sentence[];
  notes: string[];
  strings: string[];
  groups: Group[];
  shown: Shown | null;
  map: TokenMap | null;
}

export interface DiffRow {
  variant: string;
  site: string;
  layer: number | null;
  head: number | null;
  metric: string;
  tokens: string;
  a: number;
  b: number;
  delta: number;
  stderr: Num;
  n: number;
  stream: string;
}

export interface DiffData {
  a: string;
  b: string;
  rows: DiffRow[];
  notes: string[];
}

export interface StudyData {
  name: string;
  title: string;
  question: string;
  paper: string;
  figure: { x: string; y: string; by: string[]; log_x: boolean; log_y: boolean; bound: string | null; lines: string[] };
  keys: string[]; // columns that are the trials' configuration
  columns: string[];
  trials: (string | number | null)[][];
  published: { columns: string[]; rows: (string | number | null)[][] };
  /** Where trials that have such a value beside them were trained otherwise than the study says. */
  changed: string[];
  curves: Record<string, Record<string, Num[]>>; // by trial: "step" and whatever was logged
  states: Record<string, number>;
}

export interface Folder {
  path: string;
  kind: string; // the command that wrote it, or "study"
  model: string;
  date: string; // UTC, to the minute
}

export interface PageData {
  schema: number;
  rankscope: string;
  live: boolean;
  scans: ScanData[];
  diff: DiffData | null;
  studies: StudyData[];
  folders: Folder[]; // of `rankscope serve`
}

export interface Row {
  variant: string;
  site: string;
  layer: number | null;
  head: number | null;
  metric: string;
  value: number;
  stderr: number;
  n: number;
  depth: number | null;
  tokens: string;
  stream: string; // "encoder" beside a decoder; empty where there is one stream
}

export const toNumber = (x: Num | undefined): number =>
  x === "inf" ? Infinity : x === "-inf" ? -Infinity : (x ?? NaN);

/** What a network of several streams is made of, the one with the output first; none where there is one stream. */
export function streamsOf(scans: ScanData[]): string[] {
  const found = new Set<string>();
  for (const s of scans) for (const g of s.groups) if (g[10] !== undefined) found.add(s.strings[g[10]] ?? "");
  const known = ["decoder", "encoder", "cross"].filter((s) => found.delete(s));
  return known.length > 0 ? [...known, ...found] : []; // a name alone makes no network of several streams
}

/** A scan as if it had that stream alone. A sentence of the verdict begins with the stream it is about; beside the choice of a stream that need not be said again. */
export function ofStream(scan: ScanData, stream: string): ScanData {
  const all = streamsOf([scan]);
  if (all.length === 0) return scan;
  const others = all.filter((s) => s !== stream).map((s) => `${s}: `);
  return {
    ...scan,
    verdict: scan.verdict
      .filter((s) => !others.some((start) => s.sentence.startsWith(start)))
      .map((s) => (s.sentence.startsWith(`${stream}: `) ? { ...s, sentence: s.sentence.slice(stream.length + 2) } : s)),
    groups: scan.groups.filter((g) => (g[10] === undefined ? "" : scan.strings[g[10]]) === stream),
    shown: (stream === "decoder" ? scan.shown : scan.shown?.streams?.[stream]) ?? null,
  };
}

/** One scan with its rows unpacked and found by metric. */
export class Scan {
  readonly rows: Row[] = [];
  readonly variants: string[] = [];
  private readonly byMetric = new Map<string, Row[]>();

  constructor(readonly data: ScanData) {
    const text = (i: number): string => data.strings[i] ?? "";
    for (const [variant, site, layer, metric, tokens, depth, first, n, values, errors, stream] of data.groups) {
      for (let i = 0; i < values.length; i++) {
        const row: Row = {
          variant: text(variant),
          site: text(site),
          layer,
          head: first === null ? null : first + i,
          metric: text(metric),
          value: toNumber(values[i]),
          stderr: toNumber(errors[i]),
          n: typeof n === "number" ? n : (n[i] ?? 0),
          depth,
          tokens: text(tokens),
          stream: stream === undefined ? "" : text(stream),
        };
        this.rows.push(row);
        if (!this.variants.includes(row.variant)) this.variants.push(row.variant);
        const same = this.byMetric.get(row.metric);
        if (same) same.push(row);
        else this.byMetric.set(row.metric, [row]);
      }
    }
  }

  get metrics(): string[] {
    return [...this.byMetric.keys()];
  }
  of(metric: string): Row[] {
    return this.byMetric.get(metric) ?? [];
  }
  find(variant: string, metric: string, layer: number | null, head: number | null): Row | undefined {
    return this.of(metric).find((r) => r.variant === variant && r.layer === layer && r.head === head);
  }
  /** A threshold of the verdict. The manifest comes from outside: what is no number is none. */
  threshold(name: string): number | undefined {
    const all = this.data.manifest["thresholds"] as Record<string, unknown> | null | undefined;
    const value = all?.[name];
    return typeof value === "number" ? value : undefined;
  }
  /** What the tool says a metric is, where the manifest has it. */
  about(metric: string): { formula: string; meaning: string } | undefined {
    const all = this.data.manifest["metrics"] as Record<string, { formula: string; meaning: string }> | undefined;
    return all && Object.hasOwn(all, metric) ? all[metric] : undefined;
  }
}

export function readPage(): PageData | null {
  const text = document.getElementById("rankscope-data")?.textContent ?? "";
  return text.startsWith("{") ? (JSON.parse(text) as PageData) : null;
}

/** The bytes of a layer's maps. */
export function mapsOf(layer: ShownLayer): Uint8Array {
  return Uint8Array.from(atob(layer.maps), (c) => c.charCodeAt(0));
}
