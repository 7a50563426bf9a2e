// How the trials of a study learned, and what they cost.
import { drawCurves } from "../charts";
import { toNumber } from "../data";
import { choice } from "../dom";
import { Figure, type FigureSpec } from "../figure";
import { short } from "../format";
import { axisName, metricName } from "../names";
import { look, theme } from "../theme";
import { type Study, type Trial } from "./study";

const mostCurves = 60;
const remembered = new Map<string, string>(); // what was chosen, over live updates

export function learningCurves(study: Study): HTMLElement | null {
  const trials = study.trials.filter((t) => Object.hasOwn(study.data.curves, t.id));
  if (trials.length === 0) return null;
  const logged = [...new Set(trials.flatMap((t) => Object.keys(study.data.curves[t.id] ?? {})))].filter((k) => k !== "step").sort();
  const groups = [...new Set(trials.map((t) => study.keyOf(t)))];
  const choose = (name: string, options: string[], otherwise: string): string => {
    const chosen = remembered.get(`${study.data.name}/${name}`) ?? otherwise;
    return options.includes(chosen) ? chosen : (options[0] ?? "");
  };
  let group = choose("group", groups, groups[0] ?? "");
  let what = choose("what", logged, ["test_mse", "accuracy", "loss"].find((k) => logged.includes(k)) ?? "");
  const mine = (): Trial[] => trials.filter((t) => study.keyOf(t) === group).slice(0, mostCurves);
  const told = study.data.figure.x; // what tells the trials of a group apart
  const at = (trial: Trial, column: string, i: number): number => toNumber(study.data.curves[trial.id]?.[column]?.[i]);
  const spec = (): FigureSpec => ({
    name: "curves",
    title: `Learning curves of ${study.data.name}`,
    about: `${what} against step of the trials with ${group}.`,
    hint: `${mine().length} trials${group === "all" ? "" : ` of ${group}`}; one curve a trial.`,
    draw: (t, width) => {
      const values = [...new Set(mine().map((other) => String(other.get(told) ?? "")))];
      const seen = new Set<string>();
      return drawCurves(
        mine().map((trial) => {
          const value = String(trial.get(told) ?? "");
          const name = `${told}=${value}${trial.get("seed") === null ? "" : ` seed ${String(trial.get("seed"))}`}`;
          const first = !seen.has(value);
          seen.add(value);
          return {
            name,
            legend: first ? `${told}=${value}` : false,
            ...look(values.indexOf(value), t), // seeds of one point share its colour
            width: 1.5,
            dots: false,
            points: (study.data.curves[trial.id]?.["step"] ?? []).map((step, k) => ({ x: toNumber(step), y: at(trial, what, k), says: `${name} · step ${toNumber(step)} · ${what} ${short(at(trial, what, k))} · ${trial.state}` })),
          };
        }),
        { xLabel: "step", yLabel: axisName(what), wholeX: true, logY: /loss|mse|error/.test(what) },
        t,
        width,
        true,
      );
    },
    table: () => ({
      columns: ["trial", "step", ...logged],
      rows: mine().flatMap((trial) => (study.data.curves[trial.id]?.["step"] ?? []).map((step, k) => [trial.id, toNumber(step), ...logged.map((name) => at(trial, name, k))])),
    }),
  });
  const change = (slot: string, value: string): void => {
    remembered.set(`${study.data.name}/${slot}`, value);
    figure.update(spec());
  };
  const figure = new Figure(spec(), choice("trials", groups, group, (v) => ((group = v), change("group", v))), choice("show", logged, what, (v) => ((what = v), change("what", v))));
  return figure.element;
}

/** One point a trial: what it reached against what it took. */
export function cost(study: Study): HTMLElement | null {
  const x = ["flops", "seconds", "wall_seconds"].find((c) => study.trials.some((t) => t.number(c) > 0));
  const f = study.data.figure;
  const y = f.y;
  if (!x) return null;
  const done = study.trials.filter((t) => Number.isFinite(t.number(y)));
  // Dots have no dash: with more groups than colours they have those of the last key, and stay one where that is not enough.
  const last = f.by.at(-1) ?? "";
  const ways: ((trial: Trial) => string)[] = [(trial) => study.keyOf(trial), (trial) => `${last}=${String(trial.get(last) ?? "")}`, () => "trials"];
  const groupOf = ways.find((way) => new Set(done.map(way)).size <= theme().series.length) ?? ((): string => "trials");
  const told = new Set(done.map(groupOf)).size > 1;
  const groups = [...new Set(done.map(groupOf))];
  return new Figure({
    name: "cost",
    title: `${metricName(y)} against cost, ${study.data.name}`,
    exact: y,
    about: `One point a trial, against its ${metricName(x)}.`,
    hint: `One point a trial, against its ${metricName(x)}.`,
    draw: (t, width) =>
      drawCurves(
        groups.map((g, i) => ({
          name: g,
          ...look(i, t),
          line: false,
          points: done.filter((trial) => groupOf(trial) === g).map((trial) => ({ x: trial.number(x), y: trial.number(y), says: `${study.keyOf(trial)} · trial ${trial.id} · ${x} ${short(trial.number(x))} · ${y} ${short(trial.number(y))}` })),
        })),
        { xLabel: metricName(x), yLabel: axisName(y), logX: true, logY: f.log_y },
        t,
        width,
        told,
      ),
    table: () => ({ columns: ["trial", "group", x, y], rows: done.map((trial) => [trial.id, study.keyOf(trial), trial.number(x), trial.number(y)]) }),
  }).element;
}
