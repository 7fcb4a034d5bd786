// Protects: the page of greta-report in a browser: every view draws, filters and brushing work, the keyboard
// reaches everything, axe-core finds nothing, nothing is loaded, and hostile names stay text. The structure of
// each view is compared with structure.json; GRETA_UPDATE=1 writes it anew. Also: what is printed, narrow screens,
// views without data, searches of more trials than can be drawn, and what is made late.
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
const empty = join(folder, "empty.html");
let browser, page;
const errors = [];
const requests = [];

before(async () => {
  execFileSync(GRETA_PAGE_SAMPLE, [folder]);
  const inputs = ["tuned.db", "before.csv", "after.csv", "trace.json"].map((name) => join(folder, name));
  execFileSync(GRETA_REPORT, [...inputs, "--out", file]);
  execFileSync(GRETA_REPORT, [join(folder, "empty.db"), "--out", empty]);
  browser = await chromium.launch({
    executablePath: GRETA_CHROMIUM,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
  page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(300_000);  // other programs may need the processors
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

async function violations(only) {
  const found = await page.evaluate(async (runOnly) => (await window.axe.run(document, { resultTypes: ["violations"], ...(runOnly ? { runOnly } : {}) })).violations, only);
  return found.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
}

function structure() {
  const texts = (selector, within = document) => [...within.querySelectorAll(selector)].map((one) => one.textContent);
  return {
    heading: document.querySelector("main h1").textContent,
    sections: texts("main h2"),
    figures: [...document.querySelectorAll("figure")].map((one) => ({
      title: one.querySelector("h3").textContent,
      ...(one.dataset.missing ? { why: one.querySelector(".missing").textContent } : {}),
      drawn: one.dataset.missing ? "not" : one.querySelector(".plot svg") ? "svg" : one.querySelector(".plot canvas") ? "canvas" : "nothing",
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
    await page.click(`nav a[data-view="${view}"]`);
    await show(view);
    found[view] = await page.evaluate(structure);
    for (const figure of found[view].figures) {
      assert.notEqual(figure.drawn, "nothing", `${view}: ${figure.title}`);
      assert.ok(figure.shapes || figure.drawn !== "svg", `${view}: ${figure.title} has nothing in it`);
    }
  }
  if (GRETA_UPDATE) writeFileSync(kept, `${JSON.stringify(found, null, 1)}\n`);
  assert.deepEqual(found, JSON.parse(readFileSync(kept, "utf8")));
});

test("axe-core finds no violation, light and dark, wide and narrow", async () => {
  // Colours differ by theme, and other findings by width.
  for (const [colorScheme, width, only] of [["light", 1280], ["dark", 1280, ["color-contrast"]], ["dark", 390], ["light", 390, ["color-contrast"]]]) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    for (const view of views) {
      await show(view);
      assert.deepEqual(await violations(only), [], `${view}, ${colorScheme}, ${width}`);
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
});

test("every chart has a table of its data", async () => {
  for (const view of views) {
    await show(view);
    const empty = await page.evaluate(() => [...document.querySelectorAll("figure:not([data-missing])")].filter((figure) => {
      figure.querySelector(".as-table").click();
      return !figure.querySelector(".alternative tbody tr") || !figure.querySelector(".plot").hidden;
    }).map((figure) => figure.querySelector("h3").textContent));
    assert.deepEqual(empty, [], view);
  }
  assert.deepEqual(await violations(), []);
});

test("filters and the search of tables narrow what is shown", async () => {
  await show("overview");
  const rows = () => page.locator("main .card:has(input[type=search]) tbody tr").count();
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

test("selections are of all trials, also of those that are not drawn", async (context) => {
  execFileSync(GRETA_PAGE_SAMPLE, [folder, "many", "4600"]);
  execFileSync(GRETA_REPORT, [join(folder, "many.db"), "--out", join(folder, "many.html")]);
  const many = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  context.after(() => many.close());
  await many.goto(`file://${join(folder, "many.html")}#search`);
  await many.waitForFunction(() => document.querySelectorAll(".plot").length && [...document.querySelectorAll(".plot")].every((plot) => plot.dataset.drawn));
  const text = (selector) => many.textContent(selector);
  const correct = 4600 - 354;  // every 13th trial fails
  assert.match(await text(".drawn"), new RegExp(`^Drawn are 4,000 of ${correct.toLocaleString("en")} correct trials: the fastest 1,000, and the others at equal steps`));
  assert.match(await text(".selection"), new RegExp(`^${correct.toLocaleString("en")} trials of ${correct.toLocaleString("en")} selected`));
  // BM has four values in turn, so that one value has about a quarter of all trials.
  await many.locator(".filters label:has-text('BM') select").selectOption({ label: "64" });
  const quarter = Number((await text(".selection")).split(" ")[0].replace(",", ""));
  assert.ok(quarter > 1000 && quarter < 1150, String(quarter));
  assert.equal(await text(".drawn"), "");
  await many.locator(".filters label:has-text('BM') select").selectOption("");
  const plot = many.locator("figure:has(.selection) .plot");
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  // The upper half of the first axis.
  await many.mouse.move(box.x + 30, box.y + 46);
  await many.mouse.down();
  await many.mouse.move(box.x + 30, box.y + 180, { steps: 4 });
  await many.mouse.up();
  await many.waitForFunction(() => !document.querySelector(".selection").textContent.startsWith("4,2"));
  const brushed = Number((await text(".selection")).match(/^([\d,]+) trials/)[1].replace(",", ""));
  assert.ok(brushed > 1000 && brushed < correct, String(brushed));
});

test("charts without data say why and what gives it, in one sentence", async (context) => {
  const bare = await browser.newPage({ viewport: { width: 390, height: 800 } });
  context.after(() => bare.close());
  bare.on("pageerror", (error) => errors.push(error.message));
  bare.on("console", (message) => ["error", "warning"].includes(message.type()) && errors.push(message.text()));
  await bare.goto(`file://${empty}`);
  await bare.evaluate(axe);
  for (const view of views) {
    await bare.evaluate((to) => (location.hash = to), view);
    await bare.waitForSelector(`main > [data-view="${view}"]`);
    await bare.waitForFunction(() => [...document.querySelectorAll(".plot")].every((plot) => plot.dataset.drawn));
    const reasons = await bare.evaluate(() => [...document.querySelectorAll(".missing, .empty p")].map((one) => one.textContent));
    assert.ok(reasons.length > 0, view);
    for (const reason of reasons) assert.match(reason, /^[A-Z].{30,}[.:]$/, view);
    const hollow = await bare.evaluate(() => [...document.querySelectorAll("figure:not([data-missing])")].filter((one) => one.querySelectorAll(".plot svg path").length < 4).map((one) => one.querySelector("h3").textContent));
    assert.deepEqual(hollow, [], view);
    const found = await bare.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations.map((one) => one.id));
    assert.deepEqual(found, [], view);
  }
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
  await page.focus("nav a[data-view='roofline']");
  await page.keyboard.press("Enter");
  await page.waitForSelector("main > [data-view=roofline]");
  await page.focus(".skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
});

test("hostile names stay text", async () => {
  for (const view of ["overview", "search/2", "certification/2", "coverage", "baselines", "model?pass=1"]) {
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

/** Texts of charts that lie on each other, or beyond their chart. Those that are rotated or clipped (legends that scroll) are left out. */
function colliding_texts() {
  const found = [];
  for (const plot of document.querySelectorAll(".plot svg")) {
    const frame = plot.getBoundingClientRect();
    const texts = [...plot.querySelectorAll("text")].filter((one) => one.textContent.trim() && !one.closest("[clip-path]") && !/rotate|matrix/.test(one.getAttribute("transform") ?? ""));
    const boxes = texts.map((one) => one.getBoundingClientRect()).map((box, i) => ({ box, text: texts[i].textContent }));
    boxes.forEach(({ box, text }, i) => {
      if (box.left < frame.left - 2 || box.right > frame.right + 2) found.push(`${text} is cut off`);
      for (const { box: other, text: of } of boxes.slice(i + 1)) {
        const across = Math.min(box.right, other.right) - Math.max(box.left, other.left);
        const down = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
        if (across > 2 && down > 4) found.push(`${text} and ${of}`);
      }
    });
  }
  return found;
}

test("nothing is wider than a narrow screen, and labels do not lie on each other", async () => {
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    for (const view of views) {
      await show(view);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${view} is ${over} px too wide`);
      assert.deepEqual(await page.evaluate(colliding_texts), [], `${view} at ${width}`);
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
});

test("narrow screens show every column with its title, and tables sort there", async () => {
  await page.setViewportSize({ width: 390, height: 800 });
  for (const view of views) {
    await show(view);
    const { seen, lacking } = await page.evaluate(() => {
      const tables = [...document.querySelectorAll("main table")];
      const lacking = [];
      for (const table of tables) {
        const titles = [...table.tHead.rows[0].cells];
        for (const row of table.rows) {
          for (const cell of row.cells) {
            const box = cell.getBoundingClientRect();
            const title = titles[cell.cellIndex].textContent;
            if (!cell.checkVisibility() || box.width < 8 || box.height < 8 || box.right > innerWidth) lacking.push(`${title} is hidden`);
            const stacked = getComputedStyle(table).display === "block";
            if (titles.length > 3 !== stacked) lacking.push(`${title} is not stacked`);
            const label = getComputedStyle(cell, "::before").content;
            if (stacked && cell.tagName === "TD" && !label.startsWith(JSON.stringify(title).slice(0, -1))) lacking.push(`${title} is called ${label}`);
          }
        }
      }
      return { seen: tables.length, lacking };
    });
    assert.deepEqual(lacking, [], view);
    assert.ok(seen > 0 || view === "certification", view);
  }
  await show("overview");
  const table = page.locator(".table:has(th:has-text('Over default'))");
  assert.deepEqual(await table.locator("th").allTextContents(), ["Problem", "Device", "Time", "Over default", "Roofline", "Rate", "Configuration", "Notes", "Certified", "Trials"]);
  await table.locator("th button:text-is('Time')").click();
  assert.equal(await table.locator("th:has(button:text-is('Time'))").getAttribute("aria-sort"), "descending");
  const times = await table.locator("td[data-label=Time]").allTextContents();
  assert.deepEqual(times.map(parseFloat), times.map(parseFloat).sort((a, b) => b - a));
  await page.setViewportSize({ width: 1280, height: 900 });
});

test("labels of charts are whole, above the intervals on narrow screens", async (context) => {
  const other = await browser.newPage({ viewport: { width: 390, height: 800 } });
  context.after(() => other.close());
  // Names that need two lines even where they are above their interval.
  const more = "m=$1 n=1024 k=4096 heads=32 kv_heads=32 positions=8192 dim=128 capacity=8192 vocabulary=128256";
  for (const name of ["before", "after"])
    writeFileSync(join(folder, `long-${name}.csv`), readFileSync(join(folder, `${name}.csv`), "utf8").replace(/m=(\d+) n=1024 k=4096/g, more));
  const file = join(folder, "long.html");
  execFileSync(GRETA_REPORT, [join(folder, "long-before.csv"), join(folder, "long-after.csv"), "--out", file]);
  for (const width of [390, 1280]) {
    await other.setViewportSize({ width, height: 800 });
    await other.goto("about:blank");
    await other.goto(`file://${file}`);
    await other.waitForFunction(() => document.querySelectorAll(".plot").length && [...document.querySelectorAll(".plot")].every((plot) => plot.dataset.drawn));
    assert.deepEqual(await other.evaluate(colliding_texts), [], String(width));
    const labels = await other.evaluate(() => {
      const figure = [...document.querySelectorAll("figure")].find((one) => one.querySelector("h3").textContent === "Changes");
      const texts = [...figure.querySelectorAll("svg text")].map((one) => ({ text: one.textContent.trim(), box: one.getBoundingClientRect() })).filter(({ text }) => text);
      const right = figure.querySelector("svg").getBoundingClientRect().right;
      return { text: texts.sort((a, b) => a.box.top - b.box.top).map(({ text }) => text).join(" "), cut: texts.filter(({ box }) => box.right > right).length };
    });
    assert.equal(labels.cut, 0);
    for (let m = 1; m <= 6; m++)
      assert.ok(labels.text.includes(`gemm f16 to f32 ${more.replace("$1", m)}, default, hip`), `${m} at ${width}: ${labels.text}`);
  }
  // No label of another chart is shortened, but those of legends and of parallel axes.
  await page.setViewportSize({ width: 390, height: 800 });
  for (const view of views) {
    await show(view);
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("figure:not(:has(.selection)) .plot svg g:not([clip-path]) > text")].filter((one) => !one.closest("[clip-path]")).map((one) => one.textContent).filter((text) => text.endsWith("…"))), [], view);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
});

test("charts and long tables are made when they are near what is seen, and all of them for a print", async (context) => {
  execFileSync(GRETA_PAGE_SAMPLE, [folder, "many", "5200"]);
  execFileSync(GRETA_REPORT, [join(folder, "many.db"), "--out", join(folder, "late.html")]);
  const late = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  context.after(() => late.close());
  await late.addInitScript(() => (window.requestIdleCallback = () => 0));  // never idle
  const undrawn = () => late.evaluate(() => [...document.querySelectorAll("figure:has(.plot)")].filter((one) => !one.querySelector(".plot").dataset.drawn).map((one) => one.querySelector("h3").textContent));
  const rows = () => late.locator("section:has(h2:text-is('Trials')) tbody tr").count();
  const open = async () => {
    await late.goto("about:blank");
    await late.goto(`file://${join(folder, "late.html")}#/search`);
    await late.waitForSelector(".plot[data-drawn]");
  };
  await open();
  assert.equal(await late.textContent(".tile dd >> nth=0"), "5,20092 % correct");
  assert.ok((await undrawn()).includes("Parallel coordinates"));
  assert.equal(await rows(), 0);
  // A selection before the chart is drawn counts for the chart.
  await late.locator(".filters label:has-text('BM') select").evaluate((list) => ((list.value = "0"), list.dispatchEvent(new Event("change"))));
  await late.locator("section:has(h2:text-is('Trials')) .table").scrollIntoViewIfNeeded();
  await late.waitForFunction(() => document.querySelectorAll("main > div > section:last-child tbody tr").length === 20);
  await late.locator("figure:has(.selection)").scrollIntoViewIfNeeded();
  await late.waitForFunction(() => document.querySelector("figure:has(.selection) .plot").dataset.drawn);
  assert.match(await late.textContent(".selection"), /^1,2\d\d trials of 4,800 selected/);
  assert.equal(await late.textContent(".drawn"), "");
  await open();
  assert.ok((await undrawn()).length > 0);
  await late.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.deepEqual(await undrawn(), []);
  assert.equal(await rows(), 20);
});

test("times by value are those of the trials with the value", async () => {
  await show("search/0");
  const figure = page.locator("figure:has(h3:text-is('SPLIT'))");
  await figure.locator(".as-table").click();
  const cells = await figure.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.deepEqual(cells.map((row) => row[0]), ["2", "4", "8"]);
  assert.deepEqual(await figure.locator("th").allTextContents(), ["SPLIT", "Best", "Lower quartile", "Median", "Upper quartile", "Correct trials"]);
  // Every fifth of 240 trials has the parameter, and every 13th of all fails.
  const split = Array.from({ length: 240 }, (_, i) => i).filter((i) => i % 5 === 4 && i % 13 !== 7);
  assert.equal(cells.reduce((sum, row) => sum + Number(row[5]), 0), split.length);
  for (const [, best, quarter, median, three_quarters] of cells.map((row) => row.map(parseFloat)))
    assert.ok(best <= quarter && quarter <= median && median <= three_quarters, cells.join("; "));
  assert.match(await figure.locator(".plot").getAttribute("aria-label"), /2: median .* of \d+ trials, 4: median/);
});

test("certification has the rounds of all finalists, and says how each one left", async () => {
  await show("certification");
  const rounds = page.locator("figure:has(h3:text-is('Rounds'))");
  await rounds.locator(".as-table").click();
  assert.deepEqual(await rounds.locator("th").allTextContents(), ["Round", "Winner", "Default", "Finalist 3", "Finalist 4"]);
  const times = await rounds.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.equal(times.length, 40);
  assert.equal(times.filter((row) => /\d/.test(row[4])).length, 8);  // it left after 8 rounds
  const finalists = page.locator("figure:has(h3:text-is('Finalists'))");
  await finalists.locator(".as-table").click();
  const roles = await finalists.locator("tbody tr td:nth-child(2)").allTextContents();
  assert.deepEqual(roles.sort(), ["default", "finalist 3, tie", "finalist 4, significantly slower, left the rounds early", "winner"]);
});

test("every view prints on A4 and Letter: charts fit the paper, in light colours, without controls", async () => {
  await page.emulateMedia({ colorScheme: "dark" });
  // What the page is like while the browser lays the paper out.
  await page.evaluate(() => addEventListener("beforeprint", () => {
    const paper = document.querySelector("main").getBoundingClientRect();
    window.paper = {
      width: paper.width,
      theme: document.documentElement.dataset.theme,
      over: [...document.querySelectorAll(".plot svg, .plot canvas")].filter((one) => {
        const box = one.getBoundingClientRect(), card = one.closest("figure").getBoundingClientRect();
        return box.right > card.right + 1 || box.width < card.width - 60 || card.right > paper.right + 1;
      }).length,
      texts: window.colliding(),
    };
  }));
  await page.evaluate(`window.colliding = ${colliding_texts}`);
  const papers = { A4: [595, 842], Letter: [612, 792] };
  for (const view of views) {
    await show(view);
    for (const format of view === "overview" || view === "search" ? ["A4", "Letter"] : ["A4"]) {
      const pdf = (await page.pdf({ format, printBackground: true })).toString("latin1");
      const sizes = [...pdf.matchAll(/\/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]/g)].map((one) => [Math.floor(one[1]), Math.floor(one[2])]);
      assert.ok(sizes.length >= 1 && sizes.length < 20, `${view}: ${sizes.length} pages`);
      for (const size of sizes) assert.deepEqual(size, papers[format], view);
      const { width, theme, over, texts } = await page.evaluate(() => window.paper);
      assert.ok(width > 600 && width <= ((papers[format][0] - 79) * 96) / 72 + 1, `${view}: ${width} px`);
      assert.deepEqual({ view, theme, over, texts }, { view, theme: "light", over: 0, texts: [] });
    }
  }
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.emulateMedia({ media: "print", colorScheme: "light" });
  await page.setViewportSize({ width: 688, height: 900 });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  for (const view of views) {
    await show(view);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 688, view);
    for (const part of ["nav", ".as-table", ".copy", ".more", "main .controls", "main select", ".theme"])
      assert.deepEqual(await page.evaluate((which) => [...document.querySelectorAll(which)].filter((one) => one.checkVisibility()).length, part), 0, `${view}: ${part}`);
  }
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  await page.emulateMedia({ media: "screen" });
  await page.setViewportSize({ width: 1280, height: 900 });
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
    if (server.exitCode !== null || server.signalCode !== null) return;  // and the event is over
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
  const number = () => live.textContent("nav a[data-view='search'] .number");
  const before = await number();
  execFileSync(GRETA_PAGE_SAMPLE, [folder, "more", served]);
  await live.waitForFunction((old) => document.querySelector("nav a[data-view='search'] .number").textContent !== old, before);
  assert.notEqual(await number(), before);

  // What the server cannot answer is said, and the page recovers.
  const lost = live.locator("[data-notice=connection]");
  assert.equal(await lost.isVisible(), false);
  await live.route("**/data", (route) => route.fulfill({ status: 500, body: "served.db: is locked" }));
  const then = await number();
  execFileSync(GRETA_PAGE_SAMPLE, [folder, "more", served]);
  await lost.waitFor({ state: "visible" });
  assert.match(await lost.textContent(), /^The server has no data: served.db: is locked; data of \d\d:\d\d UTC\./);
  await live.unroute("**/data");
  await lost.waitFor({ state: "hidden" });
  assert.notEqual(await number(), then);
  server.kill("SIGINT");
  await lost.waitFor({ state: "visible" });
  assert.match(await lost.textContent(), /^Connection lost; data of \d\d:\d\d UTC\./);
});

test("a page opens on what it has, on the newest search, and says what it lacks", async (context) => {
  const other = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  context.after(() => other.close());
  const file = join(folder, "other.html");
  const open = async (...files) => {
    execFileSync(GRETA_REPORT, [...files.map((name) => join(folder, name)), "--out", file], { stdio: "pipe" });
    await other.goto("about:blank");
    await other.goto(`file://${file}`);
    await other.waitForSelector("main > [data-view]");
    return other.getAttribute("main > [data-view]", "data-view");
  };
  assert.equal(await open("trace.json"), "model");
  assert.equal(await open("before.csv", "after.csv"), "baselines");
  assert.equal(await open("tuned.db", "trace.json"), "overview");
  assert.equal(await other.locator(".notice:visible").count(), 0);
  // Few trials have no importance.
  copyFileSync(join(folder, "few.db"), join(folder, "newest.db"));
  execFileSync(GRETA_PAGE_SAMPLE, [folder, "five"]);
  await open("newest.db");
  await other.evaluate(() => (location.hash = "#/search"));
  await other.waitForSelector("main > [data-view=search]");
  assert.equal(await other.textContent(".tile dd >> nth=0"), "5" + "100 % correct");
  assert.match(await other.textContent("figure:has(h3:text-is('Importance')) .missing"), /need at least 10 correct trials .* has 5;/);
  // Their times by value are what was measured all the same.
  assert.match(await other.locator("figure:has(h3:text-is('BM')) .plot").getAttribute("aria-label"), /^Time by BM: 16: median .* of 2 trials, 32: median .* of 1 trial,/);
});

test("passes with default configurations are what tuned ones are compared with, in any order of the files", async (context) => {
  const other = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  context.after(() => other.close());
  const trace = (name, configurations, us) => writeFileSync(join(folder, name), JSON.stringify({
    otherData: { configurations, device: "Card" },
    traceEvents: [{ name: "norm", ph: "X", pid: 1, ts: 0, dur: us, args: { tokens: 1, problem: "norm", origin: "exact" } }],
  }));
  trace("a.json", "tuned", 50);
  trace("b.json", "default", 100);
  const file = join(folder, "passes.html");
  execFileSync(GRETA_REPORT, [join(folder, "a.json"), join(folder, "b.json"), "--out", file]);
  await other.goto(`file://${file}`);
  const rows = await other.locator("section:has(h2:text-is('Passes')) tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.deepEqual(rows.map((row) => row.slice(0, 6)), [
    ["decode step", "default", "Card", "b.json", "100 µs", "–"],
    ["decode step", "tuned", "Card", "a.json", "50.0 µs", "−50 %"],
  ]);
});

test("baselines are compared with the last file, and benchmarks of one file are named", async (context) => {
  const other = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  context.after(() => other.close());
  const lines = readFileSync(join(folder, "after.csv"), "utf8").trimEnd().split("\n");
  writeFileSync(join(folder, "later.csv"), `${lines.slice(0, -1).join("\n").replaceAll("2026-11-22", "2026-11-23")}\n`);
  const file = join(folder, "series.html");
  execFileSync(GRETA_REPORT, [...["before.csv", "later.csv", "after.csv"].map((name) => join(folder, name)), "--out", file]);
  await other.goto(`file://${file}`);
  assert.equal(await other.locator("[data-key=from] select").evaluate((list) => list.selectedOptions[0].text), "after.csv → later.csv");
  assert.equal(await other.textContent("details.only summary"), "1 benchmark only in after.csv");
  assert.equal(await other.locator("details.only li").count(), 1);
});

test("what is beyond the peaks, damaged or far down a list is shown", async (context) => {
  const other = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  context.after(() => other.close());
  const html = readFileSync(file, "utf8");
  const [, begin, text, end] = html.match(/^([^]*id="data">)(.*?)(<\/script>[^]*)$/);
  const data = JSON.parse(text);
  data.made.files[0].damaged = 3;
  data.results.find((one) => one.current).roofline = 1.34;
  data.next = [...data.next, ...data.next];
  const changed = join(folder, "changed.html");
  writeFileSync(changed, begin + JSON.stringify(data).replaceAll("<", "\\u003c") + end);
  await other.goto(`file://${changed}`);
  await other.waitForFunction(() => [...document.querySelectorAll(".plot")].every((plot) => plot.dataset.drawn));
  assert.match(await other.textContent(".notice:visible"), /^tuned\.db: 3 rows skipped because of damage/);
  const labels = await other.locator("figure:has(h3:text-is('Share of the roofline')) svg text").allTextContents();
  assert.ok(labels.includes("120 %") || labels.includes("140 %"), labels.join());
  await other.evaluate(() => (location.hash = "#/coverage"));
  await other.waitForSelector("section:has(h2:text-is('More to gain'))");
  assert.deepEqual(await other.locator("section:has(h2:text-is('More to gain')) th").allTextContents(), ["Problem", "Device", "At most", "Why", "Command"]);
});
