// Baselines of a device over time: what became slower.
import { axis, chart, intervals, most_narrow, no_chart, ratio_axis, tip, type Option } from "../chart";
import { numbers, type BaselineGroup, type Change, type Report } from "../data";
import { empty, h, section, select, tag, tiles } from "../dom";
import { change, count, date, digits_between, ratio, tick, time } from "../format";
import { labelled_rows, line_count, wrap, type Rows } from "../labels";
import { link, set, type Route, type View } from "../shell";
import { table } from "../table";
import type { Theme } from "../theme";

const most_rows = 22;  // on paper, with labels of two lines and what is above them
const worse = (one: Change) => one.finding === "slower" || one.finding === "fails";

function forest(group: BaselineGroup, comparison: BaselineGroup["comparisons"][number]): HTMLElement {
  const timed = comparison.changes.filter((one) => (one.ratio ?? 0) > 0);
  const size = (one: Change) => Math.abs(Math.log(one.ratio!));
  const of = (wanted: (finding: string) => boolean) => timed.filter((one) => wanted(one.finding)).sort((a, b) => size(b) - size(a));
  const slower = of((finding) => finding === "slower");
  const faster = of((finding) => finding === "faster");
  const others = [...of((finding) => !["slower", "faster", "same"].includes(finding)), ...of((finding) => finding === "same")];
  const most_slower = Math.max(most_rows - faster.length, (2 * most_rows) / 3);  // some of the faster ones, too
  const changed = [...slower.slice(0, most_slower), ...faster].slice(0, most_rows);
  const rows = [...changed, ...others].slice(0, most_rows);
  const within = (one: number) => Math.log(Math.min(10, Math.max(0.1, one)));
  const ends = rows.map((one) => [within(one.low ?? one.ratio!), within(one.high ?? one.ratio!)] as const);
  const tones = { slower: 1, fails: 1, faster: 2 } as Record<string, number>;
  const by_processor = timed.filter((row) => row.processor).length;
  const names = rows.map((one) => (one.processor && by_processor < timed.length ? `${one.name} (processor time)` : one.name));
  const placed = (width: number) => labelled_rows(names, width, width < most_narrow);
  const forest_option = (colours: Theme, { at, above, axis: lying }: Rows): Option => ({
    grid: { left: 8, right: 16, top: 8, bottom: 34, containLabel: !above },
    tooltip: tip(colours, ({ dataIndex }) => {
      const row = rows[dataIndex];
      return row ? { title: row.name, rows: [["finding", row.finding], ["of", row.processor ? "processor times" : "times"], ["change", change(row.ratio)], ["interval", `${ratio(row.low)} to ${ratio(row.high)}`]] } : null;
    }),
    xAxis: ratio_axis(colours, ends.flat(), { name: "new time / old time", axisLine: { onZero: false, lineStyle: { color: colours.line } } }),
    yAxis: axis(colours, { ...lying, axisLabel: { color: colours.ink, ...lying["axisLabel"] } }),
    series: [
      { ...intervals("interval", rows.map((one, i) => [at[i]!, ...ends[i]!, worse(one) ? 1 : 0]), colours.muted, false, { other: colours.bad, clip: true }) },
      {
        type: "scatter", z: 4, symbolSize: 8,
        data: rows.map((one, i) => ({ value: [within(one.ratio!), at[i]!], symbol: worse(one) ? "triangle" : one.finding === "faster" ? "diamond" : "circle", itemStyle: { color: one.finding in tones ? colours.categories[tones[one.finding]!] : colours.muted } })),
        markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: colours.muted }, data: [{ xAxis: 0 }] },
        markArea: { silent: true, itemStyle: { color: colours.muted, opacity: 0.12 }, data: [[{ xAxis: -Math.log(1 + comparison.margin) }, { xAxis: Math.log(1 + comparison.margin) }]] },
      },
    ],
  });
  return chart({
    title: "Changes",
    missing: !timed.length && "No benchmark of these two files has a time in both, so there are no ratios; the table of files below says what is in each, and a newer file of the same preset adds some.",
    note: `New time divided by the old one, with intervals that hold at ${(comparison.confidence * 100).toFixed(2)} % each (95 % for all together). The band is the margin of ${(comparison.margin * 100).toFixed(0)} % that counts as no change. ${rows.length < timed.length ? `Shown are ${rows.length} of ${timed.length}: slower ones, then faster ones, with the largest changes first; the table has all.` : ""}${by_processor ? ` ${by_processor === timed.length ? "All ratios are" : `${count(by_processor, "ratio")} of ${timed.length} (with “processor time” beside the name) ${by_processor === 1 ? "is" : "are"}`} of processor times, which other programs disturb less than the times below: this device computes on the CPU.` : ""}`,
    summary: `${comparison.regressions} regressions among ${timed.length} benchmarks.`,
    height: (width) => 42 + placed(width).height,
    option: (colours, _, width) => forest_option(colours, placed(width)),
    table: () => ({
      caption: `Changes from ${group.files[comparison.from]!.name} to ${group.files[comparison.to]!.name}`,
      rows: comparison.changes,
      search: true,
      columns: [
        { title: "Benchmark", value: (one) => one.name },
        { title: "Finding", value: (one) => one.finding, show: (one) => (worse(one) ? tag(one.finding, "bad") : one.finding === "faster" ? tag(one.finding, "good") : one.finding) },
        ...(by_processor ? [{ title: "Of", value: (one: Change) => (one.processor ? "processor times" : "times") }] : []),
        { title: "Change", value: (one) => one.ratio, show: (one) => change(one.ratio), align: "right" },
        { title: "From", value: (one) => one.low, show: (one) => ratio(one.low), align: "right" },
        { title: "To", value: (one) => one.high, show: (one) => ratio(one.high), align: "right" },
      ],
    }),
  });
}

/** "6544f00c7990-dirty" as "6544f00c-dirty"; of several, the first. */
function short(revision: string): string {
  const [first = "", ...more] = revision.split(", ");
  const [commit = "", ...rest] = first.split("-");
  return [commit.slice(0, 8), ...rest].join("-") + (more.length ? " …" : "");
}

/** The driver without what follows its first comma, such as the version of CUDA. */
function driver_words(driver: string): string {
  return driver.split(", ")[0] ?? "";
}

function timeline(group: BaselineGroup, chosen: string): HTMLElement {
  const row = group.rows.find((one) => one.name === chosen) ?? group.rows.find((one) => Array.from(numbers(one.us)).every((us) => us > 0)) ?? group.rows[0]!;
  const us = numbers(row.us);
  const low = numbers(row.low_us);
  const high = numbers(row.high_us);
  const places = group.files.map((_, i) => i).filter((i) => us[i]! > 0);
  // On narrow screens, the table of files below has the commit and the driver.
  const labels = (width: number) => group.files.map((file) => [file.name, date(file.utc), ...(width < most_narrow ? [] : [file.revision ? `commit ${short(file.revision)}` : "", driver_words(file.driver)])].filter(Boolean)
    .map((text) => wrap(text, Math.max(76, (0.8 * width) / group.files.length))).join("\n"));
  const precision = digits_between(places.reduce((least, i) => Math.min(least, low[i]!), Infinity), places.reduce((most, i) => Math.max(most, high[i]!), 0));
  const most_labels = (width: number) => Math.max(1, Math.floor((0.8 * width) / 76));
  const choose = h("span", { "data-key": "bench" }, select("Benchmark", group.rows.map((one) => ({ value: one.name, text: one.name })), row.name, (value) => set({ bench: value })));
  if (!places.length) {
    const none = no_chart("One benchmark over time", `${row.name} has no time in any of these files: it failed, or its preset times nothing. Another benchmark, or a newer file, has one.`);
    none.append(h("div", { class: "controls", style: "margin-top:10px" }, choose));
    return none;
  }
  return chart({
    title: "One benchmark over time",
    note: group.files.some((file) => file.revision) ? null : "These files contain no commit; greta-bench --export writes it since the column revision was added.",
    summary: `${row.name}: ${places.map((i) => `${date(group.files[i]!.utc)} ${time(us[i])}`).join(", ")}.`,
    height: (width) => 220 + 14 * labels(width).reduce((most, one) => Math.max(most, line_count(one)), 1),
    controls: choose,
    option: (colours, _, width) => ({
      grid: { left: 8, right: 24, top: 14, bottom: 8, containLabel: true },
      tooltip: tip(colours, ({ data }) => {
        const file = group.files[data[0]]!;
        return { title: file.name, rows: [["time", `${time(us[data[0]])}, ${time(low[data[0]])} to ${time(high[data[0]])}`], ["date", date(file.utc)], ["driver", file.driver], ["compiler", file.compiler], ["GRETA", file.version], ["commit", file.revision || "not in the file"]] };
      }),
      xAxis: axis(colours, { type: "category", data: labels(width), splitLine: { show: false }, axisLabel: { color: colours.muted, fontSize: 10.5, lineHeight: 14, interval: group.files.length > most_labels(width) ? "auto" : 0 } }),
      yAxis: axis(colours, { type: "value", scale: true, axisLabel: { color: colours.muted, formatter: (us: number) => tick(time(us, precision)) } }),
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
        { title: "Driver", value: ({ file }) => file.driver },
        { title: "Commit", value: ({ file }) => file.revision, show: ({ file }) => file.revision || "–" },
        { title: "GRETA", value: ({ file }) => file.version },
      ],
    }),
  });
}

/** Says what differs between two files beside the times. */
function what_changed(from: BaselineGroup["files"][number], to: BaselineGroup["files"][number]): string {
  const changes = ([["commit", short(from.revision), short(to.revision)], ["driver", from.driver, to.driver], ["compiler", from.compiler, to.compiler], ["GRETA", from.version, to.version]] as const)
    .filter(([, a, b]) => a !== b)
    .map(([what, a, b]) => `${what} ${a || "unknown"} → ${b || "unknown"}`);
  return changes.length ? `. Changed: ${changes.join("; ")}.` : ". Driver, compiler and version are the same.";
}

/** Names benchmarks that one of two files lacks, which have no ratio. */
function only_in(file: string, names: string[]): HTMLElement | null {
  if (!names.length) return null;
  return h("details", { class: "only" }, h("summary", {}, `${count(names.length, "benchmark")} only in ${file}`), h("ul", {}, names.map((name) => h("li", {}, name))));
}

function show(report: Report, route: Route): Node[] {
  const title = h("h1", {}, "Baselines over time");
  if (!report.baselines.length) return [title, empty("Give the CSV files of greta-bench beside the database; files of one device with the same benchmarks become a series:", "greta-report tuned.db before.csv after.csv --out report.html")];
  const index = report.baselines[route.id ?? -1] ? route.id! : 0;
  const group = report.baselines[index]!;
  const number = Number(route.settings.get("from") ?? group.comparisons.findIndex((one) => one.to === group.files.length - 1));
  const comparison = group.comparisons[number];
  const files = (one: BaselineGroup) => one.files.map((file) => file.name).join(", ");
  const names = (one: BaselineGroup["comparisons"][number]) => `${group.files[one.from]!.name} → ${group.files[one.to]!.name}`;
  const counts = (finding: string) => String(comparison?.changes.filter((one) => one.finding === finding).length ?? 0);
  return [
    h("div", { class: "head" }, title, h("div", { class: "controls", style: "margin:0" },
      h("span", { "data-key": "series" }, select("Series", report.baselines.map((one, i) => ({ value: String(i), text: `${[one.device, one.preset].filter(Boolean).join(", ")}: ${files(one)}` })), String(index), (value) => (location.hash = link("baselines", Number(value))))),
      comparison ? h("span", { "data-key": "from" }, select("Compare", group.comparisons.map((one, i) => ({ value: String(i), text: names(one) })), String(number), (value) => set({ from: value }))) : null)),
    h("p", { class: "lead" }, group.device, group.preset ? `, preset ${group.preset}` : "", comparison ? `: ${names(comparison)}${what_changed(group.files[comparison.from]!, group.files[comparison.to]!)}` : ""),
    ...(comparison ? [
      tiles([
        { label: "Regressions", value: String(comparison.regressions), tone: comparison.regressions ? "bad" : "good" },
        { label: "Faster", value: counts("faster") },
        { label: "The same", value: counts("same") },
        { label: "Inconclusive", value: counts("inconclusive") },
        { label: "Fail", value: counts("fails") },
      ]),
      section("From one to the other", forest(group, comparison),
        only_in(group.files[comparison.from]!.name, comparison.only_from), only_in(group.files[comparison.to]!.name, comparison.only_to)),
    ] : [empty("This device has one file of these benchmarks. A second one shows what changed.")]),
    section("Over time", timeline(group, route.settings.get("bench") ?? "")),
    section("Files", h("div", { class: "card" }, table({
      caption: "The files of the series, in the order of their dates",
      rows: group.files,
      columns: [
        { title: "File", value: (file) => file.name },
        { title: "Date", value: (file) => file.utc, show: (file) => date(file.utc) },
        { title: "Driver", value: (file) => file.driver },
        { title: "Commit", value: (file) => file.revision, show: (file) => file.revision || "–" },
        { title: "Compiler", value: (file) => file.compiler },
        { title: "GRETA", value: (file) => file.version },
      ],
    }))),
  ];
}

export const baselines: View = { name: "baselines", title: "Baselines", count: (report) => report.baselines.length, show };
