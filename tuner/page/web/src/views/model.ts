// A model's passes: the time of each operation, and the gaps between launches.
import { axis, chart, legend, tip } from "../chart";
import type { Pass, Report } from "../data";
import { empty, h, section } from "../dom";
import { count, share, tick, time } from "../format";
import type { View } from "../shell";
import { table } from "../table";

const most_operations = 12;

function name_of(pass: Pass): string {
  return `${pass.file} · ${pass.number + 1}`;
}

function show(report: Report): Node[] {
  const title = [h("h1", {}, "Model"), h("p", { class: "lead" }, "The passes of a model, from the trace of greta-run: operations of all layers together, and gaps in which the device ran nothing.")];
  if (!report.passes.length) return [...title, empty("Give traces of greta-run beside the database, for example of the tuned model and of its defaults:", "greta-run --model Llama-3-8B/ --trace tuned.json && greta-report tuned.db tuned.json --out report.html")];
  const passes = report.passes.slice(0, 24);
  const sums = new Map<string, number>();
  for (const pass of passes) for (const one of pass.operations) sums.set(one.name, (sums.get(one.name) ?? 0) + one.us);
  const names = [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const shown = names.slice(0, most_operations);
  const us = (pass: Pass, name: string) => pass.operations.find((one) => one.name === name)?.us ?? 0;
  const series = [
    ...shown.map((name) => ({ name, data: passes.map((pass) => us(pass, name)) })),
    ...(names.length > shown.length ? [{ name: "other operations", data: passes.map((pass) => names.slice(most_operations).reduce((sum, name) => sum + us(pass, name), 0)) }] : []),
    { name: "gaps", data: passes.map((pass) => pass.gaps_us) },
  ];
  const drawing = chart({
    title: "Passes",
    note: "A bar is a pass: the device's time by operation, then the gaps between launches.",
    summary: passes.map((pass) => `${name_of(pass)}: ${time(pass.wall_us)}, ${count(pass.launches, "launch", "launches")}`).join(". "),
    height: 110 + 30 * passes.length,
    option: (colours, narrow) => ({
      legend: legend(colours, { type: "scroll" }),
      grid: { left: 8, right: 24, top: 36, bottom: 8, containLabel: true },
      tooltip: tip(colours, (at) => ({ title: at.name, rows: [[at.seriesName, time(at.value)], ["of the pass", share(at.value / passes[at.dataIndex]!.wall_us)]] })),
      xAxis: axis(colours, { type: "value", axisLabel: { color: colours.muted, formatter: (us: number) => tick(time(us)) } }),
      yAxis: axis(colours, { type: "category", inverse: true, data: passes.map(name_of), axisLabel: { color: colours.ink, width: narrow ? 90 : 220, overflow: "truncate" }, splitLine: { show: false } }),
      series: series.map((one, i) => ({
        name: one.name, type: "bar", stack: "t", barWidth: 18, data: one.data,
        itemStyle: one.name === "gaps" ? { color: "transparent", borderColor: colours.muted, borderType: "dashed" } : { color: colours.categories[i % 7], opacity: i < 7 ? 1 : 0.6 },
      })),
    }),
    table: () => ({
      caption: "Time by pass and operation",
      rows: passes.flatMap((pass) => pass.operations.map((one) => ({ pass, ...one }))),
      search: true,
      sort: { column: 3, down: true },
      columns: [
        { title: "Pass", value: (row) => name_of(row.pass) },
        { title: "Operation", value: (row) => row.name },
        { title: "Runs", value: (row) => row.runs, align: "right" },
        { title: "Time", value: (row) => row.us, show: (row) => time(row.us), align: "right" },
        { title: "Of the pass", value: (row) => row.us / row.pass.wall_us, show: (row) => share(row.us / row.pass.wall_us), align: "right" },
      ],
    }),
  });
  return [
    ...title,
    section("Time by operation", drawing),
    section("Passes", h("div", { class: "card" }, table({
      caption: "Passes of the traces",
      rows: report.passes,
      columns: [
        { title: "Pass", value: name_of },
        { title: "Time", value: (pass) => pass.wall_us, show: (pass) => time(pass.wall_us), align: "right" },
        { title: "Launches", value: (pass) => pass.launches, align: "right" },
        { title: "Gaps", value: (pass) => pass.gaps_us, show: (pass) => `${time(pass.gaps_us)} (${share(pass.gaps_us / pass.wall_us)})`, align: "right" },
      ],
    }))),
  ];
}

export const model: View = { name: "model", title: "Model", count: (report) => report.passes.length, show };
