// Winners and defaults below the measured ceilings of a device.
import { axis, chart, legend, log_range, tip } from "../chart";
import { device_name, problem_name, type Device, type Report, type Result } from "../data";
import { empty, h, section, select, tiles } from "../dom";
import { count, flop_rate, gbps, gflops, ratio, share, tick, time } from "../format";
import { link, set, type Route, type View } from "../shell";
import { table } from "../table";
import { symbols } from "../theme";

interface Ceiling {
  name: string;
  gflops: number;
}

function ceiling_name(kind: string): string {
  const [unit, type] = kind.split("_");
  return unit === "fma" ? `${type} FMA` : `${type} matrix cores`;
}

function compute_ceilings(device: Device): Ceiling[] {
  return Object.entries(device.ceilings)
    .filter(([kind, value]) => kind.endsWith("_gflops") && (value ?? 0) > 0)
    .map(([kind, value]) => ({ name: ceiling_name(kind), gflops: value! }))
    .sort((a, b) => a.gflops - b.gflops);
}

/** "f16 matrix cores" and "bf16 matrix cores" as "f16, bf16 matrix cores". */
function joined(a: string, b: string): string {
  const unit = [" matrix cores", " FMA"].find((one) => a.endsWith(one) && b.endsWith(one));
  return unit ? `${a.slice(0, -unit.length)}, ${b}` : `${a}, ${b}`;
}

/** Ceilings with those joined whose labels would lie on each other. */
function drawn_ceilings(device: Device): Ceiling[] {
  const list: Ceiling[] = [];
  for (const one of compute_ceilings(device)) {
    const last = list[list.length - 1];
    if (last && one.gflops / last.gflops < 1.08) list[list.length - 1] = { name: joined(last.name, one.name), gflops: one.gflops };
    else list.push(one);
  }
  return list;
}

/** Results that a roofline can show. */
function points_of(report: Report, device: number | null): Result[] {
  return report.results.filter((row) => row.current && (device === null || row.device === device) && (row.flops ?? 0) > 0 && (row.bytes ?? 0) > 0 && (row.us ?? 0) > 0);
}

const intensity = (row: Result) => row.flops! / row.bytes!;
const reached = (row: Result, us: number) => row.flops! / us / 1e3;

function plot(report: Report, device: Device, rows: Result[]): HTMLElement {
  const operations = [...new Set(rows.map((row) => row.op))].sort();
  const ceilings = drawn_ceilings(device);
  const copy = device.ceilings["copy_gbps"] ?? 0;
  const x = log_range([...rows.map(intensity), ...(copy > 0 ? ceilings.map((one) => one.gflops / copy) : [])]);
  const top = Math.max(...ceilings.map((one) => one.gflops), ...rows.map((row) => reached(row, row.us!)), 1);
  const y = log_range([...rows.map((row) => reached(row, row.us!)), ...rows.map((row) => (row.default_us ? reached(row, row.default_us) : NaN)), top]);
  const below = ceilings.length ? ceilings[ceilings.length - 1]!.gflops : top;
  const slope = copy > 0 ? [[x.min, Math.min(x.min * copy, below)], [Math.min(x.max, below / copy), Math.min(x.max * copy, below)]] : [];
  return chart({
    title: "Roofline",
    note: `A point is a winner at its arithmetic intensity, the tail leads from its operation's default. ${ceilings.length || copy > 0 ? `The lines are the measured peaks of the device${device.ceilings_utc ? `, ${device.ceilings_utc.slice(0, 10)}` : ""}; copy bandwidth counts bytes read and written.` : "There are no lines, because these files have no measured peaks of the device; a tune measures them."} The bytes of a problem are the least that it has to move, so caches can carry a point above the slope.`,
    summary: `Roofline of ${rows.length} problems. ${copy > 0 ? `Copy bandwidth ${gbps(copy)}. ` : ""}${ceilings.map((one) => `${one.name} ${gflops(one.gflops)}`).join(", ")}.`,
    height: 520,
    points: rows.length * 2,
    ready: (instance) => instance.on("click", (event: any) => {
      const row = rows[event.data?.[2]];
      if (row) location.hash = link("certification", report.results.indexOf(row));
    }),
    option: (colours, narrow) => ({
      legend: legend(colours, { type: "plain", data: operations }),
      grid: { left: 8, right: 20, top: 26 + 20 * Math.ceil((operations.length * 96) / (narrow ? 330 : 1100)), bottom: 36, containLabel: true },
      tooltip: tip(colours, ({ data }) => {
        const row = rows[data[2]];
        if (!row) return null;
        return {
          title: problem_name(row),
          rows: [
            ["intensity", `${intensity(row).toPrecision(3)} FLOP/B`],
            ["winner", `${time(row.us)}, ${flop_rate(row.flops!, row.us!)}, ${gbps(row.bytes! / row.us! / 1e3)}`],
            ["default", row.default_us ? `${time(row.default_us)}, ${flop_rate(row.flops!, row.default_us)}` : "failed"],
            ["over the default", row.is_default ? "the default stood" : ratio(row.speedup)],
            ["of the roofline", share(row.roofline)],
          ],
        };
      }),
      xAxis: axis(colours, { type: "log", ...x, name: "arithmetic intensity, FLOP/B", axisLabel: { color: colours.muted, formatter: (value: number) => String(Number(value.toPrecision(2))) } }),
      yAxis: axis(colours, { type: "log", ...y, axisLabel: { color: colours.muted, formatter: (value: number) => tick(gflops(value)), showMinLabel: false, showMaxLabel: false } }),
      series: [
        ...ceilings.map((one) => ({
          name: one.name, type: "line", silent: true, symbol: "none", z: 1,
          data: [[copy > 0 ? Math.max(x.min, one.gflops / copy) : x.min, one.gflops], [x.max, one.gflops]],
          lineStyle: { color: colours.muted, width: 1.5 },
          endLabel: { show: true, formatter: narrow ? one.name : `${one.name} ${gflops(one.gflops)}`, color: colours.ink, fontSize: 10.5, align: "right", verticalAlign: "bottom", offset: [-8, -3] },
        })),
        ...(slope.length ? [{
          name: "copy", type: "line", silent: true, symbol: "none", data: slope, z: 1, lineStyle: { color: colours.muted, width: 1.5 },
        }, {
          name: "copy bandwidth", type: "custom", silent: true, z: 5, data: [slope[0]], encode: { x: 0, y: 1 },
          renderItem: (_: unknown, api: any) => {
            const from = api.coord(slope[0]);
            const to = api.coord(slope[1]);
            const angle = -Math.atan2(to[1] - from[1], to[0] - from[0]);
            return { type: "text", x: from[0] + (to[0] - from[0]) * 0.3, y: from[1] + (to[1] - from[1]) * 0.3 - 4, rotation: angle, style: { text: `copy ${gbps(copy)}`, fill: colours.ink, font: "10.5px sans-serif", textVerticalAlign: "bottom" } };
          },
        }] : []),
        {
          name: "from the default", type: "custom", silent: true, z: 2, clip: true,
          data: rows.filter((row) => row.default_us && !row.is_default).map((row) => [intensity(row), reached(row, row.default_us!), reached(row, row.us!), operations.indexOf(row.op)]),
          renderItem: (_: unknown, api: any) => {
            const from = api.coord([api.value(0), api.value(1)]);
            const to = api.coord([api.value(0), api.value(2)]);
            return { type: "line", shape: { x1: from[0], y1: from[1], x2: to[0], y2: to[1] }, style: { stroke: colours.categories[api.value(3) % 7], lineWidth: 1.5, opacity: 0.8 } };
          },
          encode: { x: 0, y: [1, 2] },
        },
        ...operations.map((op, at) => ({
          name: op, type: "scatter", z: 4, cursor: "pointer",
          symbol: symbols[at % symbols.length], symbolSize: at < 7 ? 8 : 7,
          itemStyle: at < 7 ? { color: colours.categories[at], borderColor: colours.surface, borderWidth: 0.8 } : { color: colours.surface, borderColor: colours.categories[at % 7], borderWidth: 1.8 },
          data: rows.map((row, i) => [intensity(row), reached(row, row.us!), i]).filter(([, , i]) => rows[i!]!.op === op),
        })),
      ],
    }),
    table: () => ({
      caption: "Problems below the roofline",
      rows,
      search: true,
      sort: { column: 5, down: false },
      columns: [
        { title: "Problem", value: (row) => problem_name(row) },
        { title: "FLOP/B", value: intensity, show: (row) => intensity(row).toPrecision(3), align: "right" },
        { title: "Winner", value: (row) => reached(row, row.us!), show: (row) => flop_rate(row.flops!, row.us!), align: "right" },
        { title: "Default", value: (row) => (row.default_us ? reached(row, row.default_us) : null), show: (row) => (row.default_us ? flop_rate(row.flops!, row.default_us) : "–"), align: "right" },
        { title: "Bandwidth", value: (row) => row.bytes! / row.us!, show: (row) => gbps(row.bytes! / row.us! / 1e3), align: "right" },
        { title: "Of the roofline", value: (row) => row.roofline, show: (row) => share(row.roofline), align: "right" },
      ],
    }),
  });
}

function show(report: Report, route: Route): Node[] {
  const title = h("h1", {}, "Roofline");
  const devices = report.devices.map((_, i) => i).filter((i) => points_of(report, i).length);
  if (!devices.length) return [title, empty("A roofline needs results and the measured peaks of a device. Every tune measures both:", "greta-tune gemm --m 1024 --n 1024 --k 1024 --report report.html")];
  const wanted = Number(route.settings.get("device"));
  const most = devices.reduce((a, b) => (points_of(report, b).length > points_of(report, a).length ? b : a));
  const index = route.settings.has("device") && devices.includes(wanted) ? wanted : most;
  const device = report.devices[index]!;
  const all = points_of(report, index);
  const op = route.settings.get("op") ?? "";
  const dtype = route.settings.get("type") ?? "";
  const rows = all.filter((row) => (!op || row.op === op) && (!dtype || row.dtype === dtype));
  const any = (text: string, values: string[]) => [{ value: "", text }, ...[...new Set(values)].sort().map((value) => ({ value, text: value }))];
  const left_out = report.results.filter((row) => row.current && row.device === index).length - all.length;
  const shares = rows.map((row) => row.roofline).filter((value): value is number => (value ?? 0) > 0).sort((a, b) => a - b);
  return [
    h("div", { class: "head" }, title,
      h("div", { class: "controls", style: "margin:0" },
        h("span", { "data-key": "device" }, select("Device", devices.map((i) => ({ value: String(i), text: device_name(report, i) })), String(index), (value) => set({ device: value, op: "", type: "" }))),
        h("span", { "data-key": "op" }, select("Operation", any("all operations", all.map((row) => row.op)), op, (value) => set({ op: value }))),
        h("span", { "data-key": "type" }, select("Type", any("all types", all.map((row) => row.dtype)), dtype, (value) => set({ type: value }))))),
    tiles([
      { label: "Problems shown", value: String(rows.length), note: left_out ? `${count(left_out, "problem")} without FLOPs omitted` : "" },
      { label: "Half of them reach", value: shares.length ? share(shares[Math.floor(shares.length / 2)]) : "–", note: "of the roofline" },
      { label: "Copy bandwidth", value: device.ceilings["copy_gbps"] ? gbps(device.ceilings["copy_gbps"]!) : "–", note: "measured" },
      ...drawn_ceilings(device).map((one) => ({ label: one.name, value: gflops(one.gflops), note: "measured" })),
    ]),
    section([device_name(report, index), op, dtype].filter(Boolean).join(" · "), rows.length ? plot(report, device, rows) : empty("No problem has this operation and type.")),
    section("Farthest below", !rows.some((row) => (row.roofline ?? 0) > 0) ? h("p", { class: "lead" }, "No problem shown has a share of the roofline, which needs the measured peaks of the device; a tune measures them.") : h("div", { class: "card" }, table({
      caption: "The problems that have most to gain: the time of a launch beyond what the roofline allows",
      rows: rows.filter((row) => (row.roofline ?? 0) > 0),
      first: 10,
      sort: { column: 3, down: true },
      columns: [
        { title: "Problem", value: (row) => problem_name(row), show: (row) => h("a", { href: link("certification", report.results.indexOf(row)) }, problem_name(row)) },
        { title: "Time", value: (row) => row.us, show: (row) => time(row.us), align: "right" },
        { title: "Roofline", value: (row) => row.roofline, show: (row) => share(row.roofline), align: "right" },
        { title: "Above the roofline", value: (row) => row.us! * (1 - row.roofline!), show: (row) => time(row.us! * (1 - row.roofline!)), align: "right" },
      ],
    }))),
  ];
}

export const roofline: View = { name: "roofline", title: "Roofline", count: (report) => points_of(report, null).length, show };
