// A track is one network followed through its depth: a variant of a scan, or one of several scans laid side by side.
import { type Row, type Scan } from "../data";
import { outside } from "../dom";
import { variantName } from "../names";
import { dashes, type Theme } from "../theme";

export interface Track {
  name: string; // exact
  label: string; // as people read it
  scan: Scan;
  variant: string;
  colour: number; // in the theme's series
  dash: number;
}

export const isReference = (variant: string): boolean => variant.startsWith("null:") || variant === "baseline";

/** What curves can be drawn of: single heads taken out, for one, only have an output. */
export function variantsOf(scans: Scan[]): string[] {
  return [...new Set(scans.flatMap((s) => s.variants.filter((v) => s.rows.some((r) => r.variant === v && isDepthRow(r)))))];
}

export const everyVariant = "*";

/** Of one scan every variant; of several the chosen variant of each, or every variant of each. */
export function tracksOf(scans: Scan[], chosen: string): Track[] {
  const names = variantsOf(scans);
  const of = (scan: Scan): string[] => names.filter((v) => scan.variants.includes(v) && (scans.length === 1 || chosen === everyVariant || v === chosen));
  return scans.flatMap((scan, s) =>
    of(scan).map((variant, v): Track => {
      if (scans.length === 1) return { name: variant, label: variantName(variant), scan, variant, colour: v, dash: Math.floor(v / 8) };
      const name = chosen === everyVariant ? `${scan.data.name}: ${variant}` : scan.data.name;
      const label = outside(scan.data.name);
      return { name, label: chosen === everyVariant ? `${label}: ${variantName(variant)}` : label, scan, variant, colour: s, dash: chosen === everyVariant ? v : Math.floor(s / 8) };
    }),
  );
}

/** Null models and the baseline are dashed in every figure, whatever their colour. */
export function trackLook({ variant, colour, dash }: Pick<Track, "variant" | "colour" | "dash">, t: Theme): { colour: string; dash: string } {
  return { colour: t.series[colour % t.series.length] ?? t.ink, dash: isReference(variant) ? "5 4" : variant.startsWith("theory") ? "2 3" : (dashes[dash % dashes.length] ?? "") };
}

/** Sites of the same kind over depth, the embeddings and the final norm in their places. */
export function family(site: string): string {
  const name = site.replace(/^blocks\.\d+\./, "");
  if (name === "hook_resid_pre") return "hook_resid_post";
  return name === "ln_final.hook_normalized" ? "ln1.hook_normalized" : name;
}

/** A point of a curve over depth. What theory says of a layer and what the output says have figures of their own. */
export const isDepthRow = (r: Row): boolean => r.head === null && r.depth !== null && r.metric !== "output_kl" && r.metric !== "output_error" && !r.metric.startsWith("path_") && r.site !== "operator" && r.variant !== "theory";

/** Of numbers that were taken over all tokens and over content tokens those that the verdict reads: of content tokens. */
export function ofJudgedTokens(rows: Row[]): Row[] {
  const content = new Set(rows.filter((r) => r.tokens === "content").map((r) => r.metric));
  return rows.filter((r) => r.tokens === "content" || !content.has(r.metric));
}

/** Where a model is judged: what attention sees if it is there (pre-norm), else what a block leaves. */
export function judgedFamily(scan: Scan): string {
  return scan.rows.some((r) => isDepthRow(r) && family(r.site) === "ln1.hook_normalized") ? "ln1.hook_normalized" : "hook_resid_post";
}
