// A series of scans, as of a network in training: any metric against the training step.
import { type Curve, drawCurves } from "../charts";
import { type Row, type Scan } from "../data";
import { choice, h, toggle } from "../dom";
import { Figure, type FigureSpec } from "../figure";
import { short, withError } from "../format";
import { axisName, metricName, siteName, variantName } from "../names";
import { ordered, type Theme } from "../theme";
import { family, isDepthRow, judgedFamily, trackLook } from "./tracks";

const numbersIn = (text: string): number[] => [...text.matchAll(/(\d+(?:\.\d+)?)([kKmM]?)(?![a-zA-Z0-9])|\d+/g)].map(([all, digits, unit]) => Number(digits ?? all) * (unit === "" || unit === undefined ? 1 : /k/i.test(unit) ? 1e3 : 1e6));

/** One number for each text: that in which all of them differ; the last such where there are several. */
function numbered(texts: string[]): number[] | null {
  const all = texts.map(numbersIn);
  const shortest = Math.min(...all.map((n) => n.length));
  for (let back = 1; back <= shortest; back++) {
    const here = all.map((n) => n[n.length - back] ?? NaN);
    if (new Set(here).size === texts.length) return here;
  }
  return null;
}

export interface Steps {
  label: string;
  at: number[];
}

/** Which step of training each scan is of: as the manifest says, else as folder or model are called. */
export function stepsOf(scans: Scan[]): Steps | null {
  const told = scans.map((s) => s.data.manifest["step"]);
  if (told.every((x): x is number => typeof x === "number") && new Set(told).size === scans.length) return { label: "training step", at: told };
  for (const names of [scans.map((s) => s.data.name), scans.map((s) => String(s.data.manifest["model"] ?? ""))]) {
    const at = numbered(names);
    const called = names.every((n) => /step|checkpoint|ckpt|iter/i.test(n)) ? "training step" : names.every((n) => /epoch/i.test(n)) ? "epoch" : "";
    if (at && (called || scans.length > 2)) return { label: called || "number in the name", at };
  }
  return null;
}

/** What becomes one line: its name, its place in an order, whether a row belongs to it. */
interface Line {
  name: string;
  place: number;
  takes: (row: Row) => boolean;
}

class Series {
  readonly element: HTMLElement;
  private readonly figure: Figure;
  private readonly controls = h("div", { class: "controls" });
  private readonly order: number[];
  private metric: string;
  private site = "";
  private tokens = "content";
  private lines = "";
  private log = false;

  constructor(private readonly scans: Scan[], private readonly steps: Steps) {
    this.order = scans.map((_, i) => i).sort((a, b) => (steps.at[a] ?? 0) - (steps.at[b] ?? 0));
    const metrics = this.metrics();
    this.metric = ["residual_fro_rel_trimmed", "residual_fro_rel", "effective_rank_rel"].find((m) => metrics.includes(m)) ?? metrics[0] ?? "";
    this.site = judgedFamily(scans[0] as Scan);
    this.settle();
    this.figure = new Figure(this.spec(), this.controls);
    this.fill();
    this.element = this.figure.element;
  }

  private metrics(): string[] {
    const rows = this.scans.flatMap((s) => s.metrics.filter((m) => s.of(m).some((r) => Number.isFinite(r.value))));
    return [...new Set(rows)].filter((m) => !m.endsWith("_bound")).sort();
  }

  private rows(scan: Scan): Row[] {
    return scan.of(this.metric).filter((r) => family(r.site) === this.site && r.tokens === this.tokens);
  }

  private kinds(): [string, string][] {
    const all = this.scans.flatMap((s) => this.rows(s));
    const variants = [...new Set(all.map((r) => r.variant))];
    const out: [string, string][] = [];
    if (all.some((r) => r.head !== null)) {
      for (const v of variants) out.push([`layers/${v}`, `mean over heads of each layer, ${variantName(v)}`]);
      for (const l of numbers(all.map((r) => r.layer))) out.push([`heads/${l}`, `heads of layer ${l}`]);
    } else if (all.some(isDepthRow)) {
      for (const v of variants) out.push([`depths/${v}`, `every depth, ${variantName(v)}`]);
      for (const d of numbers(all.map((r) => r.depth))) out.push([`variants/${d}`, `every variant at depth ${d}`]);
    } else {
      out.push(["variants/", "every variant"]);
    }
    return out;
  }

  private of(): Line[] {
    const all = this.scans.flatMap((s) => this.rows(s));
    const [kind = "", which = ""] = [this.lines.split("/")[0], this.lines.slice(this.lines.indexOf("/") + 1)];
    if (kind === "depths") return numbers(all.map((r) => r.depth)).map((d) => ({ name: `depth ${d}`, place: d, takes: (r) => r.depth === d && r.variant === which && r.head === null }));
    if (kind === "layers") return numbers(all.map((r) => r.layer)).map((l) => ({ name: `layer ${l}`, place: l, takes: (r) => r.layer === l && r.variant === which && r.head !== null }));
    if (kind === "heads") return numbers(all.filter((r) => r.layer === Number(which)).map((r) => r.head)).map((k) => ({ name: `L${which}H${k}`, place: k, takes: (r) => r.head === k && r.layer === Number(which) && r.variant === (all[0]?.variant ?? "full") }));
    const variants = [...new Set(all.map((r) => r.variant))].filter((v) => !/^-heads?(-mean|-bare)?:/.test(v));
    return variants.map((v, i) => ({ name: v, place: i, takes: (r) => r.variant === v && r.head === null && (which === "" || r.depth === Number(which)) }));
  }

  // A choice that the others leave empty moves to the nearest one that shows something.
  private settle(): void {
    const all = this.scans.flatMap((s) => s.of(this.metric));
    const sites = [...new Set(all.map((r) => family(r.site)))];
    if (!sites.includes(this.site)) this.site = sites[0] ?? "";
    const tokens = [...new Set(all.filter((r) => family(r.site) === this.site).map((r) => r.tokens))];
    if (!tokens.includes(this.tokens)) this.tokens = tokens[0] ?? "all";
    const kinds = this.kinds().map(([value]) => value);
    if (!kinds.includes(this.lines)) this.lines = kinds.find((k) => k.endsWith("/full")) ?? kinds[0] ?? "";
  }

  private fill(): void {
    const all = this.scans.flatMap((s) => s.of(this.metric));
    const change = (set: () => void): void => {
      set();
      this.settle();
      this.fill();
      this.figure.update(this.spec());
    };
    this.controls.replaceChildren(
      choice("metric", this.metrics().map((m): [string, string] => [m, metricName(m)]), this.metric, (v) => change(() => (this.metric = v))),
      choice("site", [...new Set(all.map((r) => family(r.site)))].map((f): [string, string] => [f, siteName(f)]), this.site, (v) => change(() => (this.site = v))),
      choice("tokens", [...new Set(all.filter((r) => family(r.site) === this.site).map((r) => r.tokens))], this.tokens, (v) => change(() => (this.tokens = v))),
      choice("lines", this.kinds(), this.lines, (v) => change(() => (this.lines = v))),
      toggle("log", this.log, (on) => change(() => (this.log = on))),
    );
  }

  /** Of one line: a value for each scan, the mean where several rows make it up. */
  private values(line: Line): { scan: Scan; step: number; value: number; error: number; rows: number }[] {
    return this.order.flatMap((i) => {
      const scan = this.scans[i] as Scan;
      const rows = this.rows(scan).filter((r) => line.takes(r) && Number.isFinite(r.value));
      if (rows.length === 0) return [];
      const value = rows.reduce((a, r) => a + r.value, 0) / rows.length;
      return [{ scan, step: this.steps.at[i] ?? NaN, value, error: rows.length === 1 ? (rows[0]?.stderr ?? NaN) : NaN, rows: rows.length }];
    });
  }

  private curves(t: Theme): Curve[] {
    const lines = this.of();
    const inOrder = !this.lines.startsWith("variants");
    const every = Math.ceil(lines.length / 12); // a legend that can be read
    const label = (line: Line): string => (inOrder ? line.name : variantName(line.name));
    return lines.map((line, i) => ({
      name: label(line),
      ...(inOrder ? { colour: ordered(i / Math.max(1, lines.length - 1), t) } : trackLook({ variant: line.name, colour: i, dash: Math.floor(i / 8) }, t)),
      legend: i % every === 0 || i === lines.length - 1 ? label(line) : false,
      points: this.values(line).map((p) => ({
        x: p.step,
        y: p.value,
        ...(Number.isFinite(p.error) ? { low: p.value - p.error, high: p.value + p.error } : {}),
        says: `${label(line)} · ${this.steps.label} ${short(p.step)} (${p.scan.data.name}) · ${withError(p.value, p.error)}${p.rows > 1 ? ` · mean of ${p.rows} heads` : ""}`,
      })),
    }));
  }

  private spec(): FigureSpec {
    const about = this.scans[0]?.about(this.metric);
    return {
      name: "series",
      title: `${axisName(this.metric)}, against ${this.steps.label}`,
      exact: this.metric,
      about: about?.meaning ?? "",
      hint: about ? `${about.formula} · ${about.meaning}` : "",
      draw: (t, width) => drawCurves(this.curves(t), { xLabel: this.steps.label, yLabel: "", logY: this.log, wholeX: true, height: Math.max(260, Math.min(400, width * 0.45)) }, t, width, true),
      table: () => ({
        columns: ["line", "results", "step", "metric", "value", "stderr"],
        rows: this.of().flatMap((line) => this.values(line).map((p) => [line.name, p.scan.data.name, p.step, this.metric, p.value, p.error])),
      }),
    };
  }
}

const numbers = (values: (number | null)[]): number[] => [...new Set(values.filter((v): v is number => v !== null))].sort((a, b) => a - b);

export function series(scans: Scan[]): HTMLElement | null {
  const steps = stepsOf(scans);
  return steps ? new Series(scans, steps).element : null;
}
