// What `rankscope serve` found below its folder: what it is of, what it is, when it was written; ticked ones are compared.
import { type Folder } from "./data";
import { h, outside, section } from "./dom";
import { type View } from "./scan/view";

const mostCompared = 16; // as the server has it

const address = (paths: string[]): string => `?folder=${paths.map(encodeURIComponent).join("%0A")}`;

// What is ticked stays ticked when the list is drawn anew.
const ticked = new Set<string>();

export function folderView(folders: Folder[]): View {
  const compare = h("button", { type: "button", class: "compare", onclick: () => location.assign(address(folders.map((f) => f.path).filter((p) => ticked.has(p)))) });
  const settle = (): void => {
    const count = folders.filter((f) => ticked.has(f.path)).length;
    compare.disabled = count < 2 || count > mostCompared;
    compare.textContent = count < 2 ? "Tick two or more to compare them" : count > mostCompared ? `At most ${mostCompared} at once` : `Compare these ${count}`;
  };
  const line = (f: Folder): HTMLElement => {
    const box = h("input", {
      type: "checkbox",
      checked: ticked.has(f.path),
      "aria-label": `Compare ${outside(f.path)}`,
      onchange: () => {
        if (box.checked) ticked.add(f.path);
        else ticked.delete(f.path);
        settle();
      },
    });
    return h(
      "tr",
      { "data-folder": f.path },
      h("td", {}, box),
      h("td", {}, h("a", { href: address([f.path]) }, h("bdi", {}, outside(f.path)))),
      h("td", {}, h("bdi", {}, outside(f.model))),
      h("td", { class: "kind" }, outside(f.kind)),
      h("td", { class: "num" }, outside(f.date)),
    );
  };
  settle();
  const table = h(
    "table",
    { class: "numbers listing" },
    h("thead", {}, h("tr", {}, h("th", { "aria-label": "Compare" }), h("th", {}, "folder"), h("th", {}, "model or study"), h("th", {}, "kind"), h("th", { class: "num", title: "of the newest file, UTC" }, "written"))),
    h("tbody", {}, ...folders.map(line)),
  );
  return {
    title: "Results",
    subtitle: folders.length === 1 ? "1 folder" : `${folders.length} folders`,
    sections: [section("folders", "Results in this folder", h("div", { class: "controls" }, compare), h("div", { class: "scroll" }, table))],
    navigate: () => false,
  };
}
