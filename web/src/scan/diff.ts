// Two scans of the same tokens, pair by pair: what changed most, and whether the change is larger than its error.
import { type DiffData, toNumber } from "../data";
import { choice, h, outside } from "../dom";
import { headName } from "../format";
import { metricName, siteName, variantName } from "../names";
import { Table, type Value } from "../table";

/** A change in standard errors, as src/report/diff.cpp has it: of weights, behind which no samples stand, any change is sure; one pair tells nothing. */
const errors = (delta: number, error: number, n: number): number => (delta === 0 ? 0 : Number.isNaN(error) ? (n > 0 ? NaN : Infinity) : Math.abs(delta) / error);

export function diff(data: DiffData, open: (layer: number, head: number) => void): HTMLElement {
  const metrics = [...new Set(data.rows.map((r) => r.metric))].sort();
  const rows = (metric: string): Value[][] =>
    data.rows
      .filter((r) => metric === "" || r.metric === metric)
      .map((r) => {
        const error = toNumber(r.stderr);
        const place = (r.stream && `${r.stream} `) + (r.layer === null ? r.site : r.head === null ? `L${r.layer}` : headName(r.layer, r.head));
        return [place, r.variant, r.metric, r.site, r.tokens, r.a, r.b, r.delta, error, errors(r.delta, error, r.n), r.n];
      });
  const table = new Table({
    name: "diff",
    caption: `Paired differences, ${data.b} minus ${data.a}`,
    columns: [
      { title: "place" },
      { title: "variant", minor: true, name: variantName },
      { title: "metric", name: metricName },
      { title: "site", minor: true, name: siteName },
      { title: "tokens", minor: true },
      { title: "first", numeric: true, minor: true },
      { title: "second", numeric: true, minor: true },
      { title: "change", numeric: true },
      { title: "stderr", numeric: true, hint: "of the paired differences", minor: true },
      { title: "errors", numeric: true, hint: "change over its standard error" },
      { title: "n", numeric: true, minor: true },
    ],
    rows: rows(""), // in the order of `rankscope diff`: what changed by next to nothing stands last, however surely
    search: true,
    pick: (row) => {
      const [, layer, head] = /^L(\d+)H(\d+)$/.exec(String(row[0])) ?? [];
      return layer === undefined ? undefined : () => open(Number(layer), Number(head));
    },
  });
  const notes = data.notes.map((note) => h("p", { class: "note" }, outside(note)));
  return h("div", {}, ...notes, h("div", { class: "controls" }, choice("metric", [["", "all"], ...metrics.map((m): [string, string] => [m, metricName(m)])], "", (m) => table.update(rows(m)))), table.element);
}
