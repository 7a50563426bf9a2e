// Sizes: a page of 12 x 12 heads and 512 tokens is small, one of 48 x 64 heads is usable.
import assert from "node:assert/strict";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { firstPaint, launch, openPage, slowness } from "./browser.mjs";
import { rankscope, temporaryFolder } from "./results.mjs";

const headMetrics = ["attention_entropy", "effective_rank", "effective_rank_rel", "mixing", "numerical_rank", "sink_mass", "sink_position", "sink_uniform", "spectral_gap", "stable_rank", "head_output_rel", "qk_pr", "qk_effective_rank", "ov_effective_rank", "qk_stable_rank", "ov_stable_rank"];
const depthMetrics = ["residual_fro_rel_trimmed", "residual_fro_rel", "residual_l1inf_rel", "effective_rank_rel", "token_cosine", "massive_ratio", "stable_rank", "offset_fro"];

/** A tensor file as scan --out writes it. */
function writeArrays(file, arrays) {
  const header = {};
  let offset = 0;
  for (const { name, shape, values } of arrays) {
    header[name] = { dtype: "F32", shape, data_offsets: [offset, offset + 4 * values.length] };
    offset += 4 * values.length;
  }
  const text = JSON.stringify(header);
  const padded = text.padEnd(Math.ceil(text.length / 8) * 8, " ");
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  writeFileSync(file, Buffer.concat([length, Buffer.from(padded), ...arrays.map((a) => Buffer.from(a.values.buffer))]));
}

/** Results of a model that size, with numbers as long as real ones. */
function makeResults(folder, layers, heads, length, side, variants) {
  mkdirSync(folder);
  const lines = ["variant,site,layer,head,metric,value,stderr,n,depth,tokens"];
  let k = 0;
  const value = () => String(Math.abs(Math.sin(++k * 12.9898)) + 1e-3);
  const arrays = [];
  for (const variant of variants)
    for (const metric of depthMetrics) for (const tokens of ["all", "content"]) lines.push(`${variant},blocks.0.hook_resid_pre,0,,${metric},${value()},${value()},32,0,${tokens}`);
  for (let l = 0; l < layers; l++) {
    for (const variant of variants) {
      for (const metric of headMetrics) for (let h = 0; h < heads; h++) lines.push(`${variant},blocks.${l}.attn.hook_pattern,${l},${h},${metric},${value()},${value()},32,${l},all`);
      for (const site of ["hook_resid_post", "ln1.hook_normalized"])
        for (const metric of depthMetrics) for (const tokens of ["all", "content"]) lines.push(`${variant},blocks.${l}.${site},${l},,${metric},${value()},${value()},32,${l + 1},${tokens}`);
    }
    const fill = (size) => Float32Array.from({ length: size }, (_, i) => Math.abs(Math.sin(i * 0.7 + l)) / side);
    arrays.push({ name: `blocks.${l}.attn.hook_pattern.pooled`, shape: [heads, side, side], values: fill(heads * side * side) });
    arrays.push({ name: `blocks.${l}.attn.hook_pattern.received`, shape: [heads, length], values: fill(heads * length) });
    arrays.push({ name: `blocks.${l}.attn.hook_pattern.spectrum`, shape: [heads, length], values: fill(heads * length) });
    arrays.push({ name: `blocks.${l}.attn.qk_spectrum`, shape: [heads, 64], values: fill(heads * 64) });
    arrays.push({ name: `blocks.${l}.attn.ov_spectrum`, shape: [heads, 64], values: fill(heads * 64) });
  }
  writeFileSync(join(folder, "metrics.csv"), `${lines.join("\n")}\n`);
  writeFileSync(join(folder, "manifest.json"), JSON.stringify({ schema: 1, model: "large", verdict: [], notes: [], input: { shown: { sample: 0, tokens: Array.from({ length }, (_, i) => `Ġtoken${i}`) } } }));
  writeArrays(join(folder, "arrays.safetensors"), arrays);
  rankscope("report", folder, "--quiet");
  return join(folder, "report.html");
}

const base = temporaryFolder();
let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("12 x 12 heads, 512 tokens: under 3 MB, and painted", async () => {
  const file = makeResults(join(base, "base"), 12, 12, 512, 96, ["full", "-skip", "null:init"]);
  const { size } = statSync(file);
  assert.ok(size < 3e6, `${size} bytes`);
  const before = slowness();
  const { page, faults } = await openPage(browser, file);
  const paint = await firstPaint(page);
  const slow = Math.max(before, slowness());
  assert.equal(Number(await page.locator('[data-figure="heads"]').getAttribute("data-points")), 144);
  assert.deepEqual(faults, []);
  console.log(`# ${size} bytes, first paint after ${Math.round(paint)} ms, machine busy ${slow.toFixed(2)} times`);
});

test("48 x 64 heads: every one on the map, a metric changes, a head opens", async () => {
  const file = makeResults(join(base, "large"), 48, 64, 512, 22, ["full"]);
  const { page, faults } = await openPage(browser, file);
  const figure = page.locator('[data-figure="heads"]');
  assert.equal(Number(await figure.getAttribute("data-points")), 48 * 64);
  const slow = slowness();
  const took = await figure.locator("select").first().evaluate(async (select) => {
    const begun = performance.now();
    select.value = "sink_mass";
    select.dispatchEvent(new Event("change"));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - begun;
  });
  await page.goto(`file://${file}#L47H63`);
  await page.waitForFunction(() => document.getElementById("head-name")?.textContent === "L47H63");
  assert.ok(statSync(file).size < 12e6);
  assert.deepEqual(faults, []);
  console.log(`# ${statSync(file).size} bytes, metric changed in ${Math.round(took)} ms, machine busy ${slow.toFixed(2)} times`);
});
