// The two kinds of plot the page is made of: curves over an axis, and a map of cells.
import * as Plot from "@observablehq/plot";
import { type AxisPlan, extent, linearTicks, logTicks, planAxis, wholeTicks } from "./axis";
import { type Drawing, type Point, svgNode } from "./figure";
import { short, tick } from "./format";
import { type Theme } from "./theme";

export interface CurvePoint {
  x: number;
  y: number;
  low?: number;
  high?: number;
  says: string;
  exact?: string; // the same in exact names
  marked?: boolean; // the one that is spoken of: a ring around it
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
  whole?: boolean; // the axis does not break: a spectrum is read by its slope
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

/** Waves across the plot where the scale of its y axis changes. */
function drawBreak(svg: SVGSVGElement, y: number, from: number, to: number, t: Theme): void {
  const wave = 8;
  let path = `M${from - 6},${y}`;
  for (let x = from - 6; x < to; x += wave) path += `q${wave / 4},-4 ${wave / 2},0t${wave / 2},0`;
  svg.append(svgNode("path", { d: path, fill: "none", stroke: t.paper, "stroke-width": 5 }), svgNode("path", { d: path, fill: "none", stroke: t.quiet, "stroke-width": 0.8, class: "break" }));
}

/** The end of a line across where its name goes: the right one, unless curves are there and not at the left one. */
function freeEnd(y: number, data: CurvePoint[], log: boolean): "left" | "right" {
  const at = (v: number): number => (log ? Math.log(v) : v);
  const xs = data.map((d) => d.x);
  const ys = [y, ...data.map((d) => d.y)].map(at);
  const { low, high } = extent(xs);
  const near = (extent(ys).high - extent(ys).low) / 10;
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
  const floor = extent(data.map((d) => d.y)).low;
  const edge = (d: CurvePoint, y: number | undefined): number => (y === undefined || !Number.isFinite(y) ? d.y : o.logY ? Math.max(y, floor / 10) : y);
  const steps = [...new Set(data.map((d) => d.x))].sort((a, b) => a - b);
  const widest = textWidth(tick(o.xDomain?.[1] ?? steps.at(-1) ?? 0));
  const right = Math.max(14, Math.min(40, widest) / 2 + 2); // half of the last number stands there
  const wholes = o.wholeX && steps.length > 0 ? wholeTicks(o.xDomain?.[0] ?? steps[0] ?? 0, o.xDomain?.[1] ?? steps.at(-1) ?? 0, (width - left) / (14 + widest)) : undefined;
  const exact = steps.length <= 10 && steps.every((x) => tick(x).length <= 5) && fitSideBySide(steps, width - left - right);
  const xTicks = !o.logX ? wholes : exact ? steps : logTicks(steps, (width - left) / 34);
  const yTicks = (height - 64) / 14;
  const ends = (c: Curve): number[] => c.points.flatMap((p) => [p.y, edge(p, p.low), edge(p, p.high)]);
  const plan: AxisPlan =
    data.length === 0
      ? { domain: [1, 10], share: 0, breakAt: null, ticks: [], beyond: [] }
      : o.yDomain
        ? { domain: o.yDomain, share: 0, breakAt: null, ticks: o.logY ? logTicks([...o.yDomain, ...(o.rules ?? []).map((r) => r.y)], yTicks) : linearTicks(o.yDomain[0], o.yDomain[1], 6), beyond: [] }
        : planAxis(shown.map(ends), o.rules ?? [], o.logY ?? false, yTicks, o.whole);
  const { ticks } = plan;
  // Labels as `text`: a tickFormat would lose those that a logarithmic scale finds too many, 8 among them.
  const marks: Plot.Markish[] = [
    Plot.gridY(ticks, { stroke: t.grid, strokeOpacity: 1 }),
    Plot.axisY(ticks, { label: null, tickSize: 0, text: tick }),
    Plot.axisX({ label: o.xLabel, labelAnchor: "center", labelArrow: "none", tickSize: 4, labelOffset: 34, ...(xTicks ? { ticks: xTicks, text: tick } : { tickFormat: tick }) }),
    Plot.text([o.yLabel], { frameAnchor: "top-left", dy: -20, dx: -left + 4, textAnchor: "start", fill: t.quiet }),
  ];
  const rules = (o.rules ?? []).filter((rule) => !(o.logY && rule.y <= 0) && !plan.beyond.includes(rule));
  for (const rule of rules) marks.push(Plot.ruleY([rule.y], { stroke: t.quiet, strokeDasharray: "2 4" }));
  // What is wide lies under what is thin, whatever curve it is of: no band hides a line, no line a word, no word a point.
  const banded = shown.filter((c) => c.points.some((p) => p.low !== undefined));
  for (const c of banded) {
    const ends = { x: "x", y1: (d: CurvePoint) => edge(d, d.low), y2: (d: CurvePoint) => edge(d, d.high) };
    marks.push(c.line === false ? Plot.ruleX(c.points, { ...ends, stroke: c.colour }) : Plot.areaY(c.points, { ...ends, fill: c.colour, fillOpacity: Math.min(0.16, 0.6 / banded.length) }));
  }
  for (const c of shown)
    if (c.line !== false) marks.push(Plot.lineY(c.points, { x: "x", y: "y", stroke: c.colour, strokeWidth: c.width ?? 2, strokeDasharray: c.dash ?? "", strokeLinejoin: "round" }));
  for (const rule of rules) {
    const end = freeEnd(rule.y, data, o.logY ?? false);
    marks.push(Plot.text([rule.label], { y: rule.y, frameAnchor: end, textAnchor: end === "right" ? "end" : "start", dy: plan.breakAt === null ? -6 : 9, fill: t.quiet, stroke: t.paper, strokeWidth: 4 } as Plot.TextOptions));
  }
  plan.beyond.forEach((rule, i) => {
    const up = rule.y > (plan.domain.at(-1) ?? 0);
    const end = freeEnd((up ? plan.domain.at(-1) : plan.domain[0]) ?? 0, data, o.logY ?? false);
    marks.push(Plot.text([`${rule.label} ${up ? "↑" : "↓"} off this axis`], { frameAnchor: `${up ? "top" : "bottom"}-${end}`, textAnchor: end === "right" ? "end" : "start", dx: end === "left" ? 4 : 0, dy: (up ? 4 : -4) + (up ? 14 : -14) * i, fill: t.quiet, stroke: t.paper, strokeWidth: 4 } as Plot.TextOptions));
  });
  for (const c of shown)
    if (c.dots !== false) marks.push(Plot.dot(c.points, { x: "x", y: "y", r: c.hollow ? 4 : 2.6, ...(c.hollow ? { stroke: c.colour, strokeWidth: 1.6, fill: t.paper } : { fill: c.colour }) }));
  for (const p of data.filter((d) => d.marked)) marks.push(Plot.dot([p], { x: "x", y: "y", r: 7, stroke: t.accent, strokeWidth: 2 }));
  const foot = height + (alone ? top - 22 : 0) - 42;
  const svg = Plot.plot({
    ...base(t),
    width,
    height: height + (alone ? top - 22 : 0),
    marginLeft: left,
    marginRight: right,
    marginTop: top,
    marginBottom: 42,
    x: { type: o.logX ? "log" : "linear", ...(o.xDomain ? { domain: o.xDomain } : data.length === 0 ? { domain: [1, 10] } : {}) },
    y: { type: o.logY ? "log" : "linear", domain: plan.domain, ...(plan.breakAt === null ? {} : { range: [foot, foot - plan.share * (foot - top), top] }) },
    marks,
  }) as unknown as SVGSVGElement & { scale(name: string): { apply(v: number): number } };
  if (alone) drawLegend(svg, named, places, left, t);
  const x = svg.scale("x");
  const y = svg.scale("y");
  const note = plan.breakAt === null ? "" : `The scale of the axis changes at ${tick(Number(plan.breakAt.toPrecision(2)))}.`;
  if (plan.breakAt !== null) drawBreak(svg, y.apply(plan.breakAt), left, width - right, t);
  const points: Point[] = data.map((d) => ({ x: x.apply(d.x), y: y.apply(d.y), says: d.says, series: d.name, ...(d.exact ? { exact: d.exact } : {}), ...(d.pick ? { pick: d.pick } : {}) }));
  return { svg, points, ...(note ? { note } : {}) };
}

export interface Cell {
  column: number;
  row: number;
  value: number;
  says: string;
  exact?: string; // the same in exact names
  marked?: boolean; // outlined
  pick?: () => void;
}

export interface MapOptions {
  xLabel: string;
  yLabel: string;
  unit?: string; // behind the numbers of the scale
  rule?: { value: number; label: string }; // a mark on the scale of colours
  diverging?: boolean; // around zero
  log?: boolean;
}

const few = (values: number[], most: number): number[] => {
  const step = [1, 2, 4, 5, 8, 10, 16, 20, 32, 64, 128].find((s) => values.length / s <= most) ?? 256;
  return values.filter((v) => v % step === 0);
};

/** A number that fits into a cell: three digits at most. */
export function brief(x: number): string {
  if (!Number.isFinite(x)) return "";
  const size = Math.abs(x);
  if (size >= 1e4 || (size > 0 && size < 1e-3)) return x.toExponential(0).replace("-", "−").replace("e+", "e").replace("e-", "e−");
  const text = size >= 100 ? x.toFixed(0) : size >= 10 ? x.toFixed(1) : size >= 0.995 ? x.toFixed(2) : x.toFixed(size < 0.0995 ? 3 : 2);
  return (Number(text) === 0 ? "0" : text.replace(/^(-?)0\./, "$1.")).replace("-", "−");
}

/** Black or white, whichever reads better on a colour: at least 4.5 to 1, as WCAG counts it. */
function inkOn(colour: string): string {
  const rgb = (colour.startsWith("#") ? (colour.slice(1).match(/../g) ?? []).map((c) => parseInt(c, 16)) : (colour.match(/[\d.]+/g) ?? []).map(Number)) as number[];
  const [r = 0, g = 0, b = 0] = rgb.map((c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4)); // light, not code
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

/** Where colours begin and end: at the data, unless a twentieth of the cells would take most of the scale from the others. */
function colourEnds(values: number[]): [number, number] {
  const sorted = [...values].sort((a, b) => a - b);
  const [low = 0, high = 1] = [sorted[0], sorted.at(-1)];
  const few = Math.floor(sorted.length / 20);
  const [inner, outer] = [sorted[few] ?? low, sorted[sorted.length - 1 - few] ?? high];
  const spread = outer - inner;
  return [inner - low > spread && spread > 0 ? inner : low, high - outer > spread && spread > 0 ? outer : high];
}

/** Around cells, inside of them where `inset` is positive; around those of a large network outside, apart from their neighbours. */
function outlines(cells: Cell[], inset: number, t: Theme): Plot.Markish[] {
  const at = { x: "column", y: "row", fill: "none", inset, rx: 2 };
  return [...(inset < 0 ? [Plot.cell(cells, { ...at, stroke: t.paper, strokeWidth: 6 })] : []), Plot.cell(cells, { ...at, stroke: t.accent, strokeWidth: 2 })];
}

/** As wide as its card; numbers stand in the cells where they fit. */
export function drawMap(cells: Cell[], o: MapOptions, t: Theme, width: number, alone: boolean): Drawing {
  const columns = [...new Set(cells.map((c) => c.column))].sort((a, b) => a - b);
  const rows = [...new Set(cells.map((c) => c.row))].sort((a, b) => a - b);
  const finite = cells.map((c) => c.value).filter((v) => Number.isFinite(v) && (!o.log || v > 0));
  const [low, high] = colourEnds(finite);
  const [cutLow, cutHigh] = [low > Math.min(...finite), high < Math.max(...finite)];
  const reach = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const left = 34;
  const size = Math.max(7, (width - left - 4) / Math.max(1, columns.length));
  const inner = size * columns.length;
  const tall = Math.max(8, Math.min(34, size, 560 / Math.max(1, rows.length)));
  const bar = 46;
  const height = bar + rows.length * tall + 40;
  const inset = size > 12 ? 1 : 0.4;
  const type = o.diverging ? "diverging" : o.log ? "log" : "linear";
  const svg = Plot.plot({
    ...base(t),
    width: left + inner + 4,
    height,
    marginLeft: left,
    marginRight: 4,
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
      clamp: true,
      unknown: t.grid,
    },
    marks: [
      Plot.axisX({ ticks: few(columns, inner / 27), label: o.xLabel, labelAnchor: "center", labelArrow: "none", tickSize: 0 }),
      Plot.axisY({ ticks: few(rows, (rows.length * tall) / 12), label: null, tickSize: 0 }),
      Plot.cell(cells, { x: "column", y: "row", fill: "value", inset, rx: size > 12 ? 2 : 0 }),
      ...outlines(cells.filter((c) => c.marked), Math.min(size, tall) > 12 ? inset + 0.5 : -2, t),
    ],
  }) as unknown as SVGSVGElement & { scale(name: string): { apply(v: number): number & string; bandwidth?: number; interpolate?: unknown } };
  const colour = svg.scale("color");
  const text = (x: number, y: number, words: string, anchor: string, ink = t.quiet, pixels = 11): void => {
    const node = svgNode("text", { x, y, fill: ink, "font-size": pixels, "text-anchor": anchor, "font-family": "system-ui, sans-serif", "pointer-events": "none" });
    node.textContent = words;
    svg.append(node);
  };
  const wide = Math.min(220, Math.max(120, inner / 2));
  const from = o.diverging ? -reach : low;
  const to = o.diverging ? reach : high;
  for (let i = 0; i < 48; i++) {
    const share = (i + 0.5) / 48;
    const value = o.log ? low * (high / low) ** share : from + (to - from) * share;
    svg.append(svgNode("rect", { x: left + (wide * i) / 48, y: 6, width: wide / 48 + 0.5, height: 9, fill: colour.apply(value) }));
  }
  if (finite.length > 0) {
    text(left, 28, `${cutLow && !o.diverging ? "≤ " : ""}${short(from)}`, "start");
    text(left + wide, 28, `${cutHigh && !o.diverging ? "≥ " : ""}${short(to)}${o.unit ? ` ${o.unit}` : ""}`, "end");
  }
  text(4, bar - 6, o.yLabel, "start");
  if (o.rule && o.rule.value > from && o.rule.value < to && !o.log) {
    const at = left + (wide * (o.rule.value - from)) / (to - from);
    svg.append(svgNode("path", { d: `M${at},3v15`, stroke: t.ink, "stroke-width": 1.5 }));
    text(left + wide + 8, 15, o.rule.label, "start");
    svg.append(svgNode("path", { d: `M${left + wide + 4},3v15`, stroke: t.ink, "stroke-width": 1.5 }));
  }
  const x = svg.scale("x");
  const y = svg.scale("y");
  const w = x.bandwidth ?? size;
  const b = y.bandwidth ?? size;
  const labels = cells.map((c) => brief(c.value));
  const widths = labels.map(textWidth).sort((a, b) => a - b);
  const usual = Math.max(1, widths[Math.floor(widths.length * 0.9)] ?? 1); // a few long ones are left out
  const pixels = Math.min(11, (11 * (w - 4)) / usual);
  if (pixels >= 8.5 && b >= 14)
    cells.forEach((c, i) => {
      // A number that is too long for its cell is rounded to a whole one, where that says something.
      const room = (label: string): number => Math.min(pixels, (11 * (w - 3)) / textWidth(label));
      const label = [labels[i] ?? "", Math.abs(c.value) >= 10 ? c.value.toFixed(0).replace("-", "−") : ""].find((l) => l !== "" && room(l) >= 8.5);
      if (label) text(Number(x.apply(c.column)) + w / 2, Number(y.apply(c.row)) + b / 2 + 3.5, label, "middle", inkOn(colour.apply(c.value)), room(label));
    });
  if (alone) svg.setAttribute("data-alone", "");
  return {
    svg,
    points: cells.map((c) => ({ x: Number(x.apply(c.column)) + w / 2, y: Number(y.apply(c.row)) + b / 2, box: [w, b], says: c.says, ...(c.exact ? { exact: c.exact } : {}), ...(c.pick ? { pick: c.pick } : {}) })),
  };
}

export interface Bar {
  name: string;
  exact: string;
  value: number;
  error: number;
  says: string;
  marked?: boolean;
}

/** Bars from the left, one below the other, each with its name above it and its number behind it. */
export function drawBars(bars: Bar[], o: { unit: string; rule?: { x: number; label: string } | undefined; log?: boolean }, t: Theme, width: number): Drawing {
  const step = 36;
  const numbers = bars.map((b) => `${short(b.value)}${o.unit ? ` ${o.unit}` : ""}`);
  const [left, right, top] = [4, 12 + Math.max(0, ...numbers.map(textWidth)), o.rule ? 16 : 2];
  const values = [...bars.map((b) => b.value), ...(o.rule ? [o.rule.x] : [])].filter((v) => Number.isFinite(v) && v > 0);
  const most = Math.max(...values, Number.MIN_VALUE);
  const least = Math.min(...values, most);
  const log = o.log ?? most / least > 100;
  const place = (v: number): number => (!(v > 0) ? 0 : log ? Math.max(0.02, Math.log((v / least) * 2) / Math.log((most / least) * 2)) : v / most) * (width - left - right);
  const svg = svgNode("svg", { width, height: top + bars.length * step + 6, viewBox: `0 0 ${width} ${top + bars.length * step + 6}`, "font-family": "system-ui, sans-serif", "font-size": 11 });
  const text = (x: number, y: number, words: string, ink: string): void => {
    const node = svgNode("text", { x, y, fill: ink });
    node.textContent = words;
    svg.append(node);
  };
  const points: Point[] = bars.map((bar, i) => {
    const y = top + i * step;
    const w = Math.max(2, place(bar.value));
    text(left, y + 11, bar.name, bar.marked ? t.ink : t.quiet);
    svg.append(svgNode("rect", { x: left, y: y + 16, width: w, height: 12, rx: 2, fill: bar.marked ? t.accent : (t.series[0] ?? t.ink) }));
    text(left + w + 6, y + 26, numbers[i] ?? "", t.ink);
    return { x: left + w / 2, y: y + 22, box: [w, 12], says: bar.says, exact: bar.exact };
  });
  if (o.rule && o.rule.x > 0) {
    const x = left + place(o.rule.x);
    // Beside the bars alone: the names between them stay whole.
    const marks = bars.map((_, i) => `M${x},${top + i * step + 13}v18`).join("");
    svg.append(svgNode("path", { d: marks, stroke: t.ink, "stroke-dasharray": "2 2" }));
    const label = svgNode("text", { x: Math.min(x, width - textWidth(o.rule.label) - 2), y: 10, fill: t.quiet });
    label.textContent = o.rule.label;
    svg.append(label);
  }
  return { svg, points };
}
