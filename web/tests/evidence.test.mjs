// What is said first and the picture beside it, on results made up for the purpose: found, asked for or normal; which numbers are drawn.
import assert from "node:assert/strict";
import { appendFileSync, cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, openPage } from "./browser.mjs";
import { numberIn, rankscope, temporaryFolder } from "./results.mjs";

const base = temporaryFolder();
const small = join(base, "small");
let browser;

before(async () => {
  rankscope("scan", "--samples", "2", "--max-length", "16", "--lens", "attention", "--out", small, "--quiet");
  browser = await launch();
});
after(() => browser.close());

/** The small scan with these sentences in the place of its own, and these rows behind its own. */
async function pageOf(name, verdict, rows, options = {}, command = "scan") {
  const folder = join(base, name);
  cpSync(small, folder, { recursive: true });
  const place = join(folder, "manifest.json");
  const manifest = { ...JSON.parse(readFileSync(place, "utf8")), command: `rankscope ${command} made-up` };
  manifest.metrics = { ...manifest.metrics, rank_qk_kl: { formula: "KL with the map cut to rank `depth`", meaning: "0: that rank suffices" } };
  manifest.verdict = verdict.map((s) => ({ known: true, layer: null, head: null, value: null, baseline: null, threshold: null, found: false, ...s }));
  writeFileSync(place, JSON.stringify(manifest));
  appendFileSync(join(folder, "metrics.csv"), rows.map((row) => `${row}\n`).join(""));
  rankscope("report", folder, "--quiet");
  return openPage(browser, join(folder, "report.html"), options);
}

const cut = (variant, value) => `"${variant}",unembed.hook_out,,,output_kl,${value},0.00001,2,6,all,`;

test("what was asked for is neither found nor normal, and is told in the verdict's order", async () => {
  const ranks = [[1, 0.2741], [2, 0.1861], [4, 0.1119], [8, 0.0453]];
  const { page, faults } = await pageOf(
    "asked",
    [
      { topic: "collapse", sentence: "no layer collapses: made up" },
      ...ranks.map(([rank, value]) => ({ topic: "rank", sentence: `cutting every head to qk=${rank} costs output_kl ${value} (epsilon 0.001; full: 0): the output changes`, value, threshold: 0.001 })),
      { topic: "rank", sentence: "no rank of 1, 2, 4, 8 tried for every head's qk map keeps the output within epsilon 0.001" },
      { topic: "replaced", sentence: "a stress test of these weights: a network trained with it may differ" },
    ],
    ranks.map(([rank, value]) => cut(`rank:qk=${rank}`, value)),
  );
  assert.deepEqual(await page.locator(".card h3").allInnerTexts(), [1, 2, 4].map((rank, i) => `Cutting every head to qk=${rank} costs output_kl ${ranks[i][1]}`));
  assert.ok((await page.locator(".card .topic").allInnerTexts()).every((topic) => !topic.includes("normal")));
  assert.deepEqual(await page.locator(".said.normal li").evaluateAll((all) => all.map((e) => e.dataset.topic)), ["collapse"]);
  assert.deepEqual(await page.locator(".said.asked li").evaluateAll((all) => all.map((e) => e.dataset.topic)), ["rank", "rank", "replaced"]);
  assert.deepEqual(faults, []);
});

test("of a command that looks for something else than a scan nothing is called normal", async () => {
  const said = ["the attention skip keeps tokens apart", "the MLP with its skip does little", "of the first text the bound says nothing"];
  const { page } = await pageOf("other", said.map((sentence) => ({ topic: "support", sentence: `${sentence}: made up` })), [], {}, "collapse");
  assert.deepEqual(await page.locator(".card h3").allInnerTexts(), said.map((s) => s[0].toUpperCase() + s.slice(1)));
  assert.equal(await page.locator(".said.normal").count(), 0);
  assert.ok((await page.locator(".card .topic").allInnerTexts()).every((topic) => topic === "support"));
});

test("a name keeps its letters, and a number in brackets its place", async () => {
  const { page } = await pageOf(
    "names",
    [
      { topic: "replaced", sentence: "softmax=sigmoid@L1, without training, costs output_kl 0.0131", found: true },
      { topic: "worth", sentence: "of 48 heads 14 are not known (1 for the loss alone); most in nats: L0H6", found: true },
    ],
    [],
  );
  assert.deepEqual(await page.locator(".card h3").allInnerTexts(), ["softmax=sigmoid@L1, without training, costs output_kl 0.0131", "Of 48 heads 14 are not known (1 for the loss alone)"]);
  assert.equal(await page.locator(".card .detail").innerText(), "Most in nats: L0H6");
});

test("bars show every number whole, long names break, and the threshold crosses no name", async () => {
  const long = "replace:softmax=shifted_control:nats=-2,to=nothing";
  const verdict = [{ topic: "replaced", sentence: `${long}, without training, costs output_kl 0.0622, more than epsilon 0.001`, found: true, value: 0.0622, threshold: 0.001 }];
  for (const width of [390, 1400]) {
    const { page, context } = await pageOf(`bars-${width}`, verdict, [cut(long, 0.0622), cut("replace:softmax=sigmoid@L1", 0.0123)], { viewport: { width, height: 900 } });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
    const svg = page.locator(".card .plot svg");
    const outside = await svg.evaluate((s) => {
      const frame = s.getBoundingClientRect();
      return [...s.querySelectorAll("text")].filter((t) => t.getBoundingClientRect().right > frame.right).map((t) => t.textContent);
    });
    assert.deepEqual(outside, []);
    const texts = await svg.locator("text").allTextContents();
    assert.ok(texts.includes("threshold 0.001") && texts.includes("0.06220 nats"), texts.join(" "));
    const marks = (await svg.locator("path").getAttribute("d")).match(/,(\d+)v18/g).map((m) => Number(/\d+/.exec(m)[0]));
    const names = await svg.locator("text").evaluateAll((all) => all.filter((t) => /^replace/.test(t.textContent)).map((t) => Number(t.getAttribute("y"))));
    assert.ok(names.every((y) => marks.every((m) => y < m || y - 9 > m + 18)), `names at ${names}, marks from ${marks}`);
    await context.close();
  }
});

test("a sentence about layers is drawn over the layers, one about ranks over the ranks", async () => {
  const layers = [5.6, 0.1, 0.04, 0.07, 0.13, 0.2];
  const ranks = [[1, 1.32], [2, 0.857], [4, 0.417]];
  const { page } = await pageOf(
    "worth",
    [
      { topic: "worth", sentence: "of 6 MLPs the output needs 6; most that of layer 0", found: true, layer: 0, value: 5.6, threshold: 0.001 },
      { topic: "worth", sentence: "no rank of ov asked for is known to suffice in all layers at once; cost by rank 1: 1.32", found: true, threshold: 0.001 },
    ],
    [...layers.map((value, i) => `full,blocks.${i}.hook_mlp_out,${i},,mlp_zero_kl,${value},0.01,2,,all,`), ...ranks.map(([rank, value]) => `full,unembed.hook_out,,,rank_ov_kl,${value},0.01,2,${rank},all,`)],
  );
  const points = await page.locator(".card [data-figure]").evaluateAll((all) => all.map((f) => Number(f.dataset.points)));
  assert.deepEqual(points, [layers.length, ranks.length]);
  assert.equal(await page.locator('.card svg circle[r="7"]').count(), 1, "the layer in the sentence is marked");
});

test("a break of the axis hides no point: values that come near to it join the others", async () => {
  const all = [0.274, 0.186, 0.112, 0.0454];
  const rows = [1, 2, 4, 8].flatMap((rank, i) => [`full,unembed.hook_out,,,rank_qk_kl,${all[i]},0.001,2,${rank},all,`, ...[0, 1, 2].map((l) => `full,blocks.${l}.attn.hook_result,${l},,rank_qk_kl,${(0.036 - 0.01 * l) / rank},0.0001,2,${rank},all,`)]);
  const { page } = await pageOf("break", [], rows);
  const figure = page.locator('[data-figure="rank_qk_kl"]');
  const wave = Number(/^M[^,]+,([\d.]+)/.exec(await figure.locator("path.break").getAttribute("d"))[1]);
  const dots = await figure.locator('svg [aria-label="dot"] circle').evaluateAll((c) => c.map((e) => Number(e.getAttribute("cy"))));
  assert.equal(dots.length, 16);
  assert.ok(dots.every((y) => Math.abs(y - wave) > 6), `the break at ${wave}, dots at ${dots}`);
  const bands = await figure.locator('svg > g').evaluateAll((groups) => groups.map((g) => g.getAttribute("aria-label")));
  assert.ok(bands.lastIndexOf("area") < bands.indexOf("line"), "no band lies over a line");
  assert.match(await figure.locator(".readout").innerText(), /cut to rank r ·/);
});

test("of numbers over all tokens and over content tokens each head shows one", async () => {
  const rows = [];
  for (let layer = 0; layer < 6; layer++)
    for (let head = 0; head < 8; head++) for (const [tokens, value] of [["all", 0.25], ["content", 0.75]]) rows.push(`full,ln_final.hook_normalized,${layer},${head},effective_rank_rel,${value},,2,,${tokens},`);
  const { page } = await pageOf("both", [], rows);
  await page.locator('[data-figure="heads"] select').first().selectOption("effective_rank_rel");
  assert.equal(await page.locator('[data-figure="heads"]').getAttribute("data-points"), "48");
  assert.deepEqual([...new Set(await page.locator('[data-figure="heads"] svg text').allTextContents())].filter((t) => t.startsWith(".")), [".75"]);
  const line = page.locator('#head tr[data-metric="effective_rank_rel"]');
  assert.equal(await line.count(), 1);
  assert.deepEqual((await line.locator("td.num").allInnerTexts()).map(numberIn), [0.75, 0.75]);
});

test("a number in a cell is read against its colour: at least 4.5 to 1", async () => {
  const { page } = await pageOf("ink", [], Array.from({ length: 48 }, (_, i) => `full,blocks.${i >> 3}.attn.hook_pattern,${i >> 3},${i % 8},made_up,${0.1 + i / 100},,2,1,all,`));
  await page.locator('[data-figure="heads"] select').first().selectOption("made_up");
  const ratios = await page.locator('[data-figure="heads"] svg').evaluate((svg) => {
    const light = (colour) => {
      const rgb = colour.match(/[\d.]+/g).map((c) => Number(c) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
    };
    const texts = [...svg.querySelectorAll(":scope > text")].filter((t) => t.textContent.startsWith("."));
    const cells = [...svg.querySelectorAll('[aria-label="cell"] rect')];
    return texts.map((text, i) => {
      const [a, b] = [light(getComputedStyle(text).fill), light(getComputedStyle(cells[i]).fill)].sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05);
    });
  });
  assert.equal(ratios.length, 48);
  assert.ok(Math.min(...ratios) >= 4.5, `${Math.min(...ratios)}`);
});
