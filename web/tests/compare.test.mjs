// Several results side by side, two of them pair by pair, and rows that other commands may add.
import assert from "node:assert/strict";
import { appendFileSync, cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, openPage } from "./browser.mjs";
import { numberIn, rankscope, readTable, shown, temporaryFolder } from "./results.mjs";

const base = temporaryFolder();
const [a, b, c] = ["single", "double", "again"].map((name) => join(base, name));
let browser;

before(async () => {
  const common = ["scan", "--samples", "3", "--max-length", "24", "--quiet"];
  rankscope(...common, "--off", "skip", "--out", a);
  rankscope(...common, "--off", "skip", "--dtype", "float64", "--out", b);
  cpSync(a, c, { recursive: true });
  browser = await launch();
});
after(() => browser.close());

test("three results are three curves", async () => {
  const file = join(base, "three.html");
  rankscope("report", a, b, c, "--out", file, "--quiet");
  const { page, faults } = await openPage(browser, file);
  assert.deepEqual(await page.locator(".entry").allInnerTexts(), ["single", "double", "again"]);
  assert.equal(Number(await page.locator('[data-figure="depth-1"]').getAttribute("data-points")), 3 * 7);
  const choose = page.locator("#head select").first();
  await choose.selectOption({ label: "double" });
  assert.equal(await page.locator("#head-name").innerText(), "L0H0");
  assert.deepEqual(faults, []);
});

test("several scans stand in one table and one figure, before what is said of each", async () => {
  const { page, faults } = await openPage(browser, join(base, "three.html"));
  const first = page.locator("main section").first();
  const lines = first.locator('[data-table="summary"] tbody tr');
  assert.equal(await lines.count(), 3);
  for (const [i, folder] of [a, b, c].entries()) {
    const cells = await lines.nth(i).locator("td").allInnerTexts();
    const rows = readTable(join(folder, "metrics.csv")).filter((r) => r.variant === "full");
    const least = Math.min(...rows.filter((r) => r.metric === "spread").map((r) => Number(r.value)));
    const sinks = rows.filter((r) => r.metric === "sink_margin" && Number(r.value) > 3).length;
    assert.equal(numberIn(cells[1]), shown(least));
    assert.equal(numberIn(cells[4]), sinks);
  }
  assert.equal(await first.locator('[data-figure="depth-1"]').count(), 1);
  assert.equal(await first.locator("details.one").count(), 3);
  assert.equal(await page.locator("h1").innerText(), "The built-in model: single · double · again");
  assert.deepEqual(faults, []);
});

test("any variant of each can be compared, or every one", async () => {
  const { page, faults } = await openPage(browser, join(base, "three.html"));
  const figure = page.locator('[data-figure="depth-1"]');
  const choose = page.locator("#verdict select").first();
  assert.deepEqual(await choose.locator("option").allInnerTexts(), ["whole network", "without skips", "every variant"]);
  await choose.selectOption("-skip");
  assert.deepEqual(await page.locator(".entry").allInnerTexts(), ["single", "double", "again"]);
  await figure.locator(".plot").focus();
  await figure.locator(".plot").press("ArrowRight");
  const [, name, value] = /^(\S+) · depth \d+ \([^)]*\) · (\S+)/.exec(await figure.locator(".readout").innerText());
  const [, site] = (await figure.locator(".readout").getAttribute("title")).split(" ");
  const row = readTable(join(base, name, "metrics.csv")).find((r) => r.variant === "-skip" && r.site === site && r.metric === "residual_fro_rel_trimmed" && r.tokens === "content");
  assert.equal(numberIn(value), shown(Number(row.value)));
  await choose.selectOption({ label: "every variant" });
  assert.equal(await page.locator(".entry").count(), 6);
  assert.equal(Number(await figure.getAttribute("data-points")), 2 * 3 * 7);
  assert.deepEqual(faults, []);
});

test("beside a scan the curves of paths, which go by length, are left out", async () => {
  const paths = join(base, "paths");
  rankscope("paths", "--samples", "2", "--max-length", "16", "--quiet", "--out", paths);
  const file = join(base, "mixed.html");
  rankscope("report", paths, a, "--out", file, "--quiet");
  const { page, faults } = await openPage(browser, file);
  const figure = page.locator('[data-figure="depth-1"]');
  assert.ok((await figure.locator("svg text").allTextContents()).includes("depth (blocks passed)"));
  assert.ok((await page.locator(".entry").evaluateAll((all) => all.map((e) => e.title))).includes("full"));
  assert.equal(await page.locator("#depth").count(), 0, "no curve of a scan goes by path length");
  assert.deepEqual(faults, []);
});

test("of two results of collapse each is there to be chosen", async () => {
  const [one, two] = [2, 3].map((samples) => {
    const folder = join(base, `collapse-${samples}`);
    rankscope("collapse", "--samples", String(samples), "--max-length", "16", "--quiet", "--out", folder);
    return folder;
  });
  const file = join(base, "collapses.html");
  rankscope("report", one, two, "--out", file, "--quiet");
  const { page, faults } = await openPage(browser, file);
  const first = await page.locator('[data-table="collapse"] tbody').innerText();
  await page.locator("#collapse select").first().selectOption({ label: "collapse-3" });
  assert.notEqual(await page.locator('[data-table="collapse"] tbody').innerText(), first);
  assert.deepEqual(faults, []);
});

test("scans of training steps become curves over the steps, in their order", async () => {
  const steps = [2000, 100, 500].map((step) => [step, join(base, `step-${step}`)]);
  for (const [step, folder] of steps) {
    cpSync(a, folder, { recursive: true });
    const table = readFileSync(join(folder, "metrics.csv"), "utf8");
    writeFileSync(join(folder, "metrics.csv"), `${table}full,blocks.0.hook_resid_post,0,,made_up,${step / 7},0.5,3,1,all,\n`);
  }
  const file = join(base, "series.html");
  rankscope("report", ...steps.map(([, folder]) => folder), "--out", file, "--quiet");
  const { page, faults } = await openPage(browser, file);
  const figure = page.locator('[data-figure="series"]');
  assert.equal(Number(await figure.getAttribute("data-points")), 3 * 7, "a curve for every depth");
  await figure.locator("select").first().selectOption("made_up");
  const plot = figure.locator(".plot");
  await plot.focus();
  for (const step of [100, 500, 2000]) {
    await plot.press("ArrowRight");
    assert.equal(await figure.locator(".readout").innerText(), `depth 1 · training step ${step} (step-${step}) · ${(step / 7).toPrecision(4)} ± 0.5`);
  }
  await figure.locator("select").first().selectOption("attention_entropy");
  assert.equal(Number(await figure.getAttribute("data-points")), 3 * 6, "the mean over the heads of every layer");
  await figure.locator('label:has-text("lines") select').selectOption("heads/2");
  assert.equal(Number(await figure.getAttribute("data-points")), 3 * 8, "and every head of one");
  assert.deepEqual(faults, []);
});

test("two scans of the same tokens are compared pair by pair without asking", async () => {
  const file = join(base, "pairs.html");
  rankscope("report", a, b, "--out", file, "--quiet");
  const { page, faults } = await openPage(browser, file);
  assert.ok((await page.locator('[data-table="diff"] tbody tr').count()) > 10);
  assert.deepEqual(faults, []);
});

test("heads are subtracted where both networks have the same ones, and only there", async () => {
  const fewer = join(base, "fewer");
  cpSync(b, fewer, { recursive: true });
  const table = readFileSync(join(b, "metrics.csv"), "utf8").split("\n");
  writeFileSync(join(fewer, "metrics.csv"), table.filter((line) => line.split(",")[3] !== "7").join("\n"));
  for (const [other, shows] of [[b, ["single", "double", "double − single"]], [fewer, ["single", "fewer"]]]) {
    const file = join(base, "heads.html");
    rankscope("report", a, other, "--out", file, "--quiet");
    const { page, context, faults } = await openPage(browser, file);
    assert.deepEqual(await page.locator('[data-figure="heads"] label:has-text("show") option').allInnerTexts(), shows);
    assert.deepEqual(faults, []);
    await context.close();
  }
});

test("two runs of a study are laid over each other, point by point", async () => {
  const fixture = new URL("../../tests/fixtures/study", import.meta.url).pathname;
  const other = join(base, "other");
  cpSync(fixture, other, { recursive: true });
  const file = join(base, "studies.html");
  rankscope("report", fixture, other, "--out", file, "--quiet");
  const { page, faults } = await openPage(browser, file);
  assert.equal(await page.locator('[data-figure="figure"]').count(), 1);
  const ratios = (await page.locator('[data-table="compare"] tbody td:last-child').allInnerTexts()).map(numberIn);
  assert.equal(ratios.length, 7);
  assert.ok(ratios.every((r) => r === 1), "a copy differs in nothing");
  assert.deepEqual(faults, []);
});

test("a diff shows the pairs, their change and its error", async () => {
  const file = join(base, "diff.html");
  rankscope("diff", a, b, "--out", file);
  const { page, faults } = await openPage(browser, file);
  const before = readTable(join(a, "metrics.csv"));
  const now = readTable(join(b, "metrics.csv"));
  const table = page.locator('[data-table="diff"]');
  for (const line of (await table.locator("tbody tr").all()).slice(0, 5)) {
    const [place, , , , tokens, first, second] = await line.locator("td").allInnerTexts();
    const [variant, metric, site] = await line.locator("td[title]").evaluateAll((cells) => cells.slice(0, 3).map((c) => c.title));
    const head = /H(\d+)$/.exec(place)?.[1] ?? "";
    const find = (rows) => rows.find((r) => r.variant === variant && r.metric === metric && r.site === site && r.tokens === tokens && r.head === head);
    assert.equal(numberIn(first), shown(Number(find(before).value)), metric);
    assert.equal(numberIn(second), shown(Number(find(now).value)), metric);
  }
  const map = page.locator('[data-figure="heads"]');
  assert.equal(Number(await map.getAttribute("data-points")), 48);
  await map.locator(".plot").focus();
  await map.locator(".plot").press("ArrowRight");
  assert.match(await map.locator(".readout").innerText(), /→.*change/);
  assert.deepEqual(faults, []);
});

test("what changed by next to nothing stands behind what changed, and a change of the weights is sure", async () => {
  const moved = join(base, "moved");
  cpSync(a, moved, { recursive: true });
  const place = join(moved, "metrics.csv");
  const lines = readFileSync(place, "utf8").split("\n");
  const at = lines.findIndex((line) => line.startsWith("full,blocks.0.attn,0,0,qk_effective_rank,"));
  const cells = lines[at].split(",");
  lines[at] = [...cells.slice(0, 5), Number(cells[5]) * 1.5, ...cells.slice(6)].join(",");
  writeFileSync(place, lines.join("\n"));
  rankscope("report", a, moved, "--out", join(base, "moved.html"), "--quiet");
  const { page, faults } = await openPage(browser, join(base, "moved.html"));
  const first = await page.locator('[data-table="diff"] tbody tr').first().locator("td").allInnerTexts();
  assert.equal(first[0], "L0H0");
  assert.equal(first.at(-2), "∞");
  assert.deepEqual(faults, []);
});

test("streams are told apart, and a metric that a bug fix changed between two scans is named", async () => {
  const folder = join(base, "fixed");
  cpSync(a, folder, { recursive: true });
  appendFileSync(join(folder, "metrics.csv"), "full,encoder.x,0,,made_up,1,,1,1,all,encoder\n");
  const manifest = join(folder, "manifest.json");
  const text = readFileSync(manifest, "utf8");
  const version = Number(/"massive_ratio": (\d+)/.exec(text)[1]);
  writeFileSync(manifest, text.replace(`"massive_ratio": ${version}`, `"massive_ratio": ${version + 1}`));
  const file = join(base, "fixed.html");
  rankscope("diff", a, folder, "--out", file);
  const { page, faults } = await openPage(browser, file);
  assert.deepEqual(await page.locator("#diff p.note").allInnerTexts(), [`massive_ratio has version ${version} in the first and ${version + 1} in the second: a bug fix changed its numbers, scan both with one program`]);
  const table = page.locator('[data-table="metrics"]');
  assert.match(await table.locator("thead").innerText(), /tokens\s+stream/);
  await table.locator("input").fill("made_up");
  assert.match(await table.locator("tbody").innerText(), /encoder$/);
  assert.deepEqual(faults, []);
});

test("null models and the baseline are dashed in every figure, and named as they are drawn", async () => {
  const folder = join(base, "references");
  cpSync(a, folder, { recursive: true });
  const file = join(folder, "metrics.csv");
  const table = readFileSync(file, "utf8");
  const own = table.split("\n").filter((line) => line.startsWith("full,") && /,(massive_ratio|residual_fro_rel_trimmed),/.test(line));
  for (const variant of ["null:init", "baseline"]) appendFileSync(file, `${own.map((line) => line.replace("full", variant)).join("\n")}\n`);
  rankscope("report", folder, "--quiet");
  const { page, faults } = await openPage(browser, join(folder, "report.html"));
  const names = await page.locator(".entry").evaluateAll((entries) =>
    entries.map((e) => {
      const { borderTopColor, borderTopStyle } = getComputedStyle(e.querySelector(".swatch"));
      return [e.textContent, borderTopColor, borderTopStyle];
    }),
  );
  assert.deepEqual(names.map(([name, , style]) => [name, style]), [["whole network", "solid"], ["without skips", "solid"], ["random initialisation", "dashed"], ["baseline", "dashed"]]);
  const drawn = (lines) => lines.map((line) => [getComputedStyle(line).stroke, getComputedStyle(line).strokeDasharray === "none" ? "solid" : "dashed"]);
  const massive = page.locator('[data-figure="massive"] svg');
  const expected = names.map(([, ...look]) => look);
  assert.deepEqual(await massive.locator("> line").evaluateAll(drawn), expected, "its legend");
  assert.deepEqual(await massive.locator('[aria-label="line"] path').evaluateAll(drawn), expected, "its curves");
  assert.deepEqual(await massive.locator("> text").allTextContents(), names.map(([name]) => name));
  assert.deepEqual(await page.locator('[data-figure="depth-1"] [aria-label="line"] path').evaluateAll(drawn), expected);
  assert.deepEqual(faults, []);
});

test("bounds are drawn with their curve, paths by their length", async () => {
  for (const layer of [0, 1, 2]) appendFileSync(join(c, "metrics.csv"), `full,blocks.${layer}.ln1.hook_normalized,${layer},,residual_fro_rel_trimmed_bound,${2 - layer / 2},,1,${layer},content,\n`);
  for (const length of [0, 1, 2, 3]) appendFileSync(join(c, "metrics.csv"), `full,unembed.hook_out,,,path_test,${[0.1, 0.5, 0.3, 0.1][length]},0.01,3,${length},all,\n`);
  rankscope("report", c, "--quiet");
  const { page, faults } = await openPage(browser, join(c, "report.html"));
  assert.equal(Number(await page.locator('[data-figure="depth-1"]').getAttribute("data-points")), 2 * 7 + 3);
  const paths = page.locator('[data-figure="paths"]');
  await paths.locator("select").selectOption("path_test");
  assert.equal(Number(await paths.getAttribute("data-points")), 4);
  await paths.locator(".plot").focus();
  await paths.locator(".plot").press("ArrowRight");
  assert.equal(await paths.locator(".readout").innerText(), "whole network · length 0 · 0.1000 ± 0.01");
  assert.deepEqual(faults, []);
});
