// `rankscope serve`: one folder, this machine only, whatever a client sends.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch } from "./browser.mjs";
import { program, temporaryFolder } from "./results.mjs";

const fixture = new URL("../../tests/fixtures/study", import.meta.url).pathname;
const outer = temporaryFolder();
const root = join(outer, "root");
let browser, server, url, port;

before(async () => {
  browser = await launch();
  mkdirSync(root);
  cpSync(fixture, join(root, "one"), { recursive: true });
  cpSync(fixture, join(root, "deep", "er", "two"), { recursive: true });
  cpSync(fixture, join(outer, "secret"), { recursive: true });
  symlinkSync(join(outer, "secret"), join(root, "link"));
  server = spawn(program, ["serve", root, "--port", "0"], { stdio: ["ignore", "pipe", "ignore"] });
  url = await new Promise((done, fail) => {
    server.stdout.once("data", (text) => done(String(text).trim()));
    server.once("exit", (code) => fail(new Error(`the server ended with ${code}`)));
  });
  port = Number(new URL(url).port);
});
after(async () => {
  server?.kill();
  await browser?.close(); // where a test failed, too: an open browser keeps Node waiting
});

/** Sends bytes as they are and gives back what comes. */
const raw = (bytes, wait = 6000) =>
  new Promise((done) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (piece) => (text += piece));
    socket.on("close", () => done(text));
    socket.on("error", () => done(text));
    setTimeout(() => socket.destroy(), wait);
  });
// A connection that was silent for two seconds may be closed as it is used again: then clients ask once more.
const get = (path, headers = {}) => {
  const ask = () => fetch(new URL(path, url), { headers });
  return ask().catch((error) => (error.cause?.code === "UND_ERR_SOCKET" ? ask() : Promise.reject(error)));
};

test("it lists what lies in the folder and shows each", async () => {
  const { folders } = await (await get("/data.json")).json();
  const date = /^\d{4}-\d\d-\d\d \d\d:\d\d$/;
  assert.ok(folders.every((f) => date.test(f.date) && Math.abs(Date.parse(`${f.date.replace(" ", "T")}:00Z`) - Date.now()) < 86_400_000), JSON.stringify(folders));
  assert.deepEqual(folders.map(({ date, ...rest }) => rest), [{ path: "deep/er/two", kind: "study", model: "Rank against depth" }, { path: "one", kind: "study", model: "Rank against depth" }]);
  const page = await (await get("/?folder=one")).text();
  assert.ok(page.includes("Rank against depth") && page.includes("connect-src 'self'"));
  assert.equal((await (await get("/data.json?folder=deep/er/two")).json()).studies.length, 1);
});

test("several are shown side by side, and none of them from outside", async () => {
  const both = await (await get(`/data.json?folder=${encodeURIComponent("one\ndeep/er/two")}`)).json();
  assert.deepEqual(both.studies.map((s) => s.name), ["one", "two"]);
  for (const folders of ["one\n../secret", "../secret\none", "one\n", "\none", "one\nlink", "one\nnowhere", Array(17).fill("one").join("\n")])
    assert.equal((await get(`/data.json?folder=${encodeURIComponent(folders)}`)).status, 404, folders);
  const same = await (await get(`/data.json?folder=${encodeURIComponent("one\none")}`)).text();
  assert.ok(!same.includes(outer), "no path of this machine is told");
});

test("the listing says kind, model and date, and ticked results are compared", async () => {
  for (const name of ["a", "b"]) {
    mkdirSync(join(root, "scans", name), { recursive: true });
    writeFileSync(join(root, "scans", name, "metrics.csv"), "variant,site,layer,head,metric,value,stderr,n,depth,tokens,stream\nfull,blocks.0.hook_resid_post,0,,spread,0.5,0.1,4,0,all,\n");
    writeFileSync(join(root, "scans", name, "manifest.json"), JSON.stringify({ schema: 2, model: `/somewhere/bert-${name}/model`, command: `rankscope ${name === "a" ? "scan" : "paths"} x`, verdict: [], notes: [] }));
  }
  const page = await browser.newPage();
  await page.goto(url);
  const line = (path) => page.locator(`tr[data-folder="${path}"]`);
  assert.match(await line("scans/a").innerText(), /scans\/a\s+bert-a\s+scan\s+\d{4}-/);
  assert.match(await line("scans/b").innerText(), /scans\/b\s+bert-b\s+paths\s+\d{4}-/);
  assert.ok(await page.locator(".compare").isDisabled());
  await line("scans/a").locator("input").check();
  await line("scans/b").locator("input").check();
  await Promise.all([page.waitForURL(/folder=/), page.locator(".compare").click()]);
  assert.equal(await page.locator("h1").innerText(), "bert-a · bert-b");
  assert.equal(await page.locator('[data-table="summary"] tbody tr').count(), 2);
  rmSync(join(root, "scans"), { recursive: true });
});

test("nothing outside the folder is reached", async () => {
  for (const path of ["../secret", "one/../../secret", "/etc", join(outer, "secret"), "link", "one/../link", "..%2fsecret", "one\u0000", "one/trials", "nowhere", "....//secret", "~", "%2e%2e/secret"]) {
    for (const place of ["/", "/data.json"]) {
      const answer = await get(`${place}?folder=${encodeURIComponent(path)}`);
      assert.equal(answer.status, 404, `${place} ${path}`);
      assert.ok(!(await answer.text()).includes("Rank against depth"));
    }
  }
  for (const path of ["/../secret/study.json", "/one/study.json", "/..%2f..%2fetc/passwd", "/data.json/../../x", "//etc/passwd"])
    assert.match(await raw(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`), /^HTTP\/1.1 404/, path);
});

test("it listens on loopback alone and answers to its own name alone", async () => {
  const others = Object.values(networkInterfaces()).flat().filter((a) => a.family === "IPv4" && !a.internal);
  for (const { address } of others)
    await assert.rejects(new Promise((done, fail) => connect(port, address, done).on("error", fail).setTimeout(2000, () => fail(new Error("silent")))), address);
  for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1", "", `127.0.0.1:${port}.evil.example`])
    assert.match(await raw(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`), /^HTTP\/1.1 403/, host);
});

test("a request that fills whole pieces of what is read at once is answered", async () => {
  const start = `GET /none HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\nCookie: `;
  for (const size of [4095, 4096, 4097, 8192]) {
    const head = `${start}${"a".repeat(size - start.length - 4)}\r\n\r\n`;
    assert.match(await raw(head), /^HTTP\/1.1 404/, `${head.length} bytes`);
  }
});

test("who says all at once and no more is answered, however many pieces it was", async () => {
  const start = `GET /none HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nCookie: `;
  for (const size of [4000, 4096, 8192]) {
    const said = await new Promise((done) => {
      let text = "";
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () => socket.end(`${start}${"a".repeat(size - start.length - 4)}\r\n\r\n`));
      socket.on("data", (piece) => (text += piece));
      socket.on("end", () => done(text));
    });
    assert.match(said, /^HTTP\/1.1 404/, `${size} bytes`);
  }
});

test("HEAD gets no body, of what is not there neither, so that the next answer is the next", async () => {
  const name = `Host: 127.0.0.1:${port}`;
  const text = await raw(`HEAD /none HTTP/1.1\r\n${name}\r\n\r\nHEAD / HTTP/1.1\r\n${name}\r\nConnection: close\r\n\r\n`);
  assert.match(text, /^HTTP\/1.1 404[^]*\r\n\r\nHTTP\/1.1 200[^]*\r\n\r\n$/);
  assert.match(await raw(`HEAD / HTTP/1.1\r\n${name}\r\n${name}\r\n\r\n`), /^HTTP\/1.1 400[^]*\r\n\r\n$/);
});

test("malformed and oversized requests are refused, and the server lives", async () => {
  const name = `Host: 127.0.0.1:${port}`;
  const bad = [
    "\r\n\r\n",
    "nonsense\r\n\r\n",
    "GET\r\n\r\n",
    `GET / HTTP/9.9\r\n${name}\r\n\r\n`,
    `GET /${"a".repeat(100_000)} HTTP/1.1\r\n${name}\r\n\r\n`,
    `GET / HTTP/1.1\r\n${name}\r\nX: ${"a".repeat(100_000)}\r\n\r\n`,
    `GET / HTTP/1.1\r\n${name}\r\nContent-Length: 99999999999999999999\r\n\r\n`,
    `POST / HTTP/1.1\r\n${name}\r\nContent-Length: 1000000\r\n\r\n${"x".repeat(100_000)}`,
    `GET /?folder=%zz%00%ff HTTP/1.1\r\n${name}\r\nConnection: close\r\n\r\n`,
    Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 37) % 256)),
    `GET / HTTP/1.1\r\n${name}\r\n${"X: y\r\n".repeat(20_000)}\r\n`,
    `GET / HTTP/1.1\r\n${name}\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n`,
    `GET / HTTP/1.1\r\n${name}\r\nContent-Length: -1\r\n\r\n`,
    `GET / HTTP/1.1\r\n${name}\r\nRange: bytes=0-18446744073709551615,-1,5-2\r\nConnection: close\r\n\r\n`.replace("GET /", "GET /none"),
    `GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n`,
    `CONNECT 127.0.0.1:22 HTTP/1.1\r\n${name}\r\n\r\n`,
    `GET /?folder=${"../".repeat(3000)}etc HTTP/1.1\r\n${name}\r\nConnection: close\r\n\r\n`,
    `GET / HTTP/1.1\r\n${name}\r\nHost: evil.example\r\nHost: x\r\n\r\n`.replace("Host: 127", "Hast: 127"),
  ];
  const answers = await Promise.all(bad.map((bytes) => raw(bytes)));
  for (const [i, text] of answers.entries()) assert.ok(!/^HTTP\/1.1 2/.test(text), `${String(bad[i]).slice(0, 60)} gave ${text.slice(0, 60)}`);
  assert.equal((await get("/data.json")).status, 200);
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"]) assert.equal((await fetch(url, { method })).status, 405, method);
});

test("many clients are served, and those that say nothing keep nobody waiting", async () => {
  const idle = Array.from({ length: 100 }, () => connect(port, "127.0.0.1").on("error", () => {}));
  const begun = Date.now();
  const answers = await Promise.all(Array.from({ length: 200 }, () => get("/data.json?folder=one").then((a) => a.json())));
  assert.ok(answers.every((a) => a.studies.length === 1));
  assert.ok(Date.now() - begun < 30_000);
  for (const socket of idle) socket.destroy();
});

test("a range, however often it is asked for, costs no more than the page", async () => {
  const ask = (range) => raw(`GET /?folder=one HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${range}Connection: close\r\n\r\n`);
  const [plain, many] = await Promise.all([ask(""), ask(`Range: bytes=${"0-,".repeat(2000)}0-\r\n`)]);
  assert.match(many, /^HTTP\/1.1 200/);
  assert.equal(many.length, plain.length);
});

test("clients that drip their request keep nobody waiting and are gone after seconds", async () => {
  const dripping = Array.from({ length: 200 }, () => {
    const socket = connect(port, "127.0.0.1");
    const timer = setInterval(() => socket.write("X"), 500);
    const closed = new Promise((done) => socket.on("close", done)).finally(() => clearInterval(timer));
    socket.on("error", () => {});
    return closed;
  });
  const begun = Date.now();
  await get("/data.json?folder=one");
  assert.ok(Date.now() - begun < 1000, `${Date.now() - begun} ms`);
  await Promise.all(dripping);
  assert.ok(Date.now() - begun < 10_000, `${Date.now() - begun} ms`);
});

test("clients that were refused and go on sending keep nobody waiting", async () => {
  const flood = `end=$((SECONDS + 4)); while [ $SECONDS -lt $end ]; do exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'NONE\\r\\n\\r\\n' >&3; dd if=/dev/zero bs=1M >&3; done`;
  const floods = Array.from({ length: 40 }, () => new Promise((done) => spawn("bash", ["-c", flood], { stdio: "ignore" }).on("close", done)));
  await new Promise((done) => setTimeout(done, 500));
  const begun = Date.now();
  for (let i = 0; i < 10; ++i) await get("/data.json?folder=one");
  assert.ok(Date.now() - begun < 4000, `${Date.now() - begun} ms`); // 4.8 s before, .13 now
  await Promise.all(floods);
});

test("clients that ask much and take nothing keep nobody waiting", async () => {
  const greedy = Array.from({ length: 300 }, () => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.pause();
    socket.write(`GET /?folder=one HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`.repeat(20));
    return socket;
  });
  const begun = Date.now();
  for (let i = 0; i < 5; ++i) await get("/data.json?folder=one");
  assert.ok(Date.now() - begun < 4500, `${Date.now() - begun} ms`); // 5 s for one before: megabytes for each at once
  for (const socket of greedy) socket.destroy();
});

test("thousands of requests take seconds", async () => {
  const begun = Date.now();
  for (let i = 0; i < 5000; i += 100)
    await Promise.all(Array.from({ length: 100 }, () => get("/data.json?folder=one").then((a) => a.arrayBuffer())));
  assert.ok(Date.now() - begun < 20_000, `${Date.now() - begun} ms`); // 89 s before
});

test("results with a link or a pipe among them are refused, and the server goes on", async () => {
  writeFileSync(join(outer, "password"), "secret-word,of,somebody");
  for (const [name, spoil] of [
    ["linked", (folder) => symlinkSync(join(outer, "password"), join(folder, "published.csv"))],
    ["linked-trials", (folder) => symlinkSync(join(outer, "secret"), join(folder, "trials", "t999"))],
    ["piped", (folder) => execFileSync("mkfifo", [join(folder, "published.csv")])],
  ]) {
    const folder = join(root, name);
    cpSync(fixture, folder, { recursive: true });
    rmSync(join(folder, "published.csv"), { force: true });
    spoil(folder);
    const answer = await get(`/data.json?folder=${name}`);
    assert.equal(answer.status, 503, name);
    assert.ok(!(await answer.text()).includes("secret-word"));
    rmSync(folder, { recursive: true });
  }
  assert.equal((await get("/data.json?folder=one")).status, 200);
});

test("a client that knows the state is told so in few words", async () => {
  const first = await get("/data.json?folder=one");
  const again = await get("/data.json?folder=one", { "If-None-Match": first.headers.get("ETag") });
  assert.equal(again.status, 304);
  assert.equal(again.headers.get("Content-Length"), first.headers.get("Content-Length"));
});

test("the page follows the study as it runs", async () => {
  const page = await browser.newPage();
  const faults = [];
  page.on("console", (m) => m.type() === "error" && faults.push(m.text()));
  page.on("request", (r) => r.url().startsWith(url) || r.url().startsWith("data:") || faults.push(r.url()));
  await page.goto(`${url}?folder=one`);
  assert.equal(await page.locator('[data-tile="done"] b').innerText(), "21");
  await page.waitForTimeout(2500); // the page has asked once
  const file = join(root, "one", "trials.csv");
  writeFileSync(file, readFileSync(file, "utf8").replace(",running,", ",done,"));
  await page.waitForFunction(() => document.querySelector('[data-tile="done"] b')?.textContent === "22", undefined, { timeout: 15_000 });
  writeFileSync(file, "id,state\nbroken"); // a table that is not whole: the page keeps what it has
  await page.waitForTimeout(3000);
  assert.equal(await page.locator('[data-tile="done"] b').innerText(), "22");
  assert.deepEqual(faults.filter((f) => !f.includes("503")), []);
});

test("a real study is followed while it runs: progress, curves that grow, and the end", async () => {
  const folder = join(root, "quick");
  const study = spawn(program, ["study", "run", "quick", "rank=1,16", "steps=1500", "--seeds", "1", "--out", folder, "--quiet"], { stdio: "ignore" });
  const ended = new Promise((done) => study.once("exit", done));
  const seen = [];
  for (let over = false, told = false; !(over && told); ) {
    over = (await Promise.race([ended.then(() => true), new Promise((done) => setTimeout(done, 100))])) ?? false;
    if (over) await new Promise((done) => setTimeout(done, 300)); // what serve looked at within .25 s it does not look at again
    const answer = await get("/data.json?folder=quick");
    told = answer.status === 200; // otherwise not begun, or being written this moment: the end is asked for again
    if (!told) continue;
    const { studies } = await answer.json();
    const points = Object.values(studies[0].curves).reduce((sum, c) => sum + c.step.length, 0);
    seen.push({ points, done: studies[0].states.done ?? 0 });
  }
  assert.equal(await ended, 0);
  assert.equal(seen.at(-1).done, 2, "both trials are done at the end");
  const { folders } = await (await get("/data.json")).json();
  assert.equal(folders.find((f) => f.path === "quick").model, "Rank against heads, in a minute"); // a store knows its name
  for (let i = 1; i < seen.length; i++) assert.ok(seen[i].points >= seen[i - 1].points && seen[i].done >= seen[i - 1].done, "nothing that was shown goes away");
  assert.ok(seen.some((s) => s.points > 0 && s.done < 2), `a partial curve was seen on the way: ${JSON.stringify(seen)}`);
});
