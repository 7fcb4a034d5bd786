// A search: what it tried, when, and what came of it.
import { axis, chart, legend, log_range, many_points, no_chart, packed, point_size, tip } from "../chart";
import { device_name, numbers, problem_name, type Numbers, type Report, type Search } from "../data";
import { empty, h, section, segmented, select, tiles } from "../dom";
import { bytes, count, date, flop_rate, rate, ratio, seconds, share, tick, time } from "../format";
import { text_width } from "../labels";
import { link, set, type Route, type View } from "../shell";
import { table, type TableOptions } from "../table";
import { symbols } from "../theme";
import { importance, parallel, pairs, values } from "./parameters";
import { trials_of, type Trials } from "./trials";

const phases = ["plan", "search", "finals", "lost"];

export function trial_tip(trials: Trials, trial: number): { title: string; rows: [string, string][] } {
  const known = (label: string, value: number, text: (value: number) => string): [string, string][] =>
    value > 0 ? [[label, text(value)]] : [];
  return {
    title: trials.config(trial),
    rows: [
      ["trial", String(trial + 1)],
      ["status", trials.status_text(trial)],
      ...known("time", trials.us[trial]!, time),
      ...known("slower than the best", trials.us[trial]! / trials.best(), ratio),
      ...known("registers", trials.column("registers")[trial]!, String),
      ...known("shared memory", trials.column("lds_bytes")[trial]!, bytes),
      ...known("compiling", trials.column("compile_s")[trial]!, seconds),
      ...(trials.message(trial) ? [["message", trials.message(trial)] as [string, string]] : []),
    ],
  };
}

export function trial_rows(trials: Trials, places: number[], caption: string): TableOptions<number> {
  return {
    caption,
    rows: places,
    sort: { column: 2, down: false },
    columns: [
      { title: "Trial", value: (i) => i + 1, align: "right" },
      { title: "Status", value: (i) => trials.status_text(i) },
      { title: "Time", value: (i) => (trials.ok(i) ? trials.us[i]! : null), show: (i) => (trials.ok(i) ? time(trials.us[i]!) : trials.status_text(i)), align: "right" },
      { title: "To the best", value: (i) => (trials.ok(i) ? trials.us[i]! / trials.best() : null), show: (i) => (trials.ok(i) ? ratio(trials.us[i]! / trials.best()) : "–"), align: "right" },
      { title: "Configuration", value: (i) => trials.config(i), show: (i) => h("code", {}, trials.config(i)) },
      { title: "Message", value: (i) => trials.message(i), show: (i) => trials.message(i) || "–" },
    ],
  };
}

/** Time over trials with the best so far, and below it the failures. */
function history(trials: Trials, by: string): HTMLElement {
  const search = trials.search;
  const x = (i: number) => (by === "seconds" ? trials.end_s[i]! : i + 1);
  const failures = search.statuses.slice(1);
  const points = trials.places();
  const phase = trials.column("phase");
  const shown = trials.column("variant");
  const range = log_range(trials.us);
  const best = Array.from(trials.best_trial, (trial, i) => [x(trial), trials.best_us[i]!]);
  const last = trials.count ? x(trials.count - 1) : 1;
  if (best.length) best.push([last, trials.best()]);
  const lanes = failures.length ? 22 + failures.length * 15 : 0;
  const left = failures.reduce((most, status) => Math.max(most, text_width(status) + 14), 64);
  const of_variant: number[][] = search.variants.map(() => []);
  for (const i of trials.correct()) of_variant[shown[i]!]?.push(i);
  return chart({
    title: "Time over trials",
    missing: !trials.count && "This search has no trials yet; each trial of a tune appears here when it ends.",
    note: `The line is the best so far: ${count(trials.best_us.length, "improvement")}, the last at trial ${(trials.best_trial[trials.best_trial.length - 1] ?? -1) + 1} of ${trials.count}.${failures.length ? " Failures lie in lanes below." : ""}`,
    summary: `Time over ${trials.count} trials; the best is ${time(trials.best())}.`,
    height: 330 + lanes,
    points: trials.count,
    controls: search.recorded ? null : h("span", { "data-key": "by" }, segmented("Over", [{ value: "trials", text: "Trials" }, { value: "seconds", text: "Seconds" }], by, (value) => set({ by: value === "trials" ? "" : value }))),
    option: (colours, narrow) => ({
      legend: legend(colours, { data: [...search.variants, "best so far"], ...(narrow && search.variants.length > 3 ? { type: "scroll", right: 0 } : {}) }),
      tooltip: tip(colours, ({ data, dataIndex, seriesIndex, seriesName }) => {
        if (seriesName === "best so far") return null;
        const trial = data?.[2] ?? of_variant[seriesIndex]![dataIndex]!;
        const it = trial_tip(trials, trial);
        return { ...it, rows: [...it.rows, ["phase", phases[phase[trial]!] ?? "unknown"]] };
      }),
      grid: [
        { left, right: 16, top: 30, bottom: lanes + 40 },
        ...(lanes ? [{ left, right: 16, height: lanes - 20, bottom: 34 }] : []),
      ],
      xAxis: [0, 1].slice(0, lanes ? 2 : 1).map((grid) => axis(colours, {
        type: "value", gridIndex: grid, min: 0, max: last, splitLine: { show: false },
        name: grid === (lanes ? 1 : 0) ? (by === "seconds" ? "seconds of the search" : "trial") : "", nameGap: 22,
        axisLabel: { show: grid === (lanes ? 1 : 0), color: colours.muted, hideOverlap: true, showMaxLabel: false },
      })),
      yAxis: [
        axis(colours, { type: "log", ...range, axisLabel: { color: colours.muted, formatter: (us: number) => tick(time(us)) } }),
        ...(lanes ? [axis(colours, { type: "category", gridIndex: 1, data: failures, inverse: true, splitLine: { show: true, lineStyle: { color: colours.line } }, axisLabel: { color: colours.muted, fontSize: 10, interval: 0 } })] : []),
      ],
      dataZoom: [{ type: "inside", xAxisIndex: lanes ? [0, 1] : [0], zoomOnMouseWheel: "ctrl" }],
      series: [
        ...of_variant.map((places, variant) => ({
          name: search.variants[variant],
          type: "scatter",
          ...many_points(trials.count),
          data: packed(places, x, (i) => trials.us[i]!),
          symbol: symbols[variant % symbols.length],
          symbolSize: point_size(trials.count),
          itemStyle: { color: colours.categories[(variant + 5) % 7], opacity: 0.75 },
        })),
        {
          name: "best so far", type: "line", step: "end", data: best, showSymbol: best.length < 40, symbol: "circle", symbolSize: 5, silent: true,
          lineStyle: { color: colours.categories[1], width: 2 }, itemStyle: { color: colours.categories[1] },
        },
        ...(lanes ? [{
          name: "failures", type: "scatter", ...many_points(trials.count), xAxisIndex: 1, yAxisIndex: 1, symbol: "rect", symbolSize: [2.5, 10], itemStyle: { color: colours.bad, opacity: 0.8 },
          data: points.filter((i) => trials.status[i]! > 0).map((i) => [x(i), trials.status[i]! - 1, i]),
        }] : []),
      ],
    }),
    table: () => ({ ...trial_rows(trials, points, "Trials"), search: true }),
  });
}

/** How the trials' time passed: compiling, verifying and measuring, in parts of the search. */
function phases_chart(trials: Trials): HTMLElement {
  const kinds = ["compile_s", "verify_s", "measure_s"];
  const names = ["compiling", "verifying", "measuring"];
  const parts = Math.min(60, Math.max(1, trials.count));
  const sums = kinds.map((kind) => {
    const column = trials.column(kind);
    const sum = new Array<number>(parts).fill(0);
    for (let i = 0; i < trials.count; i++) sum[Math.floor((i * parts) / trials.count)]! += column[i]! || 0;
    return sum;
  });
  const first = (part: number) => Math.ceil((part * trials.count) / parts) + 1;
  const totals = sums.map((sum) => sum.reduce((a, b) => a + b, 0));
  const whole = totals.reduce((a, b) => a + b, 0);
  return chart({
    title: "Where the time went",
    missing: trials.search.recorded
      ? "Recordings have no times of the host; a tune notes how long it compiles, verifies and measures each trial."
      : !(whole > 0) && "These trials have no times of the host; a tune stores them with each trial that it measures.",
    note: names.map((name, i) => `${name} ${seconds(totals[i]!)} (${share(whole ? totals[i]! / whole : 0)})`).join(", "),
    summary: `Host time of trials: ${names.map((name, i) => `${name} ${seconds(totals[i]!)}`).join(", ")}.`,
    height: 240,
    option: (colours) => ({
      legend: legend(colours),
      grid: { left: 8, right: 16, top: 30, bottom: 34, containLabel: true },
      tooltip: { ...tip(colours, (at) => ({ title: `trials from ${first(at[0].dataIndex)}`, rows: at.map((one: any) => [one.seriesName, seconds(one.value)]) })), trigger: "axis", axisPointer: { type: "shadow" } },
      xAxis: axis(colours, { type: "category", data: sums[0]!.map((_, i) => first(i)), name: "trial", nameGap: 22, splitLine: { show: false } }),
      yAxis: axis(colours, { type: "value", axisLabel: { color: colours.muted, formatter: (s: number) => tick(seconds(s)) } }),
      series: sums.map((sum, i) => ({ name: names[i], type: "bar", stack: "s", data: sum, barCategoryGap: "12%", itemStyle: { color: colours.categories[[0, 4, 2][i]!] } })),
    }),
    table: () => ({
      caption: "Seconds by part of the search",
      rows: sums[0]!.map((_, i) => i),
      columns: [
        { title: "From trial", value: (i: number) => first(i), align: "right" },
        ...names.map((name, kind) => ({ title: name, value: (i: number) => sums[kind]![i]!, show: (i: number) => seconds(sums[kind]![i]!), align: "right" as const })),
      ],
    }),
  });
}

interface Figure {
  name: string;
  text: (value: number) => string;
  front?: "registers" | "lds_bytes";
}

const figures: Record<string, Figure> = {
  registers: { name: "registers of a thread", text: String, front: "registers" },
  lds_bytes: { name: "shared memory of a workgroup", text: bytes, front: "lds_bytes" },
  waves: { name: "waves on a SIMD", text: String },
  spills: { name: "spilled to scratch memory, bytes of a thread", text: String },
  code_bytes: { name: "size of the code", text: bytes },
  matrix_instructions: { name: "matrix instructions in the code", text: String },
  matrix: { name: "share of the matrix cores' measured rate", text: share },
  compile_s: { name: "time to compile", text: seconds },
};

/** Returns a figure of each trial; the share of the matrix rate follows from its time. */
function figure_of(report: Report, trials: Trials, name: string): Numbers {
  if (name !== "matrix") return trials.column(name);
  const search = trials.search;
  const peak = report.devices[search.device]!.ceilings[`matrix_${search.dtype}_gflops`] ?? 0;
  if (!(peak > 0)) return new Float32Array(trials.count).fill(NaN);
  return new Float32Array(trials.us).map((us) => (search.flops ?? 0) / us / 1e3 / peak);
}

/** A figure of the kernels beside the time. */
function resources(report: Report, trials: Trials, chosen: string): HTMLElement {
  const known = Object.keys(figures).filter((name) => figure_of(report, trials, name).some((value) => value > 0));
  const name = known.includes(chosen) ? chosen : known[0];
  if (!name) return no_chart("Resources beside time", trials.search.recorded
    ? "Recordings have no figures of kernels; a tune stores the registers, shared memory and matrix instructions of each trial where the driver reports them."
    : "No trial has figures of its kernels; a tune stores those that the driver reports for kernels that compile.");
  const figure = figures[name]!;
  const column = figure_of(report, trials, name);
  const ok = trials.correct().filter((i) => column[i]! >= 0);
  const front = figure.front ? Array.from(numbers(trials.search.fronts[figure.front])) : [];
  const range = trials.range();
  const widest = ok.reduce((most, i) => Math.max(most, column[i]!), 1);
  return chart({
    title: "Resources beside time",
    note: front.length ? "The line joins trials that no other one beats both in time and in this figure." : null,
    summary: `${figure.name} beside the time of ${ok.length} trials.`,
    height: 300,
    points: ok.length,
    controls: h("span", { "data-key": "figure" }, select("Figure", known.map((one) => ({ value: one, text: figures[one]!.name })), name, (value) => set({ figure: value }))),
    option: (colours) => ({
      grid: { left: 8, right: 20, top: 10, bottom: 34, containLabel: true },
      tooltip: tip(colours, ({ data, dataIndex, seriesIndex }) => {
        if (seriesIndex !== 0) return null;
        const trial = data?.[2] ?? ok[dataIndex]!;
        const it = trial_tip(trials, trial);
        return { ...it, rows: [[figure.name, figure.text(column[trial]!)], ...it.rows] };
      }),
      xAxis: axis(colours, { type: "value", name: figure.name, ...(figure.text === bytes ? { min: 0, interval: 2 ** Math.ceil(Math.log2(widest / 5)) } : { scale: true }), axisLabel: { color: colours.muted, formatter: (value: number) => tick(figure.text(value)), hideOverlap: true, showMaxLabel: figure.text !== bytes } }),
      yAxis: axis(colours, { type: "log", ...range, axisLabel: { color: colours.muted, formatter: (us: number) => tick(time(us)) } }),
      series: [
        { type: "scatter", ...many_points(ok.length), data: packed(ok, (i) => column[i]!, (i) => trials.us[i]!), symbolSize: point_size(ok.length), itemStyle: { color: colours.categories[0], opacity: 0.55 } },
        { type: "line", data: front.map((i) => [column[i], trials.us[i]]), step: "end", silent: true, symbolSize: 7, lineStyle: { color: colours.categories[1], width: 1.6 }, itemStyle: { color: colours.categories[1] } },
      ],
    }),
    table: () => ({
      caption: `${figure.name} and time`,
      rows: ok,
      sort: { column: 1, down: false },
      columns: [
        { title: figure.name, value: (i) => column[i]!, show: (i) => figure.text(column[i]!), align: "right" },
        { title: "Time", value: (i) => trials.us[i]!, show: (i) => time(trials.us[i]!), align: "right" },
        { title: "Least of both", value: (i) => (front.includes(i) ? "yes" : "") },
        { title: "Configuration", value: (i) => trials.config(i), show: (i) => h("code", {}, trials.config(i)) },
      ],
    }),
  });
}

function failures(search: Search, failed: number): HTMLElement {
  if (!search.messages.length) {
    return section("Failures", h("p", { class: "lead" }, failed
      ? `${count(failed, "trial")} failed, and ${failed === 1 ? "has" : "have"} no message: the column Status of the table says how.`
      : "No trial failed."));
  }
  return section(
    "Failures",
    h("div", { class: "card" }, table({
      caption: "Messages of failed trials; a log is the compiler's output",
      rows: search.messages,
      sort: { column: 0, down: true },
      first: 12,
      columns: [
        { title: "Trials", value: (row) => row.count, align: "right" },
        { title: "Message", value: (row) => row.text, show: (row) => (row.log ? h("details", {}, h("summary", {}, row.text), h("pre", { tabindex: 0 }, row.log)) : row.text) },
      ],
    })),
  );
}

function origin_of(report: Report, search: Search): string {
  if (search.recorded) return `Recorded configurations of the space from ${report.made.files[search.file]?.name}: no strategy chose them.`;
  return `${search.strategy} with a budget of ${search.budget}, ${date(search.utc)} UTC, ${search.outcome ?? "without an end"}.`;
}

function head(report: Report, search: Search, trials: Trials): Node[] {
  const result = search.result === null ? null : report.results[search.result]!;
  const ok = trials.status.filter((status) => status === 0).length;
  const best = trials.best();
  const last = trials.best_trial[trials.best_trial.length - 1];
  return [
    h("p", { class: "lead" },
      `${device_name(report, search.device)}, ${search.driver}. ${origin_of(report, search)} `,
      result ? h("a", { href: link("certification", search.result) }, search.recorded ? "The problem's result" : "Its certification") : null),
    tiles([
      { label: "Trials", value: trials.count.toLocaleString("en"), note: `${share(trials.count ? ok / trials.count : 0)} correct` },
      { label: "Best time", value: time(best), note: last === undefined ? "" : search.recorded ? `at trial ${last + 1}` : `at trial ${last + 1}, ${seconds(trials.end_s[last]!)}` },
      { label: "Rate", value: rate(search, best), note: search.flops && best > 0 && flop_rate(search.flops, best) !== rate(search, best) ? flop_rate(search.flops, best) : "" },
      result
        ? { label: "Certified", value: result.is_default ? "default stood" : ratio(result.speedup), note: result.is_default ? "" : "over the default", tone: result.is_default ? "" : "good" }
        : { label: "Certified", value: "–", note: "no result of this session" },
      { label: "Roofline", value: share(result?.roofline), note: result ? `of the measured peaks, by the certified ${time(result.us)}` : "" },
    ]),
  ];
}

/** The search that began last, which may still run; recordings have no date. */
function newest(searches: Search[]): number {
  const later = (a: Search, b: Search) => a.utc !== b.utc ? a.utc > b.utc : a.file === b.file ? a.session > b.session : false;
  return searches.reduce((last, one, i) => (later(one, searches[last]!) ? i : last), 0);
}

function show(report: Report, route: Route): Node[] {
  const title = h("h1", {}, "Search");
  if (!report.searches.length) {
    return [title, empty("These databases hold no trials: databases that ship have winners only. A tune records its trials in the database of --db:", "greta-tune gemm --m 1024 --n 1024 --k 1024 --db tuned.db --report report.html")];
  }
  const index = report.searches[route.id ?? -1] ? route.id! : newest(report.searches);
  const search = report.searches[index]!;
  const trials = trials_of(search);
  const choices = report.searches.map((one, i) => ({ value: String(i), text: `${problem_name(one)} — ${device_name(report, one.device)}, ${count(one.trials, "trial")}, ${one.recorded ? "recorded" : date(one.utc)}` }));
  const picker = h("span", { "data-key": "search" }, select("Search", choices, String(index), (value) => (location.hash = link("search", Number(value)))));
  return [
    h("div", { class: "head" }, h("h1", {}, problem_name(search)), picker),
    ...head(report, search, trials),
    section("The search", h("div", { class: "stack" }, history(trials, route.settings.get("by") ?? "trials")),
      h("div", { class: "grid", style: "margin-top:14px" }, phases_chart(trials), resources(report, trials, route.settings.get("figure") ?? ""))),
    section("Parameters", h("div", { class: "grid" }, importance(trials), pairs(trials, route)), values(trials)),
    section("All parameters at once", parallel(trials)),
    failures(search, trials.status.filter((status) => status > 0).length),
    section("Trials", h("div", { class: "card" }, table({ ...trial_rows(trials, trials.places(), "All trials, the fastest first"), search: true, first: 20 }))),
  ];
}

export const search: View = { name: "search", title: "Search", count: (report) => report.searches.length, show };
