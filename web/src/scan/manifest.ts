// Where the numbers come from: model, input, parity, time and memory, and the whole manifest below.
import { type ScanData } from "../data";
import { h, outside } from "../dom";
import { bytes, counted, seconds, short } from "../format";
import { Table, type Value } from "../table";

const word = (x: unknown): string => (typeof x === "string" ? x : typeof x === "number" || typeof x === "boolean" ? String(x) : JSON.stringify(x));

interface Parity {
  checked?: unknown;
  how?: unknown;
  against?: unknown;
  agrees?: unknown;
  worst?: unknown;
  at?: unknown;
  tolerance?: unknown;
  layers?: unknown;
}
const isObject = (x: unknown): x is Record<string, unknown> => typeof x === "object" && x !== null && !Array.isArray(x);
const number = (x: unknown): string => (typeof x === "number" ? short(x) : "not a number");

/** Agreement with another implementation: what was found, or how to look. */
function parityText(parity: unknown): unknown {
  if (!isObject(parity)) return parity;
  const p: Parity = parity;
  if (p.checked !== true) return `not checked${typeof p.how === "string" ? `; to check: ${p.how}` : ""}`;
  const count = Array.isArray(p.layers) ? p.layers.length : 0;
  return `${p.agrees === true ? "agrees" : "DIFFERS"}: worst error ${number(p.worst)} of the largest value, at ${word(p.at)}; tolerance ${number(p.tolerance)}, ${count} tensors of ${word(p.against)}`;
}

/** The error of every tensor that was compared. */
function parityTable(parity: unknown): HTMLElement | null {
  const layers = isObject(parity) && Array.isArray(parity["layers"]) ? parity["layers"].filter(isObject) : [];
  if (layers.length === 0) return null;
  const value = (x: unknown): Value => (typeof x === "number" ? x : null);
  const table = new Table({
    name: "parity",
    caption: "Every tensor that was compared with the other implementation",
    columns: [{ title: "tensor" }, { title: "largest error", numeric: true, minor: true }, { title: "mean error", numeric: true, minor: true }, { title: "largest value", numeric: true, minor: true }, { title: "ratio", numeric: true }],
    rows: layers.map((l) => [word(l["tensor"] ?? ""), value(l["largest"]), value(l["mean"]), value(l["magnitude"]), value(l["relative"])]),
    sort: [4, "down"],
    pageSize: 12,
  });
  return h("details", {}, h("summary", {}, "parity, layer by layer"), table.element);
}

export function manifest(data: ScanData): HTMLElement {
  const m = data.manifest;
  const input = (m["input"] ?? {}) as Record<string, unknown>;
  const entries: [string, string][] = [];
  // A manifest may hold anything: what is no number is shown as it is.
  const add = (name: string, value: unknown, show?: (v: number) => string): void => {
    if (value !== undefined && value !== null && value !== "") entries.push([name, show && typeof value === "number" ? show(value) : word(value).trim()]);
  };
  add("model", m["model"]);
  add("network", m["spec"]);
  add("input", input["what"]);
  add("tokens", input["tokens"]);
  add("token ids", input["ids"]);
  for (const [file, hash] of Object.entries((m["weights"] ?? {}) as Record<string, string>)) add(file, hash);
  for (const [file, hash] of Object.entries((m["tokenizer"] ?? {}) as Record<string, string>)) add(file, hash);
  add("parity", parityText(m["parity"]));
  add("command", m["command"]);
  add("device", `${word(m["device"] ?? "")} ${word(m["dtype"] ?? "")}, ${counted(word(m["threads"] ?? "?"), "thread")}`);
  add("time", m["wall_seconds"], seconds);
  add("peak memory", m["peak_memory_bytes"], bytes);
  add("numerical rank", m["numerical_rank_tolerance"]);
  add("seed", m["seed"]);
  add("versions", `rankscope ${word(m["rankscope"] ?? "?")}, torch ${word(m["torch"] ?? "?")}, schema ${word(m["schema"] ?? "?")}`);
  const { metrics: _, ...rest } = m;
  return h(
    "div",
    {},
    h("dl", { class: "manifest" }, ...entries.flatMap(([name, value]) => [h("dt", {}, outside(name)), h("dd", {}, h("bdi", {}, value.split("\n").map(outside).join("\n")))])),
    parityTable(m["parity"]),
    h("details", {}, h("summary", {}, "manifest.json"), h("pre", {}, JSON.stringify(rest, null, 2).split("\n").map(outside).join("\n"))),
  );
}
