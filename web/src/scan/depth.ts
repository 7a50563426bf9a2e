// Residual and rank against depth, one curve a track, with null models, bounds and thresholds drawn in.
import { type Curve, drawCurves } from "../charts";
import { type Row, type Scan } from "../data";
import { choice, h, toggle } from "../dom";
import { Figure, type FigureSpec } from "../figure";
import { tick, withError } from "../format";
import { axisName, metricName, siteName, variantName, withUnit } from "../names";
import { type Theme, theme, onTheme } from "../theme";
import { isLogarithmic } from "./evidence";
import { everyVariant, family, isDepthRow, judgedFamily, type Track, trackLook, tracksOf, variantsOf } from "./tracks";

const ownPlace = "*"; // where each network is judged

interface View {
  family: string; // of sites, or ownPlace
  metric: string;
  tokens: string;
  log: boolean;
}

export class Depth {
  readonly element: HTMLElement;
  private readonly off = new Set<string>();
  private readonly panels: Panel[];
  private tracks: Track[];

  constructor(scans: Scan[]) {
    const variants = variantsOf(scans);
    this.tracks = tracksOf(scans, variants.includes("full") ? "full" : (variants[0] ?? ""));
    const first = this.tracks[0]?.scan;
    const judged = first ? judgedFamily(first) : "";
    const has = (metric: string): boolean => first?.of(metric).some((r) => isDepthRow(r) && family(r.site) === judged) ?? false;
    const pick = (...names: string[]): string => names.find(has) ?? first?.metrics.find(has) ?? "";
    const residual = pick("residual_fro_rel_trimmed", "residual_fro_rel", "residual_l1inf_rel");
    const rank = pick("effective_rank_rel", "effective_rank", "stable_rank", "token_cosine");
    const metrics = [...new Set([residual, rank])].filter((m) => m !== "");
    const xLabel = first?.data.manifest["paths"] === undefined ? "depth (blocks passed)" : "path length";
    // Networks with their norms before and behind are judged at different places: each at its own, in one figure.
    const mixed = scans.some((s) => judgedFamily(s) !== judged);
    this.panels = metrics.map((metric, i) => new Panel(`depth-${i + 1}`, xLabel, () => this.tracks, this.off, () => fill(), { family: mixed ? ownPlace : judged, metric, tokens: "content", log: isLogarithmic(metric) }));
    const legend = h("div", { class: "legend", role: "group", "aria-label": "Curves" });
    // A name for every curve that one of the panels has, and for no other.
    const fill = (): void => legend.replaceChildren(...this.tracks.filter((track) => this.panels.some((p) => p.has(track))).map((track) => this.entry(track, theme())));
    fill();
    onTheme(fill);
    const choose = (variant: string): void => {
      this.tracks = tracksOf(scans, variant);
      for (const panel of this.panels) panel.refresh();
      fill();
    };
    const chooser = scans.length > 1 && variants.length > 1 && h("div", { class: "controls" }, choice("variant of each", [...variants.map((v): [string, string] => [v, variantName(v)]), [everyVariant, "every variant"]], this.tracks[0]?.variant ?? "", choose));
    this.element = h("div", {}, chooser, legend, h("div", { class: "pair" }, ...this.panels.map((p) => p.figure.element)));
  }

  get empty(): boolean {
    return this.panels.length === 0;
  }

  private entry(track: Track, t: Theme): HTMLElement {
    const { colour, dash } = trackLook(track, t);
    const button = h("button", {
      type: "button",
      class: "entry",
      "aria-pressed": String(!this.off.has(track.name)),
      "data-track": track.name,
      title: track.name,
      onclick: () => {
        if (!this.off.delete(track.name)) this.off.add(track.name);
        button.setAttribute("aria-pressed", String(!this.off.has(track.name)));
        for (const panel of this.panels) panel.figure.update();
      },
    });
    const swatch = h("span", { class: "swatch", style: `border-top: 3px ${dash ? "dashed" : "solid"} ${colour}` });
    button.append(swatch, h("bdi", {}, track.label));
    return button;
  }
}

class Panel {
  readonly figure: Figure;
  private readonly controls = h("div", { class: "controls" });

  constructor(private readonly name: string, private readonly xLabel: string, private readonly all: () => Track[], private readonly off: Set<string>, private readonly changed: () => void, private view: View) {
    this.settle();
    this.figure = new Figure(this.spec(), this.controls);
    this.fill();
  }

  private get tracks(): Track[] {
    return this.all();
  }

  /** Other tracks: what was chosen stays where they have it. */
  refresh(): void {
    this.settle();
    this.fill();
    this.figure.update(this.spec());
  }

  private familyOf(track: Track): string {
    return this.view.family === ownPlace ? judgedFamily(track.scan) : this.view.family;
  }

  private rows(metric = this.view.metric): Row[] {
    return this.tracks.flatMap((t) => t.scan.of(metric).filter((r) => r.variant === t.variant && isDepthRow(r) && family(r.site) === this.familyOf(t)));
  }

  // A choice that leaves tracks out which another would show moves there.
  private settle(): void {
    const shown = new Map<string, Set<string>>();
    for (const r of this.rows()) shown.set(r.tokens, (shown.get(r.tokens) ?? new Set()).add(r.variant));
    const most = [...shown].sort((a, b) => b[1].size - a[1].size)[0];
    if ((shown.get(this.view.tokens)?.size ?? 0) < (most?.[1].size ?? 0)) this.view.tokens = most?.[0] ?? "all";
  }

  private fill(): void {
    const all = this.tracks.flatMap((t) => t.scan.rows.filter((r) => r.variant === t.variant && isDepthRow(r)));
    const families = [...new Set(all.map((r) => family(r.site)))];
    const metrics = [...new Set(all.filter((r) => (this.view.family === ownPlace || family(r.site) === this.view.family) && !r.metric.endsWith("_bound")).map((r) => r.metric))].sort();
    const tokens = [...new Set(this.rows().map((r) => r.tokens))];
    const change = (part: Partial<View>): void => {
      this.view = { ...this.view, ...part };
      if (!this.rows().length) this.view.metric = metrics[0] ?? "";
      this.refresh();
      this.changed();
    };
    this.controls.replaceChildren(
      choice("metric", metrics.map((m): [string, string] => [m, metricName(m)]), this.view.metric, (metric) => change({ metric, log: isLogarithmic(metric) })),
      choice("site", [...(new Set(this.tracks.map((t) => judgedFamily(t.scan))).size > 1 ? [[ownPlace, "where each network is judged"] as [string, string]] : []), ...families.map((f): [string, string] => [f, siteName(f)])], this.view.family, (value) => change({ family: value })),
      choice("tokens", tokens, this.view.tokens, (value) => change({ tokens: value })),
      toggle("log", this.view.log, (log) => change({ log })),
    );
  }

  private rowsOf(track: Track, metric: string): Row[] {
    return track.scan.of(metric).filter((r) => r.variant === track.variant && isDepthRow(r) && family(r.site) === this.familyOf(track) && r.tokens === this.view.tokens);
  }

  has(track: Track): boolean {
    return this.rowsOf(track, this.view.metric).length > 0;
  }

  private curves(t: Theme): Curve[] {
    const visible = this.tracks.filter((track) => !this.off.has(track.name));
    const of = (track: Track, metric: string): Row[] => this.rowsOf(track, metric).sort((a, b) => (a.depth ?? 0) - (b.depth ?? 0));
    const points = (track: Track, rows: Row[]): Curve["points"] =>
      rows.map((r) => ({
        x: r.depth ?? 0,
        y: r.value,
        ...(Number.isFinite(r.stderr) ? { low: r.value - r.stderr, high: r.value + r.stderr } : {}),
        says: `${track.label} · ${this.xLabel.startsWith("depth") ? "depth" : "length"} ${r.depth} (${siteName(r.site)}) · ${withUnit(withError(r.value, r.stderr), r.metric)} · n ${r.n}`,
        exact: `${track.name} ${r.site} ${r.metric}`,
      }));
    return visible.flatMap((track) => {
      const { colour, dash } = trackLook(track, t);
      const bound = of(track, `${this.view.metric}_bound`);
      return [
        { name: track.label, colour, dash, points: points(track, of(track, this.view.metric)) },
        ...(bound.length > 0 ? [{ name: `bound on ${track.label}`, colour: t.quiet, dash: "2 3", dots: false, points: points(track, bound) }] : []),
      ];
    });
  }

  private spec(): FigureSpec {
    const { metric, log, tokens } = this.view;
    const about = this.tracks[0]?.scan.about(metric);
    const collapse = metric === "residual_fro_rel_trimmed" ? this.tracks[0]?.scan.threshold("collapse") : undefined;
    return {
      name: this.name,
      title: axisName(metric),
      exact: metric,
      about: `${about?.meaning ?? ""} Against ${this.xLabel}, tokens: ${tokens}.`,
      hint: about ? `${about.formula} · ${about.meaning}` : "",
      draw: (t, width, alone) =>
        drawCurves(
          this.curves(t),
          { xLabel: this.xLabel, yLabel: "", logY: log, wholeX: true, rules: collapse === undefined ? [] : [{ y: collapse, label: `collapse < ${tick(collapse)}` }] },
          t,
          width,
          alone,
        ),
      table: () => ({
        columns: ["track", "variant", "site", "layer", "metric", "value", "stderr", "n", "depth", "tokens"],
        rows: this.tracks
          .filter((track) => !this.off.has(track.name))
          .flatMap((track) => this.rowsOf(track, metric).map((r) => [track.name, r.variant, r.site, r.layer, r.metric, r.value, r.stderr, r.n, r.depth, r.tokens])),
      }),
    };
  }
}
