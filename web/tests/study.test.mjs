// The page of a study: figure, trials, curves and cost, held against the tables it was made from.
import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, openPage } from "./browser.mjs";
import { numberIn, rankscope, readTable, shown, temporaryFolder } from "./results.mjs";

const fixture = new URL("../../tests/fixtures/study", import.meta.url).pathname;
const file = join(temporaryFolder(), "study.html");
const columns = readFileSync(join(fixture, "trials.csv"), "utf8").split("\n")[0].split(",");
const done = readFileSync(join(fixture, "trials.csv"), "utf8")
  .trimEnd()
  .split("\n")
  .slice(1)
  .map((line) => line.split(","))
  .filter((cells) => cells[2] === "done")
  .map((cells) => Object.fromEntries(cells.map((cell, i) => [columns[i], cell])));
let browser, page, faults;

before(async () => {
  rankscope("report", fixture, "--out", file, "--quiet");
  browser = await launch();
  ({ page, faults } = await openPage(browser, file));
});
after(async () => {
  assert.deepEqual(faults, []);
  await browser.close();
});

test("the question stands first, with how far the study is", async () => {
  assert.match(await page.locator("#study").innerText(), /Can more layers of low rank/);
  assert.equal(await page.locator('[data-tile="done"] b').innerText(), String(done.length));
  assert.equal(await page.locator("#study progress").getAttribute("max"), "24");
});

test("the ends of what was found stand with the question, and are means over seeds", async () => {
  const [, low, rank] = /^Test MSE goes from (\S+) at rank (\d+) /.exec(await page.locator("[data-found]").innerText());
  assert.equal(await page.locator("[data-found]").getAttribute("title"), "test_mse");
  const points = new Set(done.map((t) => `${t.rank},${t.layers}`));
  const means = [...points].map((point) => done.filter((t) => `${t.rank},${t.layers}` === point));
  const geometric = (trials) => Math.exp(trials.reduce((sum, t) => sum + Math.log(Number(t.test_mse)), 0) / trials.length);
  const least = means.sort((a, b) => geometric(a) - geometric(b))[0];
  assert.equal(numberIn(low), shown(geometric(least)));
  assert.equal(rank, least[0].rank);
});

test("the figure shows seeds, means, published values and the bound", async () => {
  const figure = page.locator('[data-figure="figure"]');
  // 21 seeds, 7 means, 8 published, 7 bounds
  assert.equal(Number(await figure.getAttribute("data-points")), 21 + 7 + 8 + 7);
  const [download] = await Promise.all([page.waitForEvent("download"), figure.locator('button:text("CSV")').click()]);
  const lines = readFileSync(await download.path(), "utf8").trimEnd().split("\n").slice(1);
  for (const trial of done) {
    const line = lines.find((l) => l.split(",")[4] === trial.id);
    assert.equal(Number(line.split(",")[3]), Number(trial.test_mse), trial.id);
  }
  assert.equal(lines.filter((l) => l.startsWith("published")).length, 8);
});

test("a reference is not called published, and another budget is told", async () => {
  const folder = join(temporaryFolder(), "reference");
  cpSync(fixture, folder, { recursive: true });
  const [header, ...rows] = readFileSync(join(fixture, "published.csv"), "utf8").trimEnd().split("\n");
  writeFileSync(join(folder, "published.csv"), [`${header},kind,changed`, ...rows.map((r) => `${r},reference,steps=50 (the study has 3000)`), ""].join("\n"));
  rankscope("report", folder, "--out", `${folder}.html`, "--quiet");
  const opened = await openPage(browser, `${folder}.html`);
  const text = await opened.page.locator('[data-figure="figure"]').innerText();
  assert.match(text, /Rings: reference\. Our trials have steps=50 \(the study has 3000\)\./);
  assert.doesNotMatch(text, /published/);
  assert.deepEqual(opened.faults, []);
  await opened.page.close();
});

test("the readout says what a point is", async () => {
  const plot = page.locator('[data-figure="figure"] .plot');
  await plot.focus();
  await plot.press("ArrowRight");
  const text = await page.locator('[data-figure="figure"] .readout').innerText();
  const [, layers, rank, n, value] = /^layers=(\d) · rank (\d) · mean of (\d) seeds (\S+)$/.exec(text);
  const same = done.filter((t) => t.layers === layers && t.rank === rank).map((t) => Number(t.test_mse));
  assert.equal(Number(n), same.length);
  assert.equal(numberIn(value), shown(Math.exp(same.reduce((a, x) => a + Math.log(x), 0) / same.length)));
});

test("trials sort by any column", async () => {
  const table = page.locator('[data-table="trials"]');
  await table.locator('th button:text("test_mse")').click();
  const titles = (await table.locator("thead th").allInnerTexts()).map((t) => t.replace(/ [▲▼]$/, ""));
  assert.deepEqual(titles.slice(0, 5), ["id", "state", "layers", "rank", "test_mse"]);
  assert.deepEqual([...titles].sort(), [...columns].sort());
  const at = titles.indexOf("test_mse") + 1;
  const values = (await table.locator(`tbody tr td:nth-child(${at})`).allInnerTexts()).filter((t) => t !== "").map(numberIn);
  assert.equal(values.length, done.length);
  assert.deepEqual(values, done.map((t) => shown(Number(t.test_mse))).sort((a, b) => b - a));
});

test("learning curves follow the choice of trials; the cost has a point a trial", async () => {
  const figure = page.locator('[data-figure="curves"]');
  assert.deepEqual(await figure.locator("select").last().locator("option").allInnerTexts(), ["loss", "lr", "test_mse"]);
  assert.equal(Number(await figure.getAttribute("data-points")), 12 * 8);
  await figure.locator("select").first().selectOption("layers=3");
  assert.equal(Number(await figure.getAttribute("data-points")), 9 * 8 + 2 * 3);
  assert.equal(Number(await page.locator('[data-figure="cost"]').getAttribute("data-points")), done.length);
});

test("a study that was just run shows what its own export says", async () => {
  const folder = join(temporaryFolder(), "quick");
  rankscope("study", "run", "quick", "steps=20", "--seeds", "1", "--out", folder, "--quiet");
  rankscope("study", "show", folder, "--quiet");
  rankscope("study", "export", folder, "--quiet");
  const trials = readTable(join(folder, "trials.csv"));
  const real = await openPage(browser, join(folder, "report.html"));
  assert.equal(await real.page.locator('[data-tile="done"] b').innerText(), String(trials.length));
  const [download] = await Promise.all([real.page.waitForEvent("download"), real.page.locator('[data-figure="figure"] button:text("CSV")').click()]);
  const lines = readFileSync(await download.path(), "utf8").trimEnd().split("\n").slice(1);
  for (const trial of trials) {
    const line = lines.find((l) => l.split(",")[4] === trial.id);
    assert.equal(Number(line.split(",")[3]), Number(trial.test_mse), trial.id);
  }
  assert.ok(Number(await real.page.locator('[data-figure="curves"]').getAttribute("data-points")) >= trials.length);
  assert.deepEqual(real.faults, []);
});

test("while newer data come, what a reader filtered, sorted and unfolded stays, and so does the keyboard", async () => {
  const html = readFileSync(file, "utf8").replace('"live":false', '"live":true').replace("connect-src 'none'", "connect-src 'self'");
  const data = /id="rankscope-data">([^]*?)<\/script>/.exec(html)[1];
  const context = await browser.newContext();
  const live = await context.newPage();
  let answers = 0;
  await live.route("http://rankscope.test/**", (route) =>
    route.request().url().includes("data.json") ? route.fulfill({ headers: { ETag: String(++answers) }, contentType: "application/json", body: data }) : route.fulfill({ contentType: "text/html", body: html }),
  );
  await live.goto("http://rankscope.test/");
  const table = live.locator('[data-table="trials"]');
  await table.locator('th button:text("rank")').first().click();
  const sorted = await table.locator("th[aria-sort]").innerText();
  await table.locator("input").fill("done");
  await live.evaluate(() => (document.querySelector("main").dataset.old = ""));
  await live.waitForFunction(() => document.querySelector("main").dataset.old === undefined, null, { timeout: 20_000 });
  assert.equal(await table.locator("input").inputValue(), "done");
  assert.equal(await table.locator("tbody tr").count(), Math.min(25, done.length));
  assert.equal(await table.locator("th[aria-sort]").innerText(), sorted);
  assert.ok(await table.locator("input").evaluate((e) => e === document.activeElement && e.selectionStart === 4));
  await context.close();
});
