// Text from outside is data: planted in every place where it can come in, it must neither run nor turn the page around.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, openPage } from "./browser.mjs";
import { rankscope, temporaryFolder } from "./results.mjs";

const planted = `</script><script>window.ran=1</script><img src=x onerror="window.ran=1">'"\`\u202egnp\u0000\u2028\u2029&lt;<!--`;

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close()); // where a test failed, too: an open browser keeps Node waiting

test("nothing planted runs, and all of it can be read", async () => {
  const base = temporaryFolder();
  const clean = join(base, "clean");
  const folder = join(base, `<img src=x onerror=window.ran=1> "'`);
  rankscope("scan", "--samples", "2", "--max-length", "16", "--out", clean, "--quiet");
  cpSync(clean, folder, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
  for (const key of ["model", "command", "spec", "architecture", "torch", "device", "dtype", "parity"]) manifest[key] = planted;
  manifest[planted] = planted;
  manifest.input.what = planted;
  manifest.weights[planted] = planted;
  manifest.input.shown.tokens = manifest.input.shown.tokens.map(() => planted);
  manifest.metrics.attention_entropy = { formula: planted, meaning: planted };
  manifest.verdict = [{ topic: planted, sentence: planted, known: true, layer: 0, head: 0, value: 1 }];
  manifest.notes = [planted];
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest));
  const quoted = `"${planted.replaceAll('"', '""')}"`;
  const table = readFileSync(join(folder, "metrics.csv"), "utf8");
  writeFileSync(join(folder, "metrics.csv"), `${table}${quoted},${quoted},0,0,${quoted},1,0.5,2,0,${quoted},${quoted}\n`);
  rankscope("report", folder, "--quiet");

  const html = readFileSync(join(folder, "report.html"), "utf8");
  assert.ok(!html.includes(planted.slice(0, 20)), "the markup is escaped in the file");
  assert.ok(!html.includes("\u2028"));
  const { page, faults } = await openPage(browser, join(folder, "report.html"));
  const figures = page.locator(".plot");
  for (let i = 0; i < (await figures.count()); i++) {
    await figures.nth(i).focus();
    await figures.nth(i).press("ArrowRight");
  }
  for (const metric of ["#heads", "#depth"].map((id) => page.locator(`${id} select`).first()))
    for (const value of await metric.locator("option").evaluateAll((options) => options.map((o) => o.value))) await metric.selectOption(value);
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.equal(await page.locator("img").count(), 0);
  assert.ok((await page.locator(".headline").innerText()).includes("</script><script>window.ran=1</script>"), "it is shown as text");
  assert.ok((await page.locator(".headline").innerText()).includes("\\u202egnp\u2400"), "marks and control characters are spelled out");
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator('#head [data-figure^="attention"] button:text("SVG")').click()]);
  assert.ok(!readFileSync(await download.path(), "utf8").includes("<script"), "nor in a downloaded figure");
  assert.deepEqual(faults, []);

  // The page's own policy stands even if something were injected.
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.ran = 2";
    document.body.append(script);
  });
  assert.equal(await page.evaluate(() => window.ran), undefined);
});

test("a table without rows still gives a page", async () => {
  const folder = join(temporaryFolder(), "empty");
  mkdirSync(folder);
  writeFileSync(join(folder, "metrics.csv"), "variant,site,layer,head,metric,value,stderr,n,depth,tokens\n");
  writeFileSync(join(folder, "manifest.json"), "{}");
  rankscope("report", folder, "--quiet");
  const { page, faults } = await openPage(browser, join(folder, "report.html"));
  assert.equal(await page.locator('[data-table="metrics"] .controls .quiet').innerText(), "0 rows");
  assert.deepEqual(faults, []);
});

test("a manifest of wrong types still gives a page", async () => {
  const folder = join(temporaryFolder(), "odd");
  rankscope("scan", "--samples", "2", "--max-length", "16", "--lens", "attention,residual", "--out", folder, "--quiet");
  const odd = { schema: 1 };
  for (const [i, key] of ["model", "spec", "architecture", "command", "device", "dtype", "threads", "wall_seconds", "peak_memory_bytes", "weights", "tokenizer", "input", "metrics", "thresholds", "notes", "seed"].entries())
    odd[key] = [7, "text", null, [1, [2]], { a: { b: 1 } }, true][i % 6];
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(odd));
  rankscope("report", folder, "--quiet");
  const { page, faults } = await openPage(browser, join(folder, "report.html"));
  assert.ok((await page.locator("#manifest dd").count()) > 3);
  assert.deepEqual(faults, []);
});
