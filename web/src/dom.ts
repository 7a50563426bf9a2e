// Elements from values. Text goes in as text: nothing here, or anywhere in the page, parses markup.

type Child = Node | string | number | null | undefined | false;
type Props = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined && child !== false) element.append(typeof child === "number" ? String(child) : child);
  return element;
}

const directions = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Text from outside, made visible: control characters as pictures, marks that turn the direction spelled out. */
export function outside(text: string): string {
  return text
    .replace(/[\u0000-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/\u007f/g, "\u2421")
    .replace(directions, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A token as it reads in running text: its spaces shown. */
export function token(text: string | undefined): string {
  if (text === undefined) return "";
  return outside(text.replace(/\n/g, "\u21b5").replace(/[\u0120 \u2581]/g, "\u00b7")) || "\u2205";
}

export function option(value: string, label: string, selected: boolean): HTMLOptionElement {
  return h("option", { value, selected, title: value }, label);
}

/** A labelled choice. `choices` are values, or [value, label]: then the value is on hover. */
export function choice(label: string, choices: (string | [string, string])[], chosen: string, changed: (value: string) => void): HTMLLabelElement {
  const select = h("select", { title: chosen, onchange: () => ((select.title = select.value), changed(select.value)) });
  for (const c of choices) {
    const [value, text] = typeof c === "string" ? [c, outside(c)] : c;
    select.append(option(value, text, value === chosen));
  }
  return h("label", { class: "choice" }, h("span", {}, label), select);
}

export function toggle(label: string, on: boolean, changed: (on: boolean) => void): HTMLLabelElement {
  const box = h("input", { type: "checkbox", checked: on, onchange: () => changed(box.checked) });
  return h("label", { class: "toggle" }, box, label);
}

export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), ...children);
}
