// A study's figure in the paper's own axes: seeds, their mean, what was published (or is a reference), the bound.
import { type Curve, type CurveOptions, drawCurves } from "../charts";
import { h, outside } from "../dom";
import { Figure } from "../figure";
import { short } from "../format";
import { axisName, metricName } from "../names";
import { dashes, look, type Theme } from "../theme";
import { means, type Series, type Study } from "./study";

/** What a figure draws of one study: its series, told apart by colour (the curve) and dash (study or protocol). */
interface Group {
  study: Study;
  prefix: string;
  series: Series[];
  published: Series[];
  bounds: Series[];
}

function extent(values: number[], log: boolean): [number, number] | undefined {
  const all = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
  return all.length > 1 ? [Math.min(...all), Math.max(...all)] : undefined;
}

/** With two or more keys in `by`, one panel for each value of the first, as the terminal has it. */
export function paperFigure(studies: Study[]): HTMLElement {
  const first = studies[0] as Study;
  const f = first.data.figure;
  const groups: Group[] = studies.map((study) => ({
    study,
    prefix: studies.length > 1 ? `${outside(study.data.name)}: ` : "",
    series: study.series(study.data.figure.y),
    published: study === first ? study.published() : [],
    bounds: f.bound !== null && study === first ? study.series(f.bound) : [],
  }));
  const every = groups.flatMap((g) => [...g.series, ...g.published, ...g.bounds]);
  const colours = [...new Set(every.map((s) => s.colour))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const rules = first.lines();
  const panels = [...new Set(every.map((s) => s.panel))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const points = every.flatMap((s) => s.points);
  const axes: CurveOptions = {
    xLabel: f.x,
    yLabel: axisName(f.y),
    logX: f.log_x,
    logY: f.log_y,
    rules,
    ...(panels.length > 1 ? { xDomain: extent(points.map((p) => p.x), f.log_x), yDomain: extent([...points.map((p) => p.y), ...rules.map((r) => r.y)], f.log_y) } : {}),
  };
  const figures = panels.map((panel, i) => {
    const mine = groups.map((g) => ({ ...g, series: g.series.filter((s) => s.panel === panel), published: g.published.filter((s) => s.panel === panel), bounds: g.bounds.filter((s) => s.panel === panel) }));
    const title = `${metricName(f.y)} against ${f.x}${panel ? `, ${panel}` : ""}`;
    return new Figure({
      name: i === 0 ? "figure" : `figure-${i + 1}`,
      title: outside(title),
      exact: f.y,
      about: "Our trials with every seed, published or reference points as rings, the bound dotted.",
      hint: ["Lines: mean over seeds. Dots: seeds.", rings(mine), ...first.data.changed.map((c) => `Our trials have ${outside(c)}.`), f.bound !== null && `Dotted: ${metricName(f.bound)}.`].filter(Boolean).join(" "),
      draw: (t, width) => drawCurves(mine.flatMap((g) => curvesOf(g, colours, t)), { ...axes, height: Math.max(280, Math.min(430, width * 0.5)) }, t, width, true),
      table: () => ({
        columns: ["source", "group", f.x, f.y, "trial", "note"],
        rows: mine.flatMap((g) => [
          ...g.series.flatMap((s) => s.points.map((p) => [g.study.data.name, s.key, p.x, p.y, p.trial?.id ?? "", ""])),
          ...g.published.flatMap((s) => s.points.map((p) => [s.rest, s.key, p.x, p.y, "", p.note ?? ""])),
        ]),
      }),
    }).element;
  });
  return figures.length === 1 ? (figures[0] as HTMLElement) : h("div", { class: figures.length === 3 ? "trio" : "pair" }, ...figures);
}

function rings(groups: Group[]): string {
  const kinds = [...new Set(groups.flatMap((g) => g.published.map((s) => s.rest)))];
  return kinds.length > 0 ? `Rings: ${kinds.join(" and ")}.` : "";
}

function curvesOf(g: Group, colours: string[], t: Theme): Curve[] {
  const { x, y, log_y, bound } = g.study.data.figure;
  const colourOf = (s: Series): string => look(colours.indexOf(s.colour), t).colour;
  const variant = (s: Series): string => `${g.prefix}${s.dash} ${s.rest}`;
  const variants = [...new Set(g.series.map(variant))];
  // Where the figure has one curve only, what else differs has the colours.
  const lookOf = (s: Series): number => (colours.length > 1 ? colours.indexOf(s.colour) : variants.indexOf(variant(s)));
  const out: Curve[] = [];
  for (const s of g.series) {
    const colour = look(lookOf(s), t).colour;
    const name = `${g.prefix}${[s.curve, s.rest].filter(Boolean).join(" ") || "ours"}`;
    out.push({
      name,
      colour,
      dash: dashes[variants.indexOf(variant(s)) % dashes.length] || look(lookOf(s), t).dash,
      dots: false,
      points: means(s, log_y).map((p) => ({ x: p.x, y: p.y, says: `${name} · ${x} ${short(p.x)} · mean of ${p.n} seed${p.n === 1 ? "" : "s"} ${short(p.y)}` })),
    });
    out.push({
      name: `${name}, seeds`,
      legend: false,
      colour,
      line: false,
      points: s.points.map((p) => ({ x: p.x, y: p.y, says: `${name} · ${x} ${short(p.x)} · ${y} ${short(p.y)} · trial ${p.trial?.id ?? ""}` })),
    });
  }
  // A colour that none of our curves explains gets a line of its own in the legend.
  const known = new Set(g.series.map((s) => s.colour));
  for (const [i, s] of g.published.entries())
    out.push({
      name: s.key,
      legend: !known.has(s.colour) ? `${s.curve}, ${s.rest} only` : i === g.published.findIndex((p) => known.has(p.colour) && p.rest === s.rest) ? s.rest : false,
      colour: colourOf(s),
      dash: "2 4",
      width: 1.4,
      hollow: true,
      points: s.points.map((p) => ({ x: p.x, y: p.y, says: `${s.rest} · ${s.curve ? `${s.curve} · ` : ""}${x} ${short(p.x)} · ${short(p.y)}${p.note ? ` · ${p.note}` : ""}` })),
    });
  for (const [i, s] of bounds(g, log_y).entries())
    out.push({
      name: `${s.key}, bound`,
      legend: i === 0 ? metricName(bound ?? "bound") : false,
      colour: s.shared ? t.quiet : colourOf(s),
      dash: "1 3",
      width: 1.4,
      dots: false,
      points: s.means.map((p) => ({ x: p.x, y: p.y, says: `${bound ?? "bound"} · ${s.shared ? "" : s.curve ? `${s.curve} · ` : ""}${x} ${short(p.x)} · ${short(p.y)}` })),
    });
  return out;
}

/** The bounds of a panel; one that all curves have, chance say, is drawn once and in no curve's colour. */
function bounds(g: Group, log: boolean): (Series & { means: { x: number; y: number }[]; shared: boolean })[] {
  const all = g.bounds.map((s) => ({ ...s, means: means(s, log), shared: false }));
  const values = all.flatMap((s) => s.means.map((p) => p.y));
  const constant = values.length > 0 && values.every((v) => Math.abs(v - (values[0] ?? 0)) < 1e-12);
  const longest = [...all].sort((a, b) => b.means.length - a.means.length)[0];
  return constant && longest ? [{ ...longest, shared: true }] : all;
}
