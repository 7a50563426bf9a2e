// A study's tables, read by column name.
import { type StudyData } from "../data";
import { type Value } from "../table";

export interface Trial {
  id: string;
  state: string;
  get(column: string): Value;
  number(column: string): number;
}

const asNumber = (v: Value): number => (typeof v === "number" ? v : v === null || v === "" ? NaN : Number(v));

/** "heads=8 layers=1", the group a row belongs to. */
const keyOf = (by: string[], get: (column: string) => Value): string => by.map((k) => `${k}=${String(get(k) ?? "")}`).join(" ");

/**
 * `key` names it whole; `panel` is its part by the first of two keys, `curve` by the others, `rest` by what else differs.
 * A curve has the colour of its last key and the dash of those before it.
 */
export interface Series {
  key: string;
  panel: string;
  curve: string;
  colour: string;
  dash: string;
  rest: string;
  points: { x: number; y: number; trial?: Trial; note?: string }[];
}

function mostFrequent(values: Value[]): Value {
  const count = new Map<Value, number>();
  for (const v of values) count.set(v, (count.get(v) ?? 0) + 1);
  return [...count].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}

export class Study {
  readonly trials: Trial[];
  /** Keys besides those of the figure in which trials at the same place differ: another protocol, another rate. */
  readonly rest: string[];
  private readonly usual = new Map<string, Value>(); // their most frequent values: not worth a word

  constructor(readonly data: StudyData) {
    this.trials = data.trials.map((row) => {
      const get = (column: string): Value => row[data.columns.indexOf(column)] ?? null;
      return { id: String(get("id")), state: String(get("state")), get, number: (c) => asNumber(get(c)) };
    });
    const { x, by } = data.figure;
    const places = new Map<string, Trial[]>();
    for (const t of this.trials) {
      const place = keyOf([x, ...by, "seed"], t.get);
      places.set(place, [...(places.get(place) ?? []), t]);
    }
    const differ = (key: string): boolean => [...places.values()].some((same) => same.some((t) => t.get(key) !== same[0]?.get(key)));
    this.rest = data.keys.filter((key) => ![x, ...by, "seed"].includes(key) && differ(key));
    for (const key of this.rest) this.usual.set(key, mostFrequent(this.trials.map((t) => t.get(key))));
  }

  keyOf(trial: Trial): string {
    return [keyOf(this.data.figure.by, trial.get), this.unusual(trial)].filter(Boolean).join(" ") || "all";
  }

  private unusual(trial: Trial): string {
    return keyOf(this.rest.filter((k) => trial.get(k) !== this.usual.get(k)), trial.get);
  }

  /** Finished trials by group, in order of first appearance. */
  series(y: string): Series[] {
    const { x } = this.data.figure;
    return this.group(
      this.trials.filter((t) => Number.isFinite(t.number(y)) && Number.isFinite(t.number(x))),
      (t, c) => t.get(c),
      (t) => this.unusual(t),
      (t) => ({ x: t.number(x), y: t.number(y), trial: t }),
    );
  }

  /** What is drawn across: the mean of a result over all trials. */
  lines(): { y: number; label: string }[] {
    return this.data.figure.lines.flatMap((label) => {
      const values = this.trials.map((t) => t.number(label)).filter(Number.isFinite);
      return values.length > 0 ? [{ y: values.reduce((a, v) => a + v, 0) / values.length, label }] : [];
    });
  }

  /** What stands beside ours; `rest` is its kind, published or reference. */
  published(): Series[] {
    const { columns, rows } = this.data.published;
    const at = (row: Value[], column: string): Value => row[columns.indexOf(column)] ?? null;
    return this.group(
      rows,
      at,
      (r) => String(at(r, "kind") ?? "published"),
      (r) => ({ x: asNumber(at(r, this.data.figure.x)), y: asNumber(at(r, "value")), note: String(at(r, "note") ?? "") }),
    );
  }

  private group<T>(rows: T[], get: (row: T, column: string) => Value, unusual: (row: T) => string, point: (row: T) => Series["points"][number]): Series[] {
    const { by } = this.data.figure;
    const [panels, curves] = by.length > 1 ? [by.slice(0, 1), by.slice(1)] : [[], by];
    const found = new Map<string, Series>();
    for (const row of rows) {
      const of = (columns: string[]): string => keyOf(columns, (c) => get(row, c));
      const [panel, curve, rest] = [of(panels), of(curves), unusual(row)];
      const key = [panel, curve, rest].filter(Boolean).join(" ") || "all";
      const series = found.get(key) ?? { key, panel, curve, colour: of(curves.slice(-1)), dash: of(curves.slice(0, -1)), rest, points: [] };
      series.points.push(point(row));
      found.set(key, series);
    }
    for (const s of found.values()) s.points.sort((a, b) => a.x - b.x);
    return [...found.values()];
  }
}

/** Over seeds: the geometric mean where the axis is logarithmic, else the arithmetic one. */
export function means(series: Series, log: boolean): { x: number; y: number; n: number }[] {
  const by = new Map<number, number[]>();
  for (const p of series.points) by.set(p.x, [...(by.get(p.x) ?? []), p.y]);
  return [...by].map(([x, ys]) => {
    const sum = ys.reduce((a, y) => a + (log ? Math.log(y) : y), 0) / ys.length;
    return { x, y: log ? Math.exp(sum) : sum, n: ys.length };
  });
}
