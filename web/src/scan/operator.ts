// `rankscope operator`: the spectrum of the frozen network, which token is made of which, and what that says of it.
import * as Plot from "@observablehq/plot";
import { drawCurves } from "../charts";
import { type Scan, type TokenMap } from "../data";
import { choice, h } from "../dom";
import { Figure, type FigureSpec } from "../figure";
import { short } from "../format";
import { metricName } from "../names";
import { Table } from "../table";
import { look } from "../theme";
import { viridis } from "../viridis";
import { Bins, drawGrid } from "./grid";

interface Singular {
  index: number;
  value: number;
  residual: number;
}

function singularValues(scan: Scan): Singular[] {
  const sigma = (suffix: string): Map<number, number> =>
    new Map(
      scan.rows.flatMap((r): [number, number][] => {
        const index = new RegExp(`^sigma_(\\d+)${suffix}$`).exec(r.metric)?.[1];
        return index === undefined ? [] : [[Number(index), r.value]];
      }),
    );
  const residuals = sigma("_residual");
  return [...sigma("")].map(([index, value]) => ({ index, value, residual: residuals.get(index) ?? NaN })).sort((a, b) => a.index - b.index);
}

function spectrum(values: Singular[], name: string, title: string, yLabel: string, hint: string, y: (s: Singular) => number): HTMLElement {
  return new Figure({
    name,
    title,
    about: hint,
    hint,
    draw: (t, width, alone) =>
      drawCurves(
        [{ name: title, ...look(0, t), points: values.map((s) => ({ x: s.index, y: y(s), says: `σ${s.index} = ${short(s.value)} · relative residual ${short(s.residual)}` })) }],
        { xLabel: "index", yLabel, wholeX: true, logY: true, whole: true, ...(values.length > 1 ? { xDomain: [1, values.length] } : {}) },
        t,
        width,
        alone,
      ),
    table: () => ({ columns: ["index", "singular_value", "relative_residual"], rows: values.map((s) => [s.index, s.value, s.residual]) }),
  }).element;
}

const readings: Record<string, [string, string]> = {
  in_out: ["part in the output", "u_i · T_ij x_j: what input token j adds to the predicted word at output token i (to the output itself where there is no head). Red adds, blue takes away."],
  in: ["size", "‖T_ij x_j‖: how large a part of output token i comes from input token j."],
};

/** The tokens of the map, as the manifest has them: it comes from outside and is not trusted. */
function mapTokens(scan: Scan, side: number): { sample: number; tokens: string[]; length: number } {
  const entry = scan.data.manifest["token_map"] as { sample?: unknown; tokens?: unknown } | undefined;
  const input = scan.data.manifest["input"] as { shown?: { tokens?: unknown } } | undefined;
  const texts = input?.shown?.tokens;
  const length = Number(entry?.tokens);
  return {
    sample: Number(entry?.sample) || 0,
    tokens: Array.isArray(texts) ? texts.map((text) => (typeof text === "string" ? text : "")) : [],
    length: Number.isInteger(length) && length >= side ? length : side,
  };
}

function tokenMap(scan: Scan, map: TokenMap): HTMLElement {
  const { side } = map;
  const shown = mapTokens(scan, side);
  const bins = new Bins(side, shown);
  let reading: "in_out" | "in" = "in_out";
  const spec = (): FigureSpec => {
    const values = map[reading].map((v) => v ?? NaN);
    const value = (i: number, j: number): number => values[i * side + j] ?? NaN;
    const peak = Math.max(...values.filter(Number.isFinite).map(Math.abs)) || 1;
    const signed = Plot.scale({ color: { type: "diverging-sqrt", scheme: "BuRd", domain: [-peak, peak] } });
    const colour = (i: number, j: number): string => {
      const v = value(i, j);
      if (!Number.isFinite(v)) return "#888";
      return reading === "in_out" ? String(signed?.apply(v)) : `rgb(${viridis(Math.sqrt(Math.abs(v) / peak)).join(",")})`;
    };
    const says = (i: number, j: number): string => `output ${bins.label(i)} ← input ${bins.label(j)} · ${short(value(i, j))}`;
    const pooled = side < shown.length ? `${shown.length} tokens pooled to ${side} × ${side}: mean over outputs, sum over inputs. ` : "";
    return {
      name: "token-map",
      title: `What each token of sample ${shown.sample} is made of`,
      about: "Outputs downwards, inputs to the right.",
      hint: `${readings[reading]?.[1] ?? ""} ${pooled}Rows are outputs, columns are inputs; colour by the square root, up to ${short(peak)}.`,
      draw: (t, width) => drawGrid(bins, bins, { colour, says }, t, Math.min(width, 560)),
      table: () => ({
        columns: ["output_first", "output_text", "input_first", "input_text", reading],
        rows: values.map((v, k) => {
          const [i, j] = [Math.floor(k / side), k % side];
          return [bins.first(i), bins.text(i), bins.first(j), bins.text(j), v];
        }),
      }),
    };
  };
  const figure: Figure = new Figure(
    spec(),
    choice("reading", Object.entries(readings).map(([key, [name]]): [string, string] => [key, name]), reading, (v) => {
      reading = v === "in" ? "in" : "in_out";
      figure.update(spec());
    }),
  );
  return figure.element;
}

export function operator(scan: Scan): HTMLElement | null {
  const values = singularValues(scan);
  if (values.length === 0) return null;
  const rest = scan.rows.filter((r) => r.site === "operator" && !/^sigma_\d/.test(r.metric));
  const table = new Table({
    name: "operator",
    caption: "What the map says",
    columns: [{ title: "metric", name: metricName }, { title: "value", numeric: true }, { title: "stderr", numeric: true }],
    rows: rest.map((r) => [r.metric, r.value, r.stderr]),
    pageSize: 30,
  });
  return h(
    "div",
    { class: "pair" },
    spectrum(values, "operator", "Singular values of the network", "singular value", "The largest singular values of the affine map y = T x + b that the network is at this input.", (s) => s.value),
    spectrum(values, "operator-residual", "How exact each of them is", "relative residual", "Relative residual of each singular value: the iteration stops at --tolerance or after --applications. None is drawn where it is exactly 0.", (s) => s.residual),
    scan.data.map && tokenMap(scan, scan.data.map),
    table.element,
  );
}
