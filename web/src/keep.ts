// What a reader did to the page, over a drawing of newer data: what was unfolded stays so, and the keyboard stays where it was.
// What was chosen is kept where it is chosen (table.ts, folders.ts, study/curves.ts).

/** Where an element stands among those that are found alike: enough to find the one that takes its place. */
function address(element: Element): { find: string; index: number } | null {
  const near = element.closest("[data-table], [data-figure], section[id]");
  if (!near) return null;
  const name = ["data-table", "data-figure", "id"].find((a) => near.hasAttribute(a)) ?? "id";
  const find = `[${name}="${CSS.escape(near.getAttribute(name) ?? "")}"] ${element.tagName}`;
  return { find, index: [...document.querySelectorAll(find)].indexOf(element) };
}

const summaryOf = (details: HTMLDetailsElement): string => details.querySelector("summary")?.textContent ?? "";

/** Notes it; what it returns puts it back once the page is drawn again. */
export function keepPlace(): () => void {
  const at = window.scrollY;
  const open = new Set([...document.querySelectorAll<HTMLDetailsElement>("details[open]")].map(summaryOf));
  const active = document.activeElement;
  const focus = active && active !== document.body ? address(active) : null;
  const caret = active instanceof HTMLInputElement && active.type === "search" ? [active.selectionStart, active.selectionEnd] : null;
  return () => {
    for (const details of document.querySelectorAll("details")) details.open ||= open.has(summaryOf(details));
    const again = focus && document.querySelectorAll<HTMLElement>(focus.find)[focus.index];
    again?.focus({ preventScroll: true });
    if (caret && again instanceof HTMLInputElement) again.setSelectionRange(caret[0] ?? null, caret[1] ?? null);
    window.scrollTo({ top: at });
  };
}
