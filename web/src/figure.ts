// A figure: a plot with its title, a readout that follows pointer and arrow keys, and SVG, PNG and CSV to take away.
import { h } from "./dom";
import { savePng, saveText, svgText } from "./download";
import { csv } from "./format";
import { light, onTheme, theme, type Theme } from "./theme";

/** Something in a plot that has a value: where it is in pixels and what it says. */
export interface Point {
  x: number;
  y: number;
  says: string;
  exact?: string; // in exact names, on hover
  series?: string;
  box?: [number, number]; // width and height of a cell; a ring is drawn where there is none
  pick?: () => void;
}

export interface Drawing {
  svg: SVGSVGElement;
  points: Point[];
  note?: string; // behind the hint: what one has to know to read it
}

export interface FigureSpec {
  name: string; // of the files
  title: string;
  exact?: string; // the exact name of what is drawn, on hover
  about?: string; // what is drawn, for those who do not see it
  hint?: string; // readout before anything is pointed at
  draw(theme: Theme, width: number, alone: boolean): Drawing; // alone: for a file, with its own legend
  table(): { columns: string[]; rows: (string | number | null)[][] };
}

const svgNode = <K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number>): SVGElementTagNameMap[K] => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  return node;
};
export { svgNode };

function nearest(points: Point[], x: number, y: number): Point | undefined {
  let best: Point | undefined;
  let least = Infinity;
  for (const p of points) {
    const dx = Math.max(0, Math.abs(p.x - x) - (p.box?.[0] ?? 0) / 2);
    const dy = Math.max(0, Math.abs(p.y - y) - (p.box?.[1] ?? 0) / 2);
    const d = dx * dx + dy * dy;
    if (d < least) (least = d), (best = p);
  }
  return least < 60 * 60 ? best : undefined;
}

const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** The next point in a direction; along x a curve is followed before another one is taken. */
function next(points: Point[], from: Point, [sx, sy]: [number, number]): Point | undefined {
  let best: Point | undefined;
  let least = Infinity;
  for (const p of points) {
    const along = (p.x - from.x) * sx + (p.y - from.y) * sy;
    if (along < 0.5) continue;
    const aside = Math.abs(sx !== 0 ? p.y - from.y : p.x - from.x);
    const other = sx !== 0 && p.series !== from.series ? 1e4 : 0;
    const cost = along + 4 * aside + other;
    if (cost < least) (least = cost), (best = p);
  }
  return best;
}

export class Figure {
  readonly element: HTMLElement;
  private readonly plot: HTMLElement;
  private readonly readout: HTMLElement;
  private readonly heading: HTMLElement;
  private drawing: Drawing | undefined;
  private current: Point | undefined;
  private mark: SVGElement | undefined;
  private width = 0;

  constructor(private spec: FigureSpec, ...controls: Node[]) {
    this.readout = h("p", { class: "readout", "aria-live": "polite" });
    this.plot = h("div", {
      class: "plot",
      tabindex: 0,
      role: "img",
      onpointermove: (e: PointerEvent) => this.point(e),
      onpointerleave: () => this.show(undefined),
      onclick: (e: MouseEvent) => {
        this.point(e);
        this.current?.pick?.();
      },
      onkeydown: (e: KeyboardEvent) => this.key(e),
      onblur: () => this.show(undefined),
    });
    const button = (label: string, what: string, act: () => void): HTMLButtonElement =>
      h("button", { type: "button", title: `Download ${what}`, onclick: act }, label);
    this.heading = h("strong", {});
    this.element = h(
      "figure",
      { class: "figure", "data-figure": spec.name },
      h(
        "figcaption",
        {},
        this.heading,
        h(
          "span",
          { class: "downloads", role: "group", "aria-label": "Downloads" },
          button("SVG", "the figure as SVG", () => saveText(`${this.spec.name}.svg`, svgText(this.alone()), "image/svg+xml")),
          button("PNG", "the figure as PNG", () => void savePng(`${this.spec.name}.png`, this.alone())),
          button("CSV", "the numbers behind it", () => this.saveCsv()),
        ),
      ),
      controls.length > 0 && h("div", { class: "controls" }, ...controls),
      this.plot,
      this.readout,
    );
    new ResizeObserver(() => {
      if (Math.abs(this.plot.clientWidth - this.width) > 1) this.draw();
    }).observe(this.plot);
    onTheme(() => this.draw());
  }

  /** Draws again, perhaps something else. */
  update(spec: FigureSpec = this.spec): void {
    this.spec = spec;
    this.draw();
  }

  private draw(): void {
    this.width = this.plot.clientWidth;
    if (this.width === 0) return;
    this.drawing = this.spec.draw(theme(), this.width, false);
    this.heading.textContent = this.spec.title;
    if (this.spec.exact) this.heading.title = this.spec.exact;
    this.plot.setAttribute("aria-label", `${this.spec.title}. ${this.spec.about ?? ""} Arrow keys read the values.`);
    this.plot.replaceChildren(this.drawing.svg);
    this.element.dataset["points"] = String(this.drawing.points.length);
    this.show(undefined);
  }

  /** The figure for a file: light, at a width that suits a page. */
  private alone(): SVGSVGElement {
    const { svg } = this.spec.draw(light, 720, true);
    svg.insertBefore(svgNode("rect", { width: "100%", height: "100%", fill: light.paper }), svg.firstChild);
    const title = svgNode("title", {});
    title.textContent = this.spec.title;
    svg.insertBefore(title, svg.firstChild);
    return svg;
  }

  private saveCsv(): void {
    const { columns, rows } = this.spec.table();
    saveText(`${this.spec.name}.csv`, csv(columns, rows), "text/csv");
  }

  private point(event: MouseEvent): void {
    const box = this.drawing?.svg.getBoundingClientRect();
    if (box) this.show(nearest(this.drawing?.points ?? [], event.clientX - box.left, event.clientY - box.top));
  }

  private key(event: KeyboardEvent): void {
    const points = this.drawing?.points ?? [];
    const step = steps[event.key];
    if (step) {
      event.preventDefault();
      this.show(this.current ? (next(points, this.current, step) ?? this.current) : points[0]);
    } else if ((event.key === "Enter" || event.key === " ") && this.current?.pick) {
      event.preventDefault();
      this.current.pick();
    } else if (event.key === "Escape") {
      this.show(undefined);
    }
  }

  private show(point: Point | undefined): void {
    this.current = point;
    this.mark?.remove();
    this.mark = undefined;
    this.readout.textContent = point?.says ?? [this.spec.hint, this.drawing?.note].filter(Boolean).join(" · ");
    if (point?.exact) this.plot.title = this.readout.title = point.exact;
    else for (const e of [this.plot, this.readout]) e.removeAttribute("title");
    this.readout.classList.toggle("idle", point === undefined);
    this.plot.style.cursor = point?.pick ? "pointer" : "";
    if (!point || !this.drawing) return;
    const stroke = { fill: "none", stroke: theme().accent, "stroke-width": 2, "pointer-events": "none" };
    const [w, b] = point.box ?? [0, 0];
    this.mark = point.box
      ? svgNode("rect", { ...stroke, x: point.x - w / 2, y: point.y - b / 2, width: w, height: b })
      : svgNode("circle", { ...stroke, cx: point.x, cy: point.y, r: 5 });
    this.drawing.svg.append(this.mark);
  }
}
