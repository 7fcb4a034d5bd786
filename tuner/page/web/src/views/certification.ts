// How a result was certified: the rounds of the winner and of the default, and the ties.
import { axis, chart, intervals, legend, most_narrow, no_chart, tip, type Option } from "../chart";
import { device_name, numbers, problem_name, type Report, type Result } from "../data";
import { command, empty, h, section, select, tag, tiles, where_commands_run, type Child } from "../dom";
import { bytes, count, date, rate, ratio, share, tick, time } from "../format";
import { labelled_rows, type Rows } from "../labels";
import { link, type Route, type View } from "../shell";
import { table } from "../table";
import type { Theme } from "../theme";
import { trials_of } from "./trials";

/** Why the winner won, or the default stood. */
function reason(row: Result): string {
  const level = `${Math.round((row.confidence ?? 0.95) * 100)} %`;
  const rounds = row.rounds ? ` in ${row.rounds} interleaved rounds` : "";
  if (row.is_default)
    return `The default stood: no candidate was significantly faster than it${rounds}, at ${level} confidence.`;
  if (row.speedup === null) return `The default failed, so nothing compares with the winner, which took ${time(row.us)}.`;
  const gain = `${ratio(row.speedup)} as fast as the default, between ${ratio(row.speedup_low)} and ${ratio(row.speedup_high)} at ${level} confidence`;
  return `The winner is ${gain}${rounds}: the whole interval lies above 1, so it replaced the default.`;
}

/** The range of most values: a few that lie far off would squeeze the others. */
function most_of(values: number[]): { min: number; max: number; outside: number } {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))]!;
  const width = at(0.9) - at(0.1) || at(0.5) * 0.02;
  const low = Math.max(sorted[0]!, at(0.1) - 1.5 * width);
  const high = Math.min(sorted[sorted.length - 1]!, at(0.9) + 1.5 * width);
  const pad = (high - low) * 0.08;
  const [min, max] = [low - pad, high + pad];
  return { min, max, outside: values.filter((one) => one < min || one > max).length };
}

function outside_text(outside: number): string {
  return outside ? ` ${count(outside, "sample")} far off ${outside === 1 ? "is" : "are"} in the table only.` : "";
}

const no_samples = "These files have no samples of this result's rounds: databases that ship omit them. The database of the tune itself (greta-tune --db) has them.";

function rounds_chart(row: Result): HTMLElement {
  const winner = numbers(row.rounds_us);
  const standard = numbers(row.default_rounds_us);
  if (!winner.length) return no_chart("Rounds", no_samples);
  const both = standard.length > 0 && !row.is_default;
  const all = [...winner, ...(both ? standard : [])];
  const { min, max, outside } = most_of(all);
  return chart({
    title: "Rounds",
    note: `Each round times every finalist in turn, so that what disturbs the device disturbs all. ${both ? "The default is the control: a round that is slow for both is the device's, not the winner's. " : ""}The band is the interval of the winner's median.${outside_text(outside)}`,
    summary: `${winner.length} rounds: the winner's median is ${time(row.us)}${both ? `, the default's ${time(row.default_us)}` : ""}.`,
    height: 290,
    points: all.length,
    option: (colours) => ({
      legend: legend(colours),
      grid: { left: 8, right: 16, top: 30, bottom: 34, containLabel: true },
      tooltip: tip(colours, (at) => ({ title: `round ${at.data[0]}`, rows: [[at.seriesName, time(at.data[1])]] })),
      xAxis: axis(colours, { type: "value", min: 0, max: winner.length + 1, name: "round", nameGap: 22, minInterval: 1, splitLine: { show: false }, axisLabel: { color: colours.muted, showMaxLabel: false } }),
      yAxis: axis(colours, { type: "value", min, max, axisLabel: { color: colours.muted, formatter: (us: number) => tick(time(us)), showMinLabel: false, showMaxLabel: false } }),
      series: [
        ...(both ? [{ name: "default", type: "scatter", symbol: "triangle", symbolSize: 6, data: Array.from(standard, (us, i) => [i + 1, us]), itemStyle: { color: colours.categories[1] } }] : []),
        {
          name: row.is_default ? "default, the winner" : "winner", type: "scatter", symbolSize: 6, data: Array.from(winner, (us, i) => [i + 1, us]), itemStyle: { color: colours.categories[0] },
          markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: colours.categories[0], width: 1 }, data: [{ yAxis: row.us }] },
          markArea: { silent: true, itemStyle: { color: colours.categories[0], opacity: 0.12 }, data: [[{ yAxis: row.low_us }, { yAxis: row.high_us }]] },
        },
      ],
    }),
    table: () => ({
      caption: "Times by round",
      rows: Array.from(winner, (_, i) => i),
      columns: [
        { title: "Round", value: (i) => i + 1, align: "right" },
        { title: "Winner", value: (i) => winner[i]!, show: (i) => time(winner[i]!), align: "right" },
        { title: "Default", value: (i) => standard[i] ?? null, show: (i) => time(standard[i]), align: "right" },
      ],
    }),
  });
}

const ratio_title = "Default divided by winner, round by round";

function ratio_chart(row: Result): HTMLElement | null {
  const winner = numbers(row.rounds_us);
  const standard = numbers(row.default_rounds_us);
  if (!winner.length) return null;
  if (row.is_default) return no_chart(ratio_title, "The default won, so it has no other configuration's rounds beside its own; a result whose winner is another one has a ratio for each round.");
  if (winner.length !== standard.length) return no_chart(ratio_title, "The default failed, or its rounds are not in these files, so there are no pairs; a result whose default ran in every round has them.");
  const ratios = Array.from(winner, (us, i) => standard[i]! / us);
  const { min, max, outside } = most_of([...ratios, 1]);
  return chart({
    title: ratio_title,
    note: `Pairs of one round: what both share cancels out. The band is the interval of the speed-up.${outside_text(outside)}`,
    summary: `Speed-up by round, with a median of ${ratio(row.speedup)}.`,
    height: 290,
    points: ratios.length,
    option: (colours) => ({
      grid: { left: 8, right: 88, top: 14, bottom: 34, containLabel: true },
      tooltip: tip(colours, (at) => ({ title: `round ${at.data[0]}`, rows: [["speed-up", ratio(at.data[1])]] })),
      xAxis: axis(colours, { type: "value", min: 0, max: winner.length + 1, name: "round", nameGap: 22, splitLine: { show: false }, axisLabel: { color: colours.muted, showMaxLabel: false } }),
      yAxis: axis(colours, { type: "value", min, max, axisLabel: { color: colours.muted, formatter: (x: number) => tick(ratio(x)), showMinLabel: false, showMaxLabel: false } }),
      series: [{
        type: "scatter", symbolSize: 6, data: ratios.map((one, i) => [i + 1, one]), itemStyle: { color: colours.categories[2] },
        markLine: { silent: true, symbol: "none", label: { show: true, position: "end", color: colours.muted, fontSize: 10.5, formatter: ({ name }: any) => name }, data: [
          { yAxis: 1, name: "", lineStyle: { color: colours.muted, type: "dashed" } },
          { yAxis: row.speedup, name: `median ${ratio(row.speedup)}`, lineStyle: { color: colours.categories[2], type: "solid" } },
        ] },
        markArea: { silent: true, itemStyle: { color: colours.categories[2], opacity: 0.14 }, data: [[{ yAxis: row.speedup_low }, { yAxis: row.speedup_high }]] },
      }],
    }),
    table: () => ({
      caption: "Speed-up by round",
      rows: ratios.map((one, i) => ({ one, i })),
      columns: [
        { title: "Round", value: (at) => at.i + 1, align: "right" },
        { title: "Speed-up", value: (at) => at.one, show: (at) => ratio(at.one), align: "right" },
      ],
    }),
  });
}

interface Finalist {
  config: string;
  role: string;
  us: number;
  low: number;
  high: number;
}

/** The finalists: the winner, what ties with it, and trials of the session's last phase. */
function finalists(report: Report, row: Result): Finalist[] {
  if (row.search === null) return [];
  const trials = trials_of(report.searches[row.search]!);
  const phase = trials.column("phase");
  const low = trials.column("low_us");
  const high = trials.column("high_us");
  // Trials name their parameters in another order.
  const key = (config: string) => config.split(" ").sort().join(" ");
  const tied = new Set(row.ties.map((one) => key(one.config)));
  const winner = key(row.config);
  const role = (config: string) => (key(config) === winner ? (row.is_default ? "the default, which won" : "winner") : tied.has(key(config)) ? "tie" : "");
  return trials.places()
    .filter((i) => trials.ok(i))
    .map((i) => ({ i, config: trials.config(i) }))
    .filter(({ i, config }) => phase[i] === 2 || role(config) !== "")
    .map(({ i, config }) => ({ config, role: role(config), us: trials.us[i]!, low: low[i]!, high: high[i]! }))
    .sort((a, b) => a.us - b.us);
}

function finalists_chart(row: Result, list: Finalist[]): HTMLElement {
  if (!list.length) {
    return no_chart("Finalists", row.search === null
      ? "The trials of this result's search are not in these files: databases that ship have winners only. The database of the tune itself has them."
      : "No trial of the search is this winner, a tie or of the last phase: the winner was known before the search, whose trials are in the database of that tune.");
  }
  const placed = (width: number) => labelled_rows(list.map((one) => one.config), width, width < most_narrow);
  const finalists_option = (colours: Theme, { at, above, axis: lying }: Rows): Option => ({
    grid: { left: 8, right: 20, top: 6, bottom: 28, containLabel: !above },
    tooltip: tip(colours, ({ dataIndex }) => {
      const one = list[dataIndex];
      return one ? { title: one.config, rows: [["role", one.role || "finalist"], ["median", time(one.us)], ["interval", `${time(one.low)} to ${time(one.high)}`]] } : null;
    }),
    xAxis: axis(colours, { type: "value", scale: true, axisLine: { onZero: false, lineStyle: { color: colours.line } }, name: "time in the search", nameGap: 22, axisLabel: { color: colours.muted, hideOverlap: true, formatter: (us: number) => tick(time(us)) } }),
    yAxis: axis(colours, { ...lying, axisLabel: { color: colours.ink, ...lying["axisLabel"] } }),
    series: [
      intervals("interval", list.map((one, i) => [at[i]!, one.low, one.high]), colours.muted, false),
      { type: "scatter", symbolSize: 9, data: list.map((one, i) => ({ value: [one.us, at[i]!], symbol: one.role === "tie" ? "diamond" : one.role ? "circle" : "emptyCircle", itemStyle: { color: one.role === "tie" ? colours.categories[2] : one.role ? colours.categories[0] : colours.muted } })) },
    ],
  });
  return chart({
    title: "Finalists",
    note: "Medians with intervals from the search: of the winner, of what ties with it, and of trials in the last phase. The search timed them one by one; only the rounds above decide.",
    summary: `${list.length} finalists, the fastest ${time(list[0]!.us)}.`,
    height: (width) => 34 + placed(width).height,
    option: (colours, _, width) => finalists_option(colours, placed(width)),
    table: () => ({
      caption: "Finalists",
      rows: list,
      columns: [
        { title: "Configuration", value: (one) => one.config, show: (one) => h("code", {}, one.config) },
        { title: "Role", value: (one) => one.role || "finalist" },
        { title: "Median", value: (one) => one.us, show: (one) => time(one.us), align: "right" },
        { title: "From", value: (one) => one.low, show: (one) => time(one.low), align: "right" },
        { title: "To", value: (one) => one.high, show: (one) => time(one.high), align: "right" },
      ],
    }),
  });
}

function facts(list: [string, Child][]): HTMLElement {
  return h("dl", { class: "facts" }, list.filter(([, value]) => value).map(([label, value]) => [h("dt", {}, label), h("dd", {}, value)]));
}

function details(row: Result): HTMLElement {
  const kernels = row.kernels.map((one) => [one.name, one.registers ? `${one.registers} registers` : "", one.lds_bytes ? `${bytes(one.lds_bytes)} shared memory` : "", one.spills ? `${one.spills} spilled` : "", one.matrix_instructions ? `${one.matrix_instructions} matrix instructions` : ""].filter(Boolean).join(", "));
  return h("div", { class: "card" }, facts([
    ["Configuration", h("code", {}, row.config)],
    ["Kernels", kernels.length ? kernels.map((one) => h("div", {}, one)) : ""],
    ["Check", row.verdict],
    ["Caches", row.cold ? "flushed before each sample" : "warm"],
    ["Clocks", row.clocks],
    ["Power", row.watts ? `${row.watts.toFixed(0)} W` : ""],
    ["Rounds dropped", row.dropped ? `${row.dropped}, because the device's speed drifted` : ""],
    ["Driver", row.driver],
    ["Compiler", row.compiler],
    ["GRETA", `${row.version}, ${date(row.utc)} UTC`],
    ["Stale", row.stale.length ? row.stale.map((one) => h("div", {}, tag("stale", "warn"), one)) : ""],
    ["Look-up regret", row.regret ? `${ratio(row.regret.ratio)} with the winner of ${row.regret.neighbour} (${row.regret.source})` : ""],
  ]));
}

function ties(row: Result): HTMLElement {
  if (!row.ties.length) return h("p", { class: "lead" }, "No other finalist is indistinguishable from the winner.");
  return h("div", { class: "card" }, table({
    caption: "Configurations that are not significantly different from the winner",
    rows: row.ties,
    sort: { column: 0, down: false },
    columns: [
      { title: "Time to the winner's", value: (one) => one.ratio, show: (one) => ratio(one.ratio), align: "right" },
      { title: "Configuration", value: (one) => one.config, show: (one) => h("code", {}, one.config) },
    ],
  }));
}

/** The result with most to see: one with samples of rounds, and of these the largest gain. */
function most_told(report: Report): number {
  const told = (one: Result) => (one.current ? 2 : 0) + (numbers(one.rounds_us).length ? 4 : 0) + (one.is_default ? 0 : 1);
  return report.results.reduce((best, one, i, all) => {
    const than = all[best]!;
    return told(one) > told(than) || (told(one) === told(than) && (one.speedup ?? 0) > (than.speedup ?? 0)) ? i : best;
  }, 0);
}

function show(report: Report, route: Route): Node[] {
  const title = h("h1", {}, "Certification");
  if (!report.results.length) return [title, empty("These files hold no certified results.", "greta-tune gemm --m 1024 --n 1024 --k 1024 --report report.html")];
  const index = report.results[route.id ?? -1] ? route.id! : most_told(report);
  const row = report.results[index]!;
  const choices = report.results.map((one, i) => ({ value: String(i), text: `${problem_name(one)} — ${device_name(report, one.device)}${one.current ? "" : `, ${date(one.utc)}`}` }));
  const others = report.results.map((one, i) => ({ one, i })).filter(({ one }) => one !== row && one.problem === row.problem && one.cold === row.cold);
  const charts = [rounds_chart(row), ratio_chart(row)].filter((one): one is HTMLElement => one !== null);
  const finals = finalists_chart(row, finalists(report, row));
  return [
    h("div", { class: "head" }, h("h1", {}, problem_name(row)), h("span", { "data-key": "result" }, select("Result", choices, String(index), (value) => (location.hash = link("certification", Number(value)))))),
    h("p", { class: "lead" }, device_name(report, row.device), ". ", row.search === null ? null : h("a", { href: link("search", row.search) }, "Its search")),
    h("p", { class: `verdict ${row.is_default ? "stood" : ""}` }, reason(row)),
    tiles([
      { label: "Winner", value: time(row.us), note: row.low_us ? `${time(row.low_us)} to ${time(row.high_us)}` : "" },
      { label: "Default", value: time(row.default_us), note: row.default_us ? rate(row, row.default_us) : "failed, or unknown" },
      { label: "Speed-up", value: row.is_default ? "1×" : ratio(row.speedup), note: row.is_default ? "the default stood" : `${ratio(row.speedup_low)} to ${ratio(row.speedup_high)}`, tone: row.is_default ? "" : "good" },
      { label: "Rate", value: rate(row, row.us), note: `${share(row.roofline)} of the roofline` },
      { label: "Ties", value: String(row.ties.length) },
    ]),
    section("Rounds", h("div", { class: charts.length > 1 ? "grid" : "" }, charts)),
    section("Finalists", finals),
    section("Ties", ties(row)),
    section("Details", details(row)),
    ...(others.length ? [section("The same problem elsewhere", h("div", { class: "card" }, table({
      caption: "Results of this problem on other devices and in earlier environments",
      rows: others,
      columns: [
        { title: "Device", value: ({ one }) => device_name(report, one.device), show: ({ one, i }) => h("a", { href: link("certification", i) }, device_name(report, one.device)) },
        { title: "Time", value: ({ one }) => one.us, show: ({ one }) => time(one.us), align: "right" },
        { title: "Over default", value: ({ one }) => one.speedup, show: ({ one }) => (one.is_default ? "1×" : ratio(one.speedup)), align: "right" },
        { title: "Driver", value: ({ one }) => one.driver },
        { title: "Certified", value: ({ one }) => one.utc, show: ({ one }) => date(one.utc) },
      ],
    })))] : []),
    ...(row.command ? [section("Tune it again", h("div", { class: "card" }, command(row.command), h("p", { class: "note", style: "margin-top:6px" }, where_commands_run)))] : []),
  ];
}

export const certification: View = { name: "certification", title: "Certification", count: (report) => report.results.length, show };
