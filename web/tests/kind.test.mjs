// What kinds of attention have that softmax has not, on networks trained for a moment, held against their own tables.
import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, openPage } from "./browser.mjs";
import { numberIn, rankscope, readTable, shown, temporaryFolder } from "./results.mjs";

const folder = temporaryFolder();
const kinds = { gate_output: true, linear: true, "mixed:full=1,local=1,compressed=1,linear=1,window=9": true, doubly_normalised: false }; // whether under a causal mask
let browser;

/** A network of that kind, two layers of four heads that are 8 wide, trained for two steps; its scan of 6 texts of 24 tokens. */
before(async () => {
  const study = join(folder, "study");
  writeFileSync(
    join(folder, "kinds.toml"),
    `title = "kinds"\nquestion = "?"\npaper = "none"\nrunner = "kinds"\n` +
      `[fixed]\nlayers = 2\nd = 32\ntask = "backcopy"\nheads = 4\npositions = true\ntokens = 24\nmlp = 64\nsteps = 2\nbatch = 4\ntest = 32\ntrain = 64\n` +
      `[grid]\nby = [${Object.entries(kinds).map(([kind, causal]) => `{ kind = "${kind}", causal = ${causal} }`).join(", ")}]\n[protocol]\nlr = 0.005\nseeds = 1\n[figure]\nx = "tokens"\ny = "loss"\n`,
  );
  rankscope("study", "run", join(folder, "kinds.toml"), "--out", study, "--quiet");
  rankscope("study", "export", study, "--format", "jsonl", "--to", join(folder, "tables"));
  writeFileSync(join(folder, "ids.txt"), [1, 2, 3, 4, 5, 6].map((s) => Array.from({ length: 24 }, (_, i) => (i * i * s + 3 * i) % 10).join(" ")).join("\n") + "\n");
  for (const line of readFileSync(join(folder, "tables", "trials.jsonl"), "utf8").trimEnd().split("\n")) {
    const { id, config } = JSON.parse(line);
    const name = config.kind.split(":")[0];
    rankscope("study", "export", study, "--model", id, join(folder, `${name}-model`));
    rankscope("scan", join(folder, `${name}-model`), "--token-ids", join(folder, "ids.txt"), "--out", join(folder, name), "--quiet");
  }
  browser = await launch();
});
after(() => browser?.close()); // where a test failed, too: an open browser keeps Node waiting

/** The page of that kind, and the rows of one metric of its layer 0. */
async function open(name, options = {}) {
  const { page, faults } = await openPage(browser, join(folder, name, "report.html"), options);
  const rows = readTable(join(folder, name, "metrics.csv")).filter((r) => r.variant === "full" && r.layer === "0");
  return { page, faults, of: (metric) => rows.filter((r) => r.metric === metric && r.head !== "") };
}

const figures = async (page) => await page.locator("#kind [data-figure]").evaluateAll((all) => all.map((e) => e.dataset.figure));

/** What a figure draws, as its CSV has it. */
async function drawn(page, name) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator(`[data-figure="${name}"] button:text("CSV")`).click()]);
  return readTable(await download.path());
}

test("gates: a histogram and what passes, by head, from the rows of metrics.csv", async () => {
  const { page, faults, of } = await open("gate_output");
  assert.deepEqual(await figures(page), ["gates", "gate-sparsity"]);
  const bins = await drawn(page, "gates");
  assert.equal(bins.length, 40, "ten bins of four heads");
  for (const head of ["0", "1", "2", "3"]) {
    const own = bins.filter((r) => r.head === head);
    assert.ok(Math.abs(own.reduce((sum, r) => sum + Number(r.value), 0) - 1) < 1e-9, "a histogram sums to one");
    for (const r of own) assert.equal(Number(r.value), Number(of(r.metric).find((x) => x.head === head).value));
  }
  const plot = page.locator('[data-figure="gate-sparsity"] .plot');
  await plot.focus();
  await plot.press("ArrowRight");
  const said = await page.locator('[data-figure="gate-sparsity"] .readout').innerText();
  const [, head, value] = /^L0H(\d) · .* (\S+) ±/.exec(said);
  assert.ok(["gate_share_00", "gate_mean"].some((m) => shown(Number(of(m)[head].value)) === numberIn(value)), said);
  await page.locator("#kind select").selectOption("1");
  await page.locator('[data-figure="gates"] figcaption').filter({ hasText: "layer 1" }).waitFor({ timeout: 5000 }); // figures are drawn a moment later
  assert.deepEqual(faults, []);
});

test("a state: its rank as tokens are stored, beside the law, which no dot is above", async () => {
  const { page, faults, of } = await open("linear");
  assert.ok((await figures(page)).includes("states"));
  const rows = await drawn(page, "states");
  for (const tokens of [2, 4, 8, 16]) {
    const own = rows.filter((r) => r.metric === `state_rank_at_${tokens}`);
    assert.equal(own.length, 4);
    for (const r of own) {
      assert.ok(Number(r.value) <= Math.min(tokens, 8) * (1 + 1e-6), "at most the pairs stored, and the width");
      assert.equal(r.value, String(Number(of(r.metric)[Number(r.head)].value)));
    }
  }
  const svg = page.locator('[data-figure="states"] svg');
  assert.match(await svg.evaluate((e) => e.textContent), /law: min\(tokens, 8\)/);
  assert.deepEqual(faults, []);
});

test("column sums stand above their law", async () => {
  const { page, faults, of } = await open("doubly_normalised");
  assert.deepEqual(await figures(page), ["columns"]);
  for (const r of await drawn(page, "columns")) if (r.metric === "column_sum_min") assert.ok(Number(r.value) >= 1 / 24 - 1e-6);
  assert.ok(of("column_sum_min_bound").every((r) => Math.abs(Number(r.value) - 1 / 24) < 1e-6));
  assert.match(await page.locator('[data-figure="columns"] svg').evaluate((e) => e.textContent), /law: at least 0\.04167/);
  assert.deepEqual(faults, []);
});

test("kinds of heads: named, each with the rank its kind allows", async () => {
  const { page, faults, of } = await open("mixed");
  const text = await page.locator('[data-figure="kinds"] svg').evaluate((e) => e.textContent);
  for (const kind of ["full", "local", "compressed", "linear", "law"]) assert.ok(text.includes(kind), kind);
  for (const r of await drawn(page, "kinds")) if (r.metric === "numerical_rank") assert.ok(Number(r.value) <= Number(of("rank_ceiling")[Number(r.head)].value));
  assert.deepEqual(faults, []);
});

test("kinds that are no words are none", async () => {
  const other = join(folder, "other");
  cpSync(join(folder, "mixed"), other, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(other, "manifest.json"), "utf8"));
  manifest.head_kinds = [["<img src=x onerror=window.ran=1>", 7, null, { a: 1 }], "full"];
  writeFileSync(join(other, "manifest.json"), JSON.stringify(manifest));
  rankscope("report", other, "--quiet");
  const { page, faults } = await open("other");
  assert.ok((await page.locator('[data-figure="kinds"] svg').evaluate((e) => e.textContent)).includes("<img src=x"), "it is text");
  await page.locator("#kind select").selectOption("1");
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.deepEqual(faults, []);
});

test("softmax has no such section, and on a phone nothing is wider than the page", async () => {
  const plain = join(folder, "plain");
  rankscope("scan", "--samples", "2", "--max-length", "32", "--out", plain, "--quiet");
  const { page } = await openPage(browser, join(plain, "report.html"));
  assert.equal(await page.locator("#kind").count(), 0);
  for (const name of ["gate_output", "linear", "mixed", "doubly_normalised"]) {
    const { page: phone } = await open(name, { viewport: { width: 390, height: 900 } });
    assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), name);
  }
});
