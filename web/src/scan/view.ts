// The page of one scan, or of several laid side by side.
import { type DiffData, ofStream, Scan, type ScanData, streamsOf } from "../data";
import { choice, h, outside, section } from "../dom";
import { counted, headName, withError } from "../format";
import { siteName, variantName, withUnit } from "../names";
import { Table } from "../table";
import { collapse, theoryFigure } from "./collapse";
import { Depth } from "./depth";
import { diff } from "./diff";
import { HeadPage } from "./head";
import { capital, headline } from "./headline";
import { HeadMap } from "./heads";
import { importance } from "./importance";
import { kind } from "./kind";
import { manifest } from "./manifest";
import { operator } from "./operator";
import { paths, readings } from "./paths";
import { plan } from "./plan";
import { series, stepsOf } from "./series";
import { sinks } from "./sinks";
import { summary } from "./summary";
import { titleOf } from "./title";

export interface View {
  title: string;
  subtitle: string;
  sections: HTMLElement[];
  navigate(hash: string): boolean; // whether the hash was one of its own
}

/** "loss 3.21 nats a token": whether the model was read right. */
function loss(scan: Scan): string {
  const row = [...scan.of("nll"), ...scan.of("pseudo_nll")].find((r) => r.variant === (scan.variants[0] ?? "full"));
  return row ? `loss ${withUnit(withError(row.value, row.stderr), row.metric)}` : "";
}

function subtitle(scan: Scan): string {
  const s = scan.data;
  const input = (s.manifest["input"] ?? {}) as Record<string, unknown>;
  return [s.manifest["architecture"], input["samples"] && counted(input["samples"], "sample"), input["tokens"] && counted(input["tokens"], "token"), s.manifest["dtype"], loss(scan)].filter(Boolean).join(" · ");
}

/** Every section for one scan below the comparison: the chosen one of several. */
function details(scan: Scan, several: boolean, choose: HTMLElement | null, open: (layer: number, head: number) => void): { sections: HTMLElement[]; page: HeadPage } {
  const page = new HeadPage(scan);
  const chooser = choose && h("div", { class: "controls" }, choose);
  const sections: HTMLElement[] = [];
  const held = several ? collapse(scan) : null;
  if (held) sections.push(section("collapse", "Who holds the rank up", held));
  const map = new HeadMap([scan], open);
  if (!several && !map.empty) sections.push(section("heads", "Heads", map.element));
  const planned = plan(scan);
  if (planned) sections.push(section("plan", "The plan", planned));
  const worth = importance(scan);
  if (worth) sections.push(section("importance", "What can go", worth));
  if (!page.empty) sections.push(section("head", "One head", chooser, page.element));
  const special = kind(scan);
  if (special) sections.push(section("kind", "This kind of attention", special));
  const sunk = sinks(scan, open);
  if (sunk) sections.push(section("sinks", "Sinks and massive activations", sunk));
  const linear = operator(scan);
  if (linear) sections.push(section("operator", "The network as one linear map", linear));
  const way = paths(scan);
  if (way) sections.push(section("paths", "Paths", way));
  if (page.empty && chooser) sections[0]?.querySelector("h2")?.after(chooser);
  return { sections, page };
}

/** What the cubic bound allows where attention stands alone, and what it says at this size in words. */
function theory(scan: Scan): HTMLElement[] {
  const said = scan.data.verdict.filter((s) => s.topic === "theory");
  if (said.length === 0) return [];
  const figure = theoryFigure(scan); // without one there is nothing to say again
  return figure ? [h("div", { class: "pair theory" }, figure, h("div", {}, ...said.map((s) => h("p", { class: "lead" }, capital(outside(s.sentence))))))] : [];
}

function variantTable(scans: Scan[]): HTMLElement | null {
  const kinds = ["output_kl", "output_error"].filter((metric) => scans.some((s) => s.of(metric).length > 0));
  const rows = scans.flatMap((s) => kinds.flatMap((metric) => s.of(metric)).map((r) => [scans.length > 1 ? `${s.data.name}: ${r.variant}` : r.variant, r.value, r.stderr, r.n, r.site]));
  if (rows.length === 0) return null;
  return new Table({
    name: "variants",
    caption: "How far the output of each variant is from that of the whole network",
    columns: [{ title: "variant", name: scans.length > 1 ? outside : variantName }, { title: kinds.length > 1 ? "change" : kinds[0] === "output_kl" ? "change, nats" : "change (share)", hint: "output_kl in nats, or output_error as a share where there is no vocabulary", numeric: true }, { title: "stderr", numeric: true }, { title: "n", numeric: true, minor: true }, { title: "site", minor: true, name: siteName }],
    rows,
    sort: [1, "down"],
    pageSize: 12,
  }).element;
}

function numbers(scans: Scan[]): HTMLElement {
  const several = scans.length > 1;
  const streams = scans.some((s) => s.rows.some((r) => r.stream !== ""));
  return new Table({
    name: "metrics",
    caption: "Every row of metrics.csv",
    columns: [
      ...(several ? [{ title: "results", minor: true }] : []),
      { title: "variant", minor: true },
      { title: "site", minor: true },
      { title: "layer", numeric: true, minor: true },
      { title: "head", numeric: true, minor: true },
      { title: "metric" },
      { title: "value", numeric: true },
      { title: "stderr", numeric: true },
      { title: "n", numeric: true, minor: true },
      { title: "depth", numeric: true, minor: true },
      { title: "tokens", minor: true },
      ...(streams ? [{ title: "stream", minor: true }] : []),
    ],
    rows: scans.flatMap((s) => s.rows.map((r) => [...(several ? [s.data.name] : []), r.variant, r.site, r.layer, r.head, r.metric, r.value, r.stderr, r.n, r.depth, r.tokens, ...(streams ? [r.stream] : [])])),
    search: true,
    pageSize: 20,
  }).element;
}

/** A series comes in the order of its steps; two are compared in the order given. */
function inOrder(scans: Scan[]): Scan[] {
  const at = scans.length > 2 ? stepsOf(scans)?.at : undefined;
  return at ? scans.map((scan, i) => ({ scan, step: at[i] ?? 0 })).sort((a, b) => a.step - b.step).map((s) => s.scan) : scans;
}

/** Of a network of several streams one is looked at at a time; the verdict has the choice. */
export function scanView(given: ScanData[], changes: DiffData | null): View {
  const streams = streamsOf(given);
  if (streams.length === 0) return streamView(given, changes, null);
  const holder = h("div", {});
  const make = (stream: string): View => {
    const choose = h("div", { class: "controls" }, choice("stream", streams, stream, (other) => ((view = make(other)), holder.replaceChildren(...view.sections))));
    const own = changes && { ...changes, rows: changes.rows.filter((r) => r.stream === stream) };
    return streamView(given.map((d) => ofStream(d, stream)), own, choose);
  };
  let view = make(streams[0] ?? "");
  holder.replaceChildren(...view.sections);
  return { title: view.title, subtitle: view.subtitle, sections: [holder], navigate: (hash) => view.navigate(hash) };
}

function streamView(given: ScanData[], changes: DiffData | null, chooser: HTMLElement | null): View {
  const scans = inOrder(given.map((d) => new Scan(d)));
  const data = scans.map((s) => s.data);
  const several = scans.length > 1;
  const holder = h("div", {});
  let page: HeadPage | undefined;
  const toHead = (hash: string): boolean => {
    const [, layer, head] = /^#L(\d+)H(\d+)$/.exec(hash) ?? [];
    if (layer === undefined || head === undefined || !page) return false;
    page.show(Number(layer), Number(head));
    page.element.closest("section")?.scrollIntoView();
    document.getElementById("head-name")?.focus({ preventScroll: true }); // the keyboard comes along
    return true;
  };
  // An address that is there already is not gone to again: the head may be another one by now, or out of sight.
  const open = (layer: number, head: number): void => {
    const hash = `#${headName(layer, head)}`;
    if (location.hash === hash) toHead(hash);
    else location.hash = hash;
  };
  const show = (index: number): void => {
    const scan = scans[index];
    if (!scan) return;
    const choose = several ? choice("results", scans.map((s, i): [string, string] => [String(i), s.data.name]), String(index), (v) => show(Number(v))) : null;
    const detail = details(scan, several, choose, open);
    page = detail.page;
    holder.replaceChildren(...detail.sections);
  };
  show(0);

  const sections: HTMLElement[] = [];
  // Against depth where some results have a depth; against the length of paths where there is nothing else.
  const isOfPaths = (s: Scan): boolean => s.data.manifest["paths"] !== undefined;
  const ofPaths = scans.every(isOfPaths);
  const depth = new Depth(scans.filter((s) => isOfPaths(s) === ofPaths));
  if (several) {
    // One table and one figure; what each says for itself is folded below them.
    const said = scans.map((s, i) => h("details", { class: "one" }, h("summary", {}, "Verdict on ", h("bdi", {}, outside(s.data.name))), headline(s, open, `${i}-`)));
    sections.push(section("verdict", "Side by side", chooser, summary(scans), !depth.empty && !ofPaths && depth.element, ...said));
  } else {
    sections.push(section("verdict", "What stands out", chooser, headline(scans[0] as Scan, open)));
  }
  if (changes) sections.push(section("diff", "What changed", diff(changes, open)));
  const held = several ? null : collapse(scans[0] as Scan);
  if (held) sections.push(section("collapse", "Who holds the rank up", held));
  const steps = several ? series(scans) : null;
  if (steps) sections.push(section("series", "Over training", steps));
  const bound = several || held ? [] : theory(scans[0] as Scan);
  if (!depth.empty && (!several || ofPaths)) sections.push(section("depth", ofPaths ? "By path length" : "Against depth", ofPaths && readings(scans), depth.element, ...bound));
  if (several) {
    const map = new HeadMap(scans, open);
    if (!map.empty) sections.push(section("heads", "Heads", map.element));
  }
  sections.push(holder);
  const kl = variantTable(scans.filter((s) => !isOfPaths(s))); // there it goes by length
  if (kl) sections.push(section("variants", "Variants", kl));
  sections.push(section("numbers", "All numbers", numbers(scans)));
  sections.push(section("manifest", "Where this comes from", ...scans.map((s) => (several ? h("details", { open: scans.length === 2 }, h("summary", {}, h("bdi", {}, outside(s.data.name))), manifest(s.data)) : manifest(s.data)))));

  return {
    title: titleOf(data),
    subtitle: several ? `${scans.length} results side by side` : subtitle(scans[0] as Scan),
    sections,
    navigate: toHead,
  };
}
