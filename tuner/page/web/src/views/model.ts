// A model's passes: the time of each operation, and the gaps between launches.
import { axis, chart, legend, tip } from "../chart";
import { key_text, type Pass, type PassOperation, type Report } from "../data";
import { empty, h, section, select, tag } from "../dom";
import { change, count, ratio, share, tick, time } from "../format";
import { row_labels } from "../labels";
import { link, set, type Route, type View } from "../shell";
import { table } from "../table";

const most_operations = 12;
const most_passes = 24;
const tones: Record<string, string> = { exact: "good", default: "warn", "static prior": "warn" };

/** "decode step" or "prefill of 512 tokens"; traces of older versions do not say. */
function kind_of(pass: Pass): string {
  if (pass.tokens === null) return `pass ${pass.number + 1}`;
  return pass.tokens === 1 ? "decode step" : `prefill of ${count(pass.tokens, "token")}`;
}

/** The kind of a pass with its configurations, where the trace says so. */
function run_of(pass: Pass): string {
  return [kind_of(pass), pass.configurations].filter(Boolean).join(", ");
}

function name_of(pass: Pass): string {
  return `${run_of(pass)} · ${pass.file}`;
}

/** Passes of one kind beside each other, default configurations first, then in the order of the files. */
function in_order(report: Report): Pass[] {
  const kinds = [...new Set(report.passes.map(kind_of))];
  const rank = (pass: Pass) => 2 * kinds.indexOf(kind_of(pass)) + (pass.configurations === "default" ? 0 : 1);
  return [...report.passes].sort((a, b) => rank(a) - rank(b));
}

/** The pass with which another one is compared: of the same kind and device, with default configurations, or else the first. */
function rival_of(passes: Pass[], pass: Pass): Pass | null {
  const same = passes.filter((one) => kind_of(one) === kind_of(pass) && (one.device === pass.device || !one.device || !pass.device));
  const first = same.find((one) => one.configurations === "default") ?? same[0];
  return first && first.file !== pass.file ? first : null;
}

function drawing(passes: Pass[], all: number): HTMLElement {
  const sums = new Map<string, number>();
  for (const pass of passes) for (const one of pass.operations) sums.set(one.name, (sums.get(one.name) ?? 0) + one.us);
  const names = [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const shown = names.slice(0, most_operations);
  const us = (pass: Pass, name: string) => pass.operations.filter((one) => one.name === name).reduce((sum, one) => sum + one.us, 0);
  const series = [
    ...shown.map((name) => ({ name, data: passes.map((pass) => us(pass, name)) })),
    ...(names.length > shown.length ? [{ name: "other operations", data: passes.map((pass) => names.slice(most_operations).reduce((sum, name) => sum + us(pass, name), 0)) }] : []),
    { name: "gaps", data: passes.map((pass) => pass.gaps_us) },
  ];
  const gaps = series.length - 1;
  const labels = (width: number) => row_labels(passes.map((pass) => `${run_of(pass)} ${pass.file}`), width);
  return chart({
    title: "Passes",
    note: `A bar is a pass: the device's time by operation, with all layers together, then the gaps in which the device ran nothing.${passes.length < all ? ` The first ${passes.length} of ${all} passes; the table below has all.` : ""}`,
    summary: passes.map((pass) => `${name_of(pass)}: ${time(pass.wall_us)}, ${count(pass.launches, "launch", "launches")}`).join(". "),
    height: (width) => 60 + Math.max(34, labels(width).step) * passes.length,
    option: (colours, _, width) => ({
      legend: legend(colours, { type: "scroll", right: 0 }),
      grid: { left: 8, right: 28, top: 36, bottom: 8, containLabel: true },
      tooltip: tip(colours, (at) => ({ title: name_of(passes[at.dataIndex]!), rows: [[at.seriesName, time(at.value)], ["of the pass", share(at.value / passes[at.dataIndex]!.wall_us)]] })),
      xAxis: axis(colours, { type: "value", axisLabel: { color: colours.muted, hideOverlap: true, formatter: (value: number) => tick(time(value)) } }),
      yAxis: axis(colours, { type: "category", inverse: true, data: labels(width).names, axisLabel: { color: colours.ink, ...labels(width).axisLabel }, splitLine: { show: false } }),
      series: series.map((one, i) => ({
        name: one.name, type: "bar", stack: "t", barWidth: 18, data: one.data,
        itemStyle: i === gaps ? { color: colours.line, borderColor: colours.muted, borderType: "dashed" } : { color: colours.categories[i % 7], opacity: i < 7 ? 1 : 0.6, borderColor: colours.surface, borderWidth: 0.6 },
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
}

/** What runs in a pass, as greta-run --explain prints it. */
function explained(passes: Pass[], pass: Pass): HTMLElement {
  const other = rival_of(passes, pass);
  const before = (one: PassOperation) => other?.operations.find((it) => it.name === one.name && it.problem === one.problem)?.us
    ?? other?.operations.find((it) => it.name === one.name)?.us ?? null;
  const known = pass.operations.some((one) => one.origin);
  return h("div", { class: "card" },
    known ? null : h("p", { class: "lead", style: "margin:0 0 8px" }, "This trace does not say which configurations ran; traces of greta-run --trace of this version do."),
    table<PassOperation>({
      caption: `${name_of(pass)}: what runs, where its configuration comes from, and the gain over the default that was certified`,
      rows: pass.operations,
      search: true,
      sort: { column: 3, down: true },
      columns: [
        { title: "Operation", value: (one) => one.name },
        { title: "Runs", value: (one) => one.runs, align: "right" },
        { title: "Launches", value: (one) => one.launches, align: "right" },
        { title: "Time", value: (one) => one.us, show: (one) => time(one.us), align: "right" },
        { title: "Of the pass", value: (one) => one.us / pass.wall_us, show: (one) => share(one.us / pass.wall_us), align: "right" },
        ...(other ? [{ title: other.configurations === "default" ? "To the default" : `To ${other.file}`, value: (one: PassOperation) => (before(one) ? one.us / before(one)! : null), show: (one: PassOperation) => (before(one) ? change(one.us / before(one)!) : "–"), align: "right" as const }] : []),
        ...(known ? [
          { title: "Problem", value: (one: PassOperation) => key_text(one.problem) },
          { title: "Configuration", value: (one: PassOperation) => one.config, show: (one: PassOperation) => (one.config ? h("code", {}, one.config) : "–") },
          { title: "Origin", value: (one: PassOperation) => one.origin, show: (one: PassOperation) => (one.origin ? tag(one.origin, tones[one.origin] ?? "") : "–") },
          { title: "Gain", value: (one: PassOperation) => one.speedup, show: (one: PassOperation) => (one.speedup ? ratio(one.speedup) : "–"), align: "right" as const },
          { title: "Expected regret", value: (one: PassOperation) => one.regret, show: (one: PassOperation) => ((one.regret ?? 1) > 1 ? change(one.regret) : "–"), align: "right" as const },
        ] : []),
      ],
    }));
}

function show(report: Report, route: Route): Node[] {
  const title = [h("h1", {}, "Model"), h("p", { class: "lead" }, "The passes of a model, from traces of greta-run: the prefill and the decode step, tuned and with default configurations.")];
  if (!report.passes.length) {
    return [...title, empty("These files have no trace of a model. greta-run writes one; with --untuned it runs the default configurations, which the page sets beside the tuned ones:",
      "greta-run --model stories260K.bin --prompt \"Once upon a time\" --trace tuned.json && greta-run --model stories260K.bin --prompt \"Once upon a time\" --untuned --trace default.json && greta-report default.json tuned.json --out report.html")];
  }
  const passes = in_order(report);
  const wanted = route.settings.get("pass");
  // Without a choice: one that is beside another file's pass.
  const chosen = passes[Number(wanted ?? -1)] ?? passes.find((pass) => rival_of(passes, pass)) ?? passes[0]!;
  return [
    ...title,
    section("Time by operation", drawing(passes.slice(0, most_passes), passes.length)),
    section("Passes", h("div", { class: "card" }, table({
      caption: "Passes of the traces, with their change from the pass of the same kind with default configurations, or else of the first file",
      rows: passes,
      columns: [
        { title: "Pass", value: kind_of, show: (pass) => h("a", { href: link("model", null, { pass: String(passes.indexOf(pass)) }) }, kind_of(pass)) },
        ...(passes.some((pass) => pass.configurations) ? [{ title: "Configurations", value: (pass: Pass) => pass.configurations, show: (pass: Pass) => pass.configurations || "–" }] : []),
        ...(passes.some((pass) => pass.device) ? [{ title: "Device", value: (pass: Pass) => pass.device, show: (pass: Pass) => pass.device || "–" }] : []),
        { title: "File", value: (pass) => pass.file },
        { title: "Time", value: (pass) => pass.wall_us, show: (pass) => time(pass.wall_us), align: "right" },
        { title: "Change", value: (pass) => { const other = rival_of(passes, pass); return other ? pass.wall_us / other.wall_us : null; }, show: (pass) => { const other = rival_of(passes, pass); return other ? change(pass.wall_us / other.wall_us) : "–"; }, align: "right" },
        { title: "Launches", value: (pass) => pass.launches, align: "right" },
        { title: "Gaps", value: (pass) => pass.gaps_us, show: (pass) => `${time(pass.gaps_us)} (${share(pass.gaps_us / pass.wall_us)})`, align: "right" },
      ],
    }))),
    section("What runs",
      h("div", { class: "controls", "data-key": "pass" }, select("Pass", passes.map((pass, i) => ({ value: String(i), text: name_of(pass) })), String(passes.indexOf(chosen)), (value) => set({ pass: value }))),
      explained(passes, chosen)),
  ];
}

export const model: View = { name: "model", title: "Model", count: (report) => report.passes.length, show };
