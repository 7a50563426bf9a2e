// Every head of the network in one map: a colour for any metric, a value to read, a head to open.
import { type Cell, drawMap } from "../charts";
import { type Row, type Scan } from "../data";
import { choice, h, outside } from "../dom";
import { Figure, type FigureSpec } from "../figure";
import { headName, short, withError } from "../format";
import { countsBlocks, metricName, unitOf, variantName, withUnit } from "../names";
import { ofJudgedTokens } from "./tracks";

const favourites = ["head_zero_kl", "head_zero_error", "head_estimate_kl", "attention_entropy", "effective_rank_rel", "mixing", "sink_mass", "head_output_rel", "qk_effective_rank", "ov_effective_rank"];

export class HeadMap {
  readonly element: HTMLElement;
  readonly empty: boolean;
  private readonly figure: Figure | undefined;
  private readonly controls = h("div", { class: "controls" });
  private metric = "";
  private variant: string;
  private run = "0"; // index of a scan, or "-1": that scan less the first

  constructor(private readonly scans: Scan[], private readonly open: (layer: number, head: number) => void) {
    const first = scans[0];
    this.variant = first?.variants[0] ?? "full";
    const metrics = this.metrics();
    this.empty = metrics.length === 0;
    this.metric = favourites.find((m) => metrics.includes(m)) ?? metrics[0] ?? "";
    if (scans.length === 2 && this.alike(1)) this.run = "-1";
    if (this.empty) {
      this.element = h("p", {}, "No lens looked at single heads.");
      return;
    }
    this.figure = new Figure(this.spec(), this.controls);
    this.fill();
    this.element = this.figure.element;
  }

  /** Heads are subtracted from those of the same place, and only where both networks have the same places. */
  private alike(i: number): boolean {
    const places = (scan: Scan | undefined): string => [...new Set((scan?.rows ?? []).filter((r) => r.head !== null && r.layer !== null).map((r) => headName(r.layer ?? 0, r.head ?? 0)))].sort().join(" ");
    return places(this.scans[0]) === places(this.scans[i]);
  }

  private scan(): Scan | undefined {
    return this.scans[Math.abs(Number(this.run))];
  }

  private get delta(): boolean {
    return this.run.startsWith("-");
  }

  private metrics(): string[] {
    // Of a curve for every head, over ranks say, no cell can show all.
    const single = (r: Row): boolean => r.head !== null && r.layer !== null && (countsBlocks(r.metric) || r.depth === null);
    return [...new Set((this.scans[0]?.rows ?? []).filter(single).map((r) => r.metric))].sort();
  }

  private rows(scan: Scan | undefined): Row[] {
    return ofJudgedTokens((scan?.of(this.metric) ?? []).filter((r) => r.variant === this.variant && r.head !== null && r.layer !== null));
  }

  private fill(): void {
    const again = (): void => {
      this.fill();
      this.figure?.update(this.spec());
    };
    const controls = [choice("metric", this.metrics().map((m): [string, string] => [m, metricName(m)]), this.metric, (m) => ((this.metric = m), again()))];
    const variants = [...new Set((this.scan()?.of(this.metric) ?? []).filter((r) => r.head !== null).map((r) => r.variant))];
    if (variants.length > 1) controls.push(choice("variant", variants.map((v): [string, string] => [v, variantName(v)]), this.variant, (v) => ((this.variant = v), again())));
    if (this.scans.length > 1) {
      const names = this.scans.map((s) => outside(s.data.name));
      const runs = names.flatMap((name, i): [string, string][] => [[String(i), name], ...(i > 0 && this.alike(i) ? [[`-${i}`, `${name} − ${names[0] ?? ""}`] as [string, string]] : [])]);
      controls.push(choice("show", runs, this.run, (r) => ((this.run = r), again())));
    }
    this.controls.replaceChildren(...controls);
  }

  private cells(): Cell[] {
    const pick = (r: Row): (() => void) => () => this.open(r.layer ?? 0, r.head ?? 0);
    if (!this.delta)
      return this.rows(this.scan()).map((r) => ({
        column: r.head ?? 0,
        row: r.layer ?? 0,
        value: r.value,
        says: `${headName(r.layer ?? 0, r.head ?? 0)} · ${metricName(this.metric)} ${withUnit(withError(r.value, r.stderr), this.metric)} · n ${r.n}`,
        exact: `${r.variant} ${r.site} ${r.metric}`,
        pick: pick(r),
      }));
    const before = new Map(this.rows(this.scans[0]).map((r) => [headName(r.layer ?? 0, r.head ?? 0), r]));
    return this.rows(this.scan()).flatMap((r) => {
      const name = headName(r.layer ?? 0, r.head ?? 0);
      const old = before.get(name);
      if (!old) return [];
      return [{ column: r.head ?? 0, row: r.layer ?? 0, value: r.value - old.value, exact: `${r.variant} ${r.site} ${r.metric}`, says: `${name} · ${metricName(this.metric)} ${short(old.value)} → ${short(r.value)} · change ${short(r.value - old.value)}`, pick: pick(r) }];
    });
  }

  private spec(): FigureSpec {
    const about = this.scans[0]?.about(this.metric);
    return {
      name: "heads",
      title: `${metricName(this.metric)}, every head`,
      exact: this.metric,
      about: about?.meaning ?? "",
      hint: `${about ? `${about.formula} · ${about.meaning} · ` : ""}click a head, or press Enter on it, to open it`,
      draw: (t, width, alone) => drawMap(this.cells(), { xLabel: "head", yLabel: "layer", unit: unitOf(this.metric), diverging: this.delta }, t, width, alone),
      table: () => ({
        columns: ["layer", "head", "metric", "value"],
        rows: this.cells().map((c) => [c.row, c.column, this.metric, c.value]),
      }),
    };
  }
}
