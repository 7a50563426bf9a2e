// `rankscope plan`: what goes, layer by layer, and the loss after every measured step beside the budget.
import { type Curve, drawCurves } from "../charts";
import { type Scan } from "../data";
import { h, outside } from "../dom";
import { Figure } from "../figure";
import { short, tick, withError } from "../format";
import { Table } from "../table";
import { look, type Theme } from "../theme";

interface Step {
  what: string[];
  gained: number;
  stderr: number;
  upper: number;
  outcome: string;
}

type Json = Record<string, unknown>;

const object = (x: unknown): Json => (typeof x === "object" && x !== null ? (x as Json) : {});
const list = (x: unknown): unknown[] => (Array.isArray(x) ? x : []);
const number = (x: unknown): number => (typeof x === "number" ? x : NaN);
const text = (x: unknown): string => (typeof x === "string" ? x : "");

const stepsOf = (x: unknown): Step[] =>
  list(x)
    .map(object)
    .map((s) => ({ what: list(s["what"]).map(text), gained: number(s["gained"]), stderr: number(s["stderr"]), upper: number(s["upper"]), outcome: text(s["outcome"]) }));

const outcomes: [string, string][] = [
  ["taken", "taken"],
  ["undecided", "may cost too much: the text does not decide"],
  ["too much", "costs too much"],
];

function figure(name: string, title: string, steps: Step[], budget: number): HTMLElement | null {
  if (steps.length === 0) return null;
  const says = (s: Step, i: number): string => `step ${i + 1} · ${s.what.length === 1 ? outside(s.what[0] ?? "") : `${s.what.length} changes`} · ${withError(s.gained, s.stderr)}, at most ${Number.isFinite(s.upper) ? short(s.upper) : "anything"} · ${outside(s.outcome)}`;
  const curves = (t: Theme): Curve[] =>
    outcomes
      .map(([outcome, label], i): Curve => ({
        name: label,
        ...look(i, t),
        line: false,
        hollow: outcome !== "taken",
        points: steps.flatMap((s, k) => (s.outcome === outcome && Number.isFinite(s.gained) ? [{ x: k + 1, y: s.gained, ...(Number.isFinite(s.upper) ? { low: s.gained, high: s.upper } : {}), says: says(s, k) }] : [])),
      }))
      .filter((c) => c.points.length > 0);
  return new Figure({
    name,
    title,
    about: "What the loss gains after each measured step, the end of its interval above it, and the budget.",
    hint: "Dots: mean of the differences from the full network, sample by sample, nats a token. Lines up to the upper end of the interval: a step is taken when that is within the budget.",
    draw: (t, width) => drawCurves(curves(t), { xLabel: "measured step", yLabel: "loss gained", wholeX: true, rules: Number.isFinite(budget) ? [{ y: budget, label: "budget" }] : [] }, t, width, true),
    table: () => ({
      columns: ["step", "what", "gained", "stderr", "upper", "outcome"],
      rows: steps.map((s, i) => [i + 1, s.what.join("; "), s.gained, s.stderr, s.upper, s.outcome]),
    }),
  }).element;
}

function layers(plan: Json): HTMLElement {
  const rank = (l: Json, map: string): string => (l[map] === l[`full_${map}`] ? String(number(l[map])) : `${number(l[map])} of ${number(l[`full_${map}`])}`);
  return new Table({
    name: "plan",
    caption: "What the plan leaves of every layer",
    columns: [
      { title: "layer", numeric: true },
      { title: "heads out" },
      { title: "QK", hint: "rank of each head's QK map" },
      { title: "OV", hint: "rank of each head's OV map" },
      { title: "KV", hint: "width of the latent that keys and values share" },
      { title: "patterns", hint: "beside the plan: layers that could read with the patterns of the layer before", minor: true },
    ],
    rows: list(plan["layers"])
      .map(object)
      .map((l) => [number(l["layer"]), list(l["heads_out"]).map(number).join(" "), rank(l, "qk"), rank(l, "ov"), rank(l, "kv"), l["shares"] === true ? `could be those of layer ${number(l["layer"]) - 1}` : "its own"]),
    pageSize: 48,
  }).element;
}

function losses(plan: Json): HTMLElement {
  const said: Record<string, string> = { within: "within the budget", over: "over the budget", undecided: "too few samples to tell" };
  const line = (name: string, key: string, verdict: string): (string | number)[] => {
    const l = object(plan[key]);
    return [name, number(l["full"]), number(l["planned"]), number(l["gained"]), number(l["stderr"]), number(l["upper"]), number(l["samples"]), verdict];
  };
  return new Table({
    name: "plan-loss",
    caption: `Loss of the planned network, nats a token; the budget is ${tick(number(plan["budget"]))}`,
    columns: [{ title: "texts" }, { title: "full", numeric: true, minor: true }, { title: "planned", numeric: true, minor: true }, { title: "gained", numeric: true }, { title: "stderr", numeric: true, minor: true }, { title: "at most", numeric: true, hint: "the upper end of the interval" }, { title: "samples", numeric: true, minor: true }, { title: "says", minor: true }],
    rows: [line("of the search", "search", ""), line("held out: the search never read them", "held_out", said[text(plan["held_out_says"])] ?? ""), line("all", "all", "")],
  }).element;
}

/** The page of a plan; null where there is none. */
export function plan(scan: Scan): HTMLElement | null {
  if (scan.data.manifest["plan"] === undefined) return null;
  const of = object(scan.data.manifest["plan"]);
  const sharing = object(of["sharing"]);
  const budget = number(of["budget"]);
  const tile = (name: string, value: string): HTMLElement => h("div", { class: "tile", "data-tile": name }, h("b", {}, value), name);
  const percent = (x: number): string => `${(100 * x).toPrecision(3)} %`;
  return h(
    "div",
    {},
    h("div", { class: "tiles" }, tile("fewer parameters, in factored form", percent(number(of["parameters_saved"]) / number(of["parameters"]))), tile("less cache of keys and values", percent(number(of["cache_saved"]))), tile("budget, nats a token", tick(budget)), tile("forward passes of the search", tick(Math.round(number(of["passes"]))))),
    losses(of),
    layers(of),
    h("div", { class: "pair" }, figure("plan-steps", "The loss after every step", stepsOf(of["steps"]), budget), figure("plan-sharing", "Layers that read with the patterns of the one before", stepsOf(sharing["steps"]), budget)),
  );
}
