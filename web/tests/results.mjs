// Results to look at: real scans by the program under test, their tables read independently of the page.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const program = process.env.RANKSCOPE_PROGRAM ?? "rankscope";
export const rankscope = (...words) => execFileSync(program, words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), "rankscope-web-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A table without quoted cells as a list of objects. */
export function readTable(file) {
  const [head, ...lines] = readFileSync(file, "utf8").trimEnd().split("\n");
  const columns = head.split(",");
  return lines.map((line) => Object.fromEntries(line.split(",").map((cell, i) => [columns[i], cell])));
}

/** The number in a text of the page, typography undone. */
export const numberIn = (text) => Number(text.replaceAll("−", "-"));

/** Rounded as the page rounds: four significant digits, or a whole number. */
export function shown(x) {
  const size = Math.abs(x);
  if (Number.isInteger(x) && size < 1e6) return x;
  if (size >= 1e6 || (size < 1e-3 && size > 0)) return Number(x.toExponential(2));
  return Number(x.toPrecision(size >= 1000 ? Math.min(6, Math.ceil(Math.log10(size))) : 4));
}
