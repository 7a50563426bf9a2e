// Numbers as the page shows them: rounded from the very double that the table holds.

export function short(x: number): string {
  if (Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (Number.isInteger(x) && size < 1e6) return String(x).replace("-", "−");
  if (size >= 1e6 || size < 1e-3) return x.toExponential(2).replace("-", "−").replace("e+", "e").replace("e-", "e−");
  return x.toPrecision(size >= 1000 ? Math.min(6, Math.ceil(Math.log10(size))) : 4).replace("-", "−");
}

/** A number on an axis: no zeros behind it. */
export function tick(x: number): string {
  const size = Math.abs(x);
  if (x === 0 || (size >= 1e-3 && size < 1e6)) return String(Number(x.toPrecision(4))).replace("-", "−");
  return x.toExponential().replace("-", "−").replace("e+", "e").replace("e-", "e−");
}

/** "0.8874 ± 0.0031": the error to two digits. */
export function withError(value: number, error: number): string {
  return Number.isFinite(error) ? `${short(value)} ± ${Number(error.toPrecision(2)).toString()}` : short(value);
}

/** "1 sample", "4 samples". */
export const counted = (n: unknown, what: string): string => `${String(n)} ${what}${String(n) === "1" ? "" : "s"}`;

export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) (n /= 1024), i++;
  return `${n < 10 && i > 0 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

export function seconds(s: number): string {
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 120) return `${s.toFixed(1)} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
}

export const headName = (layer: number, head: number): string => `L${layer}H${head}`;

/** RFC 4180, as metrics.csv is written. */
export function csv(columns: string[], rows: (string | number | null)[][]): string {
  const cell = (x: string | number | null): string => {
    if (x === null || (typeof x === "number" && Number.isNaN(x))) return "";
    if (typeof x === "number") return Number.isFinite(x) ? String(x) : x > 0 ? "inf" : "-inf";
    return /[",\r\n]/.test(x) ? `"${x.replaceAll('"', '""')}"` : x;
  };
  return [columns, ...rows].map((row) => row.map(cell).join(",") + "\n").join("");
}
