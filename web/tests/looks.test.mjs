// How the pages look: pictures at desktop and phone width in both themes, and what can be said of them without a golden one.
import assert from "node:assert/strict";
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, openPage } from "./browser.mjs";
import { rankscope, temporaryFolder } from "./results.mjs";

const base = temporaryFolder();
const pictures = process.env.RANKSCOPE_PICTURES; // for people: nothing is taken where it is not set
const tree = new URL("../..", import.meta.url).pathname;
const at = (name) => join(base, name);
const input = ["--samples", "2", "--max-length", "24", "--quiet"];
let browser;

before(async () => {
  if (pictures) mkdirSync(pictures, { recursive: true });
  rankscope("scan", ...input, "--off", "skip", "--null", "--out", at("step-100"));
  rankscope("scan", ...input, "--off", "skip", "--dtype", "float64", "--out", at("step-200"));
  cpSync(at("step-200"), at("step-1000"), { recursive: true });
  browser = await launch();
});
after(() => browser.close());

/** Every plot of the page: its texts against its frame and each other, and how much of it is drawn at all. */
const inspect = () => {
  const faults = [];
  const name = (e) => e.closest("[data-figure]")?.getAttribute("data-figure");
  for (const svg of document.querySelectorAll(".plot svg")) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim() !== "");
    for (const t of texts) {
      const box = t.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) faults.push(`${name(svg)}: "${t.textContent}" leaves the plot`);
    }
    const ticks = [...svg.querySelectorAll('[aria-label="y-axis tick label"] text')].map((t) => t.getBoundingClientRect());
    for (const label of svg.querySelectorAll('[aria-label="text"] text')) {
      const box = label.getBoundingClientRect();
      if (ticks.some((t) => t.left < box.right && box.left < t.right && t.top < box.bottom - 1 && box.top < t.bottom - 1)) faults.push(`${name(svg)}: "${label.textContent}" lies on a number of the axis`);
    }
    for (const axis of svg.querySelectorAll('[aria-label$="tick label"]')) {
      const boxes = [...axis.querySelectorAll("text")].filter((t) => t.textContent.trim() !== "").map((t) => [t.textContent, t.getBoundingClientRect()]);
      for (let i = 1; i < boxes.length; i++) {
        const [[a, p], [b, q]] = [boxes[i - 1], boxes[i]];
        if (p.left < q.right && q.left < p.right && p.top < q.bottom - 2 && q.top < p.bottom - 2) faults.push(`${name(svg)}: "${a}" and "${b}" overlap`);
      }
    }
    const wave = svg.querySelector("path.break")?.getBoundingClientRect();
    const hidden = wave ? [...svg.querySelectorAll('[aria-label="dot"] circle')].map((c) => c.getBoundingClientRect()).filter((c) => c.top < wave.bottom && wave.top < c.bottom).length : 0;
    if (hidden > 0) faults.push(`${name(svg)}: the break of the axis hides ${hidden} points`);
    const visible = [...svg.querySelectorAll("path, circle, rect, image")].filter((m) => m.getBoundingClientRect().width > 0 && m.getAttribute("stroke") !== "none");
    if (visible.length < 3 && !svg.querySelector("image")) faults.push(`${name(svg)}: ${visible.length} marks`);
    if (svg.querySelector('[aria-label="cell"]') && frame.width < 0.98 * svg.parentElement.clientWidth) faults.push(`${name(svg)}: the map leaves its card empty`);
  }
  for (const e of document.querySelectorAll("h1, h2, h3, .headline p, .readout, .lead, summary"))
    if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline") faults.push(`"${e.textContent.slice(0, 40)}" is wider than its place`);
  return faults;
};

/** Of every figure the share of its pixels that are not its ground. */
const inked = () =>
  Promise.all(
    [...document.querySelectorAll("[data-figure]")].map(async (figure) => {
      const svg = figure.querySelector(".plot svg").cloneNode(true);
      svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
      const image = new Image();
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.width, image.height];
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
      let drawn = 0;
      for (let i = 3; i < data.length; i += 4) drawn += data[i] > 40 ? 1 : 0;
      return [figure.getAttribute("data-figure"), drawn / (data.length / 4)];
    }),
  );

const every = [[1400, "light"], [1400, "dark"], [390, "light"], [390, "dark"]];
const two = [[1400, "light"], [390, "dark"]];

/** Tables that are wider than their place. On a wide screen those of trials may be: they have a column for every key of a configuration. */
const wideTables = () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  return [...document.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth && !(innerWidth > 620 && e.closest('[data-table="trials"]'))).map((e) => e.querySelector("caption").textContent);
};

async function look(name, file, ways) {
  for (const [width, colorScheme] of ways) {
    const { page, context, faults } = await openPage(browser, file, { viewport: { width, height: 900 }, colorScheme });
    const where = `${name}-${width}-${colorScheme}`;
    if (pictures) await page.screenshot({ path: join(pictures, `${where}.png`), fullPage: true });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `${where}: no sideways scrolling`);
    assert.deepEqual(await page.evaluate(wideTables), [], `${where}: no table scrolls sideways`);
    await page.waitForFunction(() => [...document.querySelectorAll(".plot")].every((p) => p.querySelector("svg"))); // what was folded is drawn
    assert.deepEqual(await page.evaluate(inspect), [], where);
    for (const [figure, share] of await page.evaluate(inked)) assert.ok(share > 0.003, `${where}: ${figure} is blank: ${share}`);
    const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).map(Number));
    assert.equal(ground.every((c) => c < 64), colorScheme === "dark", `${where}: the ground is ${ground}`);
    assert.deepEqual(faults, [], where);
    await context.close();
  }
}

test("a scan", () => look("scan", join(at("step-100"), "report.html"), every));

test("a scan that was compared with another implementation", async () => {
  const model = join(tree, "tests/fixtures/models/bert");
  rankscope("scan", model, "--random-tokens", "--samples", "2", "--verify", join(model, "activations.safetensors"), "--out", at("checked"), "--quiet");
  await look("checked", join(at("checked"), "report.html"), [[390, "light"]]);
});

test("a series of scans", async () => {
  rankscope("report", at("step-1000"), at("step-100"), at("step-200"), "--out", at("series.html"), "--quiet");
  await look("series", at("series.html"), two);
});

test("two scans, pair by pair", async () => {
  rankscope("report", at("step-100"), at("step-200"), "--out", at("two.html"), "--quiet");
  await look("two", at("two.html"), two);
});

test("what collapse, paths and operator wrote", async () => {
  for (const command of ["collapse", "paths", "operator"]) {
    rankscope(command, ...input, "--out", at(command));
    await look(command, join(at(command), "report.html"), two);
  }
});

test("the study behind the committed results", async () => {
  rankscope("report", join(tree, "src/studies/results/fig1"), "--out", at("fig1.html"), "--quiet");
  await look("fig1", at("fig1.html"), every);
});

test("two studies", async () => {
  const study = join(tree, "tests/fixtures/study");
  rankscope("report", study, join(tree, "src/studies/results/fig1"), "--out", at("studies.html"), "--quiet");
  await look("studies", at("studies.html"), two);
});
