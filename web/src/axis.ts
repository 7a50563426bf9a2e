// Where an axis begins and ends, where it changes its scale, and where its ticks go.

export interface Break {
  at: number; // the value at which the scale changes
  rest: "above" | "below"; // on which side the curves lie that would otherwise be flat
  next: number; // the nearest value on the other side
}

/** Least and largest. A loop: as arguments of one call, the points of many learning curves would be too many. */
export function extent(values: number[]): { low: number; high: number } {
  let [low, high] = [Infinity, -Infinity];
  for (const v of values) (low = Math.min(low, v)), (high = Math.max(high, v));
  return { low, high };
}

const flat = 0.2; // curves that have less than this share of the axis to themselves are flattened

const clear = 0.06; // of a part of a broken axis: what comes nearer to the break would be drawn over by it

/**
 * The break beyond `edge`, where what is flat ends. Values of the far curves that come near to it join what is flat, since the break would hide them; there
 * is none where that takes too much of the axis. `sign` is 1 where the far curves lie above, -1 where they lie below.
 */
function breakBeyond(values: number[], edge: number, end: number, far: number, sign: 1 | -1): Break | null {
  for (const next of values.filter((v) => sign * (v - edge) > 0).sort((a, b) => sign * (a - b))) {
    const size = Math.abs(edge - end);
    if (size >= 1.5 * flat * Math.abs(far - end)) return null;
    if (Math.abs(next - edge) > clear * (size + Math.abs(far - edge))) return { at: edge, rest: sign > 0 ? "below" : "above", next };
    edge = next;
  }
  return null;
}

/**
 * Where an axis has to break: one curve, or a third of them, runs so far away that those which remain, at least two, would share less than a fifth of
 * it. The fewest curves that do so count as away. `curves` hold the values as the axis has them: logarithms of a logarithmic one.
 */
export function axisBreak(curves: number[][]): Break | null {
  const ranges = curves.filter((c) => c.length > 0).map(extent);
  const { low, high } = extent(curves.flat());
  for (let away = 1; away <= Math.max(1, Math.floor(ranges.length / 3)) && ranges.length - away > 1; away++) {
    const above = [...ranges].sort((a, b) => a.low - b.low).slice(away);
    const below = [...ranges].sort((a, b) => b.high - a.high).slice(away);
    const size = (rest: typeof ranges): number => Math.max(...rest.map((r) => r.high)) - Math.min(...rest.map((r) => r.low));
    const found =
      (size(above) < flat * (high - low) && breakBeyond(curves.flat(), Math.min(...above.map((r) => r.low)), high, low, -1)) ||
      (size(below) < flat * (high - low) && breakBeyond(curves.flat(), Math.max(...below.map((r) => r.high)), low, high, 1));
    if (found) return found;
  }
  return null;
}

/** Round numbers from low to high, about `room` of them. */
export function linearTicks(low: number, high: number, room: number): number[] {
  const rough = (high - low) / Math.max(1, room);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5].find((f) => f * power >= rough * (1 - 1e-9)) ?? 10) * power;
  const ticks: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks.length < 3 && room < 8 ? linearTicks(low, high, 2 * room) : ticks;
}

/** Powers of ten where there are several of them; 1, 2, 5 or every multiple where there are not; round numbers on less than that. */
export function logTicks(all: number[], room: number): number[] {
  const values = all.filter((v) => v > 0 && Number.isFinite(v));
  if (values.length === 0) return [];
  const { low: first, high: last } = extent(values);
  const low = first * (1 - 1e-9);
  const high = last * (1 + 1e-9);
  const from = Math.floor(Math.log10(low));
  const to = Math.ceil(Math.log10(high));
  const step = Math.ceil((to - from) / 8);
  for (const factors of [[1], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]]) {
    const ticks: number[] = [];
    for (let k = from; k <= to; k += factors.length > 1 ? 1 : step) ticks.push(...factors.map((f) => f * 10 ** k).filter((x) => x >= low && x <= high));
    if (ticks.length >= 3) return spaced(ticks, Math.log(high / low) / room);
  }
  return linearTicks(low, high, Math.min(5, room));
}

/** Those that are not too near to the one before; the least distance is in logarithms. */
function spaced(ticks: number[], least: number): number[] {
  const out: number[] = [];
  for (const t of ticks) if (out.length === 0 || Math.log(t / (out.at(-1) ?? t)) >= least) out.push(t);
  return out;
}

/** Whole numbers from low to high, at most `room` of them. */
export function wholeTicks(low: number, high: number, room: number): number[] {
  const least = (high - low) / Math.max(1, room);
  const step = [1, 2, 5].flatMap((f) => [0, 1, 2, 3, 4, 5, 6].map((k) => f * 10 ** k)).sort((a, b) => a - b).find((s) => s >= least) ?? least;
  const ticks: number[] = [];
  for (let x = Math.ceil(low / step) * step; x <= high; x += step) ticks.push(x);
  return ticks;
}

export interface AxisPlan {
  domain: number[]; // two values, or three: the one in the middle is where the scale changes
  share: number; // of the axis below the middle one
  breakAt: number | null;
  ticks: number[];
  beyond: { y: number; label: string }[]; // what lies off the axis, because the curves would be flat if it did not
}

/** The y axis of some curves, given by their values, and of lines across it. `room`: ticks that fit below each other. */
export function planAxis(curves: number[][], rules: { y: number; label: string }[], log: boolean, room: number, whole = false): AxisPlan {
  const to = (v: number): number => (log ? Math.log10(v) : v);
  const from = (v: number): number => (log ? 10 ** v : v);
  const ends = extent(curves.flat());
  let low = to(ends.low);
  let high = to(ends.high);
  const least = log ? 0.04 : Math.max(Math.abs(low), Math.abs(high)) * 0.04 || 1; // an axis shorter than this would show rounding
  if (high - low < least) [low, high] = [(low + high - least) / 2, (low + high + least) / 2];
  const span = high - low;
  const usable = rules.filter((r) => Number.isFinite(r.y) && (!log || r.y > 0));
  const near = (r: { y: number }): boolean => to(r.y) > low - span && to(r.y) < high + span; // half of the axis stays with the curves
  const beyond = usable.filter((r) => !near(r));
  for (const r of usable.filter(near)) [low, high] = [Math.min(low, to(r.y)), Math.max(high, to(r.y))];
  const found = whole ? null : axisBreak(curves.map((c) => c.map(to)));
  const pad = 0.03;
  if (!found) {
    const [a, b] = [low - pad * (high - low), high + pad * (high - low)];
    return { domain: [from(a), from(b)], share: 0, breakAt: null, ticks: log ? logTicks([from(a), from(b)], room) : linearTicks(a, b, Math.min(6, room)), beyond };
  }
  const rest = found.rest === "above" ? high - found.at : found.at - low;
  const beside = Math.abs(found.next - found.at); // room for the break; `clear` of the far part is kept to the next value there
  const margin = Math.min(Math.max(rest * 2 * clear, least / 2), beside - clear * Math.abs((found.rest === "above" ? low : high) - found.at));
  const at = found.rest === "above" ? found.at - margin : found.at + margin;
  if (found.rest === "above") high += margin;
  else low -= margin;
  const far = pad * (high - low);
  if (found.rest === "above") low -= far;
  else high += far;
  const share = found.rest === "above" ? 0.45 : 0.55;
  const part = (a: number, b: number, size: number): number[] => (log ? logTicks([from(a), from(b)], Math.max(2, room * size)) : linearTicks(a, b, Math.max(2, Math.min(4, room * size))));
  const below = part(low, at, share).filter((t) => to(t) < at - clear * (at - low));
  const above = part(at, high, 1 - share).filter((t) => to(t) > at + clear * (high - at));
  // Two numbers on either side of the break may be too near each other.
  const [last, first] = [below.at(-1), above[0]];
  const gap = last === undefined || first === undefined ? 1 : (share * (at - to(last))) / (at - low) + ((1 - share) * (to(first) - at)) / (high - at);
  if (gap < 1 / room) below.length > above.length ? below.pop() : above.shift();
  return { domain: [from(low), from(at), from(high)], share, breakAt: from(at), ticks: [...below, ...above], beyond };
}
