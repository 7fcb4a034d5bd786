// Baselines of a device over time: what became slower.
import { axis, chart, intervals, ratio_axis, tip } from "../chart";
import { numbers, type BaselineGroup, type Change, type Report } from "../data";
import { empty, h, section, select, tag, tiles } from "../dom";
import { change, date, ratio, tick, time } from "../format";
import { link, set, type Route, type View } from "../shell";
import { table } from "../table";

const most_rows = 60;
const worse = (one: Change) => one.finding === "slower" || one.finding === "fails";

function forest(group: BaselineGroup, comparison: BaselineGroup["comparisons"][number]): HTMLElement {
  const timed = comparison.changes.filter((one) => (one.ratio ?? 0) > 0);
  const rank = (one: Change) => ({ slower: 0, faster: 1, same: 3 })[one.finding] ?? 2;
  const rows = [...timed].sort((a, b) => rank(a) - rank(b) || Math.abs(Math.log(b.ratio!)) - Math.abs(Math.log(a.ratio!))).slice(0, most_rows);
  const within = (one: number) => Math.log(Math.min(10, Math.max(0.1, one)));
  const ends = rows.map((one) => [within(one.low ?? one.ratio!), within(one.high ?? one.ratio!)] as const);
  const tones = { slower: 1, fails: 1, faster: 2 } as Record<string, number>;
  return chart({
    title: "Changes",
    note: `New time divided by the old one, with intervals that hold at ${(comparison.confidence * 100).toFixed(2)} % each (95 % for all together). The band is the margin of ${(comparison.margin * 100).toFixed(0)} % that counts as no change. ${rows.length < timed.length ? `The ${rows.length} most significant of ${timed.length}; the table has all.` : ""}${timed.some((row) => row.processor) ? " On this CPU device, the ratio is of processor times, which other programs disturb less than the times below." : ""}`,
    summary: `${comparison.regressions} regressions among ${timed.length} benchmarks.`,
    height: 70 + 17 * rows.length,
    option: (colours, narrow) => ({
      grid: { left: 8, right: 16, top: 8, bottom: 34, containLabel: true },
      tooltip: tip(colours, ({ data }) => {
        const row = rows[data.value?.[1] ?? data[1]];
        return row ? { title: row.name, rows: [["finding", row.finding], ["change", change(row.ratio)], ["interval", `${ratio(row.low)} to ${ratio(row.high)}`]] } : null;
      }),
      xAxis: ratio_axis(colours, ends.flat(), { name: "new time / old time" }),
      yAxis: axis(colours, { type: "category", inverse: true, data: rows.map((one) => one.name), axisLabel: { color: colours.ink, fontSize: 10, interval: 0, width: narrow ? 120 : 380, overflow: "truncate" }, splitLine: { show: false } }),
      series: [
        { ...intervals("interval", rows.map((one, i) => [i, ...ends[i]!, worse(one) ? 1 : 0]), colours.muted, false, { other: colours.bad, clip: true }) },
        {
          type: "scatter", z: 4, symbolSize: 8,
          data: rows.map((one, i) => ({ value: [within(one.ratio!), i], symbol: worse(one) ? "triangle" : one.finding === "faster" ? "diamond" : "circle", itemStyle: { color: one.finding in tones ? colours.categories[tones[one.finding]!] : colours.muted } })),
          markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: colours.muted }, data: [{ xAxis: 0 }] },
          markArea: { silent: true, itemStyle: { color: colours.muted, opacity: 0.12 }, data: [[{ xAxis: -Math.log(1 + comparison.margin) }, { xAxis: Math.log(1 + comparison.margin) }]] },
        },
      ],
    }),
    table: () => ({
      caption: `Changes from ${group.files[comparison.from]!.name} to ${group.files[comparison.to]!.name}`,
      rows: comparison.changes,
      search: true,
      columns: [
        { title: "Benchmark", value: (one) => one.name },
        { title: "Finding", value: (one) => one.finding, show: (one) => (worse(one) ? tag(one.finding, "bad") : one.finding === "faster" ? tag(one.finding, "good") : one.finding) },
        { title: "Change", value: (one) => one.ratio, show: (one) => change(one.ratio), align: "right" },
        { title: "From", value: (one) => one.low, show: (one) => ratio(one.low), align: "right" },
        { title: "To", value: (one) => one.high, show: (one) => ratio(one.high), align: "right" },
      ],
    }),
  });
}

function timeline(group: BaselineGroup, chosen: string): HTMLElement {
  const row = group.rows.find((one) => one.name === chosen) ?? group.rows.find((one) => Array.from(numbers(one.us)).every((us) => us > 0)) ?? group.rows[0]!;
  const us = numbers(row.us);
  const low = numbers(row.low_us);
  const high = numbers(row.high_us);
  const places = group.files.map((_, i) => i).filter((i) => us[i]! > 0);
  return chart({
    title: "One benchmark over time",
    summary: `${row.name}: ${places.map((i) => `${date(group.files[i]!.utc)} ${time(us[i])}`).join(", ")}.`,
    height: 260,
    controls: h("span", { "data-key": "bench" }, select("Benchmark", group.rows.map((one) => ({ value: one.name, text: one.name })), row.name, (value) => set({ bench: value }))),
    option: (colours) => ({
      grid: { left: 8, right: 24, top: 14, bottom: 8, containLabel: true },
      tooltip: tip(colours, ({ data }) => {
        const file = group.files[data[0]]!;
        return { title: file.name, rows: [["time", `${time(us[data[0]])}, ${time(low[data[0]])} to ${time(high[data[0]])}`], ["date", date(file.utc)], ["driver", file.driver], ["GRETA", file.version]] };
      }),
      xAxis: axis(colours, { type: "category", data: group.files.map((file) => `${file.name}, ${date(file.utc)}`), splitLine: { show: false }, axisLabel: { color: colours.muted, fontSize: 10.5, hideOverlap: true } }),
      yAxis: axis(colours, { type: "value", scale: true, axisLabel: { color: colours.muted, formatter: (us: number) => tick(time(us)) } }),
      series: [
        { type: "line", symbolSize: 8, data: places.map((i) => [i, us[i]]), lineStyle: { color: colours.categories[0] }, itemStyle: { color: colours.categories[0] } },
        intervals("interval", places.map((i) => [i, low[i]!, high[i]!]), colours.categories[0]!, true),
      ],
    }),
    table: () => ({
      caption: row.name,
      rows: group.files.map((file, i) => ({ file, i })),
      columns: [
        { title: "File", value: ({ file }) => file.name },
        { title: "Date", value: ({ file }) => date(file.utc) },
        { title: "Time", value: ({ i }) => us[i]!, show: ({ i }) => time(us[i]), align: "right" },
        { title: "Status", value: ({ i }) => row.status[i] || "not in it" },
        { title: "Driver", value: ({ file }) => file.driver, wide: true },
        { title: "GRETA", value: ({ file }) => file.version, wide: true },
      ],
    }),
  });
}

function show(report: Report, route: Route): Node[] {
  const title = h("h1", {}, "Baselines over time");
  if (!report.baselines.length) return [title, empty("Give the CSV files of greta-bench beside the database; files of one device with the same benchmarks become a series:", "greta-report tuned.db before.csv after.csv --out report.html")];
  const index = report.baselines[route.id ?? -1] ? route.id! : 0;
  const group = report.baselines[index]!;
  const number = Number(route.settings.get("from") ?? group.comparisons.length - 1);
  const comparison = group.comparisons[number];
  const files = (one: BaselineGroup) => one.files.map((file) => file.name).join(", ");
  const names = (one: BaselineGroup["comparisons"][number]) => `${group.files[one.from]!.name} → ${group.files[one.to]!.name}`;
  const counts = (finding: string) => String(comparison?.changes.filter((one) => one.finding === finding).length ?? 0);
  return [
    h("div", { class: "head" }, title, h("div", { class: "controls", style: "margin:0" },
      h("span", { "data-key": "series" }, select("Series", report.baselines.map((one, i) => ({ value: String(i), text: `${one.device}: ${files(one)}` })), String(index), (value) => (location.hash = link("baselines", Number(value))))),
      comparison ? h("span", { "data-key": "from" }, select("Compare", group.comparisons.map((one, i) => ({ value: String(i), text: names(one) })), String(number), (value) => set({ from: value }))) : null)),
    h("p", { class: "lead" }, group.device),
    ...(comparison ? [
      tiles([
        { label: "Regressions", value: String(comparison.regressions), tone: comparison.regressions ? "bad" : "good" },
        { label: "Faster", value: counts("faster") },
        { label: "The same", value: counts("same") },
        { label: "Inconclusive", value: counts("inconclusive") },
        { label: "Fail", value: counts("fails") },
      ]),
      section("From one to the other", forest(group, comparison)),
    ] : [empty("This device has one file of these benchmarks. A second one shows what changed.")]),
    section("Over time", timeline(group, route.settings.get("bench") ?? "")),
    section("Files", h("div", { class: "card" }, table({
      caption: "The files of the series, in the order of their dates",
      rows: group.files,
      columns: [
        { title: "File", value: (file) => file.name },
        { title: "Date", value: (file) => file.utc, show: (file) => date(file.utc) },
        { title: "Driver", value: (file) => file.driver },
        { title: "Compiler", value: (file) => file.compiler, wide: true },
        { title: "GRETA", value: (file) => file.version },
      ],
    }))),
  ];
}

export const baselines: View = { name: "baselines", title: "Baselines", count: (report) => report.baselines.length, show };
