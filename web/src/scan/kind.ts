// What a kind of attention has that softmax has not: gates, a state, sums of columns, heads of several kinds. Each beside what its law says.
import { type Curve, type CurvePoint, drawCurves } from "../charts";
import { type Row, type Scan } from "../data";
import { choice, h, outside } from "../dom";
import { Figure, type FigureSpec } from "../figure";
import { headName, short, withError } from "../format";
import { metricName, variantName } from "../names";
import { look } from "../theme";

const bins = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const binMetric = (bin: number): string => `gate_share_${bin}0`;
const stored = [2, 4, 8, 16, 32, 64, 128, 256, 512];
const stateMetric = (tokens: number): string => `state_rank_at_${tokens}`;

/** Rows of one layer of one variant, by metric and head. */
class Layer {
  constructor(private readonly scan: Scan, readonly variant: string, readonly layer: number) {}
  rows(metric: string): Row[] {
    return this.scan.of(metric).filter((r) => r.variant === this.variant && r.layer === this.layer);
  }
  heads(metric: string): Row[] {
    return this.rows(metric).filter((r) => r.head !== null);
  }
  of(metric: string, head: number | null): Row | undefined {
    return this.rows(metric).find((r) => r.head === head);
  }
  /** "compressed" where heads of one layer differ. The manifest comes from outside: what is no text is none. */
  kindOf(head: number): string {
    if (this.variant !== this.scan.variants[0]) return "";
    const layers = this.scan.data.manifest["head_kinds"];
    const kinds: unknown = Array.isArray(layers) ? layers[this.layer] : undefined;
    const kind: unknown = Array.isArray(kinds) ? kinds[head] : undefined;
    return typeof kind === "string" ? outside(kind) : "";
  }
}

const nameOf = (row: Row): string => (row.head === null ? "all channels" : headName(row.layer ?? 0, row.head));
const table = (rows: Row[]): { columns: string[]; rows: (string | number | null)[][] } => ({ columns: ["layer", "head", "metric", "value", "stderr"], rows: rows.map((r) => [r.layer, r.head, r.metric, r.value, r.stderr]) });
const point = (x: number, r: Row, says: string): CurvePoint => ({ x, y: r.value, ...(Number.isFinite(r.stderr) ? { low: r.value - r.stderr, high: r.value + r.stderr } : {}), says, exact: `${r.variant} ${r.site} ${r.metric}` });

/** From a little below the values to a little above; results come from outside, and where they have no such ends the plot finds its own. */
const around = (values: number[], below: number, above: number): [number, number] | undefined => {
  const finite = values.filter((v) => Number.isFinite(v) && v > 0);
  return finite.length > 0 ? [Math.min(...finite) * below, Math.max(...finite) * above] : undefined;
};

/** One dot a head. */
const dots = (name: string, colour: string, rows: Row[], hollow: boolean, says: (r: Row) => string): Curve => ({ name, colour, line: false, hollow, points: rows.map((r) => point(r.head ?? 0, r, says(r))) });

function gates(at: Layer): FigureSpec | null {
  const all = bins.flatMap((b) => at.rows(binMetric(b)));
  const heads = all.some((r) => r.head !== null) ? all.filter((r) => r.head !== null) : all;
  const own = [...new Set(heads.map((r) => r.head))];
  if (own.length === 0) return null;
  return {
    name: "gates",
    title: `How open the gates of layer ${at.layer} are`,
    exact: "gate_share_00 to gate_share_90",
    about: "Share of the gate's values in ten bins from 0 to 1, a curve a head.",
    hint: "Share of a gate's values in each of ten bins. No law says how open a gate is: the line is a tenth, where all values are as likely.",
    draw: (t, width) =>
      drawCurves(
        own.map((head, i): Curve => ({
          name: head === null ? "all channels" : headName(at.layer, head),
          ...look(i, t),
          legend: own.length > 8 ? false : "",
          points: bins.flatMap((b) => {
            const r = at.of(binMetric(b), head);
            const range = b === 0 ? "below 0.1" : b === 9 ? "of 0.9 and above" : `from 0.${b} to 0.${b + 1}`;
            return r ? [point((b + 0.5) / 10, r, `${nameOf(r)} · values ${range}: ${withError(r.value, r.stderr)}`)] : [];
          }),
        })),
        { xLabel: "value of the gate", yLabel: "share", xDomain: [0, 1], rules: [{ y: 0.1, label: "all values as likely" }] },
        t,
        width,
        true,
      ),
    table: () => table(heads),
  };
}

function sparsity(at: Layer): FigureSpec | null {
  const [shut, mean] = [at.heads("gate_share_00"), at.heads("gate_mean")];
  if (shut.length === 0) return null;
  const kept = at.heads("state_kept");
  const says = (r: Row): string => `${nameOf(r)} · ${metricName(r.metric)} ${withError(r.value, r.stderr)}`;
  return {
    name: "gate-sparsity",
    title: `What the gates of layer ${at.layer} let pass, by head`,
    exact: "gate_share_00, gate_mean",
    about: "Share of values below 0.1 and mean of the gate, a dot a head.",
    hint: `How sparse each gate is${at.heads("state_rank").length > 0 ? ", which is how much a token writes into the state" : ""}. The line is a tenth, where all values are as likely.`,
    draw: (t, width) =>
      drawCurves(
        [dots("below 0.1 (share)", t.series[0] ?? t.ink, shut, false, says), dots("mean", t.series[1] ?? t.ink, mean, true, says), dots("kept of the state", t.series[2] ?? t.ink, kept, false, says)],
        { xLabel: "head", yLabel: "", wholeX: true, rules: [{ y: 0.1, label: "all values as likely" }] },
        t,
        width,
        true,
      ),
    table: () => table([...shut, ...mean, ...kept]),
  };
}

function states(at: Layer): FigureSpec | null {
  const last = at.heads("state_rank");
  const widest = Math.max(...at.heads("state_width").map((r) => r.value));
  if (last.length === 0 || !Number.isFinite(widest)) return null;
  const seen = stored.filter((n) => at.heads(stateMetric(n)).length > 0);
  const says = (r: Row, tokens: string): string => `${nameOf(r)} · after ${tokens} tokens the state has effective rank ${withError(r.value, r.stderr)}`;
  const law = seen.map((n): CurvePoint => ({ x: n, y: Math.min(n, widest), says: `the most it can be after ${n} tokens: ${Math.min(n, widest)}` }));
  const whole = seen.length < 2; // without a mask there is one state
  return {
    name: "states",
    title: `Rank of the state of layer ${at.layer}${whole ? "" : ", as tokens are stored"}`,
    exact: whole ? "state_rank" : "state_rank_at_2 to state_rank_at_512",
    about: "Effective rank of each head's state, beside the most that so many pairs of key and value can give it.",
    hint: `Effective rank of the state. Every token stores one pair of key and value, so it is at most the number of tokens, and at most the width of the state, ${widest}.`,
    draw: (t, width) =>
      whole
        ? drawCurves([dots("after all tokens", t.series[0] ?? t.ink, last, false, (r) => says(r, "all"))], { xLabel: "head", yLabel: "", wholeX: true, rules: [{ y: widest, label: `width ${widest}` }] }, t, width, true)
        : drawCurves(
            [
              { name: `law: min(tokens, ${widest})`, colour: t.quiet, dash: "5 4", dots: false, points: law },
              ...last.map((of, i): Curve => ({
                name: nameOf(of),
                ...look(i, t),
                legend: last.length > 8 ? false : "",
                points: seen.flatMap((n) => {
                  const r = at.of(stateMetric(n), of.head);
                  return r ? [point(n, r, says(r, String(n)))] : [];
                }),
              })),
            ],
            { xLabel: "tokens stored", yLabel: "effective rank", logX: true, logY: true },
            t,
            width,
            true,
          ),
    table: () => table([...seen.flatMap((n) => at.heads(stateMetric(n))), ...last, ...at.heads("state_width")]),
  };
}

function columns(at: Layer): FigureSpec | null {
  const [least, most, bound] = [at.heads("column_sum_min"), at.heads("column_sum_max"), at.heads("column_sum_min_bound")];
  if (least.length === 0) return null;
  const law = bound[0]?.value;
  const says = (r: Row): string => `${nameOf(r)} · ${metricName(r.metric)}: ${withError(r.value, r.stderr)}`;
  return {
    name: "columns",
    title: `What keys get in layer ${at.layer}`,
    exact: "column_sum_min, column_sum_max, column_sum_min_bound",
    about: "Smallest and largest column sum of each head's attention, beside the law.",
    hint: law === undefined ? "Smallest and largest sum of a column. This kind has no law for them." : `Smallest and largest sum of a column. By the law of this kind no key gets less than 1 / keys, here ${short(law)}.`,
    draw: (t, width) =>
      drawCurves(
        [dots("least attended key", t.series[0] ?? t.ink, least, false, says), dots("best attended key", t.series[1] ?? t.ink, most, true, says)],
        { xLabel: "head", yLabel: "sum over queries", wholeX: true, logY: true, yDomain: around([...least, ...most, ...bound].map((r) => r.value), 0.7, 1.4), rules: law === undefined ? [] : [{ y: law, label: `law: at least ${short(law)}` }] },
        t,
        width,
        true,
      ),
    table: () => table([...least, ...most, ...bound]),
  };
}

function ranks(at: Layer): FigureSpec | null {
  const most = at.heads("rank_ceiling");
  const rank = at.heads("numerical_rank").filter((r) => most.some((m) => m.head === r.head));
  const effective = at.heads("effective_rank").filter((r) => most.some((m) => m.head === r.head));
  if (rank.length === 0) return null;
  const kinds = [...new Set(rank.map((r) => at.kindOf(r.head ?? 0)))];
  const mixed = kinds.length > 1 || kinds[0] !== "";
  const says = (r: Row): string => {
    const kind = at.kindOf(r.head ?? 0);
    return `${nameOf(r)}${kind ? ` (${kind})` : ""} · ${r.metric === "rank_ceiling" ? "" : `${metricName(r.metric)} ${withError(r.value, r.stderr)} of `}at most ${short(at.of("rank_ceiling", r.head)?.value ?? NaN)}`;
  };
  const level = new Set(most.map((m) => m.value)).size === 1 ? (most[0]?.value ?? NaN) : NaN;
  return {
    name: "kinds",
    title: mixed ? `Kinds of heads in layer ${at.layer}, and their rank` : `Rank of the heads of layer ${at.layer}, and the most there can be`,
    exact: "numerical_rank, effective_rank, rank_ceiling",
    about: "Numerical and effective rank of each head's matrix, beside the largest rank that its kind allows.",
    hint: "Rank of each head's matrix: dots numerical, rings effective. The law is the largest rank that the kind of the head allows on so many tokens.",
    draw: (t, width) =>
      drawCurves(
        [
          ...(Number.isNaN(level) ? most.map((m, i): Curve => ({ name: `law of ${nameOf(m)}`, legend: i === 0 ? "law: at most" : false, colour: t.quiet, dash: "5 4", dots: false, points: [-0.35, 0.35].map((aside) => ({ x: (m.head ?? 0) + aside, y: m.value, says: says(m) })) })) : []),
          ...kinds.flatMap((kind, i): Curve[] => {
            const [of, colour] = [(r: Row): boolean => at.kindOf(r.head ?? 0) === kind, t.series[i % t.series.length] ?? t.ink];
            return [dots(kind || "numerical rank", colour, rank.filter(of), false, says), { ...dots(`${kind} effective`, colour, effective.filter(of), true, says), legend: mixed ? false : "effective rank" }];
          }),
        ],
        { xLabel: "head", yLabel: "rank", wholeX: true, ...(Number.isNaN(level) ? { xDomain: [-0.5, Math.max(...most.map((m) => m.head ?? 0)) + 0.5] } : {}), yDomain: around(most.map((m) => m.value), 0, 1.1), rules: Number.isNaN(level) ? [] : [{ y: level, label: `law: at most ${short(level)}` }] },
        t,
        width,
        true,
      ),
    table: () => table([...rank, ...effective, ...most]),
  };
}

const makers = [ranks, gates, sparsity, states, columns];
const telling = ["rank_ceiling", "gate_mean", "state_rank", "column_sum_min"];

export function kind(scan: Scan): HTMLElement | null {
  const rows = telling.flatMap((m) => scan.of(m)).filter((r) => r.layer !== null);
  const variants = scan.variants.filter((v) => rows.some((r) => r.variant === v));
  let variant = variants[0];
  if (variant === undefined) return null;
  const layersOf = (v: string): number[] => [...new Set(rows.filter((r) => r.variant === v).map((r) => r.layer ?? 0))].sort((a, b) => a - b);
  let layer = layersOf(variant)[0] ?? 0;
  const controls = h("div", { class: "controls" });
  const holder = h("div", { class: "pair" });
  const show = (): void => {
    const at = new Layer(scan, variant ?? "", layer);
    const layers = layersOf(at.variant);
    controls.replaceChildren(
      ...(variants.length > 1 ? [choice("variant", variants.map((v): [string, string] => [v, variantName(v)]), at.variant, (v) => ((variant = v), (layer = layersOf(v)[0] ?? 0), show()))] : []),
      ...(layers.length > 1 ? [choice("layer", layers.map(String), String(layer), (l) => ((layer = Number(l)), show()))] : []),
    );
    holder.replaceChildren(...makers.flatMap((make) => make(at) ?? []).map((spec) => new Figure(spec).element));
  };
  show();
  return h("div", {}, controls, holder);
}
