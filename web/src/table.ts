// A table that sorts by any column and shows its rows a page at a time. On a narrow screen its minor columns become a
// second line under each row: nothing is left out, and nothing scrolls sideways.
import { h, outside } from "./dom";
import { saveText } from "./download";
import { csv, short } from "./format";
import { isNarrow, onTheme } from "./theme";

export type Value = string | number | null;

export interface Column {
  title: string;
  numeric?: boolean;
  hint?: string;
  minor?: boolean; // on a narrow screen under the others
  name?: (exact: string) => string; // what stands for a value; the value itself is on hover and in the file
  text?: (row: Value[]) => string | undefined; // the same for a number, where its digits alone would not tell
}

export interface TableSpec {
  name: string;
  caption: string;
  columns: Column[];
  rows: Value[][];
  sort?: [number, "up" | "down"];
  search?: boolean;
  pageSize?: number;
  pick?: (row: Value[]) => (() => void) | undefined;
}

interface Chosen {
  filter: string;
  shown: number;
  sort: [number, "up" | "down"] | undefined;
}

// What was filtered and sorted stays so when a table is drawn anew.
const chosen = new Map<string, Chosen>();

const text = (v: Value): string => (typeof v === "number" ? short(v) : outside(v ?? ""));

const isEmpty = (v: Value | undefined): boolean => v === null || v === undefined || v === "" || (typeof v === "number" && Number.isNaN(v));

function compare(a: Value | undefined, b: Value | undefined): number {
  if (isEmpty(a) || isEmpty(b)) return Number(isEmpty(a)) - Number(isEmpty(b)); // what is missing comes last either way
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

export class Table {
  readonly element: HTMLElement;
  private readonly head = h("thead", {});
  private readonly body = h("tbody", {});
  private readonly table = h("table", { class: "numbers" });
  private readonly count = h("span", { class: "quiet" });
  private readonly more = h("button", { type: "button", onclick: () => ((this.chosen.shown += this.page), this.fill()) }, "more rows");
  private readonly page: number;
  private readonly chosen: Chosen;

  constructor(private spec: TableSpec) {
    this.page = spec.pageSize ?? 25;
    const name = `${spec.name} ${spec.caption}`;
    this.chosen = chosen.get(name) ?? { filter: "", shown: this.page, sort: spec.sort };
    chosen.set(name, this.chosen);
    const search = h("input", {
      type: "search",
      placeholder: "filter",
      value: this.chosen.filter,
      "aria-label": `Filter ${spec.caption}`,
      oninput: () => ((this.chosen.filter = search.value), (this.chosen.shown = this.page), this.fill()),
    });
    const download = h(
      "button",
      { type: "button", title: "Download these rows as CSV", onclick: () => saveText(`${spec.name}.csv`, csv(this.spec.columns.map((c) => c.title), this.rows()), "text/csv") },
      "CSV",
    );
    this.table.append(h("caption", {}, spec.caption), this.head, this.body);
    this.element = h(
      "div",
      { class: "table", "data-table": spec.name },
      h("div", { class: "controls" }, spec.search && search, this.count, h("span", { class: "downloads" }, download)),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": spec.caption }, this.table),
      this.more,
    );
    this.fill();
    onTheme(() => this.fill());
  }

  update(rows: Value[][]): void {
    this.spec = { ...this.spec, rows };
    this.fill();
  }

  private rows(): Value[][] {
    const words = this.chosen.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = this.spec.rows.filter((r) => {
      const line = [...r, ...this.spec.columns.map((c, i) => (c.name && typeof r[i] === "string" ? c.name(r[i] as string) : ""))].join(" ").toLowerCase();
      return words.every((w) => line.includes(w));
    });
    if (!this.chosen.sort) return rows;
    const [column, direction] = this.chosen.sort;
    return rows.sort((a, b) => {
      const order = compare(a[column], b[column]);
      return direction === "up" || isEmpty(a[column]) || isEmpty(b[column]) ? order : -order;
    });
  }

  /** The place of each column: in the row, or under it. */
  private places(): { across: number[]; under: number[] } {
    const all = [...this.spec.columns.keys()];
    const folds = (i: number): boolean => isNarrow() && this.spec.columns[i]?.minor === true;
    return { across: all.filter((i) => !folds(i)), under: all.filter(folds) };
  }

  private heading(i: number): HTMLButtonElement {
    const { title, hint, numeric } = this.spec.columns[i] as Column;
    const active = this.chosen.sort?.[0] === i ? this.chosen.sort[1] : undefined;
    const [first, second] = numeric ? (["down", "up"] as const) : (["up", "down"] as const);
    const turn = (): void => {
      this.chosen.sort = [i, active === first ? second : first];
      this.fill();
    };
    return h("button", { type: "button", title: hint ?? `Sort by ${title}`, onclick: turn }, `${outside(title)}${active ? (active === "up" ? " ▲" : " ▼") : ""}`);
  }

  private fill(): void {
    const { across, under } = this.places();
    const numeric = (i: number): string | null => (this.spec.columns[i]?.numeric ? "num" : null);
    const sorted = (i: number): string | null => (this.chosen.sort?.[0] !== i ? null : this.chosen.sort[1] === "up" ? "ascending" : "descending");
    const exact = (row: Value[], i: number): string | null => {
      const v = row[i];
      return typeof v === "number" ? (Number.isInteger(v) ? null : String(v)) : this.spec.columns[i]?.name && v ? v : null;
    };
    const shown = (row: Value[], i: number): string => {
      const [v, column] = [row[i] ?? null, this.spec.columns[i]];
      return typeof v === "string" && column?.name ? column.name(v) : (column?.text?.(row) ?? text(v));
    };
    const line = (row: Value[]): HTMLTableRowElement[] => {
      const pick = this.spec.pick?.(row);
      const cell = (i: number): HTMLElement => {
        const words = shown(row, i);
        return h("td", { class: numeric(i), title: exact(row, i) }, i === 0 && pick ? h("button", { type: "button", class: "link", onclick: pick }, words) : h("bdi", {}, words));
      };
      const rest = under.filter((i) => !isEmpty(row[i]));
      const named = (i: number): HTMLElement => h("span", { title: exact(row, i) }, h("i", {}, `${outside(this.spec.columns[i]?.title ?? "")} `), h("bdi", {}, shown(row, i)));
      const main = h("tr", { class: rest.length > 0 ? "folded" : null }, ...across.map(cell));
      return rest.length > 0 ? [main, h("tr", { class: "under" }, h("td", { colspan: across.length }, h("div", {}, ...rest.map(named))))] : [main];
    };
    this.head.replaceChildren(
      h("tr", { class: under.length > 0 ? "folded" : null }, ...across.map((i) => h("th", { scope: "col", class: numeric(i), "aria-sort": sorted(i) }, this.heading(i)))),
      ...(under.length > 0 ? [h("tr", { class: "under" }, h("th", { colspan: across.length }, h("div", {}, ...under.map((i) => this.heading(i)))))] : []),
    );
    const rows = this.rows();
    this.body.replaceChildren(...rows.slice(0, this.chosen.shown).flatMap(line));
    this.more.hidden = rows.length <= this.chosen.shown;
    this.count.textContent = rows.length === 1 ? "1 row" : `${rows.length} rows`;
  }
}
