// Attention sinks and massive activations, with the tokens they fall on.
import { drawCurves } from "../charts";
import { type Row, type Scan } from "../data";
import { h, token } from "../dom";
import { Figure } from "../figure";
import { headName, tick, withError } from "../format";
import { siteName } from "../names";
import { Table, type Value } from "../table";
import { family, trackLook, tracksOf } from "./tracks";

export function sinks(scan: Scan, open: (layer: number, head: number) => void): HTMLElement | null {
  const variant = scan.variants[0] ?? "full";
  const tokens = (scan.data.shown?.keys ?? scan.data.shown)?.tokens ?? [];
  const parts: HTMLElement[] = [];
  const at = (metric: string, r: Row): number => scan.find(variant, metric, r.layer, r.head)?.value ?? NaN;
  const rows = (metric: string): Row[] => scan.of(metric).filter((r) => r.variant === variant && r.head !== null && r.layer !== null);
  const margins = rows("sink_margin");
  const heads = margins.length > 0 ? margins : rows("sink_mass");
  if (heads.length > 0) {
    // By margin: it counts only keys that a quarter of the queries see, whatever the mask, and does not grow with the text.
    const ranked = margins.length > 0;
    parts.push(
      new Table({
        name: "sinks",
        caption: ranked ? "The strongest sinks: how far one key stands above the others, in nats" : "The strongest sinks: attention on one key, beside uniform attention under the same mask",
        columns: [
          { title: "head" },
          ...(ranked ? [{ title: "margin, nats", hint: "sink_margin: 0 is uniform attention, 3 a sink, at any length", numeric: true }] : []),
          { title: "attention", hint: `${ranked ? "sink_key_mass" : "sink_mass"}: share of the attention that the strongest key gets`, numeric: true },
          ...(ranked
            ? []
            : [
                { title: "uniform", hint: "sink_uniform: what that key would get from uniform attention under the same mask", numeric: true },
                { title: "above", hint: "the one less the other", numeric: true },
              ]),
          { title: "position", hint: ranked ? "sink_key_position: the strongest key's in most samples" : "sink_position", numeric: true, minor: true },
          { title: "token there", hint: "in the sample shown", minor: true },
        ],
        rows: heads.map((r): Value[] => {
          // The key with the largest margin and the one with the most attention may be two.
          const position = at(ranked ? "sink_key_position" : "sink_position", r);
          const [mass, uniform] = [at(ranked ? "sink_key_mass" : "sink_mass", r), at("sink_uniform", r)];
          return [headName(r.layer ?? 0, r.head ?? 0), ...(ranked ? [r.value, mass] : [mass, uniform, mass - uniform]), position, token(tokens[position])];
        }),
        sort: [ranked ? 1 : 3, "down"],
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
    const there = (metric: string, site: string): number => scan.of(metric).find((r) => r.variant === variant && r.site === site)?.value ?? NaN;
    const limit = scan.threshold("massive");
    const tracks = tracksOf([scan], "").filter((track) => massive.some((r) => r.variant === track.variant)); // as they look against depth
    const figure = new Figure({
      name: "massive",
      title: "Largest activation over the median",
      exact: "massive_ratio",
      about: "Largest over median activation of the residual stream, against depth.",
      hint: "In the residual stream, after each block.",
      draw: (t, width) =>
        drawCurves(
          tracks.map((track) => ({
            name: track.label,
            ...trackLook(track, t),
            points: massive
              .filter((r) => r.variant === track.variant)
              .sort((a, b) => (a.depth ?? 0) - (b.depth ?? 0))
              .map((r) => ({ x: r.depth ?? 0, y: r.value, ...(Number.isFinite(r.stderr) ? { low: r.value - r.stderr, high: r.value + r.stderr } : {}), says: `${track.label} · ${siteName(r.site)} · ${withError(r.value, r.stderr)} times the median`, exact: `${track.name} ${r.site} ${r.metric}` })),
          })),
          { xLabel: "depth (blocks passed)", yLabel: "", logY: true, wholeX: true, rules: limit === undefined ? [] : [{ y: limit, label: `massive > ${tick(limit)}` }] },
          t,
          width,
          tracks.length > 1,
        ),
      table: () => ({ columns: ["variant", "site", "depth", "massive_ratio", "stderr"], rows: massive.map((r) => [r.variant, r.site, r.depth, r.value, r.stderr]) }),
    });
    const where = new Table({
      name: "massive",
      caption: "Where the largest activation sits",
      columns: [{ title: "place", name: siteName }, { title: "times the median", hint: "massive_ratio", numeric: true }, { title: "position", hint: "in the sample with the largest ratio", numeric: true, minor: true }, { title: "channel", numeric: true, minor: true }],
      rows: own.map((r) => [r.site, r.value, there("massive_token", r.site), there("massive_channel", r.site)]),
      sort: [1, "down"],
      pageSize: 10,
    });
    parts.push(h("div", { class: "column" }, figure.element, where.element));
  }
  if (parts.length === 0) return null;
  return h("div", { class: "pair" }, ...parts);
}
