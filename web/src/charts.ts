// The two kinds of plot the page is made of: curves over an axis, and a map of cells.
import * as Plot from "@observablehq/plot";
import { type Drawing, type Point, svgNode } from "./figure";
import { short, tick } from "./format";
import { type Theme } from "./theme";

export interface CurvePoint {
  x: number;
  y: number;
  low?: number;
  high?: number;
  says: string;
  pick?: () => void;
}

export interface Curve {
  name: string;
  colour: string;
  dash?: string;
  width?: number;
  dots?: boolean;
  line?: boolean; // default true
  hollow?: boolean; // dots drawn as rings
  legend?: string | false; // another name there, or no entry
  points: CurvePoint[];
}

export interface CurveOptions {
  xLabel: string;
  yLabel: string;
  logX?: boolean;
  logY?: boolean;
  wholeX?: boolean; // ticks at whole numbers
  rules?: { y: number; label: string }[];
  xDomain?: [number, number] | undefined; // shared by panels
  yDomain?: [number, number] | undefined;
  height?: number;
}

const base = (t: Theme): { style: Record<string, string> } => ({
  style: { color: t.ink, background: "none", fontFamily: "system-ui, sans-serif", fontSize: "11px", overflow: "visible" },
});

const legendRow = 16;

const ruler = document.createElement("canvas").getContext("2d");

/** The width of a text of a plot, in pixels. */
function textWidth(text: string): number {
  if (!ruler) return text.length * 7;
  ruler.font = "11px system-ui, sans-serif";
  return ruler.measureText(text).width;
}

/** Where the entries of a legend go: lines of at most `width` pixels. */
function layout(curves: Curve[], width: number): { x: number; line: number }[] {
  let x = 0;
  let line = 0;
  return curves.map((c) => {
    const size = 37 + textWidth(c.name);
    if (x > 0 && x + size > width) (x = 0), line++;
    const place = { x, line };
    x += size;
    return place;
  });
}

function drawLegend(svg: SVGSVGElement, curves: Curve[], places: { x: number; line: number }[], left: number, t: Theme): void {
  curves.forEach((c, i) => {
    const { x, line } = places[i] ?? { x: 0, line: 0 };
    const y = 10 + line * legendRow;
    if (c.line !== false) svg.append(svgNode("line", { x1: left + x, x2: left + x + 18, y1: y, y2: y, stroke: c.colour, "stroke-width": 2, "stroke-dasharray": c.dash ?? "" }));
    if (c.hollow) svg.append(svgNode("circle", { cx: left + x + 9, cy: y, r: 4, stroke: c.colour, "stroke-width": 1.6, fill: t.paper }));
    else if (c.line === false) svg.append(svgNode("circle", { cx: left + x + 9, cy: y, r: 2.6, fill: c.colour }));
    const text = svgNode("text", { x: left + x + 23, y: y + 4, fill: t.ink, "font-size": 11, "text-anchor": "start", "font-family": "system-ui, sans-serif" });
    text.textContent = c.name;
    svg.append(text);
  });
}

/** Powers of ten where there are several of them; 1, 2, 5 or every multiple of them where there are not. At most `room` would fit side by side. */
function logTicks(all: number[], room: number): number[] | number {
  const values = all.filter((v) => v > 0 && Number.isFinite(v));
  if (values.length === 0) return 6;
  const low = Math.min(...values) * (1 - 1e-9);
  const high = Math.max(...values) * (1 + 1e-9);
  const from = Math.floor(Math.log10(low));
  const to = Math.ceil(Math.log10(high));
  const step = Math.ceil((to - from) / 8);
  for (const factors of [[1], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]]) {
    const ticks: number[] = [];
    for (let k = from; k <= to; k += factors.length > 1 ? 1 : step) ticks.push(...factors.map((f) => f * 10 ** k).filter((x) => x >= low && x <= high));
    if (ticks.length >= 3) return spaced(ticks, Math.log(high / low) / room);
  }
  return 6;
}

/** Those that are not too near to the one before; the least distance is in logarithms. */
function spaced(ticks: number[], least: number): number[] {
  const out: number[] = [];
  for (const t of ticks) if (out.length === 0 || Math.log(t / (out.at(-1) ?? t)) >= least) out.push(t);
  return out;
}

/** Whole numbers from low to high, at most `room` of them. */
function wholeTicks(low: number, high: number, room: number): number[] {
  const least = (high - low) / Math.max(1, room);
  const step = [1, 2, 5].flatMap((f) => [0, 1, 2, 3, 4, 5, 6].map((k) => f * 10 ** k)).sort((a, b) => a - b).find((s) => s >= least) ?? least;
  const ticks: number[] = [];
  for (let x = Math.ceil(low / step) * step; x <= high; x += step) ticks.push(x);
  return ticks;
}

/** The end of a line across where its name goes: the right one, unless curves are there and not at the left one. */
function freeEnd(y: number, data: CurvePoint[], log: boolean): "left" | "right" {
  const at = (v: number): number => (log ? Math.log(v) : v);
  const xs = data.map((d) => d.x);
  const ys = [y, ...data.map((d) => d.y)].map(at);
  const [low, high] = [Math.min(...xs), Math.max(...xs)];
  const near = (Math.max(...ys) - Math.min(...ys)) / 10;
  const crowded = (end: number): boolean =>
    data.some((d) => Math.abs(d.x - end) <= (high - low) / 4 && at(Math.max(d.low ?? d.y, Number.MIN_VALUE)) - near < at(y) && at(y) < at(d.high ?? d.y) + near);
  return crowded(high) && !crowded(low) ? "left" : "right";
}

/** Whether numbers fit under their places on a logarithmic axis of that width. */
function fitSideBySide(steps: number[], width: number): boolean {
  const pixels = width / Math.log((steps.at(-1) ?? 1) / (steps[0] ?? 1));
  return steps.every((x, i) => i === 0 || Math.log(x / (steps[i - 1] ?? x)) * pixels >= (textWidth(tick(x)) + textWidth(tick(steps[i - 1] ?? x))) / 2 + 6);
}

interface Datum extends CurvePoint {
  name: string;
}

export function drawCurves(curves: Curve[], o: CurveOptions, t: Theme, width: number, alone: boolean): Drawing {
  const fits = (p: CurvePoint): boolean => Number.isFinite(p.x) && Number.isFinite(p.y) && (!o.logY || p.y > 0) && (!o.logX || p.x > 0);
  const shown = curves.map((c) => ({ ...c, points: c.points.filter(fits) })).filter((c) => c.points.length > 0);
  const data: Datum[] = shown.flatMap((c) => c.points.map((p) => ({ ...p, name: c.name })));
  const left = 58;
  const named = shown.filter((c) => c.legend !== false).map((c) => ({ ...c, name: c.legend || c.name }));
  const places = layout(named, width - left);
  const top = 22 + (alone ? (1 + Math.max(0, ...places.map((p) => p.line))) * legendRow : 0);
  const height = o.height ?? Math.max(220, Math.min(340, width * 0.55));
  const floor = Math.min(...data.map((d) => d.y));
  const edge = (d: CurvePoint, y: number | undefined): number => (y === undefined || !Number.isFinite(y) ? d.y : o.logY ? Math.max(y, floor / 10) : y);
  const steps = [...new Set(data.map((d) => d.x))].sort((a, b) => a - b);
  const widest = textWidth(tick(o.xDomain?.[1] ?? steps.at(-1) ?? 0));
  const wholes = o.wholeX && steps.length > 0 ? wholeTicks(o.xDomain?.[0] ?? steps[0] ?? 0, o.xDomain?.[1] ?? steps.at(-1) ?? 0, (width - left) / (14 + widest)) : undefined;
  const exact = steps.length <= 10 && steps.every((x) => tick(x).length <= 5) && fitSideBySide(steps, width - left - 14);
  const xTicks = !o.logX ? wholes : exact ? steps : logTicks(steps, (width - left) / 34);
  const ticks = o.logY && data.length > 0 ? logTicks([...(o.yDomain ?? data.map((d) => d.y)), ...(o.rules ?? []).map((r) => r.y)], (height - 64) / 14) : 6;
  // Labels as `text`: a tickFormat would lose those that a logarithmic scale finds too many, 8 among them.
  const marks: Plot.Markish[] = [
    Plot.gridY({ stroke: t.grid, strokeOpacity: 1, ticks }),
    Plot.axisY({ ticks, label: null, tickSize: 0, ...(o.logY ? { text: tick } : {}) }),
    Plot.axisX({ label: o.xLabel, labelAnchor: "center", labelArrow: "none", tickSize: 4, labelOffset: 34, ...(xTicks ? { ticks: xTicks, text: tick } : {}), }),
    Plot.text([o.yLabel], { frameAnchor: "top-left", dy: -20, dx: -left + 4, textAnchor: "start", fill: t.quiet }),
  ];
  for (const rule of o.rules ?? []) {
    if (o.logY && rule.y <= 0) continue;
    marks.push(Plot.ruleY([rule.y], { stroke: t.quiet, strokeDasharray: "2 4" }));
    const end = freeEnd(rule.y, data, o.logY ?? false);
    marks.push(Plot.text([rule.label], { y: rule.y, frameAnchor: end, textAnchor: end === "right" ? "end" : "start", dy: -6, fill: t.quiet, stroke: t.paper, strokeWidth: 4 } as Plot.TextOptions));
  }
  for (const c of shown) {
    if (c.points.some((p) => p.low !== undefined) && c.line !== false)
      marks.push(Plot.areaY(c.points, { x: "x", y1: (d: CurvePoint) => edge(d, d.low), y2: (d: CurvePoint) => edge(d, d.high), fill: c.colour, fillOpacity: 0.16 }));
    else if (c.points.some((p) => p.low !== undefined))
      marks.push(Plot.ruleX(c.points, { x: "x", y1: (d: CurvePoint) => edge(d, d.low), y2: (d: CurvePoint) => edge(d, d.high), stroke: c.colour }));
    if (c.line !== false) marks.push(Plot.lineY(c.points, { x: "x", y: "y", stroke: c.colour, strokeWidth: c.width ?? 2, strokeDasharray: c.dash ?? "", strokeLinejoin: "round" }));
    if (c.dots !== false) marks.push(Plot.dot(c.points, { x: "x", y: "y", r: c.hollow ? 4 : 2.6, ...(c.hollow ? { stroke: c.colour, strokeWidth: 1.6, fill: t.paper } : { fill: c.colour }) }));
  }
  const svg = Plot.plot({
    ...base(t),
    width,
    height: height + (alone ? top - 22 : 0),
    marginLeft: left,
    marginRight: 14,
    marginTop: top,
    marginBottom: 42,
    x: { type: o.logX ? "log" : "linear", ...(o.xDomain ? { domain: o.xDomain } : data.length === 0 ? { domain: [1, 10] } : {}) },
    y: { type: o.logY ? "log" : "linear", nice: !o.logY, ...(o.yDomain ? { domain: o.yDomain } : data.length === 0 ? { domain: [1, 10] } : {}) },
    marks,
  }) as unknown as SVGSVGElement & { scale(name: string): { apply(v: number): number } };
  if (alone) drawLegend(svg, named, places, left, t);
  const x = svg.scale("x");
  const y = svg.scale("y");
  const points: Point[] = data.map((d) => ({ x: x.apply(d.x), y: y.apply(d.y), says: d.says, series: d.name, ...(d.pick ? { pick: d.pick } : {}) }));
  return { svg, points };
}

export interface Cell {
  column: number;
  row: number;
  value: number;
  says: string;
  pick?: () => void;
}

export interface MapOptions {
  xLabel: string;
  yLabel: string;
  diverging?: boolean; // around zero
  log?: boolean;
}

const few = (values: number[], most: number): number[] => {
  const step = [1, 2, 4, 5, 8, 10, 16, 20, 32, 64, 128].find((s) => values.length / s <= most) ?? 256;
  return values.filter((v) => v % step === 0);
};

export function drawMap(cells: Cell[], o: MapOptions, t: Theme, width: number, alone: boolean): Drawing {
  const columns = [...new Set(cells.map((c) => c.column))].sort((a, b) => a - b);
  const rows = [...new Set(cells.map((c) => c.row))].sort((a, b) => a - b);
  const finite = cells.map((c) => c.value).filter((v) => Number.isFinite(v) && (!o.log || v > 0));
  const low = Math.min(...finite);
  const high = Math.max(...finite);
  const reach = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const left = 46;
  const size = Math.max(7, Math.min(46, (width - left - 14) / Math.max(1, columns.length)));
  const inner = size * columns.length;
  const bar = 46;
  const height = bar + rows.length * Math.max(8, Math.min(30, size)) + 40;
  const inset = size > 12 ? 1 : 0.4;
  const type = o.diverging ? "diverging" : o.log ? "log" : "linear";
  const svg = Plot.plot({
    ...base(t),
    width: Math.min(width, left + inner + 14),
    height,
    marginLeft: left,
    marginRight: 14,
    marginTop: bar,
    marginBottom: 36,
    padding: 0,
    x: { type: "band", domain: columns },
    y: { type: "band", domain: rows },
    color: {
      type,
      scheme: o.diverging ? "BuRd" : "viridis",
      domain: o.diverging ? [-reach, reach] : low === high ? [low - 1, high + 1] : [low, high],
      ...(o.diverging ? { pivot: 0 } : {}),
      unknown: t.grid,
    },
    marks: [
      Plot.axisX({ ticks: few(columns, inner / 27), label: o.xLabel, labelAnchor: "center", labelArrow: "none", tickSize: 0 }),
      Plot.axisY({ ticks: few(rows, (height - 80) / 12), label: null, tickSize: 0 }),
      Plot.cell(cells, { x: "column", y: "row", fill: "value", inset, rx: size > 12 ? 2 : 0 }),
    ],
  }) as unknown as SVGSVGElement & { scale(name: string): { apply(v: number): number & string; bandwidth?: number; interpolate?: unknown } };
  const colour = svg.scale("color");
  const text = (x: number, y: number, words: string, anchor: string, ink = t.quiet): void => {
    const node = svgNode("text", { x, y, fill: ink, "font-size": 11, "text-anchor": anchor, "font-family": "system-ui, sans-serif" });
    node.textContent = words;
    svg.append(node);
  };
  const wide = Math.min(220, Math.max(120, inner));
  const from = o.diverging ? -reach : low;
  const to = o.diverging ? reach : high;
  for (let i = 0; i < 48; i++) {
    const share = (i + 0.5) / 48;
    const value = o.log ? low * (high / low) ** share : from + (to - from) * share;
    svg.append(svgNode("rect", { x: left + (wide * i) / 48, y: 6, width: wide / 48 + 0.5, height: 9, fill: colour.apply(value) }));
  }
  if (finite.length > 0) {
    text(left, 28, short(from), "start");
    text(left + wide, 28, short(to), "end");
  }
  text(4, bar - 6, o.yLabel, "start");
  const x = svg.scale("x");
  const y = svg.scale("y");
  const w = x.bandwidth ?? size;
  const b = y.bandwidth ?? size;
  if (alone) svg.setAttribute("data-alone", "");
  return {
    svg,
    points: cells.map((c) => ({ x: Number(x.apply(c.column)) + w / 2, y: Number(y.apply(c.row)) + b / 2, box: [w, b], says: c.says, ...(c.pick ? { pick: c.pick } : {}) })),
  };
}
