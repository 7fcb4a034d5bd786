// The results of each device: what was won over the defaults, and how far the roofline is.
import { axis, chart, jitter, no_chart, ratio_axis, tip } from "../chart";
import { api_name, device_name, problem_name, type Report, type Result } from "../data";
import { empty, h, section, segmented, tag } from "../dom";
import { change, count, date, rate, ratio, share, time } from "../format";
import { link, set, type Route, type View } from "../shell";
import { geometric_mean, median } from "../statistics";
import { table } from "../table";
import type { Theme } from "../theme";

/** What a winner gained; a default that stood gained nothing. */
export function gain(result: Result): number | null {
  return result.is_default ? 1 : result.speedup;
}

function device_cards(report: Report, chosen: number | null): HTMLElement {
  const cards = report.devices
    .map((device, i) => ({ device, i }))
    .filter(({ device }) => device.summary.problems > 0)
    .map(({ device, i }) => {
      const of = device.summary;
      const figure = (value: string, label: string) => h("span", {}, h("b", {}, value), h("span", {}, label));
      return h(
        "button",
        {
          type: "button",
          class: "device",
          "data-key": `device-${i}`,
          "aria-pressed": String(chosen === i),
          onclick: () => set({ device: chosen === i ? "" : String(i) }),
        },
        h("span", { class: "name" }, device_name(report, i)),
        h("span", { class: "about" }, [device.architecture, api_name(device.backend), device.driver].filter(Boolean).join(" · ")),
        h(
          "span",
          { class: "figures" },
          figure(String(of.problems), "problems"),
          figure(of.speedup.count ? ratio(of.speedup.geometric_mean) : "–", "over the defaults"),
          figure(of.roofline.count ? share(of.roofline.half) : "–", "of the roofline"),
          figure(String(of.stale), "stale"),
        ),
      );
    });
  return h("div", { class: "devices" }, cards);
}

/** Points by operation: one for each result. */
function strip(report: Report, rows: Result[], kind: "gain" | "roofline"): HTMLElement {
  const value = (row: Result) => (kind === "gain" ? gain(row) : row.roofline);
  const known = rows.filter((row) => (value(row) ?? 0) > 0);
  const operations = [...new Set(known.map((row) => row.op))].sort();
  const middle = kind === "gain" ? geometric_mean : median;
  const means = operations.map((op) => middle(known.filter((row) => row.op === op).map((row) => value(row)!)));
  const at = (x: number) => (kind === "gain" ? Math.log(x) : x);
  const text = (x: number) => (kind === "gain" ? ratio(x) : share(x));
  // A winner may be faster than the measured peaks, for example with inputs that stay in a cache.
  const most = Math.max(1, Math.ceil(Math.max(...known.map((row) => row.roofline ?? 0), 0) * 10) / 10);
  const logs = known.map((row) => Math.log(value(row)!));
  const option = (colours: Theme, narrow: boolean) => ({
    grid: { left: 8, right: 18, top: 8, bottom: 34, containLabel: true },
    tooltip: tip(colours, ({ data }) => {
      const row = known[data[2]];
      if (!row) return { title: operations[data[1]]!, rows: [[kind === "gain" ? "geometric mean" : "median", text(means[data[1]]!)]] };
      return {
        title: problem_name(row),
        rows: [
          ["device", device_name(report, row.device)],
          ["time", time(row.us)],
          ["over the default", row.is_default ? "the default stood" : `${ratio(row.speedup)} (${ratio(row.speedup_low)} to ${ratio(row.speedup_high)})`],
          ["of the roofline", share(row.roofline)],
        ],
      };
    }),
    xAxis: kind === "gain"
      ? ratio_axis(colours, logs, { name: narrow ? "default / winner" : "time of the default / time of the winner" })
      : axis(colours, { type: "value", min: 0, max: most, name: "share of the roofline", axisLabel: { color: colours.muted, formatter: (x: number) => `${Math.round(x * 100)} %` } }),
    yAxis: axis(colours, {
      type: "value", min: -0.6, max: operations.length - 0.4, inverse: true, interval: 1, splitLine: { show: false },
      axisLabel: { show: false },
    }),
    series: [
      {
        type: "scatter",
        data: known.map((row, i) => [at(value(row)!), operations.indexOf(row.op) + jitter(i) * 0.55, i]),
        symbolSize: 7,
        itemStyle: { color: colours.categories[0], opacity: 0.6 },
        cursor: "pointer",
      },
      {
        type: "scatter",
        data: operations.map((_, i) => [at(means[i]!), i, -1]),
        symbol: "rect",
        symbolSize: [3, 22],
        itemStyle: { color: colours.categories[1] },
        markLine: {
          silent: true, symbol: "none", lineStyle: { color: colours.line, type: "solid" },
          data: operations.map((op, i) => ({ yAxis: i + 0.5, label: { show: false }, name: op })),
        },
      },
      {
        type: "custom",
        silent: true,
        data: operations.map((_, i) => [i]),
        renderItem: (box: any, api: any) => ({
          type: "text",
          x: box.coordSys.x - 8,
          y: api.coord([0, api.value(0)])[1],
          style: { text: operations[api.value(0)], textAlign: "right", textVerticalAlign: "middle", fill: colours.ink, font: "11.5px sans-serif" },
        }),
        encode: { y: 0 },
      },
    ],
  });
  const title = kind === "gain" ? "Winners over defaults" : "Share of the roofline";
  const longest = Math.max(6, ...operations.map((op) => op.length));
  return chart({
    title,
    missing: !known.length && (kind === "gain"
      ? "No default of these problems was timed beside its winner, so there are no ratios; a tune whose default is correct measures both."
      : "These results have no share of the roofline, which needs the measured peaks of the device; a tune measures them before it searches."),
    note: kind === "gain"
      ? "A point is a problem, the bar its operation's geometric mean. At 1× the default stood."
      : "A point is a problem, the bar its operation's median.",
    summary: `${title} of ${known.length} problems by operation. ${operations.map((op, i) => `${op}: ${text(means[i]!)}`).join(", ")}.`,
    height: 62 + 30 * Math.max(3, operations.length),
    option: (colours, narrow) => ({ ...option(colours, narrow), grid: { left: 16 + longest * 6.4, right: 22, top: 8, bottom: 38 } }),
    table: () => ({
      caption: `${title} by operation`,
      rows: operations.map((op, i) => ({ op, mean: means[i]!, all: known.filter((row) => row.op === op).map((row) => value(row)!) })),
      columns: [
        { title: "Operation", value: (row) => row.op },
        { title: "Problems", value: (row) => row.all.length, align: "right" },
        { title: kind === "gain" ? "Geometric mean" : "Median", value: (row) => row.mean, show: (row) => text(row.mean), align: "right" },
        { title: "Least", value: (row) => Math.min(...row.all), show: (row) => text(Math.min(...row.all)), align: "right" },
        { title: "Most", value: (row) => Math.max(...row.all), show: (row) => text(Math.max(...row.all)), align: "right" },
      ],
    }),
    ready: (instance) => instance.on("click", (event: any) => {
      const row = known[event.data?.[2]];
      if (row) location.hash = link("certification", report.results.indexOf(row));
    }),
  });
}

function distribution(rows: Result[]): HTMLElement {
  const values = rows.map(gain).filter((value): value is number => (value ?? 0) > 0);
  const edges = [0, 0.98, 1.02, 1.1, 1.25, 1.5, 2, 3, 5, 10, Infinity];
  const same = "0.98× to 1.02×";
  const bins = edges.slice(0, -1).map((low, i) => ({
    label: i === 0 ? "< 0.98×" : i === 1 ? same : `≥ ${low}×`,
    count: values.filter((value) => value >= low && value < edges[i + 1]!).length,
  })).filter((bin, i) => i > 0 || bin.count > 0);
  return chart({
    title: "Distribution of gains",
    missing: !values.length && "No default of these problems was timed beside its winner, so there are no gains to count; a tune whose default is correct measures both.",
    note: "Problems by how much faster the winner is than the operation's default.",
    summary: `Distribution of gains: ${bins.filter((bin) => bin.count).map((bin) => `${bin.label}: ${bin.count}`).join(", ")}.`,
    height: 44 + 22 * bins.length,
    option: (colours) => ({
      grid: { left: 8, right: 40, top: 4, bottom: 30, containLabel: true },
      tooltip: tip(colours, (at) => ({ title: at.name, rows: [["problems", String(at.value)], ["share", share(at.value / values.length)]] })),
      xAxis: axis(colours, { type: "value", minInterval: 1, name: "problems", nameGap: 22 }),
      yAxis: axis(colours, { type: "category", inverse: true, data: bins.map((bin) => bin.label), splitLine: { show: false }, axisLabel: { color: colours.ink, interval: 0 } }),
      series: [{
        type: "bar", data: bins.map((bin) => ({ value: bin.count, itemStyle: { color: bin.label === same ? colours.muted : colours.categories[0] } })), barCategoryGap: "24%",
        label: { show: true, position: "right", color: colours.muted, fontSize: 11, formatter: (at: any) => at.value || "" },
      }],
    }),
    table: () => ({
      caption: "Problems by gain",
      rows: bins,
      columns: [
        { title: "Gain", value: (row) => row.label },
        { title: "Problems", value: (row) => row.count, align: "right" },
      ],
    }),
  });
}

/** Reasons for which results are stale, with the number of results of each. */
function stale(report: Report, rows: Result[]): HTMLElement | null {
  const reasons = new Map<string, { device: number; reason: string; count: number }>();
  for (const row of rows) {
    for (const reason of row.stale) {
      const key = `${row.device} ${reason}`;
      const known = reasons.get(key) ?? { device: row.device, reason, count: 0 };
      known.count++;
      reasons.set(key, known);
    }
  }
  if (!reasons.size) return null;
  const all = rows.filter((row) => row.stale.length).length;
  return section("Stale results", h("div", { class: "card" },
    h("p", { class: "lead", style: "margin:0 0 8px" },
      `${count(all, "result")} of ${rows.length} ${all === 1 ? "was" : "were"} measured with something that has changed since. The configurations still run; what is fastest may have changed. greta-db requalify times them again.`),
    table({
      caption: "Reasons; a result may have several",
      rows: [...reasons.values()].sort((a, b) => b.count - a.count),
      first: 12,
      columns: [
        { title: "Reason", value: (one) => one.reason },
        { title: "Device", value: (one) => device_name(report, one.device) },
        { title: "Results", value: (one) => one.count, align: "right", show: (one) => h("a", { href: link("overview", null, { device: String(one.device), show: "stale" }), "aria-label": `${one.count} results of ${device_name(report, one.device)}: ${one.reason}` }, one.count) },
      ],
    })));
}

const shown_rows: Record<string, { text: string; of: (row: Result) => boolean }> = {
  "": { text: "All", of: () => true },
  beaten: { text: "Beat the default", of: (row) => !row.is_default },
  stood: { text: "Default stood", of: (row) => row.is_default },
  stale: { text: "Stale", of: (row) => row.stale.length > 0 },
};

function rivals(report: Report, device: number | null): HTMLElement[] {
  const pairs = report.rivals.filter((pair) => device === null || pair.a === device || pair.b === device);
  if (!pairs.length) {
    return [no_chart("HIP against Vulkan", "No card of these files was tuned through two APIs; a tune with --device hip:0,vulkan:0 compares them.")];
  }
  return pairs.map((pair) => {
      const name = (i: number) => api_name(report.devices[i]!.backend);
      const rows = [...pair.problems].sort((x, y) => x.ratio - y.ratio);
      const title = `${name(pair.a)} against ${name(pair.b)}`;
      return chart({
        title,
        note: `${report.devices[pair.a]!.name}: time through ${name(pair.a)} divided by time through ${name(pair.b)}, by problem. Geometric mean ${ratio(pair.spread.geometric_mean)}. Filled points are significant.`,
        summary: `${title}: ${rows.length} problems, geometric mean of the ratio ${ratio(pair.spread.geometric_mean)}.`,
        height: 220,
        option: (colours) => ({
          grid: { left: 8, right: 16, top: 12, bottom: 30, containLabel: true },
          tooltip: tip(colours, ({ data }) => {
            const row = rows[data.value?.[0]];
            if (!row) return null;
            const a = report.results[row.a]!;
            const b = report.results[row.b]!;
            return { title: problem_name(a), rows: [[name(pair.a), time(a.us)], [name(pair.b), time(b.us)], ["ratio", ratio(row.ratio)], ["significant", row.sure ? "yes" : "no"]] };
          }),
          xAxis: axis(colours, { type: "value", min: -1, max: rows.length, name: "problems, sorted", nameGap: 12, axisLabel: { show: false }, splitLine: { show: false } }),
          yAxis: ratio_axis(colours, rows.map((row) => Math.log(row.ratio))),
          series: [{
            type: "scatter",
            symbolSize: 7,
            data: rows.map((row, i) => ({
              value: [i, Math.log(row.ratio)],
              itemStyle: row.sure ? { color: colours.categories[row.ratio < 1 ? 0 : 1] } : { color: colours.surface, borderColor: colours.muted, borderWidth: 1.5 },
              symbol: row.ratio < 1 ? "circle" : "triangle",
            })),
            markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: colours.muted, type: "dashed" }, data: [{ yAxis: 0 }] },
          }],
        }),
        table: () => ({
          caption: title,
          rows,
          sort: { column: 3, down: false },
          columns: [
            { title: "Problem", value: (row) => problem_name(report.results[row.a]!) },
            { title: name(pair.a), value: (row) => report.results[row.a]!.us, show: (row) => time(report.results[row.a]!.us), align: "right" },
            { title: name(pair.b), value: (row) => report.results[row.b]!.us, show: (row) => time(report.results[row.b]!.us), align: "right" },
            { title: "Ratio", value: (row) => row.ratio, show: (row) => ratio(row.ratio), align: "right" },
            { title: "Significant", value: (row) => (row.sure ? "yes" : "no") },
          ],
        }),
      });
    });
}

function tags(row: Result): Node[] {
  return [
    ...(row.is_default ? [tag("default stood")] : []),
    ...(row.stale.length ? [h("span", { title: row.stale.join("\n") }, tag("stale", "warn"))] : []),
    ...(row.cold ? [] : [tag("warm caches")]),
    ...(row.current ? [] : [tag("earlier environment")]),
  ];
}

function results_table(report: Report, rows: Result[]): HTMLElement {
  const several = new Set(rows.map((row) => row.device)).size > 1;
  return table<Result>({
    caption: "Results, one for each problem and device; a problem leads to its certification, trials to its search",
    search: true,
    rows,
    sort: { column: 0, down: false },
    columns: [
      { title: "Problem", value: (row) => problem_name(row), show: (row) => h("a", { href: link("certification", report.results.indexOf(row)) }, problem_name(row)) },
      ...(several ? [{ title: "Device", value: (row: Result) => device_name(report, row.device), show: (row: Result) => h("span", { class: "nowrap" }, device_name(report, row.device)) }] : []),
      { title: "Time", value: (row) => row.us, show: (row) => time(row.us), align: "right" },
      { title: "Over default", value: gain, show: (row) => (row.is_default ? "1×" : ratio(row.speedup)), align: "right" },
      {
        title: "Roofline", value: (row) => row.roofline, align: "right",
        show: (row) => [meter(row.roofline), share(row.roofline)],
      },
      { title: "Rate", value: (row) => (row.us ? (row.flops || row.bytes || 0) / row.us : null), show: (row) => rate(row, row.us), align: "right" },
      { title: "Configuration", value: (row) => row.config, show: (row) => h("code", {}, row.config) },
      { title: "Notes", value: (row) => [row.is_default ? "default stood" : "", row.stale.length ? "stale" : "", ...row.stale, row.cold ? "" : "warm"].join(" "), show: tags },
      { title: "Certified", value: (row) => row.utc, show: (row) => h("span", { class: "nowrap" }, date(row.utc).slice(0, 10)) },
      { title: "Trials", value: (row) => (row.search === null ? null : report.searches[row.search]!.trials), align: "right",
        show: (row) => (row.search === null ? "–" : h("a", { href: link("search", row.search), "aria-label": `${report.searches[row.search]!.trials} trials: the search of ${problem_name(row)}` }, report.searches[row.search]!.trials)) },
    ],
  });
}

export function meter(value: number | null): HTMLElement {
  const bar = h("i");
  bar.style.width = `${Math.max(0, Math.min(1, value ?? 0)) * 100}%`;
  return h("span", { class: "meter", "aria-hidden": "true" }, bar);
}

function show(report: Report, route: Route): Node[] {
  const chosen = route.settings.get("device");
  const device = chosen !== null && /^\d+$/.test(chosen) && report.devices[Number(chosen)] ? Number(chosen) : null;
  const all = report.results.filter((row) => device === null || row.device === device);
  const rows = all.filter((row) => row.current);
  const title = [h("h1", {}, "Overview"), h("p", { class: "lead" }, "What tuning found, by device: certified winners beside the operations' defaults, in the same rounds.")];
  if (!report.results.length)
    return [...title, empty("These files hold no results yet. A tune certifies one for each problem:", "greta-tune gemm --m 1024 --n 1024 --k 1024 --report report.html")];
  const asked = route.settings.get("show") ?? "";
  const filter = shown_rows[asked] ? asked : "";
  const slow = rows.filter((row) => row.speedup !== null && !row.is_default && row.speedup < 1);
  return [
    ...title,
    device_cards(report, device),
    section(
      device === null ? "All devices" : device_name(report, device),
      h("div", { class: "grid" }, strip(report, rows, "gain"), strip(report, rows, "roofline"), distribution(rows), ...rivals(report, device)),
      slow.length ? h("p", { class: "lead" }, `${slow.length} winners are slower than their default by ${change(Math.min(...slow.map((row) => row.speedup!)))} at most.`) : null,
    ),
    ...[stale(report, rows)].filter((one): one is HTMLElement => one !== null),
    section("Problems", h("div", { class: "card" },
      h("div", { class: "controls", "data-key": "show" }, segmented("Show", Object.entries(shown_rows).map(([value, one]) => ({ value, text: `${one.text} ${rows.filter(one.of).length}` })), filter, (value) => set({ show: value }))),
      results_table(report, rows.filter(shown_rows[filter]!.of)))),
  ];
}

export const overview: View = { name: "overview", title: "Overview", count: (report) => report.results.filter((row) => row.current).length, show };
