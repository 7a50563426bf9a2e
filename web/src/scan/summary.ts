// Several scans in one table: the numbers that the verdicts turn on, a row for each.
import { type Row, type Scan } from "../data";
import { metricName, unitOf } from "../names";
import { Table, type Value } from "../table";
import { family, isDepthRow, judgedFamily } from "./tracks";
import { modelName } from "./title";

interface Measure {
  title: string;
  hint: string;
  minor?: boolean;
  of: (scan: Scan) => number;
}

const own = (scan: Scan, metric: string): Row[] => scan.of(metric).filter((r) => r.variant === (scan.variants[0] ?? "full") && Number.isFinite(r.value));
const least = (values: number[]): number => (values.length === 0 ? NaN : Math.min(...values));
const largest = (values: number[]): number => (values.length === 0 ? NaN : Math.max(...values));

/** At the last depth where a network is judged; of the content tokens where there are such rows. */
function atTheEnd(scan: Scan, metric: string): number {
  const rows = own(scan, metric).filter((r) => isDepthRow(r) && family(r.site) === judgedFamily(scan));
  const content = rows.filter((r) => r.tokens === "content");
  return (content.length > 0 ? content : rows).sort((a, b) => (b.depth ?? 0) - (a.depth ?? 0))[0]?.value ?? NaN;
}

const measures: Measure[] = [
  { title: "least spread", hint: `least over depth of spread: ${metricName("spread")}`, of: (s) => least(own(s, "spread").map((r) => r.value)) },
  { title: "residual at the end", hint: "residual_fro_rel_trimmed at the last depth", of: (s) => atTheEnd(s, "residual_fro_rel_trimmed") },
  { title: "rank at the end", hint: "effective_rank_rel at the last depth", of: (s) => atTheEnd(s, "effective_rank_rel") },
  { title: "heads above the sink threshold", hint: "heads with sink_margin above its threshold, whether or not their error decides", minor: true, of: (s) => (own(s, "sink_margin").length === 0 ? NaN : own(s, "sink_margin").filter((r) => r.value > (s.threshold("sink_margin") ?? 3)).length) },
  { title: `strongest sink, ${unitOf("sink_margin")}`, hint: "largest sink_margin of a head", minor: true, of: (s) => largest(own(s, "sink_margin").map((r) => r.value)) },
  { title: "largest over median activation", hint: "largest massive_ratio over depth", minor: true, of: (s) => largest(own(s, "massive_ratio").map((r) => r.value)) },
  { title: "weakest head", hint: "least head_varied_rel", minor: true, of: (s) => least(own(s, "head_varied_rel").map((r) => r.value)) },
  { title: "lowest QK rank", hint: "least qk_effective_rank, in directions", minor: true, of: (s) => least(own(s, "qk_effective_rank").map((r) => r.value)) },
  { title: "lowest OV rank", hint: "least ov_effective_rank, in directions", minor: true, of: (s) => least(own(s, "ov_effective_rank").map((r) => r.value)) },
];

export function summary(scans: Scan[]): HTMLElement | null {
  const shown = measures.filter((m) => scans.some((s) => Number.isFinite(m.of(s))));
  if (shown.length === 0) return null;
  const models = new Set(scans.map((s) => modelName(s.data))).size > 1;
  return new Table({
    name: "summary",
    caption: "The numbers that the verdicts turn on, of the whole network",
    columns: [{ title: "results" }, ...(models ? [{ title: "model", minor: true }] : []), ...shown.map((m) => ({ title: m.title, hint: m.hint, numeric: true, minor: m.minor ?? false }))],
    rows: scans.map((s): Value[] => [s.data.name, ...(models ? [modelName(s.data)] : []), ...shown.map((m) => m.of(s))]),
    pageSize: 40,
  }).element;
}
