// How a result was certified: the rounds of all finalists, and the ties.
import { axis, chart, no_chart, tip } from "../chart";
import { device_name, numbers, problem_name, type Report, type Result } from "../data";
import { command, empty, h, section, select, tag, tiles, where_commands_run, type Child } from "../dom";
import { bytes, date, rate, ratio, share, tick, time } from "../format";
import { link, type Route, type View } from "../shell";
import { median } from "../statistics";
import { table } from "../table";
import { finalists, finalists_chart } from "./finalists";
import { most_of, outside_text, rounds_chart } from "./rounds";

/** The ratios of the default's times to the winner's, round by round; none without pairs. */
function round_ratios(row: Result): number[] {
  const winner = numbers(row.rounds_us);
  const standard = numbers(row.default_rounds_us);
  return winner.length === standard.length && !row.is_default ? Array.from(winner, (us, i) => standard[i]! / us) : [];
}

/** Whether the speed-up is the median of several processes: then it is not that of the rounds alone. */
function of_processes(row: Result): boolean {
  const ratios = round_ratios(row);
  return ratios.length > 0 && row.speedup !== null && Math.abs(median(ratios) / row.speedup - 1) > 1e-3;
}

/** Why the winner won, or the default stood. */
function reason(row: Result): string {
  const level = `${Math.round((row.confidence ?? 0.95) * 100)} %`;
  const rounds = row.rounds ? ` in ${row.rounds} interleaved rounds` : "";
  const processes = of_processes(row) ? ", and in five further processes, whose ratios the interval contains" : "";
  if (row.is_default)
    return `The default stood: no candidate was significantly faster than it${rounds}, at ${level} confidence.`;
  if (row.speedup === null) return `The default failed, so nothing compares with the winner, which took ${time(row.us)}.`;
  const gain = `${ratio(row.speedup)} as fast as the default, between ${ratio(row.speedup_low)} and ${ratio(row.speedup_high)} at ${level} confidence`;
  return `The winner is ${gain}${rounds}${processes}: the whole interval lies above 1, so it replaced the default.`;
}

const ratio_title = "Default divided by winner, round by round";

function ratio_chart(row: Result): HTMLElement | null {
  const winner = numbers(row.rounds_us);
  const standard = numbers(row.default_rounds_us);
  if (!winner.length) return null;
  if (row.is_default) return no_chart(ratio_title, "The default won, so it has no other configuration's rounds beside its own; a result whose winner is another one has a ratio for each round.");
  if (winner.length !== standard.length) return no_chart(ratio_title, "The default failed, or its rounds are not in these files, so there are no pairs; a result whose default ran in every round has them.");
  const ratios = round_ratios(row);
  const processes = of_processes(row);
  const range = most_of(ratios);
  const pad = 0.08 * (range.max - range.min);
  const [min, max] = [Math.min(range.min, 1 - pad), Math.max(range.max, 1 + pad)];
  const outside = ratios.filter((one) => one < min || one > max).length;
  return chart({
    title: ratio_title,
    note: `Pairs of one round: what both share cancels out. The band is the interval of the speed-up${processes ? ", which also contains the ratios in five further processes; the certified speed-up is the median of all six" : ""}.${outside_text(outside)}`,
    summary: `Speed-up by round, with a median of ${ratio(median(ratios))}; certified is ${ratio(row.speedup)}.`,
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
          { yAxis: 1, name: "default", lineStyle: { color: colours.muted, type: "dashed" } },
          { yAxis: row.speedup, name: `certified ${ratio(row.speedup)}`, lineStyle: { color: colours.categories[2], type: "solid" } },
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
  const faster = row.ties.some((one) => one.ratio !== null && one.ratio < 1);
  const why = faster && "A tie has a lower median than the winner. Of ties, the first in the order of configurations wins, or the winner of an earlier session stays, so that repeated sessions agree.";
  return h("div", { class: "card" }, why ? h("p", { class: "note" }, why) : null, table({
    caption: "Configurations that are not significantly different from the winner",
    rows: row.ties,
    sort: { column: 0, down: false },
    columns: [
      { title: "Time / winner's", value: (one) => one.ratio, show: (one) => ratio(one.ratio), align: "right" },
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
  const list = finalists(report, row);
  const charts = [rounds_chart(row), ratio_chart(row)].filter((one): one is HTMLElement => one !== null);
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
    section("Finalists", finalists_chart(row, list)),
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
