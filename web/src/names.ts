// Names as people read them. The exact one, which `rankscope plot`, --threshold and metrics.csv know, is always on hover.
// They stand in src/report/names.json, from which `rankscope plot` has them, too.
import words from "../../src/report/names.json";
import { h, outside } from "./dom";

type Words = Record<string, string>;
const metrics: Words = words.metrics;
const units: Words = words.units;
const parts: Words = words.parts;
const variants: Words = words.variants;
const single: Words = words.words;
const depths: Words = words.depths;

const lookUp = (map: Words, name: string): string | undefined => (Object.hasOwn(map, name) ? map[name] : undefined);

/** A sampled spectrum is named as the whole one: "effective_rank_rows256". */
const rows = /_rows(\d+)$/;

/** "effective_rank_rel" as "Effective rank (share)"; a metric that has no such name keeps its own, word by word. */
export function metricName(metric: string): string {
  const known = lookUp(metrics, metric.replace(rows, ""));
  const sampled = rows.exec(metric);
  if (known !== undefined) return sampled ? `${known}, of ${sampled[1] ?? ""} rows` : known;
  const text = metric.split("_").filter((word) => word !== "rel").map((word) => lookUp(single, word) ?? word).join(" ");
  return outside(/_rel(_|$)/.test(metric) ? `${text} (share)` : text);
}

export const unitOf = (metric: string): string => lookUp(units, metric) ?? "";

/** What the depth of a metric counts: blocks for most, heads for a pruning curve. */
export const depthName = (metric: string): string => Object.entries(depths).find(([start]) => metric.startsWith(start))?.[1] ?? "depth (blocks passed)";
export const countsBlocks = (metric: string): boolean => !Object.keys(depths).some((start) => metric.startsWith(start));

/** "nats" behind a number that has them. */
export const withUnit = (text: string, metric: string): string => (unitOf(metric) === "" ? text : `${text} ${unitOf(metric)}`);

/** A metric as the label of an axis. */
export const axisName = (metric: string): string => (unitOf(metric) === "" ? metricName(metric) : `${metricName(metric)}, ${unitOf(metric)}`);

/** "-skip+mlp" as "without skips and MLP". */
export function variantName(variant: string): string {
  const known = lookUp(variants, variant);
  if (known !== undefined) return known;
  const [, how, heads] = /^-heads?(-mean|-bare)?:(.+)$/.exec(variant) ?? [];
  if (heads !== undefined) return outside(`${heads.replaceAll("+", ", ")} ${how === "-mean" ? "as their mean" : how === "-bare" ? "as their biases" : "taken out"}`);
  const rank = /^rank:(?:(qk|ov)=)?(\d+)$/.exec(variant);
  if (rank) return `every head${rank[1] ? `'s ${rank[1].toUpperCase()} map` : ""} cut to rank ${rank[2] ?? ""}`;
  if (variant.startsWith("-")) return outside(`without ${variant.slice(1).split("+").map((p) => lookUp(parts, p) ?? p).join(" and ")}`);
  return outside(variant);
}

const places: [RegExp, (block: string) => string][] = [
  [/^hook_resid_pre$/, (b) => (b === "0" ? "embeddings" : `before block ${b}`)],
  [/^hook_resid_mid$/, (b) => `between attention and MLP of block ${b}`],
  [/^hook_resid_post$/, (b) => `after block ${b}`],
  [/^ln1\.hook_normalized$/, (b) => `what attention of block ${b} reads`],
  [/^ln2\.hook_normalized$/, (b) => `what the MLP of block ${b} reads`],
  [/^attn\.hook_pattern$/, (b) => `attention of block ${b}`],
  [/^attn\.hook_mixer$/, (b) => `what multiplies the values of block ${b}`],
  [/^attn\.hook_gate$/, (b) => `gates of attention, block ${b}`],
  [/^attn\.hook_state$/, (b) => `state of attention, block ${b}`],
  [/^attn\.hook_attn_scores$/, (b) => `attention scores of block ${b}`],
  [/^attn\.hook_result$/, (b) => `what heads of block ${b} write`],
  [/^attn$/, (b) => `weights of attention, block ${b}`],
  [/^hook_attn_out$/, (b) => `what attention of block ${b} writes`],
  [/^hook_mlp_out$/, (b) => `what the MLP of block ${b} writes`],
  [/^mlp\.hook_pre$/, (b) => `in the MLP of block ${b}`],
  [/^mlp\.hook_post$/, (b) => `behind the activation of block ${b}`],
];

/** "blocks.3.hook_resid_post" as "after block 3"; without a number it is a site of every block. */
export function siteName(site: string): string {
  if (site === "ln_final.hook_normalized") return "final norm";
  if (site === "unembed.hook_out") return "predictions";
  const [, block, name] = /^blocks\.(\d+)\.(.+)$/.exec(site) ?? [];
  const found = places.find(([pattern]) => pattern.test(name ?? site));
  if (!found) return outside(site);
  return block === undefined ? found[1]("each").replace("block each", "each block") : found[1](block);
}

/** A readable name with the exact one on hover. */
export const named = (exact: string, readable: string): HTMLElement => h("span", { title: exact, class: "named" }, readable);
