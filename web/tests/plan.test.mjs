// The page of a plan, held against its manifest: what goes, the loss after every step, what was held out.
import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, openPage } from "./browser.mjs";
import { numberIn, rankscope, readTable, shown, temporaryFolder } from "./results.mjs";

const base = temporaryFolder();
const make = (name, budget, samples = 24, length = 32) => {
  const folder = join(base, name);
  rankscope("plan", "--samples", samples, "--max-length", length, "--budget", budget, "--quiet", "--out", folder);
  return { folder, file: join(folder, "report.html"), manifest: JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")) };
};
let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("a plan: every layer, every step and what the held-out texts say", async () => {
  const { folder, file, manifest } = make("plan", 0.4);
  const plan = manifest.plan;
  assert.ok(plan.steps.some((s) => s.outcome === "taken"));
  const { page, faults } = await openPage(browser, file);
  const lines = page.locator('[data-table="plan"] tbody tr');
  assert.equal(await lines.count(), plan.layers.length);
  for (const [i, line] of (await lines.all()).entries()) {
    const [layer, heads, qk] = await line.locator("td").allInnerTexts();
    assert.equal(Number(layer), plan.layers[i].layer);
    assert.equal(heads.trim(), plan.layers[i].heads_out.join(" "));
    assert.equal(qk, plan.layers[i].qk === plan.layers[i].full_qk ? String(plan.layers[i].qk) : `${plan.layers[i].qk} of ${plan.layers[i].full_qk}`);
  }
  const losses = await page.locator('[data-table="plan-loss"] tbody tr').all();
  for (const [i, key] of ["search", "held_out", "all"].entries()) assert.equal(numberIn(await losses[i].locator("td").nth(3).innerText()), shown(plan[key].gained), key);
  const says = { within: "within the budget", over: "over the budget", undecided: "too few samples to tell" };
  assert.equal(await losses[1].locator("td").last().innerText(), says[plan.held_out_says]);
  const figure = page.locator('[data-figure="plan-steps"]');
  assert.equal(Number(await figure.getAttribute("data-points")), plan.steps.length);
  assert.ok((await figure.locator("svg text").allTextContents()).includes("budget"));
  const [download] = await Promise.all([page.waitForEvent("download"), figure.locator('button:text("CSV")').click()]);
  assert.equal(readTable(await download.path()).length, plan.steps.length);
  // The same numbers as rows.
  const rows = readTable(join(folder, "metrics.csv"));
  assert.equal(Number(rows.find((r) => r.metric === "plan_loss_held_out").value), plan.held_out.gained);
  assert.equal(rows.filter((r) => r.metric === "plan_step").length, plan.steps.length);
  // The first thing on the page is the sentence.
  const first = await page.locator("main section").first().innerText();
  assert.ok(first.toLowerCase().includes(manifest.verdict[0].sentence.slice(0, 20)), first);
  assert.deepEqual(faults, []);
});

test("a text that cannot decide: nothing is changed, and the page says that first", async () => {
  const { file, manifest } = make("small", 0.0005, 8, 12);
  assert.ok(manifest.plan.undecided.startsWith("these samples are too few to decide"), manifest.plan.undecided);
  assert.equal(manifest.plan.parameters_saved, 0);
  const { page, faults } = await openPage(browser, file);
  assert.ok((await page.locator("main section").first().innerText()).includes("too few to decide"));
  assert.deepEqual(faults, []);
});

test("a plan from anywhere is data: what it lacks or lies about does not break the page", async () => {
  const folder = join(base, "foreign");
  cpSync(join(base, "plan"), folder, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
  manifest.plan = { layers: [null, { layer: "<b>x</b>", heads_out: "all" }], steps: [{ what: ["<img src=x onerror=alert(1)>"], gained: "much", outcome: 3 }, 7], sharing: null, budget: null };
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest));
  rankscope("report", folder, "--quiet");
  const { page, faults } = await openPage(browser, join(folder, "report.html"));
  assert.equal(await page.locator("#plan").count(), 1);
  assert.equal(await page.locator("#plan img, #plan td b").count(), 0);
  assert.deepEqual(faults, []);
});
