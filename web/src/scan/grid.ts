// A map of tokens by tokens, drawn as pixels: attention of a head, or what an output token is made of.
import { type ShownTokens } from "../data";
import { h, outside, token } from "../dom";
import { type Drawing, type Point, svgNode } from "../figure";
import { type Theme } from "../theme";

/** Cells of `side` bins over `length` tokens. */
export class Bins {
  constructor(readonly side: number, private readonly of: ShownTokens) {}

  first(i: number): number {
    return Math.floor((i * this.of.length) / this.side);
  }
  text(i: number): string {
    return this.of.tokens[this.first(i)] ?? "";
  }
  /** The positions of a bin with the token it begins with. */
  label(i: number): string {
    const [a, b] = [this.first(i), this.first(i + 1) - 1];
    return a === b ? `${a} ${token(this.of.tokens[a])}` : `${a}–${b} ${token(this.of.tokens[a])}…`;
  }
}

export interface GridSpec {
  colour(row: number, column: number): string;
  says(row: number, column: number): string;
}

export function drawGrid(rows: Bins, columns: Bins, spec: GridSpec, t: Theme, width: number): Drawing {
  const left = 74;
  const top = 8;
  const inner = width - left - 8;
  const bottom = 74;
  const step = inner / columns.side;
  const down = step * rows.side;
  const svg = svgNode("svg", { width, height: top + down + bottom, viewBox: `0 0 ${width} ${top + down + bottom}`, "font-family": "system-ui, sans-serif", "font-size": 10 });
  const canvas = h("canvas", { width: columns.side, height: rows.side });
  const context = canvas.getContext("2d");
  const points: Point[] = [];
  for (let i = 0; i < rows.side; i++)
    for (let j = 0; j < columns.side; j++) {
      if (context) {
        context.fillStyle = spec.colour(i, j);
        context.fillRect(j, i, 1, 1);
      }
      points.push({ x: left + (j + 0.5) * step, y: top + (i + 0.5) * step, box: [step, step], says: spec.says(i, j) });
    }
  const picture = svgNode("image", { x: left, y: top, width: inner, height: down, preserveAspectRatio: "none", style: "image-rendering: pixelated" });
  picture.setAttribute("href", canvas.toDataURL());
  svg.append(picture);
  const every = Math.max(1, Math.ceil(13 / step));
  const label = (bins: Bins, i: number, where: Record<string, string | number>): void => {
    const text = svgNode("text", { ...where, "text-anchor": "end", fill: t.quiet, direction: "ltr" });
    text.textContent = outside(token(bins.text(i))).slice(0, 10);
    svg.append(text);
  };
  for (let i = 0; i < rows.side; i += every) label(rows, i, { x: left - 5, y: top + (i + 0.5) * step + 3 });
  for (let i = 0; i < columns.side; i += every) label(columns, i, { transform: `translate(${left + (i + 0.5) * step + 3},${top + down + 6}) rotate(-90)` });
  return { svg, points };
}
