// Pictures of a page for people to look at: node tests/shots.mjs report.html FOLDER
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { launch, openPage } from "./browser.mjs";

const [file, folder = "shots"] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await launch();
for (const [name, width, scheme] of [
  ["desktop-light", 1400, "light"],
  ["desktop-dark", 1400, "dark"],
  ["phone-light", 390, "light"],
  ["phone-dark", 390, "dark"],
]) {
  const { page, context, faults } = await openPage(browser, resolve(file), { viewport: { width, height: 900 }, colorScheme: scheme, deviceScaleFactor: width < 500 ? 2 : 1 });
  for (const section of await page.locator("main section").all()) await section.screenshot({ path: `${folder}/${name}-${await section.getAttribute("id")}.png` });
  for (const fault of faults) console.log(`${name}: ${fault}`);
  await context.close();
}
await browser.close();
