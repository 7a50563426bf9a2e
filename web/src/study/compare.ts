// Several runs of one study, point by point.
import { metricName } from "../names";
import { Table, type Value } from "../table";
import { means, type Study } from "./study";

/** A row for each point that more than one of them has: the mean over seeds of each, and the last over the first. */
export function compareTable(studies: Study[]): HTMLElement | null {
  const f = (studies[0] as Study).data.figure;
  const points = new Map<string, { key: string; x: number; means: number[]; seeds: number[] }>();
  for (const [i, study] of studies.entries())
    for (const series of study.series(f.y))
      for (const p of means(series, f.log_y)) {
        const place = `${series.key}\n${p.x}`;
        const point = points.get(place) ?? { key: series.key, x: p.x, means: studies.map(() => NaN), seeds: studies.map(() => 0) };
        point.means[i] = p.y;
        point.seeds[i] = p.n;
        points.set(place, point);
      }
  const shared = [...points.values()].filter((p) => p.seeds.filter((n) => n > 0).length > 1);
  if (shared.length === 0) return null;
  const last = studies.length - 1;
  return new Table({
    name: "compare",
    caption: `${metricName(f.y)}: mean over the seeds of each`,
    columns: [
      { title: "group" },
      { title: f.x, numeric: true },
      ...studies.flatMap((s) => [
        { title: s.data.name, numeric: true },
        { title: "seeds", numeric: true, minor: true },
      ]),
      { title: "ratio", numeric: true, hint: `${studies[last]?.data.name} over ${studies[0]?.data.name}` },
    ],
    rows: shared.map((p): Value[] => [p.key, p.x, ...studies.flatMap((_, i) => [p.means[i] ?? NaN, p.seeds[i] ?? 0]), (p.means[last] ?? NaN) / (p.means[0] ?? NaN)]),
  }).element;
}
