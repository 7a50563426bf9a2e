// The point first: three findings with a picture each, then what was asked for and what is normal, one folded line each,
// then what is not known.
import { type Scan, type Sentence, toNumber } from "../data";
import { h, outside, token } from "../dom";
import { headName } from "../format";
import { picture, rowOf } from "./evidence";

type Open = (layer: number, head: number) => void;

const most = 3; // findings with a picture

// How sentences begin that are told because they were asked for: results do not always have it with them.
const onRequest = /^(cutting every head to |no rank of [\d, ]+ tried |a stress test )/;

/** Whether results are a scan's: what other commands say is what they were run for. */
const isScan = (scan: Scan): boolean => !/^rankscope (collapse|paths|operator|plan)( |$)/.test(String(scan.data.manifest["command"]));

type Kind = "found" | "asked" | "normal";

/**
 * What a known sentence is: of something that is there, told because it was asked for, or that nothing is out of the ordinary ("no QK map is low in rank",
 * "the norms do not hold the rank up").
 */
export function kindOf(scan: Scan, s: Sentence): Kind {
  if (s.found === true) return "found";
  if (s.asked === true || s.topic === "theory" || onRequest.test(s.sentence) || !isScan(scan)) return "asked";
  return s.found === false || /^no |\bdo(es)? not hold\b|, but no more than in /.test(s.sentence) ? "normal" : "found";
}

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
      // An aside that begins with a number is of the word before it: "14 are not known (1 for the loss alone)".
      const [, head = "", aside = ""] = /^(.*?)(?: \(([^()\d][^()]*)\))?$/.exec(sentence.slice(0, i)) ?? [];
      return { head, detail: (aside && `${aside}; `) + sentence.slice(i + 2) };
    }
  }
  return { head: sentence, detail: "" };
}

/** A name keeps its letters: "softmax=sigmoid@L1" is what --replace takes. */
export const capital = (text: string): string => (/^\S*[=_]/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1));

/**
 * The first `most` of what was found, then of what was asked for, in the verdict's order; where there are fewer, whether tokens collapse, then what comes
 * nearest to its threshold. What a scan says without a number of its own stands in its list.
 */
export function outstanding(scan: Scan): Sentence[] {
  const known = scan.data.verdict.filter((s) => s.known && s.topic !== "input");
  const of = (kind: Kind): Sentence[] => known.filter((s) => kindOf(scan, s) === kind);
  const asked = of("asked").filter((s) => !isScan(scan) || rowOf(scan, s) !== undefined);
  const rest = of("normal").filter((s) => rowOf(scan, s) !== undefined).sort((a, b) => Number(b.topic === "collapse") - Number(a.topic === "collapse") || distance(a) - distance(b));
  return [...of("found"), ...asked, ...rest].slice(0, most);
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
  const kind = kindOf(scan, s);
  return h(
    "li",
    { class: `card ${kind}`, "data-topic": s.topic },
    h("p", { class: "topic" }, outside(s.topic), kind === "normal" && h("span", { class: "quiet" }, " · normal")),
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

// What has no card, by kind: its heading, and its name in the page.
const lists: [Kind, string, string][] = [
  ["found", "Also found", "more"],
  ["asked", "Asked for", "asked"],
  ["normal", "Normal", "normal"],
];

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
    ...lists.map(([kind, title, name]) => group(title, name, rest.filter((s) => kindOf(scan, s) === kind), (s, i) => folded(scan, s, `${prefix}${name}-${i + 1}`, open))),
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
