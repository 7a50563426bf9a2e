// Attention sinks and massive activations, with the tokens they fall on.
import { drawCurves } from "../charts";
import { type Scan } from "../data";
import { h, token } from "../dom";
import { Figure } from "../figure";
import { headName, short, tick, withError } from "../format";
import { Table, type Value } from "../table";
import { family, trackLook, tracksOf } from "./tracks";

export function sinks(scan: Scan, open: (layer: number, head: number) => void): HTMLElement | null {
  const variant = scan.variants[0] ?? "full";
  const tokens = (scan.data.shown?.keys ?? scan.data.shown)?.tokens ?? [];
  const parts: HTMLElement[] = [];
  const mass = scan.of("sink_mass").filter((r) => r.variant === variant && r.head !== null && r.layer !== null);
  if (mass.length > 0) {
    const rows: Value[][] = mass.map((r) => {
      const uniform = scan.find(variant, "sink_uniform", r.layer, r.head)?.value ?? NaN;
      const position = scan.find(variant, "sink_position", r.layer, r.head)?.value ?? NaN;
      return [headName(r.layer ?? 0, r.head ?? 0), r.value, uniform, r.value - uniform, position, token(tokens[position])];
    });
    parts.push(
      new Table({
        name: "sinks",
        caption: "The strongest sinks: most attention on one key, beside uniform attention under the same mask",
        columns: [{ title: "head" }, { title: "sink_mass", numeric: true }, { title: "uniform", numeric: true }, { title: "above", numeric: true }, { title: "position", numeric: true, minor: true }, { title: "token there", hint: "in the sample shown", minor: true }],
        rows,
        sort: [3, "down"],
        pageSize: 10,
        pick: (row) => {
          const [, layer, head] = /^L(\d+)H(\d+)$/.exec(String(row[0])) ?? [];
          return () => open(Number(layer), Number(head));
        },
      }).element,
    );
  }
  const massive = scan.of("massive_ratio").filter((r) => r.depth !== null && family(r.site) === "hook_resid_post");
  const own = massive.filter((r) => r.variant === variant);
  if (own.length > 0) {
    const at = (metric: string, site: string): number => scan.of(metric).find((r) => r.variant === variant && r.site === site)?.value ?? NaN;
    const limit = scan.threshold("massive");
    const tracks = tracksOf([scan], "").filter((track) => massive.some((r) => r.variant === track.variant)); // as they look against depth
    const figure = new Figure({
      name: "massive",
      title: "Massive activations",
      about: "Largest over median activation of the residual stream, against depth.",
      hint: "Largest over median activation of the residual stream.",
      draw: (t, width) =>
        drawCurves(
          tracks.map((track) => ({
            name: track.name,
            ...trackLook(track, t),
            points: massive
              .filter((r) => r.variant === track.variant)
              .sort((a, b) => (a.depth ?? 0) - (b.depth ?? 0))
              .map((r) => ({ x: r.depth ?? 0, y: r.value, ...(Number.isFinite(r.stderr) ? { low: r.value - r.stderr, high: r.value + r.stderr } : {}), says: `${track.name} · depth ${r.depth} · ${withError(r.value, r.stderr)} times the median` })),
          })),
          { xLabel: "depth (blocks passed)", yLabel: "massive_ratio", logY: true, wholeX: true, rules: limit === undefined ? [] : [{ y: limit, label: `massive > ${tick(limit)}` }] },
          t,
          width,
          tracks.length > 1,
        ),
      table: () => ({ columns: ["variant", "site", "depth", "massive_ratio", "stderr"], rows: massive.map((r) => [r.variant, r.site, r.depth, r.value, r.stderr]) }),
    });
    const where = new Table({
      name: "massive",
      caption: "Where the largest activation sits",
      columns: [{ title: "site" }, { title: "massive_ratio", numeric: true }, { title: "position", numeric: true, minor: true }, { title: "token there", hint: "in the sample shown", minor: true }, { title: "channel", numeric: true, minor: true }],
      rows: own.map((r) => [r.site, r.value, at("massive_token", r.site), token(tokens[at("massive_token", r.site)]), at("massive_channel", r.site)]),
      sort: [1, "down"],
      pageSize: 10,
    });
    parts.push(h("div", { class: "column" }, figure.element, where.element));
  }
  if (parts.length === 0) return null;
  const said = mass.length > 0 ? `${mass.length} heads; the strongest holds ${short(Math.max(...mass.map((r) => r.value)))} of the attention on one key.` : "";
  return h("div", {}, h("p", { class: "lead" }, said), h("div", { class: "pair" }, ...parts));
}
