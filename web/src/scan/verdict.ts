// The verdict first: what was found, in words, with the number behind each sentence.
import { type ScanData, toNumber } from "../data";
import { h, outside } from "../dom";
import { headName, short } from "../format";

export function verdict(data: ScanData, open: (layer: number, head: number) => void): HTMLElement {
  const items = data.verdict.map((s) => {
    const { layer, head } = s;
    const numbers: [string, number][] = [
      ["value", toNumber(s.value)],
      ["threshold", toNumber(s.threshold)],
      ["baseline", toNumber(s.baseline)],
    ];
    return h(
      "li",
      { class: s.known ? "known" : "unknown", "data-topic": s.topic },
      h("span", { class: "topic" }, s.known ? "" : "? ", outside(s.topic)),
      h("div", {}, h("p", {}, outside(s.sentence)), h("p", { class: "behind" }, ...numbers.filter(([, x]) => !Number.isNaN(x)).map(([name, x]) => h("span", {}, `${name} `, h("b", {}, short(x))))), layer !== null && head !== null && h("button", { type: "button", class: "link", onclick: () => open(layer, head) }, `open ${headName(layer, head)}`)),
    );
  });
  for (const note of data.notes) items.push(h("li", { class: "note" }, h("span", { class: "topic" }, "note"), h("p", {}, outside(note))));
  if (items.length === 0) return h("p", {}, "No verdict was saved with these results.");
  return h("ul", { class: "verdict" }, ...items);
}
