// `rankscope collapse`: the residual of every combination of parts, with the noise floor, the published points and the theory bound.
import { type Curve, drawCurves } from "../charts";
import { type Row, type Scan } from "../data";
import { h, toggle } from "../dom";
import { Figure, type FigureSpec } from "../figure";
import { short, withError } from "../format";
import { axisName, variantName } from "../names";
import { Table, type Value } from "../table";
import { look, type Theme } from "../theme";
import { family } from "./tracks";

const residual = "residual_l1inf_rel_mean";
const deepest = 1e-40; // below: only when asked for, since the split arithmetic goes to 10^-300000

const byDepth = (rows: Row[]): Row[] => rows.filter((r) => r.depth !== null && r.tokens === "all" && family(r.site) === "hook_resid_post").sort((a, b) => (a.depth ?? 0) - (b.depth ?? 0));

function curvesFigure(scan: Scan, variants: string[], of: (variant: string) => Row[]): HTMLElement {
  const published = (v: string): Row[] => byDepth(scan.of("published")).filter((r) => r.variant === v);
  let all = false;
  const floors = scan.of("noise_floor").map((r) => ({ y: r.value, label: "noise floor" }));
  const curves = (t: Theme): Curve[] => [
    ...variants.map((v, i) => ({
      name: variantName(v),
      ...look(i, t),
      points: of(v)
        .filter((r) => all || r.value >= deepest)
        .map((r) => ({ x: r.depth ?? 0, y: r.value, ...(Number.isFinite(r.stderr) ? { low: r.value - r.stderr, high: r.value + r.stderr } : {}), says: `${variantName(v)} · depth ${r.depth} · ${withError(r.value, r.stderr)}`, exact: `${v} ${r.site} ${r.metric}` })),
    })),
    ...variants
      .filter((v) => published(v).length > 0)
      .map((v, i) => ({
        name: `${variantName(v)}, published`,
        legend: i === 0 ? "published" : (false as const),
        colour: look(variants.indexOf(v), t).colour,
        line: false,
        hollow: true,
        points: published(v).map((r) => ({ x: r.depth ?? 0, y: r.value, says: `published · ${variantName(v)} · depth ${r.depth} · ${short(r.value)}` })),
      })),
  ];
  const spec: FigureSpec = {
    name: "collapse",
    title: "Residual of every network",
    exact: residual,
    about: "Relative residual against depth, mean over texts.",
    hint: `sqrt(‖R‖₁ ‖R‖∞) over the same norm of X, R = X − 1xᵀ, mean over texts.${variants.some((v) => published(v).length > 0) ? " Rings: published." : ""}`,
    draw: (t, width) => drawCurves(curves(t), { xLabel: "depth (blocks passed)", yLabel: axisName(residual), logY: true, wholeX: true, rules: floors, height: Math.max(280, Math.min(440, width * 0.5)) }, t, width, true),
    table: () => ({
      columns: ["variant", "metric", "depth", "value", "stderr", "n"],
      rows: variants.flatMap((v) => [...of(v), ...published(v)].map((r) => [v, r.metric, r.depth, r.value, r.stderr, r.n])),
    }),
  };
  const tiny = variants.some((v) => of(v).some((r) => r.value > 0 && r.value < deepest));
  const figure: Figure = new Figure(spec, ...(tiny ? [toggle(`below ${deepest}, too`, false, (on) => ((all = on), figure.update()))] : []));
  return figure.element;
}

/** The cubic law, layer by layer: what it allows and what was measured, of attention alone. */
export function theoryFigure(scan: Scan): HTMLElement | null {
  const of = (metric: string): Row[] => scan.of(metric).filter((r) => r.layer !== null && r.value >= Math.log10(deepest)).sort((a, b) => (a.layer ?? 0) - (b.layer ?? 0));
  const lines: [string, Row[]][] = [
    ["allowed by the bound", of("bound_log10")],
    ["measured", of("bound_measured_log10")],
  ];
  if (lines.some(([, rows]) => rows.length === 0)) return null;
  return new Figure({
    name: "theory",
    title: "The cubic bound, layer by layer",
    about: "Logarithm of the residual of attention alone, and what the bound allows after each layer.",
    hint: "log10 of sqrt(‖R‖₁ ‖R‖∞) of attention alone after each layer, and what the bound allows, given the layer before; down to 10^−40.",
    draw: (t, width) =>
      drawCurves(
        lines.map(([name, rows], i) => ({ name, ...look(i, t), ...(i === 0 ? { dash: "2 3" } : {}), points: rows.map((r) => ({ x: r.layer ?? 0, y: r.value, says: `layer ${r.layer} · ${name} 10^${short(r.value)}` })) })),
        { xLabel: "layer", yLabel: "log10 residual_l1inf", wholeX: true },
        t,
        width,
        true,
      ),
    table: () => ({ columns: ["layer", "metric", "value"], rows: lines.flatMap(([, rows]) => rows.map((r) => [r.layer, r.metric, r.value])) }),
  }).element;
}

export function collapse(scan: Scan): HTMLElement | null {
  const rows = byDepth(scan.of(residual));
  if (rows.length === 0) return null;
  const variants = [...new Set(rows.map((r) => r.variant))].filter((v) => v !== "transformer float32");
  const of = (v: string): Row[] => rows.filter((r) => r.variant === v);
  const last = (v: string): Row | undefined => of(v).at(-1);
  const deepestOf = (metric: string, v: string): Row | undefined => byDepth(scan.of(metric)).filter((r) => r.variant === v).at(-1);
  const atTheEnd = (metric: string, v: string): number => {
    const row = deepestOf(metric, v);
    return row?.depth === last(v)?.depth ? (row?.value ?? NaN) : NaN; // one of a block before is another number
  };
  const published = (v: unknown): Row | undefined => deepestOf("published_ratio", String(v));
  const extra: { title: string; hint: string; of: (v: string) => number; text?: (row: Value[]) => string | undefined }[] = [
    { title: "log10", hint: "where no double can hold the residual", of: (v: string) => atTheEnd("residual_l1inf_rel_log10", v) },
    { title: "exponent", hint: "of the last step: 3 is the cubic law, 1 a geometric one", of: (v: string) => atTheEnd("local_exponent", v) },
    {
      title: "over published",
      hint: "at the deepest point that was published",
      of: (v: string) => published(v)?.value ?? NaN,
      text: ([v]: Value[]) => (published(v) === undefined || published(v)?.depth === last(String(v))?.depth ? undefined : `${short(published(v)?.value ?? NaN)} at depth ${published(v)?.depth}`),
    },
  ].filter((column) => variants.some((v) => Number.isFinite(column.of(v))));
  const powerOfTen = ([v, value]: Value[]): string | undefined => {
    const log = value === 0 ? atTheEnd("residual_l1inf_rel_log10", String(v)) : NaN;
    return Number.isFinite(log) ? `10^${log.toFixed(1).replace("-", "−")}` : undefined;
  };
  const table = new Table({
    name: "collapse",
    caption: "After the last block",
    columns: [
      { title: "variant", name: variantName },
      { title: "residual", numeric: true, text: powerOfTen },
      { title: "stderr", numeric: true, minor: true },
      ...extra.map(({ title, hint, text }) => ({ title, hint, numeric: true, minor: true, ...(text ? { text } : {}) })),
    ],
    rows: variants.map((v) => [v, last(v)?.value ?? NaN, last(v)?.stderr ?? NaN, ...extra.map((column) => column.of(v))]),
    sort: [1, "up"],
    pageSize: 24,
  });
  return h("div", {}, curvesFigure(scan, variants, of), h("div", { class: "pair" }, table.element, theoryFigure(scan)));
}
