// What a look-up answers on each device, what that costs, and where tuning next would pay.
import { axis, chart, jitter, legend, no_chart, ratio_axis, tip } from "../chart";
import { api_name, device_name, key_text, problem_name, type Report } from "../data";
import { command, copy_button, empty, h, section, tag, where_commands_run, type Child } from "../dom";
import { change, count, share, time } from "../format";
import { row_labels } from "../labels";
import { link, type View } from "../shell";
import { table } from "../table";

const origins = ["exact", "nearest shape", "same architecture", "static prior", "default", "none"];
const tones: Record<string, string> = { exact: "good", "nearest shape": "", "same architecture": "", "static prior": "warn", default: "warn", none: "bad" };

function stacked(report: Report): HTMLElement {
  const devices = report.lookups.map((one) => device_name(report, one.device));
  const labels = (width: number) => row_labels(report.lookups.map((one) => `${report.devices[one.device]!.name} ${api_name(report.devices[one.device]!.backend)}`), width);
  const counts = origins.map((origin) => report.lookups.map((one) => one.answers.filter((answer) => answer.origin === origin).length));
  const used = origins.map((origin, i) => ({ origin, i })).filter(({ i }) => counts[i]!.some((value) => value > 0));
  return chart({
    title: "Where answers come from",
    note: "For every problem of these databases, what a look-up in them answers on each device.",
    summary: report.lookups.map((_, at) => `${devices[at]}: ${used.map(({ origin, i }) => `${origin} ${counts[i]![at]}`).join(", ")}`).join(". "),
    height: (width) => 70 + Math.max(38, labels(width).step) * devices.length,
    option: (colours, narrow, width) => ({
      legend: legend(colours),
      grid: { left: 8, right: 16, top: narrow ? 60 : 32, bottom: 4, containLabel: true },
      tooltip: tip(colours, (at) => ({ title: devices[at.dataIndex]!, rows: [[at.seriesName, count(at.value, "problem")]] })),
      xAxis: axis(colours, { type: "value", minInterval: 1 }),
      yAxis: axis(colours, { type: "category", data: labels(width).names, inverse: true, axisLabel: { color: colours.ink, ...labels(width).axisLabel }, splitLine: { show: false } }),
      series: used.map(({ origin, i }) => ({ name: origin, type: "bar", stack: "o", barWidth: 18, data: counts[i], itemStyle: { color: [colours.categories[0], colours.categories[5], colours.categories[2], colours.categories[4], colours.categories[1], colours.muted][i] } })),
    }),
    table: () => ({
      caption: "Answers by origin",
      rows: report.lookups.map((_, at) => at),
      columns: [
        { title: "Device", value: (at: number) => devices[at]! },
        ...used.map(({ origin, i }) => ({ title: origin, value: (at: number) => counts[i]![at]!, align: "right" as const })),
      ],
    }),
  });
}

const matrix_devices = 6;
type Answer = Report["lookups"][number]["answers"][number];

function answer_cell(answer: Answer | undefined): Child {
  if (!answer) return "–";
  return [tag(answer.origin, tones[answer.origin] ?? ""), answer.origin !== "exact" && answer.regret !== null ? h("span", { class: "muted nowrap" }, change(answer.regret), " ") : null, answer.command ? copy_button(answer.command) : null];
}

/** Shapes by devices: the origin of each answer, and the regret that is expected of it. */
function shapes(report: Report): HTMLElement {
  const rank = (answer: Answer | undefined) => (answer ? origins.indexOf(answer.origin) * 100 + (answer.regret ?? 1) : -1);
  if (report.lookups.length <= matrix_devices) {
    const rows = new Map<string, (Answer | undefined)[]>();
    report.lookups.forEach((one, at) => one.answers.forEach((answer) => {
      const row = rows.get(answer.problem) ?? [];
      row[at] = answer;
      rows.set(answer.problem, row);
    }));
    const list = [...rows].map(([problem, answers]) => ({ problem, answers, worst: Math.max(...report.lookups.map((_, at) => rank(answers[at]))) }));
    list.sort((a, b) => b.worst - a.worst);
    return table({
      caption: "Problems by device, the least certain answers first: the origin of the answer, the regret that is expected of it, and a command that tunes what is not exact",
      rows: list,
      search: true,
      columns: [
        { title: "Problem", value: (row) => key_text(row.problem) },
        ...report.lookups.map((one, at) => ({
          title: device_name(report, one.device), value: (row: (typeof list)[number]) => row.answers[at] ? `${origins.indexOf(row.answers[at]!.origin)} ${row.answers[at]!.origin} ${row.answers[at]!.regret ?? ""}` : null,
          show: (row: (typeof list)[number]) => answer_cell(row.answers[at]),
        })),
      ],
    });
  }
  const answers = report.lookups.flatMap((one) => one.answers.map((answer) => ({ ...answer, device: one.device })));
  return table({
    caption: "Problems and devices, the least certain answers first; a command tunes what is not exact",
    rows: answers.sort((a, b) => rank(b) - rank(a)),
    search: true,
    columns: [
      { title: "Problem", value: (row) => key_text(row.problem) },
      { title: "Device", value: (row) => device_name(report, row.device) },
      { title: "Origin", value: (row) => row.origin, show: (row) => tag(row.origin, tones[row.origin] ?? "") },
      { title: "Expected regret", value: (row) => row.regret, show: (row) => (row.origin === "exact" ? "–" : change(row.regret)), align: "right" },
      { title: "Command", value: (row) => row.command ?? "", show: (row) => (row.command ? copy_button(row.command) : "–") },
    ],
  });
}

function regrets(report: Report): HTMLElement {
  const rows = report.results.filter((row) => row.current && (row.regret?.ratio ?? 0) > 0);
  if (!rows.length) return no_chart("Regret of the nearest shape", "No result has a measured regret, which needs the winner of another shape of the same operation; a tune of several shapes, or greta-db regret, determines it.");
  const operations = [...new Set(rows.map((row) => row.op))].sort();
  const within = rows.filter((row) => row.regret!.ratio! <= 1.05).length;
  return chart({
    title: "Regret of the nearest shape",
    note: `What a look-up would lose if the problem were unknown: the time with the nearest other shape's winner, divided by that of its own. ${share(within / rows.length)} of ${rows.length} lose 5 % or less.`,
    summary: `Regret of ${rows.length} problems by operation.`,
    height: 60 + 26 * Math.max(3, operations.length),
    option: (colours, narrow) => ({
      grid: { left: 8, right: 20, top: 6, bottom: 34, containLabel: true },
      tooltip: tip(colours, ({ data }) => {
        const row = rows[data[2]]!;
        return { title: problem_name(row), rows: [["regret", change(row.regret!.ratio)], ["nearest shape", row.regret!.neighbour], ["known from", row.regret!.source], ["device", device_name(report, row.device)]] };
      }),
      xAxis: ratio_axis(colours, rows.map((row) => Math.log(row.regret!.ratio!)), { name: narrow ? "neighbour's winner / own winner" : "time of the neighbour's winner / time of the own" }),
      yAxis: [
        axis(colours, { type: "category", data: operations, inverse: true, axisLabel: { color: colours.ink, interval: 0 }, splitLine: { show: false } }),
        { type: "value", show: false, min: -0.5, max: operations.length - 0.5, inverse: true },
      ],
      series: [
        { type: "scatter", yAxisIndex: 1, symbolSize: 7, itemStyle: { color: colours.categories[0], opacity: 0.6 }, data: rows.map((row, i) => [Math.log(row.regret!.ratio!), operations.indexOf(row.op) + jitter(i) * 0.5, i]) },
        { type: "bar", data: operations.map(() => null), silent: true },
      ],
    }),
    table: () => ({
      caption: "Regret of the nearest shape",
      rows,
      search: true,
      sort: { column: 1, down: true },
      columns: [
        { title: "Problem", value: (row) => problem_name(row) },
        { title: "Regret", value: (row) => row.regret!.ratio, show: (row) => change(row.regret!.ratio), align: "right" },
        { title: "Nearest shape", value: (row) => row.regret!.neighbour },
        { title: "Known from", value: (row) => row.regret!.source },
      ],
    }),
  });
}

function show(report: Report): Node[] {
  const title = [h("h1", {}, "Coverage and look-up"), h("p", { class: "lead" }, "What an application gets for each shape, and where the next tune pays most.")];
  if (!report.lookups.length) return [...title, empty("Coverage needs a database with results.", "greta-tune gemm --m 1024 --n 1024 --k 1024 --report report.html")];
  return [
    ...title,
    section("Answers", h("div", { class: "grid" }, stacked(report), regrets(report))),
    ...(report.next.length ? [section("Where to tune next", h("div", { class: "card" }, h("p", { class: "lead", style: "margin:0 0 10px" }, where_commands_run), h("ul", { class: "next" }, report.next.slice(0, 8).map((one) =>
      h("li", {}, h("p", {}, h("a", { href: link("certification", one.result) }, key_text(one.problem)), " ", one.stale ? tag("stale", "warn") : null, h("span", { class: "muted" }, `${device_name(report, one.device)}: ${one.why}`)), command(one.command))))))] : [section("Where to tune next", h("p", { class: "lead" }, "No result has anything to gain: none is stale, and none that has a share of the roofline is below it."))]),
    section("All shapes", h("div", { class: "card" }, shapes(report))),
    ...(report.next.length > 8 ? [section("More to gain", h("div", { class: "card" }, table({
      caption: "Problems by the most that a launch could gain",
      rows: report.next.slice(8),
      first: 10,
      columns: [
        { title: "Problem", value: (row) => key_text(row.problem), show: (row) => h("a", { href: link("certification", row.result) }, key_text(row.problem)) },
        { title: "Device", value: (row) => device_name(report, row.device) },
        { title: "At most", value: (row) => row.gain_us, show: (row) => time(row.gain_us), align: "right" },
        { title: "Why", value: (row) => row.why },
        { title: "Command", value: (row) => row.command, show: (row) => copy_button(row.command) },
      ],
    })))] : []),
  ];
}

export const coverage: View = { name: "coverage", title: "Coverage", count: (report) => report.lookups.reduce((sum, one) => sum + one.answers.length, 0), show };
