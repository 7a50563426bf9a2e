// The page of a study: its figure in the paper's axes, its trials, how they learned and what they cost.
import { type Curve, drawCurves } from "../charts";
import { type StudyData, toNumber } from "../data";
import { choice, h, outside, section } from "../dom";
import { Figure, type FigureSpec } from "../figure";
import { seconds, short } from "../format";
import { type View } from "../scan/view";
import { Table } from "../table";
import { dashes, look, type Theme } from "../theme";
import { means, type Series, Study } from "./study";

const mostCurves = 60;
const remembered = new Map<string, string>(); // what was chosen, over live updates

function paperFigure(studies: Study[]): HTMLElement {
  const study = studies[0] as Study;
  const f = study.data.figure;
  const several = studies.length > 1;
  const keys = [...new Set(studies.flatMap((s) => [...s.series(f.y), ...s.published()].map((x) => x.key)))];
  const curves = (t: Theme): Curve[] => {
    const out: Curve[] = [];
    for (const [si, s] of studies.entries()) {
      const label = (key: string): string => (several ? `${s.data.name}: ${key}` : key);
      for (const series of s.series(f.y)) {
        const { colour } = look(keys.indexOf(series.key), t);
        out.push({
          name: label(series.key),
          colour,
          dash: dashes[si] ?? "",
          dots: false,
          points: means(series, f.log_y).map((p) => ({ x: p.x, y: p.y, says: `${label(series.key)} · ${f.x} ${short(p.x)} · mean of ${p.n} seed${p.n === 1 ? "" : "s"} ${short(p.y)}` })),
        });
        out.push({
          name: `${label(series.key)}, seeds`,
          legend: false,
          colour,
          line: false,
          points: series.points.map((p) => ({ x: p.x, y: p.y, says: `${label(series.key)} · ${f.x} ${short(p.x)} · ${f.y} ${short(p.y)} · trial ${p.trial?.id ?? ""}` })),
        });
      }
    }
    for (const [i, series] of study.published().entries()) {
      const { colour } = look(keys.indexOf(series.key), t);
      out.push({
        name: `${series.key}, published`,
        legend: i === 0 ? "published" : false,
        colour,
        dash: "2 4",
        width: 1.4,
        hollow: true,
        points: series.points.map((p) => ({ x: p.x, y: p.y, says: `published · ${series.key} · ${f.x} ${short(p.x)} · ${short(p.y)}${p.note ? ` · ${p.note}` : ""}` })),
      });
    }
    const bound = f.bound;
    if (bound !== null)
      for (const [i, series] of study.series(bound).entries()) {
        const { colour } = look(keys.indexOf(series.key), t);
        out.push({
          name: `${series.key}, bound`,
          legend: i === 0 ? "bound" : false,
          colour,
          dash: "1 3",
          width: 1.4,
          dots: false,
          points: means(series, f.log_y).map((p) => ({ x: p.x, y: p.y, says: `bound · ${series.key} · ${f.x} ${short(p.x)} · ${short(p.y)}` })),
        });
      }
    return out;
  };
  return new Figure({
    name: "figure",
    title: `${f.y} against ${f.x}`,
    about: "Our trials with every seed, published points as rings, the bound dotted.",
    hint: "Lines: mean over seeds. Dots: seeds. Rings: published. Dotted: bound.",
    draw: (t, width) => drawCurves(curves(t), { xLabel: f.x, yLabel: f.y, logX: f.log_x, logY: f.log_y, height: Math.max(280, Math.min(430, width * 0.5)) }, t, width, true),
    table: () => ({
      columns: ["source", "group", f.x, f.y, "trial", "note"],
      rows: [
        ...studies.flatMap((s) => s.series(f.y).flatMap((g) => g.points.map((p) => [s.data.name, g.key, p.x, p.y, p.trial?.id ?? "", ""]))),
        ...study.published().flatMap((g) => g.points.map((p) => ["published", g.key, p.x, p.y, "", p.note ?? ""])),
      ],
    }),
  }).element;
}

function learningCurves(study: Study): HTMLElement | null {
  const trials = study.trials.filter((t) => Object.hasOwn(study.data.curves, t.id));
  if (trials.length === 0) return null;
  const groups = [...new Set(trials.map((t) => study.keyOf(t)))];
  const slot = (name: string): string => `${study.data.name}/${name}`;
  let chosen = remembered.get(slot("group")) ?? groups[0] ?? "";
  if (!groups.includes(chosen)) chosen = groups[0] ?? "";
  let what: "test_mse" | "loss" = remembered.get(slot("what")) === "loss" ? "loss" : "test_mse";
  const mine = (): typeof trials => trials.filter((t) => study.keyOf(t) === chosen).slice(0, mostCurves);
  const x = study.data.figure.x;
  const spec = (): FigureSpec => ({
    name: "curves",
    title: "Learning curves",
    about: `${what} against step of the trials with ${chosen}.`,
    hint: `${mine().length} trials of ${chosen}; one curve a trial.`,
    draw: (t, width) =>
      drawCurves(
        mine().map((trial, i) => {
          const c = study.data.curves[trial.id];
          const value = String(trial.get(x) ?? "");
          const name = `${x}=${value} ${trial.get("seed") === null ? "" : `seed ${String(trial.get("seed"))}`}`.trim();
          const values = [...new Set(mine().map((other) => String(other.get(x) ?? "")))];
          const first = mine().findIndex((other) => String(other.get(x) ?? "") === value) === i;
          return {
            name,
            legend: first ? `${x}=${value}` : false,
            ...look(values.indexOf(value), t), // seeds of one point share its colour
            width: 1.5,
            dots: false,
            points: (c?.step ?? []).map((step, k) => ({ x: step, y: toNumber(c?.[what][k]), says: `${name} · step ${step} · ${what} ${short(toNumber(c?.[what][k]))} · ${trial.state}` })),
          };
        }),
        { xLabel: "step", yLabel: what, logY: true },
        t,
        width,
        true,
      ),
    table: () => ({
      columns: ["trial", "step", "loss", "test_mse"],
      rows: mine().flatMap((trial) => {
        const c = study.data.curves[trial.id];
        return (c?.step ?? []).map((step, k) => [trial.id, step, toNumber(c?.loss[k]), toNumber(c?.test_mse[k])]);
      }),
    }),
  });
  const figure = new Figure(
    spec(),
    choice("trials", groups, chosen, (v) => ((chosen = v), remembered.set(slot("group"), v), figure.update(spec()))),
    choice("show", ["test_mse", "loss"], what, (v) => ((what = v === "loss" ? "loss" : "test_mse"), remembered.set(slot("what"), v), figure.update(spec()))),
  );
  return figure.element;
}

function cost(study: Study): HTMLElement | null {
  const x = ["flops", "seconds", "wall_seconds"].find((c) => study.trials.some((t) => t.number(c) > 0));
  if (!x) return null;
  const y = study.data.figure.y;
  const groups: Series[] = study.series(y);
  return new Figure({
    name: "cost",
    title: `${y} against cost`,
    about: `One point a trial, against its ${x}.`,
    hint: "One point a trial.",
    draw: (t, width) =>
      drawCurves(
        groups.map((g, i) => ({
          name: g.key,
          ...look(i, t),
          line: false,
          points: g.points.map((p) => ({ x: p.trial?.number(x) ?? NaN, y: p.y, says: `${g.key} · trial ${p.trial?.id ?? ""} · ${x} ${short(p.trial?.number(x) ?? NaN)} · ${y} ${short(p.y)}` })),
        })),
        { xLabel: x, yLabel: y, logX: true, logY: study.data.figure.log_y },
        t,
        width,
        groups.length <= 12,
      ),
    table: () => ({ columns: ["trial", "group", x, y], rows: groups.flatMap((g) => g.points.map((p) => [p.trial?.id ?? "", g.key, p.trial?.number(x) ?? null, p.y])) }),
  }).element;
}

function tiles(study: Study): HTMLElement {
  const { states } = study.data;
  const total = study.trials.length;
  const done = states["done"] ?? 0;
  const time = study.trials.reduce((a, t) => a + (t.number("seconds") || t.number("wall_seconds") || 0), 0);
  const tile = (name: string, value: string): HTMLElement => h("div", { class: "tile", "data-tile": name }, h("b", {}, value), name);
  return h(
    "div",
    {},
    h("div", { class: "tiles" }, tile("trials", String(total)), ...Object.entries(states).map(([state, n]) => tile(outside(state), String(n))), time > 0 && tile("time in trials", seconds(time))),
    done < total && h("progress", { max: total, value: done, "aria-label": `${done} of ${total} trials done` }),
  );
}

export function studyView(data: StudyData[]): View {
  const studies = data.map((d) => new Study(d));
  const first = studies[0] as Study;
  const sections: HTMLElement[] = [section("study", "Question", ...studies.map((s) => h("div", {}, h("p", { class: "lead" }, outside(s.data.question || s.data.title)), tiles(s)))), section("figure", "Figure", paperFigure(studies))];
  const curves = studies.map(learningCurves).filter((x) => x !== null);
  if (curves.length > 0) sections.push(section("curves", "Learning curves", h("div", { class: "pair" }, ...curves)));
  const costs = studies.map(cost).filter((x) => x !== null);
  if (costs.length > 0) sections.push(section("cost", "Cost", h("div", { class: "pair" }, ...costs)));
  // What the figure is about comes first: on a phone the rest is out of sight.
  const ordered = (s: Study): number[] => {
    const { by, x, y, bound } = s.data.figure;
    const first = ["id", "state", ...by, x, y, bound ?? ""].map((name) => s.data.columns.indexOf(name)).filter((i) => i >= 0);
    return [...new Set([...first, ...s.data.columns.keys()])];
  };
  const numeric = (s: Study, i: number): boolean => s.data.trials.some((r) => typeof r[i] === "number");
  sections.push(
    section(
      "trials",
      "Trials",
      ...studies.map(
        (s) =>
          new Table({
            name: "trials",
            caption: `Every trial of ${s.data.name}`,
            columns: ordered(s).map((i) => ({ title: s.data.columns[i] ?? "", numeric: numeric(s, i) })),
            rows: s.data.trials.map((row) => ordered(s).map((i) => row[i] ?? null)),
            search: true,
          }).element,
      ),
    ),
  );
  return {
    title: studies.map((s) => outside(s.data.title || s.data.name)).join(" · "),
    subtitle: `study · ${first.trials.length} trials · ${first.data.states["done"] ?? 0} done`,
    sections,
    navigate: () => false,
  };
}
