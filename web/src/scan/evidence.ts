// The picture of a sentence: the very row whose number the sentence carries, among the rows it stands beside.
import { type Bar, type Curve, drawBars, drawCurves, drawMap } from "../charts";
import { type Row, type Scan, type Sentence, toNumber } from "../data";
import { Figure } from "../figure";
import { headName, tick, withError } from "../format";
import { axisName, countsBlocks, depthName, metricName, siteName, unitOf, variantName, withUnit } from "../names";
import { look } from "../theme";
import { family, isDepthRow, isReference, trackLook, variantsOf } from "./tracks";

// Which metrics a topic speaks of, the likelier first, for the case that several rows have the same number.
const topics: Record<string, string[]> = {
  collapse: ["spread", "unit_sd_rel_p90", "unit_rank", "residual_fro_rel_trimmed"],
  support: ["residual_fro_rel_trimmed", "effective_rank_centered_rel_trimmed", "residual_l1inf_rel_mean"],
  sink: ["sink_margin"],
  head: ["head_varied_rel", "head_predicted", "output_kl", "output_error"],
  rank: ["qk_effective_rank", "ov_effective_rank", "output_kl", "output_error"],
  massive: ["massive_ratio"],
};

/** The row that a sentence was read from. */
export function rowOf(scan: Scan, s: Sentence): Row | undefined {
  const value = toNumber(s.value);
  if (!Number.isFinite(value)) return undefined;
  const wanted = Object.hasOwn(topics, s.topic) ? (topics[s.topic] ?? []) : [];
  const place = (r: Row): number => (wanted.includes(r.metric) ? wanted.indexOf(r.metric) : wanted.length) + (r.layer === s.layer ? 0 : 0.5) + (family(r.site) === "ln1.hook_normalized" ? 0.1 : 0) + (isReference(r.variant) ? 100 : 0);
  const found = scan.rows.filter((r) => r.value === value && (s.head === null || r.head === s.head));
  return found.sort((a, b) => place(a) - place(b))[0];
}

/** The whole network, those that the sentence compares, and what they may be held against. */
const shownVariants = (scan: Scan, s: Sentence, row: Row): string[] => {
  const own = scan.variants.includes("full") ? "full" : (scan.variants[0] ?? "");
  const pair = /\(([^()\s]+) and ([^()\s]+)\)$/.exec(s.sentence)?.slice(1) ?? []; // "(-mlp and full)"
  return [...new Set([own, ...pair.filter((v) => scan.variants.includes(v)), row.variant, ...scan.variants.filter((v) => v === "baseline" || v === "null:init")])];
};

/** A number whose own logarithm tells more than it does. */
export const isLogarithmic = (metric: string): boolean => /^(residual|massive|offset|effective_rank|stable_rank)/.test(metric);

function depthPicture(scan: Scan, s: Sentence, row: Row, name: string): Figure {
  const where = family(row.site);
  const variants = shownVariants(scan, s, row);
  const rows = (variant: string): Row[] =>
    scan
      .of(row.metric)
      .filter((r) => r.variant === variant && r.head === null && r.depth !== null && r.tokens === row.tokens && r.stream === row.stream && (family(r.site) === where || (!isDepthRow(r) && r.site === row.site)))
      .sort((a, b) => (a.depth ?? 0) - (b.depth ?? 0));
  const limit = toNumber(s.threshold);
  // A ratio that is held against two thresholds is not what is drawn here: they are no lines of this plot.
  const rules = Number.isFinite(limit) && /\bthreshold [\d.]/.test(s.sentence) ? [{ y: limit, label: `threshold ${tick(limit)}` }] : [];
  const drawn = variants.filter((v) => rows(v).length > 0);
  const all = [...new Set([...variantsOf([scan]), ...scan.variants])]; // each looks as it does where all are drawn
  const curves = (t: Parameters<typeof trackLook>[1]): Curve[] =>
    drawn.map((variant) => ({
      name: variantName(variant),
      ...trackLook({ variant, colour: all.indexOf(variant), dash: Math.floor(all.indexOf(variant) / 8) }, t),
      points: rows(variant).map((r) => ({
        x: r.depth ?? 0,
        y: r.value,
        ...(Number.isFinite(r.stderr) ? { low: r.value - r.stderr, high: r.value + r.stderr } : {}),
        marked: r === row,
        says: `${variantName(variant)} · ${siteName(r.site)} · ${withUnit(withError(r.value, r.stderr), r.metric)}`,
        exact: `${variant} ${r.site} ${r.metric}`,
      })),
    }));
  return new Figure({
    name,
    title: axisName(row.metric),
    exact: `${row.metric} at ${where}, tokens ${row.tokens}`,
    about: `${siteName(where)}, against ${depthName(row.metric)}.`,
    hint: `${countsBlocks(row.metric) ? siteName(where) : `against ${depthName(row.metric)}`}; ring: the number in the sentence`,
    draw: (t, width) => drawCurves(curves(t), { xLabel: depthName(row.metric), yLabel: "", wholeX: true, logY: isLogarithmic(row.metric), rules, height: 220 }, t, width, true),
    table: () => ({ columns: ["variant", "site", "metric", "value", "stderr", "n", "depth", "tokens"], rows: drawn.flatMap((v) => rows(v).map((r) => [r.variant, r.site, r.metric, r.value, r.stderr, r.n, r.depth, r.tokens])) }),
  });
}

function headPicture(scan: Scan, s: Sentence, row: Row, name: string, open: (layer: number, head: number) => void): Figure {
  const rows = scan.of(row.metric).filter((r) => r.variant === row.variant && r.site.replace(/^blocks\.\d+\./, "") === row.site.replace(/^blocks\.\d+\./, "") && r.head !== null && r.layer !== null && r.tokens === row.tokens && r.stream === row.stream);
  const unit = unitOf(row.metric);
  const limit = toNumber(s.threshold);
  const beside = Number.isFinite(limit) && !/\bshare [\d.]/.test(s.sentence); // of a map's rank it is the share that has a threshold
  return new Figure({
    name,
    title: metricName(row.metric),
    exact: row.metric,
    about: `Every head; ${headName(row.layer ?? 0, row.head ?? 0)} is the one in the sentence.`,
    hint: `every head; outlined: ${headName(row.layer ?? 0, row.head ?? 0)}`,
    draw: (t, width, alone) =>
      drawMap(
        rows.map((r) => ({
          column: r.head ?? 0,
          row: r.layer ?? 0,
          value: r.value,
          marked: r === row,
          says: `${headName(r.layer ?? 0, r.head ?? 0)} · ${withUnit(withError(r.value, r.stderr), r.metric)}`,
          exact: `${r.variant} ${r.site} ${r.metric}`,
          pick: () => open(r.layer ?? 0, r.head ?? 0),
        })),
        { xLabel: "head", yLabel: "layer", unit, ...(beside ? { rule: { value: limit, label: `threshold ${tick(limit)}` } } : {}) },
        t,
        width,
        alone,
      ),
    table: () => ({ columns: ["layer", "head", "metric", "value", "stderr"], rows: rows.map((r) => [r.layer, r.head, r.metric, r.value, r.stderr]) }),
  });
}

/** Rows as one curve, or as dots where nothing lies between them, beside the threshold that they are held against. */
function rowsPicture(s: Sentence, name: string, rows: Row[], xLabel: "layer" | "rank", of: string, marked?: Row): Figure {
  const { metric } = rows[0] as Row;
  const at = (r: Row): number => (xLabel === "layer" ? r.layer : r.depth) ?? 0;
  const limit = toNumber(s.threshold);
  const points = rows.map((r) => ({
    x: at(r),
    y: r.value,
    ...(Number.isFinite(r.stderr) ? { low: r.value - r.stderr, high: r.value + r.stderr } : {}),
    marked: r === marked,
    says: `${xLabel} ${at(r)} · ${withUnit(withError(r.value, r.stderr), r.metric)}`,
    exact: `${r.variant} ${r.site} ${r.metric}`,
  }));
  const rules = limit > 0 ? [{ y: limit, label: `threshold ${tick(limit)}` }] : [];
  const options = { xLabel, yLabel: "", wholeX: true, logY: rows.every((r) => r.value > 0), rules, height: 220 };
  return new Figure({
    name,
    title: axisName(metric),
    exact: metric,
    about: `${of}, against the ${xLabel}.`,
    hint: `${of}${marked ? "; ring: the number in the sentence" : ""}`,
    draw: (t, width) => drawCurves([{ name: metricName(metric), ...look(0, t), line: xLabel === "rank", points }], options, t, width, false),
    table: () => ({ columns: [xLabel, "metric", "value", "stderr", "n"], rows: rows.map((r) => [at(r), r.metric, r.value, r.stderr, r.n]) }),
  });
}

/** The same part of every layer. */
function inEveryLayer(scan: Scan, row: Row): Row[] {
  const part = (r: Row): string => r.site.replace(/^blocks\.\d+\./, "");
  return scan
    .of(row.metric)
    .filter((r) => r.variant === row.variant && r.layer !== null && r.head === null && r.depth === null && r.tokens === row.tokens && r.stream === row.stream && part(r) === part(row))
    .sort((a, b) => (a.layer ?? 0) - (b.layer ?? 0));
}

/** What maps cost that are cut to a rank in all layers: a sentence about the rank that suffices has the numbers of that curve. */
function byRank(scan: Scan, s: Sentence): Row[] {
  const [, map = ""] = /\brank (?:\d+ )?of (qk|ov|kv)\b/.exec(s.sentence) ?? [];
  const cost = (metric: string): Row[] => scan.of(metric).filter((r) => r.layer === null && r.head === null && r.depth !== null);
  return [cost(`rank_${map}_kl`), cost(`rank_${map}_error`)].find((rows) => rows.length > 1)?.sort((a, b) => (a.depth ?? 0) - (b.depth ?? 0)) ?? [];
}

const mostBars = 8;

function barPicture(scan: Scan, s: Sentence, row: Row, name: string): Figure {
  const all = scan.of(row.metric).filter((r) => r.site === row.site && r.tokens === row.tokens && r.head === row.head && r.layer === row.layer && Number.isFinite(r.value));
  const rows = [row, ...all.filter((r) => r !== row).sort((a, b) => b.value - a.value)].slice(0, mostBars);
  const limit = toNumber(s.threshold);
  const bars: Bar[] = rows.map((r) => ({ name: variantName(r.variant), exact: `${r.variant} ${r.site} ${r.metric}`, value: r.value, error: r.stderr, marked: r === row, says: `${variantName(r.variant)} · ${withUnit(withError(r.value, r.stderr), r.metric)}` }));
  return new Figure({
    name,
    title: metricName(row.metric),
    exact: row.metric,
    about: `Of ${rows.length} variants.`,
    hint: all.length > rows.length ? `the first ${rows.length} of ${all.length}; all of them are below` : "against the whole network",
    draw: (t, width) => drawBars(bars, { unit: unitOf(row.metric), rule: limit > 0 ? { x: limit, label: `threshold ${tick(limit)}` } : undefined }, t, width),
    table: () => ({ columns: ["variant", "metric", "value", "stderr", "n"], rows: rows.map((r) => [r.variant, r.metric, r.value, r.stderr, r.n]) }),
  });
}

/** Nothing where a sentence is about no curve and carries no number, or the number of no row. */
export function picture(scan: Scan, s: Sentence, name: string, open: (layer: number, head: number) => void): HTMLElement | null {
  const ranks = s.topic === "worth" ? byRank(scan, s) : [];
  if (ranks.length > 0) return rowsPicture(s, name, ranks, "rank", "all layers at once").element;
  const row = rowOf(scan, s);
  if (!row) return null;
  if (row.head !== null && row.layer !== null) return headPicture(scan, s, row, name, open).element;
  const curve = scan.of(row.metric).filter((r) => r.variant === row.variant && r.head === null && r.depth !== null && r.tokens === row.tokens && family(r.site) === family(row.site));
  if (row.depth !== null && curve.length > 1) return depthPicture(scan, s, row, name).element;
  const layers = row.layer !== null && row.depth === null ? inEveryLayer(scan, row) : [];
  if (layers.length > 1) return rowsPicture(s, name, layers, "layer", "every layer", row).element;
  return scan.of(row.metric).filter((r) => r.site === row.site && r.tokens === row.tokens).length > 1 ? barPicture(scan, s, row, name).element : null;
}
