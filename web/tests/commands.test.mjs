// The pages of collapse, paths and operator, and of the committed study, held against their tables.
import assert from "node:assert/strict";
import { appendFileSync, cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, openPage } from "./browser.mjs";
import { numberIn, rankscope, readTable, shown, temporaryFolder } from "./results.mjs";

const base = temporaryFolder();
const run = (command, ...words) => {
  const folder = join(base, command);
  rankscope(command, "--max-length", "16", "--quiet", ...words, "--out", folder, "--force");
  return { folder, file: join(folder, "report.html"), rows: readTable(join(folder, "metrics.csv")) };
};
let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("collapse: every network with its residuals, the noise floor and what was published", async () => {
  const { folder, file, rows } = run("collapse", "--samples", "2");
  const curves = rows.filter((r) => r.metric === "residual_l1inf_rel_mean" && r.tokens === "all");
  // The shape of a published curve, as the paper's own sizes have it.
  for (const depth of [1, 2]) appendFileSync(join(folder, "metrics.csv"), `full,blocks.${depth - 1}.hook_resid_post,${depth - 1},,published,0.${depth},,0,${depth},all,\n`);
  rankscope("report", folder, "--quiet");
  const { page, faults } = await openPage(browser, file);
  const figure = page.locator('[data-figure="collapse"]');
  assert.equal(Number(await figure.getAttribute("data-points")), curves.length + 2);
  assert.ok((await figure.locator("svg text").allTextContents()).includes("noise floor"));
  const table = page.locator('[data-table="collapse"] tbody tr');
  assert.equal(await table.count(), 12);
  for (const line of await table.all()) {
    const variant = await line.locator("td").first().getAttribute("title");
    const residual = await line.locator("td").nth(1).innerText();
    const last = curves.filter((r) => r.variant === variant).sort((a, b) => b.depth - a.depth)[0];
    assert.equal(numberIn(residual), shown(Number(last.value)), variant);
  }
  assert.deepEqual(faults, []);
});

test("collapse in split arithmetic: the bound beside what it bounds, and values no double can hold", async () => {
  const folder = join(base, "split");
  const model = new URL("../../tests/fixtures/models/bert", import.meta.url).pathname;
  rankscope("collapse", model, "--random-tokens", "--samples", "2", "--arithmetic", "split", "--out", folder, "--quiet");
  const rows = readTable(join(folder, "metrics.csv"));
  const add = (depth, metric, value) => appendFileSync(join(folder, "metrics.csv"), `SAN,blocks.${depth - 1}.hook_resid_post,${depth - 1},,${metric},${value},,2,${depth},all,\n`);
  add(2, "published_ratio", 25.62);
  add(10, "residual_l1inf_rel_mean", 1e-60);
  add(11, "residual_l1inf_rel_mean", 0); // as a double has it
  add(11, "residual_l1inf_rel_log10", -303.25);
  rankscope("report", folder, "--quiet");
  const { page, faults } = await openPage(browser, join(folder, "report.html"));
  const layers = rows.filter((r) => /^bound_(measured_)?log10$/.test(r.metric)).length;
  assert.ok(layers >= 4);
  assert.equal(Number(await page.locator('[data-figure="theory"]').getAttribute("data-points")), layers);
  const figure = page.locator('[data-figure="collapse"]');
  const few = Number(await figure.getAttribute("data-points"));
  await figure.locator("input").check();
  assert.equal(Number(await figure.getAttribute("data-points")), few + 1, "the smallest ones come when asked for");
  const line = page.locator('[data-table="collapse"] tbody tr').filter({ has: page.locator("td:first-child", { hasText: /^SAN$/ }) });
  const heads = await page.locator('[data-table="collapse"] th').allInnerTexts();
  const cell = (title) => line.locator("td").nth(heads.findIndex((h) => h.startsWith(title))).innerText();
  assert.equal(await cell("residual"), "10^−303.3", "not 0");
  assert.equal(numberIn(await cell("log10")), shown(-303.25));
  assert.equal(await cell("exponent"), "–", "that of a block before is another number");
  assert.equal(await cell("over published"), "25.62 at depth 2");
  assert.deepEqual(faults, []);
});

test("paths: each reading against the length", async () => {
  const { file, rows } = run("paths", "--samples", "2");
  const { page, faults } = await openPage(browser, file);
  assert.deepEqual(await page.locator(".entry").evaluateAll((entries) => entries.map((e) => e.title)), ["only", "upto", "allbut"]);
  assert.deepEqual(await page.locator(".entry").allInnerTexts(), ["paths of that length alone", "paths up to that length", "all but those paths"]);
  assert.equal(Number(await page.locator('[data-figure="paths"]').getAttribute("data-points")), 7);
  await page.locator('[data-figure="paths"] select').selectOption("output_kl");
  const kl = rows.filter((r) => r.metric === "output_kl" && r.depth !== "" && Number(r.value) > 0).length;
  assert.equal(Number(await page.locator('[data-figure="paths"]').getAttribute("data-points")), kl);
  assert.equal(await page.locator('[data-table="variants"]').count(), 0, "readings are no variants of the network");
  assert.deepEqual(faults, []);
});

test("chained attention: quartiles as a band on a logarithmic axis, published values beside", async () => {
  const folder = join(base, "chained");
  rankscope("paths", "--chained", "--chains", "8", "--samples", "2", "--max-length", "16", "--quiet", "--out", folder);
  const rows = readTable(join(folder, "metrics.csv"));
  const lengths = rows.filter((r) => r.metric === "path_rank1_distance").length;
  for (const length of [1, 2]) appendFileSync(join(folder, "metrics.csv"), `chained,ln_final.hook_normalized,,,path_published,0.${length},,0,${length},all,\n`);
  rankscope("report", folder, "--quiet");
  const { page, faults } = await openPage(browser, join(folder, "report.html"));
  const figure = page.locator('[data-figure="paths"]');
  assert.equal(Number(await figure.getAttribute("data-points")), lengths + 2);
  assert.ok((await figure.locator("svg text").allTextContents()).includes("published"));
  assert.equal(await figure.locator('svg [aria-label="area"] path').count(), 1, "from quartile to quartile");
  const log = figure.locator("input[type=checkbox]");
  assert.ok(await log.isChecked());
  const heights = () => figure.locator('svg [aria-label="dot"]').first().locator("circle").evaluateAll((dots) => dots.map((d) => Number(d.getAttribute("cy"))));
  // Equal ratios take equal heights there, and only there.
  const values = rows.filter((r) => r.metric === "path_rank1_distance").map((r) => Number(r.value));
  const skew = (y) => (y[1] - y[0]) / (y[2] - y[1]) - Math.log(values[1] / values[0]) / Math.log(values[2] / values[1]);
  assert.ok(Math.abs(skew(await heights())) < 1e-2);
  await log.uncheck();
  assert.ok(Math.abs(skew(await heights())) > 1e-2);
  assert.deepEqual(faults, []);
});

test("a scan of attention alone: the bound beside what it bounds, and in words", async () => {
  for (const [model, points] of [["bert", 6], ["gpt2", 0]]) {
    const folder = join(base, `theory-${model}`);
    const path = new URL(`../../tests/fixtures/models/${model}`, import.meta.url).pathname;
    rankscope("scan", path, "--random-tokens", "--samples", "2", "--off", "skip", "--off", "skip+mlp+norm", "--null", "--quiet", "--out", folder);
    const { page, faults } = await openPage(browser, join(folder, "report.html"));
    assert.ok((await page.locator(".entry").allInnerTexts()).includes("random initialisation"));
    const theory = page.locator("#depth .theory");
    if (points > 0) {
      assert.match(await theory.innerText(), /[Tt]he cubic bound (says nothing at this size|holds and shrinks): sqrt\(c\) r0 = /);
      assert.equal(Number(await theory.locator('[data-figure="theory"]').getAttribute("data-points")), points);
    } else {
      assert.equal((await page.locator("main").innerText()).split("does not speak of this attention").length, 2, "said once");
    }
    assert.deepEqual(faults, []);
  }
});

test("operator: the token-to-token map with its tokens, from the folder again too", async () => {
  const { folder, file } = run("operator", "--samples", "1", "--top", "4");
  const tokens = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")).input.shown.tokens;
  assert.equal(tokens.length, 16);
  for (const again of [false, true]) {
    if (again) rankscope("report", folder, "--quiet");
    const { page, faults } = await openPage(browser, file);
    const figure = page.locator('[data-figure="token-map"]');
    assert.equal(Number(await figure.getAttribute("data-points")), 16 * 16);
    const axis = await figure.locator("svg text").allTextContents();
    assert.equal(axis.length, 2 * 16);
    assert.ok(axis[0].replaceAll("·", "").startsWith(tokens[0].replace(/[Ġ ▁]/g, "").slice(0, 10)));
    await figure.locator(".plot").focus();
    await figure.locator(".plot").press("ArrowRight");
    assert.match(await figure.locator(".readout").innerText(), /^output 0 .* ← input 0 .* · /);
    await figure.locator("select").selectOption("in");
    await figure.locator(".plot").focus();
    await figure.locator(".plot").press("ArrowRight");
    const size = numberIn(/ · (\S+)$/.exec(await figure.locator(".readout").innerText())[1]);
    assert.equal(size, shown(mapEntry(join(folder, "token_maps.safetensors"), "sample_0.in")));
    assert.deepEqual(faults, []);
  }
});

/** The first entry of a float64 tensor, read without the program. */
function mapEntry(file, name) {
  const bytes = readFileSync(file);
  const header = Number(bytes.readBigUInt64LE(0));
  const entry = JSON.parse(bytes.subarray(8, 8 + header).toString())[name];
  assert.equal(entry.dtype, "F64");
  return Math.fround(bytes.readDoubleLE(8 + header + entry.data_offsets[0]));
}

test("operator: the singular values and what they say", async () => {
  const { file, rows } = run("operator", "--samples", "1");
  const { page, faults } = await openPage(browser, file);
  const figure = page.locator('[data-figure="operator"]');
  const sigma = rows.filter((r) => /^sigma_\d+$/.test(r.metric));
  assert.equal(Number(await figure.getAttribute("data-points")), sigma.length);
  await figure.locator(".plot").focus();
  await figure.locator(".plot").press("ArrowRight");
  const [, value] = /^σ1 = (\S+) ·/.exec(await figure.locator(".readout").innerText());
  assert.equal(numberIn(value), shown(Number(sigma[0].value)));
  const line = page.locator('[data-table="operator"] tbody tr', { has: page.locator('[title="operator_stable_rank"]') });
  assert.equal(numberIn(await line.locator("td").nth(1).innerText()), shown(Number(rows.find((r) => r.metric === "operator_stable_rank").value)));
  assert.deepEqual(faults, []);
});

test("the committed study of readings: colour and dash by key, a line that all share drawn once", async () => {
  const folder = join(base, "memorise");
  cpSync(new URL("../../src/studies/results/memorise", import.meta.url).pathname, folder, { recursive: true });
  rankscope("report", folder, "--quiet");
  const { page, faults } = await openPage(browser, join(folder, "report.html"));
  const panel = page.locator('[data-figure="figure"]');
  const texts = await panel.locator("svg > text").allTextContents();
  assert.equal(texts.filter((text) => text === "chance").length, 1);
  const lines = await panel.locator("svg > line").evaluateAll((all) => all.map((l) => [l.getAttribute("stroke"), l.getAttribute("stroke-dasharray")].join(" ")));
  assert.equal(new Set(lines).size, lines.length, "no two entries look alike");
  const of = (name) => lines[texts.indexOf(name)].split(" ")[0];
  assert.equal(of("positions=off reading=only"), of("positions=on reading=only"));
  assert.notEqual(of("positions=off reading=only"), of("positions=off reading=upto"));
  await page.setViewportSize({ width: 390, height: 900 });
  const numbers = page.locator('[data-figure="cost"] svg [aria-label="x-axis tick label"] text');
  await page.waitForFunction(() => document.querySelector('[data-figure="cost"] svg').clientWidth < 390);
  const boxes = await numbers.evaluateAll((all) => all.map((text) => text.getBoundingClientRect()).map((b) => [b.left, b.right]));
  assert.ok(boxes.length >= 2 && boxes.every(([left], i) => i === 0 || left > boxes[i - 1][1]), "numbers do not run into each other");
  assert.deepEqual(faults, []);
});

test("the committed study: a panel a depth, another protocol told apart, published points beside", async () => {
  const folder = join(base, "fig1");
  cpSync(new URL("../../src/studies/results/fig1", import.meta.url).pathname, folder, { recursive: true });
  const table = join(folder, "trials.csv");
  const trial = readTable(table).find((t) => t.layers === "1" && t.width === "64" && t.state === "done");
  const other = { ...trial, id: "another", protocol: "reference" }; // at the same place as that one
  appendFileSync(table, `${Object.values(other).join(",")}\n`);
  const about = join(folder, "study.json");
  writeFileSync(about, JSON.stringify({ ...JSON.parse(readFileSync(about, "utf8")), keys: ["layers", "width", "rank", "protocol", "seed"] }));
  rankscope("report", folder, "--quiet");
  const { page, faults } = await openPage(browser, join(folder, "report.html"));
  const titles = await page.locator("#figure figcaption strong").allInnerTexts();
  assert.deepEqual(titles, [1, 3, 5].map((layers) => `Test MSE against rank, layers=${layers}`));
  const legend = await page.locator('[data-figure="figure"] svg text').allTextContents();
  assert.ok(legend.includes("width=64 protocol=reference") && legend.includes("published"));
  assert.ok(legend.includes("width=64"), "what is usual needs no word");
  assert.match(await page.locator("#study").innerText(), /arXiv 2407.16153/);
  assert.deepEqual(faults, []);
});
