// The page of a study: its figure in the paper's axes, its trials, how they learned and what they cost.
import { type StudyData } from "../data";
import { h, outside, section } from "../dom";
import { seconds, short } from "../format";
import { metricName } from "../names";
import { type View } from "../scan/view";
import { Table } from "../table";
import { compareTable } from "./compare";
import { cost, learningCurves } from "./curves";
import { paperFigure } from "./figure";
import { means, Study } from "./study";

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

/** The two ends of what was found, over the figure: means over seeds. */
function ends(study: Study): HTMLElement | null {
  const { x, y, log_y } = study.data.figure;
  const points = study.series(y).flatMap((s) => means(s, log_y).map((p) => ({ ...p, key: s.key })));
  if (points.length < 2) return null;
  const sorted = points.sort((a, b) => a.y - b.y);
  const at = (p: (typeof points)[number] | undefined): string => (p ? `${short(p.y)} at ${x} ${short(p.x)}${p.key === "all" ? "" : ` (${p.key})`}` : "");
  return h("p", { class: "found", "data-found": "", title: y }, outside(`${metricName(y)} goes from ${at(sorted[0])} to ${at(sorted.at(-1))}.`));
}

/** Studies with the same axes go into one figure. */
function alike(studies: Study[]): Study[][] {
  const groups = new Map<string, Study[]>();
  for (const s of studies) {
    const { x, y, by } = s.data.figure;
    const axes = JSON.stringify([x, y, by]);
    groups.set(axes, [...(groups.get(axes) ?? []), s]);
  }
  return [...groups.values()];
}

export function studyView(data: StudyData[]): View {
  const studies = data.map((d) => new Study(d));
  const sections: HTMLElement[] = [
    section("study", "Question", ...studies.map((s) => h("div", { class: "question" }, studies.length > 1 && h("h3", {}, h("bdi", {}, outside(s.data.name))), h("p", { class: "lead" }, outside(s.data.question || s.data.title)), ends(s), s.data.paper !== "" && h("p", { class: "quiet" }, outside(s.data.paper)), tiles(s)))),
    section("figure", "Figure", ...alike(studies).flatMap((group) => [paperFigure(group), group.length > 1 && compareTable(group)])),
  ];
  const curves = studies.map(learningCurves).filter((x) => x !== null);
  if (curves.length > 0) sections.push(section("curves", "Learning curves", h("div", { class: "pair" }, ...curves)));
  const costs = studies.map(cost).filter((x) => x !== null);
  if (costs.length > 0) sections.push(section("cost", "Cost", h("div", { class: "pair" }, ...costs)));
  // What the figure is about comes first: on a phone the rest stands under it.
  const leading = (s: Study): number[] => ["id", "state", ...s.data.figure.by, s.data.figure.x, s.data.figure.y].map((name) => s.data.columns.indexOf(name)).filter((i) => i >= 0);
  const ordered = (s: Study): number[] => [...new Set([...leading(s), s.data.columns.indexOf(s.data.figure.bound ?? ""), ...s.data.columns.keys()])].filter((i) => i >= 0);
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
            columns: ordered(s).map((i) => ({ title: s.data.columns[i] ?? "", numeric: numeric(s, i), minor: !leading(s).includes(i) })),
            rows: s.data.trials.map((row) => ordered(s).map((i) => row[i] ?? null)),
            search: true,
          }).element,
      ),
    ),
  );
  return {
    title: [...new Set(studies.map((s) => outside(s.data.title || s.data.name)))].join(" · "),
    subtitle: studies.map((s) => `${studies.length > 1 ? outside(s.data.name) : "study"} · ${s.trials.length} trials · ${s.data.states["done"] ?? 0} done`).join(" · "),
    sections,
    navigate: () => false,
  };
}
