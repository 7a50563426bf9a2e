// What results are of: the model's own name, not the folder it lies in.
import { type ScanData } from "../data";
import { outside } from "../dom";

// Folders that hold a model and say nothing of it.
const nondescript = /^(model|models|package|packages|snapshot|snapshots|hf|weights|main|latest|checkpoint|checkpoints|pretrained|out|output|tmp|\.{1,2}|[0-9a-f]{12,})$/i;

/** The name in a path: of a cache of hub models the model's, else the last folder that says something. */
function nameIn(path: string): string {
  const folders = path.split("/").filter(Boolean);
  const hub = folders.map((f) => /^models--(?:.+?--)?(.+)$/.exec(f)?.[1]).find((f) => f !== undefined);
  if (hub) return hub;
  if (folders.at(-1) === "builtin" && folders.at(-2) === "models") return "The built-in model";
  const at = folders.findLastIndex((f) => !nondescript.test(f));
  const telling = folders[at] ?? folders.at(-1) ?? "";
  const last = folders.at(-1) ?? "";
  return at >= 0 && at < folders.length - 1 && /^checkpoint/i.test(last) ? `${telling} ${last}` : telling;
}

/** "nreimers/MiniLM-L6-H384-uncased" as "MiniLM-L6-H384-uncased". */
const lastOf = (name: string): string => name.split("/").filter(Boolean).pop() ?? "";

export function modelName(s: ScanData): string {
  const text = (key: string): string => (typeof s.manifest[key] === "string" ? (s.manifest[key] as string) : "");
  const own = lastOf(text("model_name"));
  return outside((own && !nondescript.test(own) && own) || nameIn(text("model")) || nameIn(text("init")) || s.name || "results");
}

/** Several results: the model once where it is the same, and what they are called. */
export function titleOf(all: ScanData[]): string {
  const models = [...new Set(all.map(modelName))];
  if (all.length === 1 || models.length === all.length) return models.join(" · ");
  return `${models.join(" · ")}: ${all.map((s) => outside(s.name)).join(" · ")}`;
}
