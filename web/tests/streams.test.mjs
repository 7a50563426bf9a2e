// The page of a network with an encoder and a decoder: one stream at a time, each with its own numbers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch, openPage } from "./browser.mjs";
import { rankscope, readTable, temporaryFolder } from "./results.mjs";

const folder = join(temporaryFolder(), "t5");
const model = join(dirname(fileURLToPath(import.meta.url)), "../../tests/fixtures/models/t5");
let browser, page, faults, rows, verdict;

before(async () => {
  rankscope("scan", model, "--random-tokens", "--samples", "5", "--max-length", "12", "--out", folder, "--quiet");
  rows = readTable(join(folder, "metrics.csv"));
  ({ verdict } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")));
  browser = await launch();
  ({ page, faults } = await openPage(browser, join(folder, "report.html")));
});
after(async () => {
  assert.deepEqual(faults, [], "no console error, no request");
  await browser.close();
});

const chooser = () => page.locator("label.choice", { has: page.locator("span", { hasText: /^stream$/ }) }).locator("select");

test("the verdict has the choice of a stream, the one with the output first", async () => {
  assert.equal(await page.locator("main section").first().getAttribute("id"), "verdict");
  assert.deepEqual(await chooser().locator("option").allInnerTexts(), ["decoder", "encoder", "cross"]);
});

test("every stream shows its own heads, and sentences about itself alone", async () => {
  for (const stream of ["encoder", "cross", "decoder"]) {
    await chooser().selectOption(stream);
    const heads = rows.filter((r) => r.stream === stream && r.metric === "attention_entropy" && r.head !== "").length;
    assert.equal(Number(await page.locator('[data-figure="heads"]').getAttribute("data-points")), heads, stream);
    const text = await page.locator("#verdict .headline").evaluate((e) => e.textContent.toLowerCase());
    for (const { sentence } of verdict) {
      const [, of, said] = /^(\w+): ([^:(]*[^:( ])/.exec(sentence);
      const same = verdict.some((s) => s.sentence.startsWith(`${stream}: ${said}`));
      assert.equal(text.includes(said.toLowerCase()), of === stream || same, `${stream}: ${sentence}`);
    }
    // A card is headed by what it says, not by the stream that is chosen anyway.
    for (const heading of await page.locator("#verdict .card h3").allInnerTexts()) assert.match(heading, / /);
    assert.ok((await page.locator("#verdict .card.normal").count()) > 0, "nothing stands out in a random network");
  }
});

test("attention to another stream is drawn with its own keys", async () => {
  await chooser().selectOption("cross");
  const figure = page.locator('[data-figure^="attention-"]').first();
  assert.equal(Number(await figure.getAttribute("data-points")), 12 * 12);
  await chooser().selectOption("decoder");
  assert.ok(await page.locator("#depth").isVisible());
});
