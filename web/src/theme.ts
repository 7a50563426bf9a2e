// Colours that colour-blind readers can tell apart, twice: for paper and for the dark. Most are Okabe's and Ito's; no two are
// nearer than 10 by CIEDE2000, seen with any kind of cone missing.
import { viridis } from "./viridis";

export interface Theme {
  dark: boolean;
  ink: string;
  quiet: string;
  grid: string;
  paper: string;
  series: string[];
  accent: string;
}

export const light: Theme = {
  dark: false,
  ink: "#1c2024",
  quiet: "#6a737d",
  grid: "#e4e7ea",
  paper: "#ffffff",
  series: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#990000", "#56b4e9", "#4b4b4b", "#1c2024"],
  accent: "#d55e00",
};

export const dark: Theme = {
  dark: true,
  ink: "#e6e8ea",
  quiet: "#98a1aa",
  grid: "#30363d",
  paper: "#161a1e",
  series: ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d5430a", "#e6e8ea", "#7777ff"],
  accent: "#ffb454",
};

const stored = (): string | null => {
  try {
    return localStorage.getItem("rankscope-theme");
  } catch {
    return null; // a page opened from disk may have no storage
  }
};

const query = window.matchMedia("(prefers-color-scheme: dark)");
const paper = window.matchMedia("print");
let chosen: string | null = stored();
const listeners: (() => void)[] = [];

export const isDark = (): boolean => (chosen === null ? query.matches : chosen === "dark");
export const theme = (): Theme => (isDark() && !paper.matches ? dark : light); // paper is white

function apply(): void {
  document.documentElement.dataset["theme"] = isDark() ? "dark" : "light";
  for (const listener of listeners) listener();
}

/** Calls when things should be drawn anew: in other colours, or on a screen that became narrow or wide. */
export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

/** What was drawn before is gone: a page that is drawn again starts over. */
export function forgetListeners(): void {
  listeners.length = 0;
}

export function toggleTheme(): void {
  chosen = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("rankscope-theme", chosen);
  } catch {
    // kept for this visit
  }
  apply();
}

const narrow = window.matchMedia("(max-width: 620px)"); // as style.css has it
export const isNarrow = (): boolean => narrow.matches;

for (const changes of [query, paper, narrow]) changes.addEventListener("change", apply);
document.documentElement.dataset["theme"] = isDark() ? "dark" : "light";

export const dashes = ["", "6 3", "2 3", "8 3 2 3", "1 3", "10 4", "4 2 1 2", "3 5"];

/** How one series looks: as many colours as can be told apart, then the same ones dashed. */
export function look(index: number, t: Theme): { colour: string; dash: string } {
  return { colour: t.series[index % t.series.length] ?? t.ink, dash: dashes[Math.floor(index / t.series.length) % dashes.length] ?? "" };
}

/** A colour for a place between 0 and 1 in an order: viridis, without the end that the ground would swallow. */
export function ordered(place: number, t: Theme): string {
  const [r, g, b] = viridis(t.dark ? 0.2 + 0.8 * place : 0.85 * place);
  return `rgb(${r},${g},${b})`;
}
