// Residual and rank against depth, one curve a track, with null models, bounds and thresholds drawn in.
import { type Curve, drawCurves } from "../charts";
import { type Row } from "../data";
import { choice, h, toggle } from "../dom";
import { Figure, type FigureSpec } from "../figure";
import { withError } from "../format";
import { type Theme, theme, onTheme } from "../theme";
import { family, isDepthRow, judgedFamily, type Track, trackLook } from "./tracks";

interface View {
  family: string;
  metric: string;
  tokens: string;
  log: boolean;
}

const isLogarithmic = (metric: string): boolean => /^(residual|massive|offset)/.test(metric);

export class Depth {
  readonly element: HTMLElement;
  private readonly off = new Set<string>();
  private readonly panels: Panel[];

  constructor(private readonly tracks: Track[]) {
    const first = tracks[0];
    if (!first) throw new Error("a scan without variants");
    const judged = judgedFamily(first.scan);
    const has = (metric: string): boolean => first.scan.of(metric).some((r) => isDepthRow(r) && family(r.site) === judged);
    const pick = (...names: string[]): string => names.find(has) ?? first.scan.metrics.find(has) ?? "";
    const residual = pick("residual_fro_rel_trimmed", "residual_fro_rel", "residual_l1inf_rel");
    const rank = pick("effective_rank_rel", "effective_rank", "stable_rank", "token_cosine");
    const metrics = [...new Set([residual, rank])].filter((m) => m !== "");
    this.panels = metrics.map((metric, i) => new Panel(`depth-${i + 1}`, tracks, this.off, { family: judged, metric, tokens: "content", log: isLogarithmic(metric) }));
    const legend = h("div", { class: "legend", role: "group", "aria-label": "Curves" });
    const fill = (): void => legend.replaceChildren(...tracks.map((track, i) => this.entry(track, i, theme())));
    fill();
    onTheme(fill);
    this.element = h("div", {}, legend, h("div", { class: "pair" }, ...this.panels.map((p) => p.figure.element)));
  }

  get empty(): boolean {
    return this.panels.length === 0;
  }

  private entry(track: Track, i: number, t: Theme): HTMLElement {
    const { colour, dash } = trackLook(this.tracks, i, t);
    const button = h("button", {
      type: "button",
      class: "entry",
      "aria-pressed": String(!this.off.has(track.name)),
      "data-track": track.name,
      onclick: () => {
        if (!this.off.delete(track.name)) this.off.add(track.name);
        button.setAttribute("aria-pressed", String(!this.off.has(track.name)));
        for (const panel of this.panels) panel.figure.update();
      },
    });
    const swatch = h("span", { class: "swatch", style: `border-top: 3px ${dash ? "dashed" : "solid"} ${colour}` });
    button.append(swatch, h("bdi", {}, track.name));
    return button;
  }
}

class Panel {
  readonly figure: Figure;
  private readonly controls = h("div", { class: "controls" });

  constructor(private readonly name: string, private readonly tracks: Track[], private readonly off: Set<string>, private view: View) {
    this.settle();
    this.figure = new Figure(this.spec(), this.controls);
    this.fill();
  }

  private rows(metric = this.view.metric): Row[] {
    return this.tracks.flatMap((t) => t.scan.of(metric).filter((r) => r.variant === t.variant && isDepthRow(r) && family(r.site) === this.view.family));
  }

  // A choice that the others leave empty moves to the nearest one that shows something.
  private settle(): void {
    const tokens = new Set(this.rows().map((r) => r.tokens));
    if (!tokens.has(this.view.tokens)) this.view.tokens = [...tokens][0] ?? "all";
  }

  private fill(): void {
    const all = this.tracks.flatMap((t) => t.scan.rows.filter((r) => r.variant === t.variant && isDepthRow(r)));
    const families = [...new Set(all.map((r) => family(r.site)))];
    const metrics = [...new Set(all.filter((r) => family(r.site) === this.view.family && !r.metric.endsWith("_bound")).map((r) => r.metric))].sort();
    const tokens = [...new Set(this.rows().map((r) => r.tokens))];
    const change = (part: Partial<View>): void => {
      this.view = { ...this.view, ...part };
      if (!this.rows().length) this.view.metric = metrics[0] ?? "";
      this.settle();
      this.fill();
      this.figure.update(this.spec());
    };
    this.controls.replaceChildren(
      choice("metric", metrics, this.view.metric, (metric) => change({ metric, log: isLogarithmic(metric) })),
      choice("site", families, this.view.family, (value) => change({ family: value })),
      choice("tokens", tokens, this.view.tokens, (value) => change({ tokens: value })),
      toggle("log", this.view.log, (log) => change({ log })),
    );
  }

  private curves(t: Theme): Curve[] {
    const visible = this.tracks.flatMap((track, i) => (this.off.has(track.name) ? [] : [{ track, i }]));
    const of = (track: Track, metric: string): Row[] =>
      track.scan
        .of(metric)
        .filter((r) => r.variant === track.variant && isDepthRow(r) && family(r.site) === this.view.family && r.tokens === this.view.tokens)
        .sort((a, b) => (a.depth ?? 0) - (b.depth ?? 0));
    const points = (track: Track, rows: Row[]): Curve["points"] =>
      rows.map((r) => ({
        x: r.depth ?? 0,
        y: r.value,
        ...(Number.isFinite(r.stderr) ? { low: r.value - r.stderr, high: r.value + r.stderr } : {}),
        says: `${track.name} · depth ${r.depth} (${r.site}) · ${withError(r.value, r.stderr)} · n ${r.n}`,
      }));
    return visible.flatMap(({ track, i }) => {
      const { colour, dash } = trackLook(this.tracks, i, t);
      const bound = of(track, `${this.view.metric}_bound`);
      return [
        { name: track.name, colour, dash, points: points(track, of(track, this.view.metric)) },
        ...(bound.length > 0 ? [{ name: `bound on ${track.name}`, colour: t.quiet, dash: "2 3", dots: false, points: points(track, bound) }] : []),
      ];
    });
  }

  private spec(): FigureSpec {
    const { metric, log, tokens } = this.view;
    const about = this.tracks[0]?.scan.about(metric);
    const limits = this.tracks[0]?.scan.data.manifest["thresholds"] as Record<string, number> | undefined;
    const collapse = metric === "residual_fro_rel_trimmed" ? limits?.["collapse"] : undefined;
    return {
      name: this.name,
      title: metric,
      about: `${about?.meaning ?? ""} Against depth, tokens: ${tokens}.`,
      hint: about ? `${about.formula} · ${about.meaning}` : "",
      draw: (t, width, alone) =>
        drawCurves(
          this.curves(t),
          { xLabel: "depth (blocks passed)", yLabel: metric, logY: log, wholeX: true, rules: collapse === undefined ? [] : [{ y: collapse, label: "collapse" }] },
          t,
          width,
          alone,
        ),
      table: () => ({
        columns: ["track", "variant", "site", "layer", "metric", "value", "stderr", "n", "depth", "tokens"],
        rows: this.tracks
          .filter((track) => !this.off.has(track.name))
          .flatMap((track) =>
            track.scan
              .of(metric)
              .filter((r) => r.variant === track.variant && isDepthRow(r) && family(r.site) === this.view.family && r.tokens === tokens)
              .map((r) => [track.name, r.variant, r.site, r.layer, r.metric, r.value, r.stderr, r.n, r.depth, r.tokens]),
          ),
      }),
    };
  }
}
