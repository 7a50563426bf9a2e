// What parts are worth as curves: heads out together, and maps cut to a rank. `depth` is how many heads are out,
// or the rank.
import { type Curve, drawCurves } from "../charts";
import { type Row, type Scan } from "../data";
import { choice, h, toggle } from "../dom";
import { Figure, type FigureSpec } from "../figure";
import { withError } from "../format";
import { axisName, metricName, withUnit } from "../names";
import { look, type Theme } from "../theme";

interface Family {
  title: string;
  xLabel: string;
  depth: string; // what formulas call `depth`, the column of metrics.csv
  metrics: string[];
}

const families: Family[] = [
  { title: "Heads out together, least important first", xLabel: "heads out", depth: "so many", metrics: ["prune_kl", "prune_error", "prune_loss", "prune_parameters", "prune_cache"] },
  ...["qk", "ov", "kv"].map((map) => ({ title: `${map.toUpperCase()} maps cut to a rank`, xLabel: "rank", depth: "r", metrics: [`rank_${map}_kl`, `rank_${map}_error`, `rank_${map}_loss`] })),
];

const where = (r: Row): string => (r.layer === null ? "all layers" : `layer ${r.layer}`);

function figureOf(scan: Scan, family: Family): HTMLElement | null {
  const points = (metric: string): Row[] => scan.of(metric).filter((r) => r.depth !== null && r.head === null).sort((a, b) => (a.depth ?? 0) - (b.depth ?? 0));
  const metrics = family.metrics.filter((m) => points(m).length > 0);
  let metric = metrics[0];
  if (metric === undefined) return null;
  let log = false;
  const curves = (t: Theme): Curve[] => {
    const rows = points(metric ?? "");
    return [...new Set(rows.map(where))].map((name, i) => ({
      name,
      ...look(i, t),
      points: rows
        .filter((r) => where(r) === name && (!log || r.value > 0))
        .map((r) => ({ x: r.depth ?? 0, y: r.value, ...(Number.isFinite(r.stderr) && !log ? { low: r.value - r.stderr, high: r.value + r.stderr } : {}), says: `${name} · ${family.xLabel} ${r.depth} · ${withUnit(withError(r.value, r.stderr), r.metric)} · n ${r.n}` })),
    }));
  };
  const spec = (): FigureSpec => {
    const about = scan.about(metric ?? "");
    return {
      name: metric ?? "importance",
      title: family.title,
      about: about?.meaning ?? "",
      hint: about ? `${about.formula.replaceAll("`depth`", family.depth)} · ${about.meaning}` : "",
      draw: (t, width, alone) => {
        const drawn = curves(t);
        return drawCurves(drawn, { xLabel: family.xLabel, yLabel: axisName(metric ?? ""), wholeX: true, logY: log }, t, width, alone || drawn.length > 1);
      },
      table: () => ({
        columns: ["layer", family.xLabel, "metric", "value", "stderr", "n"],
        rows: metrics.flatMap(points).map((r) => [r.layer, r.depth, r.metric, r.value, r.stderr, r.n]),
      }),
    };
  };
  const controls = h("div", { class: "controls" });
  const figure = new Figure(spec(), controls);
  const again = (): void => figure.update(spec());
  controls.replaceChildren(choice("metric", metrics.map((m): [string, string] => [m, metricName(m)]), metric, (m) => ((metric = m), again())), toggle("log", log, (on) => ((log = on), again())));
  return figure.element;
}

/** Curves of --ablate and --rank; null where neither was asked for. */
export function importance(scan: Scan): HTMLElement | null {
  const figures = families.map((f) => figureOf(scan, f)).filter((f): f is HTMLElement => f !== null);
  return figures.length === 0 ? null : h("div", { class: "pair" }, ...figures);
}
