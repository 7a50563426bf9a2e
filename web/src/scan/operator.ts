// `rankscope operator`: the spectrum of the frozen network and what it says of it.
import { drawCurves } from "../charts";
import { type Scan } from "../data";
import { h } from "../dom";
import { Figure } from "../figure";
import { short } from "../format";
import { Table } from "../table";
import { look } from "../theme";

export function operator(scan: Scan): HTMLElement | null {
  const sigma = (suffix: string): { index: number; value: number }[] =>
    scan.rows.flatMap((r) => {
      const index = new RegExp(`^sigma_(\\d+)${suffix}$`).exec(r.metric)?.[1];
      return index === undefined ? [] : [{ index: Number(index), value: r.value }];
    });
  const values = sigma("").sort((a, b) => a.index - b.index);
  if (values.length === 0) return null;
  const residuals = new Map(sigma("_residual").map((s) => [s.index, s.value]));
  const figure = new Figure({
    name: "operator",
    title: "Singular values of the network",
    about: "The largest singular values of the frozen network, with the relative residual of each.",
    hint: "Of the affine map y = T x + b that the network is at this input.",
    draw: (t, width, alone) =>
      drawCurves([{ name: "singular values", ...look(0, t), points: values.map((s) => ({ x: s.index, y: s.value, says: `σ${s.index} = ${short(s.value)} · relative residual ${short(residuals.get(s.index) ?? NaN)}` })) }], { xLabel: "index", yLabel: "singular value", wholeX: true }, t, width, alone),
    table: () => ({ columns: ["index", "singular_value", "relative_residual"], rows: values.map((s) => [s.index, s.value, residuals.get(s.index) ?? null]) }),
  });
  const rest = scan.rows.filter((r) => r.site === "operator" && !/^sigma_\d/.test(r.metric));
  const table = new Table({
    name: "operator",
    caption: "What the map says",
    columns: [{ title: "metric" }, { title: "value", numeric: true }, { title: "stderr", numeric: true }],
    rows: rest.map((r) => [r.metric, r.value, r.stderr]),
    pageSize: 30,
  });
  return h("div", { class: "pair" }, figure.element, table.element);
}
