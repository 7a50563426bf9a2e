// Debian's Chromium, started so that it talks to nobody.
import { chromium } from "playwright-core";

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });

/** A page that remembers what went wrong in it: errors, and every request that is not the page itself. */
export async function openPage(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000); // what is not there by then will not come
  const faults = [];
  page.on("console", (m) => m.type() === "error" && faults.push(m.text()));
  page.on("pageerror", (e) => faults.push(String(e)));
  page.on("request", (r) => /^(file:|data:|blob:)/.test(r.url()) || faults.push(`request to ${r.url()}`));
  await page.goto(`file://${file}`);
  await page.waitForSelector("[data-ready], .message", { state: "attached" });
  return { page, context, faults };
}

/** First paint of a page, in milliseconds from its navigation. */
export const firstPaint = (page) => page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity);

/** How often this machine is busy with something else: the wall clock over the processor's, for the same work; at least 1. */
export function slowness() {
  const [wall, cpu] = [performance.now(), process.cpuUsage()];
  const spent = () => {
    const { user, system } = process.cpuUsage(cpu);
    return (user + system) / 1000;
  };
  while (spent() < 300);
  return Math.max(1, (performance.now() - wall) / spent());
}
