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
  rankscope(command, "--max-length", "16", "--quiet", ...words, "--out", folder);
  return { folder, file: join(folder, "report.html"), rows: readTable(join(folder, "metrics.csv")) };
};
let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("collapse: every network with its residuals, the noise floor and what was published", async () => {
  const { folder, file, rows } = run("collapse", "--samples", "2");
  const curves = rows.filter((r) => r.metric === "residual_l1inf_rel_mean" && r.tokens === "all");
  // The shape of a published curve, as the paper's own sizes have it.
  for (const depth of [1, 2]) appendFileSync(join(folder, "metrics.csv"), `full,blocks.${depth - 1}.hook_resid_post,${depth - 1},,published,0.${depth},,0,${depth},all\n`);
  rankscope("report", folder, "--quiet");
  const { page, faults } = await openPage(browser, file);
  const figure = page.locator('[data-figure="collapse"]');
  assert.equal(Number(await figure.getAttribute("data-points")), curves.length + 2);
  assert.ok((await figure.locator("svg text").allTextContents()).includes("noise floor"));
  const table = page.locator('[data-table="collapse"] tbody tr');
  assert.equal(await table.count(), 12);
  for (const line of await table.all()) {
    const [variant, residual] = await line.locator("td").allInnerTexts();
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
  appendFileSync(join(folder, "metrics.csv"), "SAN,blocks.9.hook_resid_post,9,,residual_l1inf_rel_mean,1e-60,,2,10,all\n");
  rankscope("report", folder, "--quiet");
  const { page, faults } = await openPage(browser, join(folder, "report.html"));
  const layers = rows.filter((r) => /^bound_(measured_)?log10$/.test(r.metric)).length;
  assert.ok(layers >= 4);
  assert.equal(Number(await page.locator('[data-figure="theory"]').getAttribute("data-points")), layers);
  const figure = page.locator('[data-figure="collapse"]');
  const few = Number(await figure.getAttribute("data-points"));
  await figure.locator("input").check();
  assert.equal(Number(await figure.getAttribute("data-points")), few + 1, "the smallest ones come when asked for");
  const log10 = Number(rows.filter((r) => r.variant === "SAN" && r.metric === "residual_l1inf_rel_log10").at(-1).value);
  const line = page.locator('[data-table="collapse"] tbody tr').filter({ has: page.locator("td:first-child", { hasText: /^SAN$/ }) });
  assert.equal(numberIn(await line.locator("td").nth(3).innerText()), shown(log10));
  assert.deepEqual(faults, []);
});

test("paths: each reading against the length", async () => {
  const { file, rows } = run("paths", "--samples", "2");
  const { page, faults } = await openPage(browser, file);
  assert.deepEqual(await page.locator(".entry").allInnerTexts(), ["only", "upto", "allbut"]);
  assert.equal(Number(await page.locator('[data-figure="paths"]').getAttribute("data-points")), 7);
  await page.locator('[data-figure="paths"] select').selectOption("output_kl");
  const kl = rows.filter((r) => r.metric === "output_kl" && r.depth !== "" && Number(r.value) > 0).length;
  assert.equal(Number(await page.locator('[data-figure="paths"]').getAttribute("data-points")), kl);
  assert.equal(await page.locator('[data-table="variants"]').count(), 0, "readings are no variants of the network");
  assert.deepEqual(faults, []);
});

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
  const line = page.locator('[data-table="operator"] tbody tr', { hasText: "operator_stable_rank" });
  assert.equal(numberIn(await line.locator("td").nth(1).innerText()), shown(Number(rows.find((r) => r.metric === "operator_stable_rank").value)));
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
  assert.deepEqual(titles, [1, 3, 5].map((layers) => `test_mse against rank, layers=${layers}`));
  const legend = await page.locator('[data-figure="figure"] svg text').allTextContents();
  assert.ok(legend.includes("width=64 protocol=reference") && legend.includes("published"));
  assert.ok(legend.includes("width=64"), "what is usual needs no word");
  assert.match(await page.locator("#study").innerText(), /arXiv 2407.16153/);
  assert.deepEqual(faults, []);
});
