// Names as people read them. The exact one, which `rankscope plot`, --threshold and metrics.csv know, is always on hover.
import { h, outside } from "./dom";

const metrics: Record<string, string> = {
  attention_entropy: "Attention entropy",
  attn_out_sd_rel: "What attention writes differently into tokens (share)",
  effective_rank: "Effective rank",
  effective_rank_rel: "Effective rank (share)",
  effective_rank_centered: "Effective rank without the mean token",
  effective_rank_centered_rel: "Effective rank without the mean token (share)",
  effective_rank_centered_rel_trimmed: "Effective rank without mean and outliers (share)",
  head_output_rel: "What a head writes (share of the stream)",
  head_varied_rel: "What a head writes differently into tokens (share)",
  head_predicted: "What other heads of the layer write, too (R²)",
  logit_rms: "Size of attention scores",
  massive_ratio: "Largest activation over the median",
  massive_token: "Position of the largest activation",
  massive_channel: "Channel of the largest activation",
  mixing: "What a head can keep of differences",
  mixing_uniform: "What uniform attention can keep of differences",
  numerical_rank: "Numerical rank",
  offset_fro: "Size of the mean token",
  output_kl: "Change of the predictions (KL)",
  output_error: "Change of the output (relative error)",
  ov_effective_rank: "Effective rank of the OV map",
  ov_stable_rank: "Stable rank of the OV map",
  qk_effective_rank: "Effective rank of the QK map",
  qk_stable_rank: "Stable rank of the QK map",
  qk_pr: "Participation ratio of the QK map",
  path_norm: "What paths of one length write",
  path_share: "Share of the paths of one length",
  path_share_bias: "Share of the biases",
  path_rank1_distance: "Distance of attention chains from rank one",
  residual_fro: "Residual",
  residual_fro_rel: "Residual (share)",
  residual_fro_rel_trimmed: "Residual without outliers (share)",
  residual_l1inf: "Residual, mixed norm",
  residual_l1inf_rel: "Residual, mixed norm (share)",
  residual_l1inf_rel_mean: "Residual, mixed norm (share, mean over texts)",
  sink_first: "The strongest key is the first token (share of samples)",
  sink_last: "The strongest key is the last token (share of samples)",
  sink_special: "The strongest key is no content (share of samples)",
  sink_key_position: "Position of the strongest key",
  sink_key_position_share: "Samples with that position (share)",
  sink_key_token: "Token id of the strongest key",
  sink_key_token_share: "Samples with that token (share)",
  sink_margin: "Sink margin",
  sink_margin_null: "Sink margin with keys in random order",
  sink_mass: "Attention on the strongest key (share)",
  sink_position: "Position of that key",
  sink_ratio: "Sinks of the layer (share of heads)",
  sink_scatter: "Scatter of the sink margin",
  sink_slope: "Slope of the sink margin in log length",
  sink_uniform: "Uniform attention on the strongest key (share)",
  spectral_gap: "Spectral gap",
  spread: "Spread of the tokens (share)",
  stable_rank: "Stable rank",
  stable_rank_gram: "Stable rank of the Gram matrix",
  token_cosine: "Cosine between tokens",
  trimmed_channels: "Channels left out",
  trimmed_tokens: "Tokens left out",
  unit_rank: "Directions that MLP units tell apart",
  unit_sd_rel: "What MLP units tell apart (share)",
};

const units: Record<string, string> = {
  sink_margin: "nats",
  sink_margin_null: "nats",
  logit_rms: "nats",
  output_kl: "nats",
  massive_ratio: "times",
  effective_rank: "directions",
  effective_rank_centered: "directions",
  qk_effective_rank: "directions",
  ov_effective_rank: "directions",
  unit_rank: "directions",
};

const lookUp = (map: Record<string, string>, name: string): string | undefined => (Object.hasOwn(map, name) ? map[name] : undefined);

/** "effective_rank_rel" as "Effective rank (share)"; a metric that has no such name keeps its own, with spaces. */
export const metricName = (metric: string): string => lookUp(metrics, metric) ?? outside(metric.replace(/_rel$/, " (share)").replaceAll("_", " "));

export const unitOf = (metric: string): string => lookUp(units, metric) ?? "";

/** "nats" behind a number that has them. */
export const withUnit = (text: string, metric: string): string => (unitOf(metric) === "" ? text : `${text} ${unitOf(metric)}`);

/** A metric as the label of an axis. */
export const axisName = (metric: string): string => (unitOf(metric) === "" ? metricName(metric) : `${metricName(metric)}, ${unitOf(metric)}`);

const parts: Record<string, string> = { skip: "skips", "attention-skip": "attention skip", "mlp-skip": "MLP skip", mlp: "MLP", norm: "norms", position: "positions", attention: "attention" };
const variants: Record<string, string> = {
  full: "whole network",
  baseline: "baseline",
  "null:init": "random initialisation",
  "null:shuffled": "shuffled tokens",
  only: "paths of that length alone",
  upto: "paths up to that length",
  allbut: "all but those paths",
  bias: "biases",
};

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
