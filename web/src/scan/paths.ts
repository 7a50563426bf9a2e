// Paths by length with their share of the output. A row is one length: `depth` counts the parts a path goes through.
import { drawCurves } from "../charts";
import { type Scan } from "../data";
import { choice, h } from "../dom";
import { Figure, type FigureSpec } from "../figure";
import { withError } from "../format";
import { look } from "../theme";

export function paths(scan: Scan): HTMLElement | null {
  const own = scan.data.manifest["paths"] !== undefined; // results of `rankscope paths`: its output_kl is by length, too
  const metrics = scan.metrics.filter((m) => (m.startsWith("path_") || (own && m === "output_kl")) && scan.of(m).some((r) => r.depth !== null && r.head === null && r.layer === null));
  if (metrics.length === 0) return null;
  let metric = metrics.includes("path_share") ? "path_share" : (metrics[0] ?? "");
  const spec = (): FigureSpec => {
    const rows = scan.of(metric).filter((r) => r.depth !== null && r.head === null && r.layer === null);
    const variants = [...new Set(rows.map((r) => r.variant))];
    return {
      name: "paths",
      title: `${metric} by path length`,
      about: scan.about(metric)?.meaning ?? "",
      hint: scan.about(metric)?.meaning ?? "",
      draw: (t, width, alone) =>
        drawCurves(
          variants.map((v, i) => ({
            name: v,
            ...look(i, t),
            points: rows
              .filter((r) => r.variant === v)
              .sort((a, b) => (a.depth ?? 0) - (b.depth ?? 0))
              .map((r) => ({ x: r.depth ?? 0, y: r.value, ...(Number.isFinite(r.stderr) ? { low: r.value - r.stderr, high: r.value + r.stderr } : {}), says: `${v} · length ${r.depth} · ${withError(r.value, r.stderr)}` })),
          })),
          { xLabel: "path length (attention passed)", yLabel: metric, wholeX: true, logY: metric === "output_kl" },
          t,
          width,
          alone || variants.length > 1,
        ),
      table: () => ({ columns: ["variant", "length", "metric", "value", "stderr", "n"], rows: rows.map((r) => [r.variant, r.depth, r.metric, r.value, r.stderr, r.n]) }),
    };
  };
  const controls = h("div", {});
  const figure = new Figure(spec(), controls);
  if (metrics.length > 1) controls.append(choice("metric", metrics, metric, (m) => ((metric = m), figure.update(spec()))));
  return figure.element;
}
