// Paths by length with their share of the output. A row is one length: `depth` counts the parts a path goes through.
import { type Curve, drawCurves } from "../charts";
import { type Row, type Scan } from "../data";
import { choice, h, toggle } from "../dom";
import { Figure, type FigureSpec } from "../figure";
import { short, withError } from "../format";
import { axisName, metricName, variantName } from "../names";
import { look, type Theme } from "../theme";
import { capital } from "./headline";

const isLogarithmic = (metric: string): boolean => metric === "output_kl" || metric === "path_rank1_distance";

// What the rows of metrics.csv cannot say of themselves: these metrics are no lens's.
const meanings: Record<string, string> = {
  path_share: "Norm of what the paths of one length add up to, as a share of the sum of these norms.",
  path_norm: "Root mean square of what the paths of one length add up to.",
  output_kl: "How far the predictions of each reading are from those of the whole network, in nats.",
  path_rank1_distance: "Median over sampled chains of attention matrices, the band from quartile to quartile.",
};

// What their names leave open.
const readingOf: Record<string, string> = {
  only: "",
  upto: ", with the bias",
  allbut: ": the output without them",
};

/** What the curves of `rankscope paths` are of. */
export function readings(scans: Scan[]): HTMLElement | null {
  const found = Object.entries(readingOf).filter(([name]) => scans.some((s) => s.variants.includes(name)));
  return found.length === 0 ? null : h("p", { class: "lead" }, `${capital(found.map(([name, what]) => variantName(name) + what).join("; "))}.`);
}

/** Read beside another metric: quartiles as a band, published values as rings. */
const isBeside = (metric: string): boolean => /_q[13]$/.test(metric) || metric === "path_published";

export function paths(scan: Scan): HTMLElement | null {
  const own = scan.data.manifest["paths"] !== undefined; // results of `rankscope paths`: its output_kl is by length, too
  const byLength = (metric: string): Row[] => scan.of(metric).filter((r) => r.depth !== null && r.head === null && r.layer === null);
  const metrics = scan.metrics.filter((m) => (m.startsWith("path_") || (own && m === "output_kl")) && !isBeside(m) && byLength(m).length > 0);
  if (metrics.length === 0) return null;
  let metric = metrics.includes("path_share") ? "path_share" : (metrics[0] ?? "");
  let log = isLogarithmic(metric);
  const curves = (t: Theme): Curve[] => {
    const rows = byLength(metric).sort((a, b) => (a.depth ?? 0) - (b.depth ?? 0));
    const variants = [...new Set(rows.map((r) => r.variant))];
    const beside = (name: string, r: Row): number | undefined => byLength(name).find((o) => o.variant === r.variant && o.depth === r.depth)?.value;
    const band = (r: Row): { low?: number; high?: number } => {
      const [low, high] = [beside(`${metric}_q1`, r), beside(`${metric}_q3`, r)];
      if (low !== undefined && high !== undefined) return { low, high };
      return Number.isFinite(r.stderr) ? { low: r.value - r.stderr, high: r.value + r.stderr } : {};
    };
    const published = metric === "path_rank1_distance" ? byLength("path_published") : [];
    return [
      ...variants.map((v, i) => ({
        name: variantName(v),
        ...look(i, t),
        points: rows.filter((r) => r.variant === v).map((r) => ({ x: r.depth ?? 0, y: r.value, ...band(r), exact: `${v} ${r.site} ${r.metric}`, says: `${variantName(v)} · length ${r.depth} · ${withError(r.value, r.stderr)}` })),
      })),
      { name: "published", ...look(0, t), line: false, hollow: true, points: published.map((r) => ({ x: r.depth ?? 0, y: r.value, says: `published · length ${r.depth} · ${withError(r.value, NaN)}` })) },
    ];
  };
  // What no path writes: beside the shares it makes their sum one.
  const bias = [...scan.of("path_share_bias"), ...scan.of("path_share").filter((r) => r.variant === "bias")][0];
  const spec = (): FigureSpec => {
    const beside = metric === "path_share" && bias !== undefined ? bias : undefined;
    const meaning = scan.about(metric)?.meaning ?? (Object.hasOwn(meanings, metric) ? meanings[metric] : undefined) ?? "";
    return {
      name: "paths",
      title: axisName(metric),
      exact: metric,
      about: meaning,
      hint: meaning,
      draw: (t, width, alone) => {
        const drawn = curves(t);
        return drawCurves(drawn, { xLabel: "path length (attention passed)", yLabel: "", wholeX: true, logY: log, rules: beside ? [{ y: beside.value, label: `biases ${short(beside.value)}` }] : [] }, t, width, alone || drawn.filter((c) => c.points.length > 0).length > 1);
      },
      table: () => ({
        columns: ["variant", "length", "metric", "value", "stderr", "n"],
        rows: [...[metric, `${metric}_q1`, `${metric}_q3`].flatMap(byLength), ...(beside ? [beside] : [])].map((r) => [r.variant, r.depth, r.metric, r.value, r.stderr, r.n]),
      }),
    };
  };
  const controls = h("div", { class: "controls" });
  const figure = new Figure(spec(), controls);
  const fill = (): void =>
    controls.replaceChildren(
      ...(metrics.length > 1 ? [choice("metric", metrics.map((m): [string, string] => [m, metricName(m)]), metric, (m) => ((metric = m), (log = isLogarithmic(m)), fill(), figure.update(spec())))] : []),
      toggle("log", log, (on) => ((log = on), figure.update(spec()))),
    );
  fill();
  return figure.element;
}
