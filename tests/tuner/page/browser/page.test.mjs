// Protects: the page of greta-report in a browser: every view draws, filters and brushing work, the keyboard
// reaches everything, axe-core finds nothing, nothing is loaded, and hostile names stay text. The structure of
// each view is compared with structure.json; GRETA_UPDATE=1 writes it anew.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

const { GRETA_REPORT, GRETA_PAGE_SAMPLE, GRETA_PAGE_PACKAGES, GRETA_CHROMIUM, GRETA_UPDATE } = process.env;
const require = createRequire(join(GRETA_PAGE_PACKAGES, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const kept = new URL("structure.json", import.meta.url);
const views = ["overview", "search", "roofline", "certification", "baselines", "coverage", "model"];
const hostile = "</script><img src=x onerror=";

const folder = mkdtempSync(join(tmpdir(), "greta-page-"));
const file = join(folder, "report.html");
let browser, page;
const errors = [];
const requests = [];

before(async () => {
  execFileSync(GRETA_PAGE_SAMPLE, [folder]);
  const inputs = ["tuned.db", "before.csv", "after.csv", "trace.json"].map((name) => join(folder, name));
  execFileSync(GRETA_REPORT, [...inputs, "--out", file]);
  browser = await chromium.launch({
    executablePath: GRETA_CHROMIUM,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
  page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(`file://${file}`);
  await page.evaluate(axe);
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

/** Shows a view and waits until its charts are drawn. */
async function show(hash) {
  await page.evaluate((to) => (location.hash = to), hash);
  const name = hash.split(/[/?]/)[0];
  await page.waitForSelector(`main > [data-view="${name}"]`);
  await page.waitForFunction(() => [...document.querySelectorAll(".plot")].every((plot) => plot.dataset.drawn));
}

async function violations() {
  const found = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations);
  return found.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
}

function structure() {
  const texts = (selector, within = document) => [...within.querySelectorAll(selector)].map((one) => one.textContent);
  return {
    heading: document.querySelector("main h1").textContent,
    sections: texts("main h2"),
    figures: [...document.querySelectorAll("figure")].map((one) => ({
      title: one.querySelector("h3").textContent,
      drawn: one.querySelector(".plot svg") ? "svg" : one.querySelector(".plot canvas") ? "canvas" : "nothing",
      shapes: one.querySelectorAll(".plot svg path").length > 3,
    })),
    tables: [...document.querySelectorAll("main .card table")].map((one) => ({
      columns: texts("th", one),
      rows: one.querySelectorAll("tbody tr").length,
    })),
    controls: texts("main .field > span"),
  };
}

test("every view draws, and its structure is the kept one", async () => {
  const found = {};
  for (const view of views) {
    await page.click(`nav a[href="#${view}"]`);
    await show(view);
    found[view] = await page.evaluate(structure);
    for (const figure of found[view].figures) {
      assert.notEqual(figure.drawn, "nothing", `${view}: ${figure.title}`);
      assert.ok(figure.shapes || figure.drawn === "canvas", `${view}: ${figure.title} has nothing in it`);
    }
  }
  if (GRETA_UPDATE) writeFileSync(kept, `${JSON.stringify(found, null, 1)}\n`);
  assert.deepEqual(found, JSON.parse(readFileSync(kept, "utf8")));
});

test("axe-core finds no violation, light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const view of views) {
      await show(view);
      assert.deepEqual(await violations(), [], `${view}, ${colorScheme}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
});

test("every chart has a table of its data", async () => {
  for (const view of views) {
    await show(view);
    const empty = await page.evaluate(() => [...document.querySelectorAll("figure")].filter((figure) => {
      figure.querySelector(".as-table").click();
      return !figure.querySelector(".alternative tbody tr") || !figure.querySelector(".plot").hidden;
    }).map((figure) => figure.querySelector("h3").textContent));
    assert.deepEqual(empty, [], view);
  }
  assert.deepEqual(await violations(), []);
});

test("filters and the search of tables narrow what is shown", async () => {
  await show("overview");
  const rows = () => page.locator("main .card tbody tr").count();
  const all = await rows();
  await page.fill("main .card input[type=search]", "softmax");
  assert.equal(await rows(), 1);
  await page.click(".device >> nth=1");
  await page.waitForFunction(() => document.querySelector(".device[aria-pressed=true]"));
  assert.ok((await rows()) < all);
  await show("roofline");
  await page.selectOption("[data-key=op] select", "softmax");
  await page.waitForFunction(() => location.hash.includes("op=softmax"));
  assert.equal(await page.textContent(".tile dd >> nth=0"), "1");
  await show("search");
  await page.click("text=Seconds");
  await page.waitForFunction(() => location.hash.includes("by=seconds"));
  await page.click("th button:has-text('Time') >> nth=-1");
  assert.equal(await page.getAttribute("th:has(button:text-is('Time')) >> nth=-1", "aria-sort"), "descending");
});

test("parallel coordinates select by values and by brushing", async () => {
  await show("search/0");
  const said = () => page.textContent(".selection");
  const all = await said();
  await page.locator(".filters select").first().selectOption({ index: 1 });
  const some = await said();
  assert.notEqual(some, all);
  await page.locator(".filters select").first().selectOption("");
  assert.equal(await said(), all);
  const plot = page.locator("figure:has(.selection) .plot");
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  await page.mouse.move(box.x + 30, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 30, box.y + 120, { steps: 4 });
  await page.mouse.up();
  await page.waitForFunction((before) => document.querySelector(".selection").textContent !== before, all);
  assert.match(await said(), /^(\d+ trials? of \d+ selected|No trial)/);
});

test("the keyboard reaches everything", async () => {
  await show("model");
  await show("certification");
  await page.evaluate(() => document.activeElement.blur());
  const wanted = await page.evaluate(() => {
    const list = [...document.querySelectorAll("a[href], button, select, input, summary, [tabindex='0']")];
    const seen = list.filter((one) => one.checkVisibility());
    seen.forEach((one, i) => (one.dataset.place = i));
    return seen.length;
  });
  const reached = new Set();
  for (let i = 0; i < wanted + 2; i++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement?.dataset?.place));
  }
  reached.delete(undefined);
  assert.equal(reached.size, wanted);
  await page.focus("nav a[href='#roofline']");
  await page.keyboard.press("Enter");
  await page.waitForSelector("main > [data-view=roofline]");
  await page.focus(".skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
});

test("hostile names stay text", async () => {
  for (const view of ["overview", "search/2", "certification/2", "coverage"]) {
    await show(view);
    assert.ok((await page.textContent("main")).includes(hostile), view);
  }
  assert.equal(await page.evaluate(() => window.harmed), undefined);
  assert.equal(await page.locator("img").count(), 0);
  await show("search/2");
  const plot = await page.locator(".plot").first().boundingBox();
  for (let x = 80; x < plot.width; x += 60) await page.mouse.move(plot.x + x, plot.y + 150);
  assert.equal(await page.locator("img").count(), 0);
});

test("nothing is wider than a narrow screen, and print leaves out the controls", async () => {
  await page.setViewportSize({ width: 390, height: 800 });
  for (const view of views) {
    await show(view);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${view} is ${over} px too wide`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("nav").isVisible(), false);
  assert.equal(await page.locator(".as-table").first().isVisible(), false);
  await page.emulateMedia({ media: "screen" });
});

test("the page loads nothing and reports no error", () => {
  assert.deepEqual(requests.filter((url) => !url.startsWith("data:")), [`file://${file}`]);
  assert.deepEqual(errors, []);
  assert.ok(statSync(file).size < 2 << 20);
});

test("greta-report serve shows what a tune adds, to this machine and with the token alone", async (context) => {
  const served = join(folder, "served.db");
  copyFileSync(join(folder, "few.db"), served);
  const server = spawn(GRETA_REPORT, ["serve", served], { stdio: ["ignore", "pipe", "pipe"] });
  const [first] = await Promise.race([once(server.stdout, "data"), once(server.stderr, "data")]);
  if (String(first).includes("lacks cpp-httplib")) {
    assert.equal((await once(server, "exit"))[0], 1);
    return;
  }
  const live = await browser.newPage();
  context.after(async () => {
    await live.close();
    server.kill("SIGINT");
    await once(server, "exit");
  });
  const url = String(first).trim();
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/);
  const { port, pathname } = new URL(url);
  const status = (host, path) => new Promise((done) =>
    get({ host: "127.0.0.1", port, path, headers: { Host: host } }, (answer) => (answer.resume(), done(answer.statusCode))));
  assert.equal(await status(`127.0.0.1:${port}`, pathname), 200);
  assert.equal(await status(`127.0.0.1:${port}`, "/"), 404);
  assert.equal(await status(`127.0.0.1:${port}`, "/0123456789abcdef0123456789abcdef/data"), 404);
  assert.equal(await status(`elsewhere.example:${port}`, pathname), 403);
  const connected = live.waitForResponse((answer) => answer.url().endsWith("/events"));
  await live.goto(url);
  await connected;
  const number = () => live.textContent("nav a[href='#search'] .number");
  const before = await number();
  execFileSync(GRETA_PAGE_SAMPLE, [folder, "more", served]);
  await live.waitForFunction((old) => document.querySelector("nav a[href='#search'] .number").textContent !== old, before);
  assert.notEqual(await number(), before);
});
