// The point first: three findings with a picture each, then what is normal, one folded line each, then what is not known.
import { type Scan, type Sentence, toNumber } from "../data";
import { h, outside, token } from "../dom";
import { headName } from "../format";
import { picture, rowOf } from "./evidence";

type Open = (layer: number, head: number) => void;

const most = 3; // findings with a picture

/** A sentence that nothing is out of the ordinary: "no QK map is low in rank", "the norms do not hold the rank up". */
export const isNormal = (s: Sentence): boolean => s.known && (typeof s.found === "boolean" ? !s.found : /^no |\bdo(es)? not hold\b|, but no more than in /.test(s.sentence));

/** How far a number is from its threshold, as a factor; infinite where there is nothing to hold it against. */
function distance(s: Sentence): number {
  const [value, limit] = [Math.abs(toNumber(s.value)), Math.abs(toNumber(s.threshold))];
  const share = /\bshare ([\d.e-]+)/.exec(s.sentence)?.[1]; // of a map's rank the share stands beside the threshold
  const held = s.topic === "rank" && share !== undefined ? Number(share) : value;
  return held > 0 && limit > 0 ? Math.max(held / limit, limit / held) : Infinity;
}

/** What a sentence says, and the numbers behind it: what stands in brackets belongs to those, and may hold a colon of its own. */
export function split(sentence: string): { head: string; detail: string } {
  let depth = 0;
  for (let i = 0; i < sentence.length; i++) {
    if (sentence[i] === "(") depth++;
    if (sentence[i] === ")") depth--;
    if (depth === 0 && (sentence.startsWith(": ", i) || sentence.startsWith("; ", i))) {
      const [, head = "", aside = ""] = /^(.*?)(?: \(([^()]*)\))?$/.exec(sentence.slice(0, i)) ?? [];
      return { head, detail: (aside && `${aside}; `) + sentence.slice(i + 2) };
    }
  }
  return { head: sentence, detail: "" };
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The first `most` of what was found, in the verdict's order; where there are fewer, whether tokens collapse, then what comes nearest to its threshold. */
export function outstanding(scan: Scan): Sentence[] {
  const known = scan.data.verdict.filter((s) => s.known && s.topic !== "input");
  const found = known.filter((s) => !isNormal(s));
  const rest = known.filter((s) => isNormal(s) && rowOf(scan, s) !== undefined).sort((a, b) => Number(b.topic === "collapse") - Number(a.topic === "collapse") || distance(a) - distance(b));
  return [...found, ...rest].slice(0, most);
}

/** Positions in a sentence with the token that stands there in the sample shown. */
export function withTokens(scan: Scan, text: string): string {
  const tokens = scan.data.shown?.tokens ?? [];
  const there = (position: string): string => {
    const word = tokens[Number(position)];
    return word === undefined || word === "" ? "" : ` (“${token(word)}” in the sample shown)`;
  };
  return outside(text)
    .replace(/\bposition (\d+)/g, (all, at: string) => all + there(at))
    .replace(/\btoken (\d+)(?=, channel)/g, (all, at: string) => all + there(at))
    .replace(/\bon the first token\b/g, (all) => all + there("0"));
}

/** What would decide a question that the evidence leaves open; empty where the sentence says it itself. */
export function whatDecides(s: Sentence): string {
  if (/would decide|scan with|run with|--[a-z]/.test(s.sentence)) return "";
  if (/too short|so few|fewer than/.test(s.sentence)) return "Longer texts, or more of them, would decide.";
  if (/thresholds [\d.]+ and [\d.]+/.test(s.sentence)) return "It lies between the two thresholds: read the curve, or set another threshold with --threshold.";
  if (/was measured|were measured/.test(s.sentence)) return "A scan with all lenses would decide.";
  if (/does not speak/.test(s.sentence)) return "Nothing would decide: the theorem is about other networks.";
  return /±|standard error|too near|one sample/.test(s.sentence) ? "More samples would decide." : "";
}

function opener(s: Sentence, open: Open): HTMLElement | null {
  const { layer, head } = s;
  return layer !== null && head !== null ? h("button", { type: "button", class: "link", onclick: () => open(layer, head) }, `open ${headName(layer, head)}`) : null;
}

function card(scan: Scan, s: Sentence, index: number, open: Open): HTMLElement {
  const { head, detail } = split(s.sentence);
  return h(
    "li",
    { class: `card ${isNormal(s) ? "usual" : "found"}`, "data-topic": s.topic },
    h("p", { class: "topic" }, outside(s.topic), isNormal(s) && h("span", { class: "quiet" }, " · normal")),
    h("h3", {}, capital(withTokens(scan, head))),
    picture(scan, s, `finding-${index + 1}`, open),
    detail !== "" && h("p", { class: "detail" }, capital(withTokens(scan, detail))),
    opener(s, open),
  );
}

function folded(scan: Scan, s: Sentence, name: string, open: Open): HTMLElement {
  const { head, detail } = split(s.sentence);
  const drawn = picture(scan, s, name, open);
  const line = [h("span", { class: "topic" }, outside(s.topic)), h("span", {}, capital(withTokens(scan, head)))];
  if (detail === "" && !drawn) return h("li", { "data-topic": s.topic }, h("p", { class: "line" }, ...line));
  return h("li", { "data-topic": s.topic }, h("details", {}, h("summary", { class: "line" }, ...line), detail !== "" && h("p", { class: "detail" }, capital(withTokens(scan, detail))), opener(s, open), drawn));
}

export function headline(scan: Scan, open: Open, prefix = ""): HTMLElement {
  const { verdict, notes } = scan.data;
  if (verdict.length === 0 && notes.length === 0) return h("p", {}, "No verdict was saved with these results.");
  const first = outstanding(scan);
  const rest = verdict.filter((s) => s.known && !first.includes(s));
  const unknown = verdict.filter((s) => !s.known);
  const group = (title: string, kind: string, sentences: Sentence[], item: (s: Sentence, i: number) => HTMLElement): HTMLElement | null =>
    sentences.length === 0 ? null : h("div", { class: `said ${kind}` }, h("h3", {}, title), h("ul", {}, ...sentences.map(item)));
  return h(
    "div",
    { class: "headline" },
    first.length > 0 && h("ul", { class: "cards" }, ...first.map((s, i) => card(scan, s, i, open))),
    group("Also found", "more", rest.filter((s) => !isNormal(s)), (s, i) => folded(scan, s, `${prefix}more-${i + 1}`, open)),
    group("Normal", "normal", rest.filter(isNormal), (s, i) => folded(scan, s, `${prefix}normal-${i + 1}`, open)),
    group("Not known", "unknown", unknown, (s, i) => {
      const drawn = picture(scan, s, `${prefix}unknown-${i + 1}`, open);
      const decides = whatDecides(s);
      return h(
        "li",
        { "data-topic": s.topic },
        h("p", { class: "line" }, h("span", { class: "topic" }, outside(s.topic)), h("span", {}, capital(withTokens(scan, s.sentence)), decides !== "" && ". ", decides !== "" && h("b", { class: "decides" }, decides))),
        drawn && h("details", {}, h("summary", {}, "picture"), drawn),
      );
    }),
    notes.length > 0 && h("ul", { class: "notes" }, ...notes.map((note) => h("li", {}, outside(note)))),
  );
}
