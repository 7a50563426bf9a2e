// Several results side by side, two of them pair by pair, and rows that other commands may add.
import assert from "node:assert/strict";
import { appendFileSync, cpSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, openPage } from "./browser.mjs";
import { numberIn, rankscope, readTable, shown, temporaryFolder } from "./results.mjs";

const base = temporaryFolder();
const [a, b, c] = ["single", "double", "again"].map((name) => join(base, name));
let browser;

before(async () => {
  const common = ["scan", "--samples", "3", "--max-length", "24", "--quiet"];
  rankscope(...common, "--out", a);
  rankscope(...common, "--dtype", "float64", "--out", b);
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

test("a diff shows the pairs, their change and its error", async () => {
  const file = join(base, "diff.html");
  rankscope("diff", a, b, "--out", file);
  const { page, faults } = await openPage(browser, file);
  const before = readTable(join(a, "metrics.csv"));
  const now = readTable(join(b, "metrics.csv"));
  const table = page.locator('[data-table="diff"]');
  for (const line of (await table.locator("tbody tr").all()).slice(0, 5)) {
    const [place, metric, site, tokens, first, second] = await line.locator("td").allInnerTexts();
    const head = /H(\d+)$/.exec(place)?.[1] ?? "";
    const find = (rows) => rows.find((r) => r.metric === metric && r.site === site && r.tokens === tokens && r.head === head);
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

test("bounds are drawn with their curve, paths by their length", async () => {
  for (const layer of [0, 1, 2]) appendFileSync(join(c, "metrics.csv"), `full,blocks.${layer}.ln1.hook_normalized,${layer},,residual_fro_rel_trimmed_bound,${2 - layer / 2},,1,${layer},content\n`);
  for (const length of [0, 1, 2, 3]) appendFileSync(join(c, "metrics.csv"), `full,unembed.hook_out,,,path_share,${[0.1, 0.5, 0.3, 0.1][length]},0.01,3,${length},all\n`);
  rankscope("report", c, "--quiet");
  const { page, faults } = await openPage(browser, join(c, "report.html"));
  assert.equal(Number(await page.locator('[data-figure="depth-1"]').getAttribute("data-points")), 7 + 3);
  const paths = page.locator('[data-figure="paths"]');
  assert.equal(Number(await paths.getAttribute("data-points")), 4);
  await paths.locator(".plot").focus();
  await paths.locator(".plot").press("ArrowRight");
  assert.equal(await paths.locator(".readout").innerText(), "full · length 0 · 0.1000 ± 0.01");
  assert.deepEqual(faults, []);
});
