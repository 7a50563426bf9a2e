// One head: where a sample's attention goes, the spectra behind it, and its numbers beside those of its peers.
import { drawCurves } from "../charts";
import { mapsOf, type Row, type Scan, type Shown, type ShownLayer } from "../data";
import { choice, h, token } from "../dom";
import { Figure } from "../figure";
import { headName, short, withError } from "../format";
import { countsBlocks, depthName, metricName, named, withUnit } from "../names";
import { look } from "../theme";
import { viridis } from "../viridis";
import { Bins, drawGrid } from "./grid";
import { ofJudgedTokens } from "./tracks";

export class HeadPage {
  readonly element = h("div", { class: "head-page" });
  private layer = 0;
  private head = 0;

  constructor(private readonly scan: Scan) {
    const names = this.all();
    const first = names[0];
    if (first) this.show(first.layer, first.head);
  }

  private all(): { layer: number; head: number }[] {
    const seen = new Map<string, { layer: number; head: number }>();
    for (const r of this.scan.rows) if (r.layer !== null && r.head !== null) seen.set(headName(r.layer, r.head), { layer: r.layer, head: r.head });
    for (const l of this.scan.data.shown?.layers ?? []) for (let head = 0; head < l.heads; head++) seen.set(headName(l.layer, head), { layer: l.layer, head });
    return [...seen.values()].sort((a, b) => a.layer - b.layer || a.head - b.head);
  }

  get empty(): boolean {
    return this.all().length === 0;
  }

  show(layer: number, head: number): void {
    const all = this.all();
    const at = all.findIndex((x) => x.layer === layer && x.head === head);
    if (at < 0) return;
    this.layer = layer;
    this.head = head;
    const name = headName(layer, head);
    // Whom a person chooses is in the address: it can be copied, and survives a reload.
    const choose = (other: { layer: number; head: number } | undefined): void => {
      if (!other) return;
      history.replaceState(null, "", `#${headName(other.layer, other.head)}`);
      this.show(other.layer, other.head);
    };
    const shown = this.scan.data.shown;
    const views = shown?.layers.find((l) => l.layer === layer);
    this.element.replaceChildren(
      h(
        "div",
        { class: "controls" },
        h("button", { type: "button", onclick: () => choose(all[at - 1]), disabled: at === 0, "aria-label": "Head before" }, "‹"),
        choice("head", all.map((x) => headName(x.layer, x.head)), name, (v) => choose(all.find((x) => headName(x.layer, x.head) === v))),
        h("button", { type: "button", onclick: () => choose(all[at + 1]), disabled: at === all.length - 1, "aria-label": "Next head" }, "›"),
      ),
      h("h3", { id: "head-name", tabindex: -1 }, name),
      h("div", { class: "pair" }, ...(shown && views ? [this.map(shown, views), this.spectra(views)] : []), this.numbers(), ...(shown && views ? [this.attended(shown, views)] : [])),
    );
  }

  private map(shown: Shown, views: ShownLayer): HTMLElement {
    const name = headName(this.layer, this.head);
    const { side } = views;
    const down = views.rows ?? side;
    const bytes = mapsOf(views).subarray(this.head * down * side, (this.head + 1) * down * side);
    const peak = views.peaks[this.head] ?? 1;
    const value = (i: number, j: number): number => ((bytes[i * side + j] ?? 0) / 255) ** 2 * peak;
    const [queries, keys] = [new Bins(down, shown), new Bins(side, shown.keys ?? shown)];
    const pooled = down < shown.length || side < (shown.keys ?? shown).length;
    const tokens = shown.keys ? `${shown.length} tokens and ${shown.keys.length} keys` : `${shown.length} tokens`;
    const colour = (i: number, j: number): string => `rgb(${viridis(Math.sqrt(value(i, j) / (peak || 1))).join(",")})`;
    const says = (i: number, j: number): string => `query ${queries.label(i)} → key ${keys.label(j)} · ≈ ${short(value(i, j))}`;
    return new Figure({
      name: `attention-${name}`,
      title: `Attention of sample ${shown.sample}`,
      about: "Queries downwards, keys to the right.",
      hint:
        (pooled ? `${tokens} pooled to ${down} × ${side}: mean over queries, sum over keys. ` : "") + `Rows are queries, columns are keys; colour by the square root, up to ${short(peak)}.`,
      draw: (t, width) => drawGrid(queries, keys, { colour, says }, t, Math.min(width, 560)),
      table: () => ({
        columns: ["query_first", "query_text", "key_first", "key_text", "attention"],
        rows: Array.from({ length: down * side }, (_, k) => {
          const [i, j] = [Math.floor(k / side), k % side];
          return [queries.first(i), queries.text(i), keys.first(j), keys.text(j), value(i, j)];
        }),
      }),
    }).element;
  }

  private spectra(views: ShownLayer): HTMLElement {
    const name = headName(this.layer, this.head);
    const titles: Record<string, string> = { pattern: "attention matrix", qk: "QK map", ov: "OV map" };
    const kinds = Object.keys(titles).filter((k) => Object.hasOwn(views.spectra, k));
    const values = (kind: string): { at: number[]; y: number[] } => ({ at: views.spectra[kind]?.at ?? [], y: views.spectra[kind]?.values[this.head] ?? [] });
    return new Figure({
      name: `spectra-${name}`,
      title: "Singular values",
      about: "Of the attention matrix of the sample and of the QK and OV maps, relative to the largest.",
      hint: "Relative to the largest singular value of each; index from 1.",
      draw: (t, width) =>
        drawCurves(
          kinds.map((kind, i) => {
            const { at, y } = values(kind);
            const top = y[0] || 1;
            return { name: titles[kind] ?? kind, ...look(i, t), points: at.map((x, k) => ({ x, y: (y[k] ?? NaN) / top, says: `${titles[kind]} · σ${x} = ${short(y[k] ?? NaN)} · ${short((y[k] ?? NaN) / top)} of σ1` })) };
          }),
          { xLabel: "index", yLabel: "σ / σ1", logY: true, whole: true },
          t,
          width,
          true,
        ),
      table: () => ({
        columns: ["map", "index", "singular_value"],
        rows: kinds.flatMap((kind) => values(kind).at.map((x, k) => [kind, x, values(kind).y[k] ?? null])),
      }),
    }).element;
  }

  private numbers(): HTMLElement {
    const variant = this.scan.variants[0] ?? "full";
    const rows = ofJudgedTokens(this.scan.rows.filter((r) => r.variant === variant && r.layer === this.layer && r.head === this.head));
    const median = (row: Row): number => {
      const all = this.scan
        .of(row.metric)
        .filter((r) => r.variant === variant && r.head !== null && r.tokens === row.tokens && (countsBlocks(r.metric) || r.depth === row.depth) && Number.isFinite(r.value))
        .map((r) => r.value)
        .sort((a, b) => a - b);
      return all.length === 0 ? NaN : ((all[(all.length - 1) >> 1] ?? NaN) + (all[all.length >> 1] ?? NaN)) / 2;
    };
    return h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { class: "numbers", "data-table": "head" },
        h("caption", {}, "Numbers of this head, beside the median over all heads"),
        h("thead", {}, h("tr", {}, h("th", {}, "metric"), h("th", { class: "num" }, "value"), h("th", { class: "num" }, "median"))),
        h(
          "tbody",
          {},
          ...rows.map((r) =>
            h("tr", { "data-metric": r.metric }, h("td", { title: this.scan.about(r.metric)?.meaning }, named(r.metric, metricName(r.metric) + (countsBlocks(r.metric) || r.depth === null ? "" : `, ${depthName(r.metric)} ${r.depth}`))), h("td", { class: "num" }, withUnit(withError(r.value, r.stderr), r.metric), this.tokenAt(r)), h("td", { class: "num" }, short(median(r)))),
          ),
        ),
      ),
    );
  }

  /** The token of the sample shown, where a number is a position. */
  private tokenAt(r: Row): HTMLElement | null {
    const text = /position$/.test(r.metric) ? this.scan.data.shown?.tokens[r.value] : undefined;
    return text === undefined ? null : h("span", { title: "in the sample shown" }, " ", h("bdi", { class: "token" }, token(text)));
  }

  private attended(shown: Shown, views: ShownLayer): HTMLElement {
    const list = views.received[this.head] ?? [];
    const most = list[0]?.[1] ?? 1;
    return h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { class: "numbers" },
        h("caption", {}, `What it attends to in sample ${shown.sample}: mean attention from the queries that may see the token; of a causal head, tokens that a quarter of the queries see`),
        h("thead", {}, h("tr", {}, h("th", { class: "num" }, "position"), h("th", {}, "token"), h("th", { class: "num" }, "attention"), h("th", { "aria-hidden": "true" }))),
        h(
          "tbody",
          {},
          ...list.map(([position, value]) =>
            h(
              "tr",
              {},
              h("td", { class: "num" }, position),
              h("td", {}, h("bdi", { class: "token" }, token((shown.keys ?? shown).tokens[position]))),
              h("td", { class: "num" }, short(value)),
              h("td", { class: "bar", "aria-hidden": "true" }, h("span", { style: `width: ${(100 * value) / most}%` })),
            ),
          ),
        ),
      ),
    );
  }
}
