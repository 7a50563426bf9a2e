// Where the numbers come from: model, input, parity, time and memory, and the whole manifest below.
import { type ScanData } from "../data";
import { h, outside } from "../dom";
import { bytes, seconds } from "../format";

const word = (x: unknown): string => (typeof x === "string" ? x : typeof x === "number" || typeof x === "boolean" ? String(x) : JSON.stringify(x));

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
  add("parity", m["parity"]);
  add("command", m["command"]);
  add("device", `${word(m["device"] ?? "")} ${word(m["dtype"] ?? "")}, ${word(m["threads"] ?? "?")} threads`);
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
    h("details", {}, h("summary", {}, "manifest.json"), h("pre", {}, JSON.stringify(rest, null, 2).split("\n").map(outside).join("\n"))),
  );
}
