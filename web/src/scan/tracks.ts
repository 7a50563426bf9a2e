// A track is one network followed through its depth: a variant of a scan, or one of several scans laid side by side.
import { type Row, type Scan } from "../data";
import { look, type Theme } from "../theme";

export interface Track {
  name: string;
  scan: Scan;
  variant: string;
}

const isReference = (variant: string): boolean => variant.startsWith("null:") || variant === "baseline";

export function tracksOf(scans: Scan[]): Track[] {
  const [only] = scans;
  if (only && scans.length === 1)
    return only.variants.filter((v) => !/^-heads?:/.test(v)).map((variant) => ({ name: variant, scan: only, variant }));
  return scans.map((scan) => ({ name: scan.data.name, scan, variant: "full" }));
}

export function trackLook(tracks: Track[], i: number, t: Theme): { colour: string; dash: string } {
  const { colour, dash } = look(i, t);
  const variant = tracks[i]?.variant ?? "";
  return { colour, dash: isReference(variant) ? "5 4" : variant.startsWith("theory:") ? "2 3" : dash };
}

/** Sites of the same kind over depth, the embeddings and the final norm in their places. */
export function family(site: string): string {
  const name = site.replace(/^blocks\.\d+\./, "");
  if (name === "hook_resid_pre") return "hook_resid_post";
  return name === "ln_final.hook_normalized" ? "ln1.hook_normalized" : name;
}

export const isDepthRow = (r: Row): boolean => r.head === null && r.depth !== null;

/** Where a model is judged: what attention sees if it is there (pre-norm), else what a block leaves. */
export function judgedFamily(scan: Scan): string {
  return scan.rows.some((r) => r.site.endsWith(".ln1.hook_normalized")) ? "ln1.hook_normalized" : "hook_resid_post";
}
