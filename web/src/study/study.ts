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
const keyOf = (by: string[], get: (column: string) => Value): string => by.map((k) => `${k}=${String(get(k) ?? "")}`).join(" ") || "all";

export interface Series {
  key: string;
  points: { x: number; y: number; trial?: Trial; note?: string }[];
}

export class Study {
  readonly trials: Trial[];

  constructor(readonly data: StudyData) {
    this.trials = data.trials.map((row) => {
      const get = (column: string): Value => row[data.columns.indexOf(column)] ?? null;
      return { id: String(get("id")), state: String(get("state")), get, number: (c) => asNumber(get(c)) };
    });
  }

  keyOf(trial: Trial): string {
    return keyOf(this.data.figure.by, trial.get);
  }

  /** Finished trials by group, in order of first appearance. */
  series(y: string): Series[] {
    const { x } = this.data.figure;
    return group(
      this.trials.filter((t) => Number.isFinite(t.number(y)) && Number.isFinite(t.number(x))),
      (t) => this.keyOf(t),
      (t) => ({ x: t.number(x), y: t.number(y), trial: t }),
    );
  }

  published(): Series[] {
    const { columns, rows } = this.data.published;
    const at = (row: Value[], column: string): Value => row[columns.indexOf(column)] ?? null;
    return group(
      rows,
      (r) => keyOf(this.data.figure.by, (c) => at(r, c)),
      (r) => ({ x: asNumber(at(r, this.data.figure.x)), y: asNumber(at(r, "value")), note: String(at(r, "note") ?? "") }),
    );
  }
}

function group<T>(rows: T[], key: (row: T) => string, point: (row: T) => Series["points"][number]): Series[] {
  const found = new Map<string, Series>();
  for (const row of rows) {
    const k = key(row);
    const series = found.get(k) ?? { key: k, points: [] };
    series.points.push(point(row));
    found.set(k, series);
  }
  for (const s of found.values()) s.points.sort((a, b) => a.x - b.x);
  return [...found.values()];
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
