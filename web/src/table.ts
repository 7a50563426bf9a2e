// A table that sorts by any column and shows its rows a page at a time.
import { h, outside } from "./dom";
import { saveText } from "./download";
import { csv, short } from "./format";

export type Value = string | number | null;

export interface TableSpec {
  name: string;
  caption: string;
  columns: { title: string; numeric?: boolean; hint?: string }[];
  rows: Value[][];
  sort?: [number, "up" | "down"];
  search?: boolean;
  pageSize?: number;
  pick?: (row: Value[]) => (() => void) | undefined;
}

const text = (v: Value): string => (typeof v === "number" ? short(v) : outside(v ?? ""));

function compare(a: Value | undefined, b: Value | undefined): number {
  const empty = (v: Value | undefined): boolean => v === null || v === undefined || v === "" || (typeof v === "number" && Number.isNaN(v));
  if (empty(a) || empty(b)) return Number(empty(a)) - Number(empty(b)); // what is missing comes last either way
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

export class Table {
  readonly element: HTMLElement;
  private readonly head = h("tr", {});
  private readonly body = h("tbody", {});
  private readonly count = h("span", { class: "quiet" });
  private readonly more = h("button", { type: "button", onclick: () => ((this.shown += this.page), this.fill()) }, "more rows");
  private readonly page: number;
  private shown: number;
  private sort: [number, "up" | "down"] | undefined;
  private words: string[] = [];

  constructor(private spec: TableSpec) {
    this.page = spec.pageSize ?? 25;
    this.shown = this.page;
    this.sort = spec.sort;
    const search = h("input", {
      type: "search",
      placeholder: "filter",
      "aria-label": `Filter ${spec.caption}`,
      oninput: () => ((this.words = search.value.toLowerCase().split(/\s+/).filter(Boolean)), (this.shown = this.page), this.fill()),
    });
    const download = h(
      "button",
      { type: "button", title: "Download these rows as CSV", onclick: () => saveText(`${spec.name}.csv`, csv(this.spec.columns.map((c) => c.title), this.rows()), "text/csv") },
      "CSV",
    );
    this.element = h(
      "div",
      { class: "table", "data-table": spec.name },
      h("div", { class: "controls" }, spec.search && search, this.count, h("span", { class: "downloads" }, download)),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": spec.caption }, h("table", { class: "numbers" }, h("caption", {}, spec.caption), h("thead", {}, this.head), this.body)),
      this.more,
    );
    this.fill();
  }

  update(rows: Value[][]): void {
    this.spec = { ...this.spec, rows };
    this.fill();
  }

  private rows(): Value[][] {
    const rows = this.spec.rows.filter((r) => {
      const line = r.join(" ").toLowerCase();
      return this.words.every((w) => line.includes(w));
    });
    if (!this.sort) return rows;
    const [column, direction] = this.sort;
    const missing = (v: Value | undefined): boolean => v === null || v === undefined || (typeof v === "number" && Number.isNaN(v));
    return rows.sort((a, b) => {
      const order = compare(a[column], b[column]);
      return direction === "up" || missing(a[column]) || missing(b[column]) ? order : -order;
    });
  }

  private fill(): void {
    this.head.replaceChildren(
      ...this.spec.columns.map((c, i) => {
        const active = this.sort?.[0] === i ? this.sort[1] : undefined;
        const button = h(
          "button",
          { type: "button", title: c.hint ?? `Sort by ${c.title}`, onclick: () => ((this.sort = [i, active === (c.numeric ? "down" : "up") ? (c.numeric ? "up" : "down") : c.numeric ? "down" : "up"]), this.fill()) },
          `${outside(c.title)}${active ? (active === "up" ? " ▲" : " ▼") : ""}`,
        );
        return h("th", { scope: "col", class: c.numeric ? "num" : null, "aria-sort": active ? (active === "up" ? "ascending" : "descending") : null }, button);
      }),
    );
    const rows = this.rows();
    this.body.replaceChildren(
      ...rows.slice(0, this.shown).map((row) => {
        const pick = this.spec.pick?.(row);
        return h(
          "tr",
          {},
          ...row.map((v, i) => {
            const cell = h("td", { class: this.spec.columns[i]?.numeric ? "num" : null, title: typeof v === "number" && !Number.isInteger(v) ? String(v) : null });
            if (i === 0 && pick) cell.append(h("button", { type: "button", class: "link", onclick: pick }, text(v)));
            else cell.append(h("bdi", {}, text(v)));
            return cell;
          }),
        );
      }),
    );
    this.more.hidden = rows.length <= this.shown;
    this.count.textContent = rows.length === 1 ? "1 row" : `${rows.length} rows`;
  }
}
