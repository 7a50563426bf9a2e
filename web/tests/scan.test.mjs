// The page of a real scan of the built-in model, held against its own tables.
import assert from "node:assert/strict";
import { appendFileSync, cpSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { firstPaint, launch, openPage, slowness } from "./browser.mjs";
import { numberIn, rankscope, readTable, shown, temporaryFolder } from "./results.mjs";

const folder = join(temporaryFolder(), "scan");
let browser, page, faults, rows;

before(async () => {
  rankscope("scan", "--samples", "4", "--max-length", "64", "--off", "skip", "--null", "--out", folder, "--quiet");
  rows = readTable(join(folder, "metrics.csv"));
  browser = await launch();
  ({ page, faults } = await openPage(browser, join(folder, "report.html")));
});
after(async () => {
  assert.deepEqual(faults, [], "no console error, no request");
  await browser.close();
});

/** What is said before the first colon outside of brackets: the statement, without its numbers. */
const statement = (sentence) => sentence.replace(/: .*/, "").replace(/ \([^()]*\)?$/, "").slice(1);

test("the point comes first: at most three findings, a picture each, and every other sentence once", async () => {
  const first = page.locator("main section").first();
  assert.equal(await first.getAttribute("id"), "verdict");
  const { verdict } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
  const cards = first.locator(".card");
  assert.equal(await cards.count(), 3);
  for (const card of await cards.all()) assert.equal(await card.locator("[data-figure] svg").count(), 1);
  const found = verdict.filter((s) => s.known && !/^no |do(es)? not hold/.test(s.sentence));
  assert.ok(found.length > 0, "without its skips this network loses its rank");
  for (const [i, s] of found.slice(0, 3).entries()) assert.ok((await cards.nth(i).locator("h3").innerText()).includes(statement(s.sentence)));
  const text = await first.evaluate((e) => e.textContent);
  for (const s of verdict) assert.equal(text.split(statement(s.sentence)).length, 2, s.sentence);
  const folded = first.locator(".said.normal details, .said.more details");
  assert.equal(await folded.count(), verdict.filter((s) => s.known).length - 3);
  assert.equal(await first.locator("details[open]").count(), 0);
  for (const line of await first.locator(".said.unknown p.line").all()) assert.match(await line.innerText(), /would decide|--|run with|scan with/);
  assert.equal(await first.locator(".said.unknown li").count(), verdict.filter((s) => !s.known).length);
});

test("a finding is drawn from the row that its sentence was read from", async () => {
  const { verdict } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
  for (const card of await page.locator(".card").all()) {
    const said = await card.locator("h3").innerText();
    const { value, topic } = verdict.find((s) => said.includes(statement(s.sentence)));
    const row = rows.find((r) => Number(r.value) === value);
    assert.ok(row, topic);
    const [download] = await Promise.all([page.waitForEvent("download"), card.locator('button:text("CSV")').click()]);
    const drawn = readTable(await download.path());
    assert.ok(drawn.some((r) => Number(r.value) === value && (r.variant === undefined || r.variant === row.variant)), `${topic}: ${value} is among what is drawn`);
    assert.equal(await card.locator('svg [aria-label="dot"] circle[r="7"], svg [aria-label="cell"]:last-of-type rect[stroke], svg [aria-label="cell"][stroke] rect').count(), 1, "and it is the one that is marked");
  }
});

test("no number of the verdict is said twice", async () => {
  const { verdict } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
  const text = await page.locator("#verdict").evaluate((e) => [...e.querySelectorAll("h3, .detail, .line")].map((x) => x.textContent).join(" "));
  for (const [, number] of verdict.flatMap((s) => [...s.sentence.matchAll(/(\d\.\d{3,}) ±/g)])) assert.equal(text.split(`${number} ±`).length, 2, number);
});

test("the title is the model", async () => {
  assert.equal(await page.locator("h1").innerText(), "The built-in model");
  assert.match(await page.title(), /^The built-in model/);
});

test("arrow keys read the curves, and the values are those of metrics.csv", async () => {
  const figure = page.locator('[data-figure="depth-1"]');
  const plot = figure.locator(".plot");
  await plot.scrollIntoViewIfNeeded();
  await plot.focus();
  const seen = new Set();
  for (let i = 0; i < 7; i++) {
    await plot.press("ArrowRight");
    const text = await figure.locator(".readout").innerText();
    const [, depth, value, n] = /^[^·]+ · depth (\d+) \([^)]+\) · (\S+)(?: ± \S+)? · n (\d+)$/.exec(text);
    const [variant, site, metric] = (await figure.locator(".readout").getAttribute("title")).split(" ");
    const row = rows.find((r) => r.variant === variant && r.site === site && r.metric === metric && r.tokens === "content");
    assert.equal(numberIn(value), shown(Number(row.value)), text);
    assert.equal(depth, row.depth);
    assert.equal(n, row.n);
    seen.add(depth);
  }
  assert.equal(seen.size, 7);
});

test("readable names are told apart, and the exact one is on hover", async () => {
  for (const select of await page.locator("select").all()) {
    const options = await select.locator("option").evaluateAll((all) => all.map((o) => [o.textContent, o.value, o.title]));
    assert.equal(new Set(options.map(([text]) => text)).size, options.length, `${options}`);
    for (const [, value, title] of options) assert.equal(title, value);
  }
  const known = new Set(rows.map((r) => r.metric));
  assert.match(await page.locator("#variants thead").innerText(), /change, nats/); // a change has its unit
  for (const metric of await page.locator("#head .named").evaluateAll((all) => all.map((e) => e.title))) assert.ok(known.has(metric), metric);
});

test("the axis breaks where one curve would flatten the others", async () => {
  const figure = page.locator('[data-figure="depth-1"]');
  const heights = (name) => figure.evaluate((f, at) => { const dots = f.querySelectorAll('[aria-label="dot"]')[at]; return [...dots.querySelectorAll("circle")].map((c) => Number(c.getAttribute("cy"))); }, name);
  const spread = (ys) => Math.max(...ys) - Math.min(...ys);
  const before = spread(await heights(0));
  assert.equal(await figure.locator("path.break").count(), 1, "without its skips the network falls far below the others");
  await figure.locator(".plot").press("Escape");
  assert.match(await figure.locator(".readout").innerText(), /scale of the axis changes at/);
  await page.locator('.entry[data-track="-skip"]').click();
  assert.equal(await figure.locator("path.break").count(), 0, "the others alone need no break");
  assert.ok(before > 0.15 * spread(await heights(0)), "the whole network keeps room that it can be read in");
  await page.locator('.entry[data-track="-skip"]').click();
});

test("every figure has as many points as the table has rows", async () => {
  const expected = rows.filter((r) => r.metric === "residual_fro_rel_trimmed" && /ln1|ln_final/.test(r.site) && Number(r.value) > 0).length;
  assert.equal(Number(await page.locator('[data-figure="depth-1"]').getAttribute("data-points")), expected);
  const heads = rows.filter((r) => r.variant === "full" && r.metric === "attention_entropy" && r.head !== "").length;
  assert.equal(Number(await page.locator('[data-figure="heads"]').getAttribute("data-points")), heads);
});

test("a variant can be taken out and put back", async () => {
  const figure = page.locator('[data-figure="depth-1"]');
  const all = Number(await figure.getAttribute("data-points"));
  const entry = page.locator('.entry[data-track="-skip"]');
  await entry.click();
  assert.equal(await entry.getAttribute("aria-pressed"), "false");
  assert.equal(Number(await figure.getAttribute("data-points")), all - 7);
  await entry.click();
  assert.equal(Number(await figure.getAttribute("data-points")), all);
});

test("the map of heads shows any metric, and a click opens the head", async () => {
  const figure = page.locator('[data-figure="heads"]');
  await figure.locator("select").first().selectOption("sink_mass");
  const box = await figure.locator("svg").boundingBox();
  await figure.locator("svg").hover({ position: { x: box.width * 0.5, y: box.height * 0.5 } });
  const text = await figure.locator(".readout").innerText();
  const [, layer, head, value] = /^L(\d+)H(\d+) · Attention on the key that gets most \(share\) (\S+)/.exec(text);
  const row = rows.find((r) => r.variant === "full" && r.metric === "sink_mass" && r.layer === layer && r.head === head);
  assert.equal(numberIn(value), shown(Number(row.value)));
  await figure.locator("svg").click({ position: { x: box.width * 0.5, y: box.height * 0.5 } });
  await page.waitForFunction((name) => document.getElementById("head-name")?.textContent === name, `L${layer}H${head}`);
  for (const line of await page.locator('#head table[data-table="head"] tbody tr').all()) {
    const metric = await line.getAttribute("data-metric");
    const expected = rows.find((r) => r.variant === "full" && r.metric === metric && r.layer === layer && r.head === head);
    const [number] = (await line.locator("td").nth(1).innerText()).split(" ");
    assert.equal(numberIn(number), shown(Number(expected.value)), metric);
  }
});

test("a number that is too long for its cell is rounded to a whole one", async () => {
  const cells = join(temporaryFolder(), "cells");
  cpSync(folder, cells, { recursive: true });
  const heads = [...Array(12).keys()].map((head) => `full,blocks.0.attn.hook_pattern,0,${head},made_up,${head === 2 ? -28.65 : 0.46},,3,1,all,\n`);
  appendFileSync(join(cells, "metrics.csv"), heads.join(""));
  rankscope("report", cells, "--out", `${cells}.html`, "--quiet");
  const opened = await openPage(browser, `${cells}.html`, { viewport: { width: 390, height: 900 } });
  const figure = opened.page.locator('[data-figure="heads"]');
  await figure.locator("select").first().selectOption("made_up");
  const texts = await figure.locator("svg text").allTextContents();
  assert.equal(texts.filter((t) => t === ".46").length, 11);
  assert.ok(texts.includes("−29"), texts.join(" "));
  await opened.context.close();
});

test("a head is opened by keyboard and by address", async () => {
  const plot = page.locator('[data-figure="heads"] .plot');
  await plot.focus();
  for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "Enter"]) await plot.press(key);
  await page.waitForFunction(() => /^#L\d+H\d+$/.test(location.hash));
  assert.equal(`#${await page.locator("#head-name").innerText()}`, new URL(page.url()).hash);
  const other = await openPage(browser, `${join(folder, "report.html")}#L5H7`);
  await other.page.waitForFunction(() => document.getElementById("head-name")?.textContent === "L5H7");
  assert.deepEqual(other.faults, []);
  await other.context.close();
});

test("a head that was left is opened again by the same link, and one that was chosen is in the address", async () => {
  const other = await openPage(browser, `${join(folder, "report.html")}#L1H1`);
  const name = other.page.locator("#head-name");
  await other.page.waitForFunction(() => document.getElementById("head-name")?.textContent === "L1H1");
  await other.page.locator('[aria-label="Next head"]').click();
  assert.equal(await name.innerText(), "L1H2");
  assert.equal(new URL(other.page.url()).hash, "#L1H2");
  await other.page.locator("#head select").first().selectOption("L1H1");
  const opener = other.page.locator(".card button.link").first();
  const [, head] = /open (L\d+H\d+)/.exec(await opener.innerText());
  for (const _ of [1, 2]) {
    await opener.click();
    await other.page.waitForFunction((wanted) => document.activeElement?.id === "head-name" && document.activeElement.textContent === wanted, head);
    await other.page.evaluate(() => document.activeElement.blur());
    await other.page.evaluate(() => scrollTo(0, 0));
  }
  assert.ok(await opener.isVisible());
  assert.deepEqual(other.faults, []);
  await other.context.close();
});

test("the attention map has the sample's tokens and rows that sum to one", async () => {
  const { input } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator('#head [data-figure^="attention"] button:text("CSV")').click()]);
  const lines = readFileSync(await download.path(), "utf8").trimEnd().split("\n").slice(1);
  assert.equal(lines.length, 64 * 64);
  const sums = new Map();
  for (const line of lines) {
    const query = Number(line.split(",")[0]);
    sums.set(query, (sums.get(query) ?? 0) + Number(line.slice(line.lastIndexOf(",") + 1)));
  }
  // A byte holds a weight to a relative 1/127 at worst near the peak, less exactly below it.
  for (const [query, sum] of sums) assert.ok(Math.abs(sum - 1) < 0.1, `row ${query} sums to ${sum}`);
  assert.equal(input.shown.tokens.length, 64);
});

test("SVG, PNG and CSV come out of every kind of figure", async () => {
  for (const name of ["depth-1", "heads"]) {
    const figure = page.locator(`[data-figure="${name}"]`);
    const take = async (label) => {
      const [download] = await Promise.all([page.waitForEvent("download"), figure.locator(`button:text("${label}")`).click()]);
      assert.equal(download.suggestedFilename(), `${name}.${label.toLowerCase()}`);
      return readFileSync(await download.path());
    };
    const svg = (await take("SVG")).toString();
    assert.match(svg, /^<\?xml[^]*<svg[^]*<\/svg>\s*$/);
    assert.ok(!/var\(|currentColor[^"]*url|https?:\/\/(?!www\.w3\.org)/.test(svg), "it stands alone");
    assert.deepEqual([...(await take("PNG")).subarray(1, 4)].map((b) => String.fromCharCode(b)).join(""), "PNG");
    assert.ok((await take("CSV")).toString().split("\n").length > 7);
  }
});

test("a figure's CSV holds the table's numbers to the last digit", async () => {
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator('[data-figure="depth-1"] button:text("CSV")').click()]);
  const lines = readTable(await download.path());
  for (const line of lines) {
    const row = rows.find((r) => r.variant === line.variant && r.site === line.site && r.metric === line.metric && r.tokens === line.tokens);
    assert.equal(Number(line.value), Number(row.value));
    assert.equal(Number(line.stderr), Number(row.stderr));
  }
  assert.ok(lines.length >= 28);
});

test("every row of the table is there, and can be found and sorted", async () => {
  const table = page.locator('[data-table="metrics"]');
  assert.equal(await table.locator(".controls .quiet").innerText(), `${rows.length} rows`);
  await table.locator("input").fill("-skip output_kl");
  const expected = rows.filter((r) => r.variant === "-skip" && r.metric === "output_kl");
  assert.equal(await table.locator("tbody tr").count(), expected.length);
  assert.equal(numberIn(await table.locator("tbody tr td").nth(5).innerText()), shown(Number(expected[0].value)));
  await table.locator("input").fill("attention_entropy full");
  await table.locator('th button:text("value")').click();
  const values = (await table.locator("tbody tr td:nth-child(6)").allInnerTexts()).map(numberIn);
  assert.deepEqual(values, [...values].sort((a, b) => b - a));
});

test("dark and phone: the page fits its width and every control is named", async () => {
  for (const [width, colorScheme] of [[390, "light"], [390, "dark"], [1280, "dark"]]) {
    const other = await openPage(browser, join(folder, "report.html"), { viewport: { width, height: 844 }, colorScheme });
    assert.equal(await other.page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
    assert.ok((await other.page.evaluate(() => document.documentElement.scrollWidth)) <= width, `no sideways scrolling at ${width}`);
    const unnamed = await other.page.evaluate(
      () => [...document.querySelectorAll("button, select, input")].filter((e) => !(e.textContent.trim() || e.ariaLabel || e.title || e.closest("label")?.textContent.trim())).length,
    );
    assert.equal(unnamed, 0);
    await other.page.keyboard.press("Tab");
    assert.notEqual(await other.page.evaluate(() => document.activeElement?.tagName), "BODY");
    assert.deepEqual(other.faults, []);
    await other.context.close();
  }
});

test("on a phone a table's minor columns stand under each row, with every value and every sort", async () => {
  const wide = await page.locator('[data-table="sinks"] tbody tr').first().locator("td").allInnerTexts();
  const other = await openPage(browser, join(folder, "report.html"), { viewport: { width: 390, height: 844 } });
  const table = other.page.locator('[data-table="sinks"]');
  const lines = table.locator("tbody tr");
  assert.equal(await lines.count(), 20, "two lines a head");
  assert.deepEqual(await lines.first().locator("td").allInnerTexts(), wide.slice(0, 3));
  assert.deepEqual(await lines.nth(1).locator("span").allTextContents(), [`position ${wide[3]}`, `token there ${wide[4]}`]);
  await table.locator('th button:text("position")').click();
  const positions = (await table.locator(".under span:nth-child(1) bdi").allInnerTexts()).map(Number);
  assert.deepEqual(positions, [...positions].sort((a, b) => b - a));
  await other.page.setViewportSize({ width: 1280, height: 844 });
  await other.page.waitForFunction(() => document.querySelectorAll('[data-table="sinks"] tbody tr').length === 10);
  assert.deepEqual(other.faults, []);
  await other.context.close();
});

test("paths by length are there, with the share of the output that each has", async () => {
  const expected = rows.filter((r) => r.metric === "path_share");
  assert.equal(expected.length, 7);
  const norms = rows.filter((r) => r.metric === "path_norm");
  const totals = expected.map((r, i) => Number(norms[i].value) / Number(r.value));
  assert.ok(totals.every((t) => Math.abs(t / totals[0] - 1) < 1e-12), "every share is of the same whole");
  const sum = expected.reduce((a, r) => a + Number(r.value), 0);
  const [bias] = rows.filter((r) => r.metric === "path_share_bias").map((r) => Number(r.value));
  assert.ok(Math.abs(sum + bias - 1) < 1e-12, "what the biases write is the rest");
  assert.ok((await page.locator('[data-figure="paths"] svg text').allTextContents()).some((text) => text.startsWith(`biases ${bias.toPrecision(4)}`)));
  const figure = page.locator('[data-figure="paths"]');
  const plot = figure.locator(".plot");
  await plot.focus();
  for (let i = 0; i < 7; i++) {
    await plot.press("ArrowRight");
    const [, length, value] = /^whole network · length (\d+) · (\S+)$/.exec(await figure.locator(".readout").innerText());
    assert.equal(numberIn(value), shown(Number(expected.find((r) => r.depth === length).value)));
  }
});

test("the page says whether the network agrees with another implementation, and how to look", async () => {
  assert.match(await page.locator("#manifest dl").innerText(), /parity\s+not checked; to check: rankscope scan MODEL --verify/);
  assert.match(await page.locator("#manifest dl").innerText(), /peak memory\s+\d+ MiB/);
  const model = new URL("../../tests/fixtures/models/bert", import.meta.url).pathname;
  const checked = join(temporaryFolder(), "checked");
  rankscope("scan", model, "--random-tokens", "--samples", "2", "--verify", join(model, "activations.safetensors"), "--out", checked, "--quiet");
  const { parity } = JSON.parse(readFileSync(join(checked, "manifest.json"), "utf8"));
  assert.ok(parity.agrees && parity.worst < parity.tolerance);
  const other = await openPage(browser, join(checked, "report.html"));
  const text = await other.page.locator("#manifest dl").innerText();
  const [, worst, at] = /parity\s+agrees: worst error (\S+) of the largest value, at (\S+);/.exec(text);
  assert.equal(numberIn(worst), shown(parity.worst));
  assert.equal(at, parity.at);
  await other.page.locator("#manifest summary").first().click();
  assert.equal(await other.page.locator('[data-table="parity"] .controls .quiet').innerText(), `${parity.layers.length} rows`);
  assert.deepEqual(other.faults, []);
  await other.context.close();
});

test("on paper every figure is whole, and drawn for white paper in the dark theme, too", async () => {
  const other = await openPage(browser, join(folder, "report.html"), { viewport: { width: 1400, height: 900 }, colorScheme: "dark" });
  await other.page.emulateMedia({ media: "print", colorScheme: "dark" });
  await other.page.setViewportSize({ width: 700, height: 900 }); // a sheet is narrower than the screen
  await other.page.waitForFunction(() => getComputedStyle(document.querySelector('[data-figure="heads"] .plot svg')).color === "rgb(28, 32, 36)");
  assert.equal(await other.page.evaluate(() => getComputedStyle(document.querySelector("h2")).color), "rgb(0, 0, 0)");
  const cut = await other.page.evaluate(() => [...document.querySelectorAll(".plot svg")].filter((s) => s.getBoundingClientRect().right > s.closest("section").getBoundingClientRect().right + 1).length);
  assert.equal(cut, 0);
  assert.ok(await other.page.locator("#heads .readout").isVisible(), "what is drawn is said");
  await other.context.close();
});

test("on paper the controls are gone", async () => {
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("nav").isVisible(), false);
  assert.equal(await page.locator(".downloads").first().isVisible(), false);
  await page.emulateMedia({ media: "screen" });
});

test("the file is small, and paints", async () => {
  assert.ok(statSync(join(folder, "report.html")).size < 3e6);
  const paint = await firstPaint(page);
  assert.ok(paint > 0);
  console.log(`# first paint after ${Math.round(paint)} ms, machine busy ${slowness().toFixed(2)} times`);
});
