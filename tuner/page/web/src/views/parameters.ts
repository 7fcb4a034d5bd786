// What a search tells of its parameters.
import { axis, chart, jitter, log_range, tip, type Instance } from "../chart";
import { h, select, type Child } from "../dom";
import { count, ratio, share, tick, time } from "../format";
import { set, type Route } from "../shell";
import { table } from "../table";
import { trial_rows, trial_tip } from "./search";
import type { Parameter, Trials } from "./trials";

const most_small_charts = 8;
const most_axes = 9;
const most_lines = 4000;

export function importance(trials: Trials): HTMLElement {
  const found = trials.search.importance;
  const rows = [
    ...found.marginals.map((one) => ({ name: trials.parameter(one.parameter).name, share: one.share, pair: false })),
    ...found.pairs.filter((one) => one.share > 0.01).slice(0, 4).map((one) => ({ name: `${trials.parameter(one.a).name} × ${trials.parameter(one.b).name}`, share: one.share, pair: true })),
  ].sort((a, b) => b.share - a.share).slice(0, 14);
  const weak = found.fit === null || found.fit < 0.3;
  return chart({
    title: "Importance",
    note: `Share of the variance of the log time that a parameter explains by itself, and pairs beyond that (functional ANOVA on a random forest of ${found.rows} trials). The forest predicts ${share(Math.max(0, found.fit ?? 0))} of the variance of trials that it has not seen${weak ? ": too little to rely on" : ""}.`,
    summary: `Importance of parameters: ${rows.slice(0, 4).map((row) => `${row.name} ${share(row.share)}`).join(", ")}.`,
    height: 60 + 22 * Math.max(3, rows.length),
    option: (colours) => ({
      grid: { left: 8, right: 48, top: 4, bottom: 4, containLabel: true },
      tooltip: tip(colours, (at) => ({ title: at.name, rows: [["share", share(at.value)]] })),
      xAxis: axis(colours, { type: "value", min: 0, axisLabel: { color: colours.muted, formatter: share } }),
      yAxis: axis(colours, { type: "category", inverse: true, data: rows.map((row) => row.name), axisLabel: { color: colours.ink, interval: 0, width: 130, overflow: "truncate" } }),
      series: [{
        type: "bar", barWidth: 12,
        data: rows.map((row) => ({ value: row.share, itemStyle: { color: row.pair ? colours.categories[3] : colours.categories[0] } })),
        label: { show: true, position: "right", color: colours.muted, fontSize: 11, formatter: (at: any) => share(at.value) },
      }],
    }),
    table: () => ({
      caption: "Importance of parameters and of pairs",
      rows,
      columns: [
        { title: "Parameter", value: (row) => row.name },
        { title: "Share", value: (row) => row.share, show: (row) => share(row.share), align: "right" },
      ],
    }),
  });
}

interface Cell {
  x: number;
  y: number;
  best: number;
  trial: number;
  count: number;
}

function cells_of(trials: Trials, a: Parameter, b: Parameter): Cell[] {
  const cells = new Map<string, Cell>();
  for (let i = 0; i < trials.count; i++) {
    const x = a.places[i]!;
    const y = b.places[i]!;
    if (!trials.ok(i) || x >= a.values.length || y >= b.values.length) continue;
    const key = `${x},${y}`;
    const cell = cells.get(key) ?? { x, y, best: Infinity, trial: i, count: 0 };
    cell.count++;
    if (trials.us[i]! < cell.best) {
      cell.best = trials.us[i]!;
      cell.trial = i;
    }
    cells.set(key, cell);
  }
  return [...cells.values()];
}

/** The best time for each pair of values of two parameters. */
export function pairs(trials: Trials, route: Route): HTMLElement | null {
  const varied = trials.varied();
  if (varied.length < 2) return null;
  const named = (name: string | null) => varied.find((one) => one.name === name);
  const top = trials.search.importance.pairs[0];
  const a = named(route.settings.get("x")) ?? (top ? trials.parameter(top.a) : varied[0]!);
  let b = named(route.settings.get("y")) ?? (top ? trials.parameter(top.b) : varied[1]!);
  if (b === a) b = varied.find((one) => one !== a)!;
  const cells = cells_of(trials, a, b);
  const best = Math.min(...cells.map((cell) => cell.best));
  const choices = varied.map((one) => ({ value: one.name, text: one.name }));
  const small = a.values.length > 9;
  return chart({
    title: "Two parameters together",
    note: "The best time among the trials with both values, divided by the best of all; an empty cell has no correct trial.",
    summary: `Best time by ${a.name} and ${b.name}.`,
    height: 320,
    controls: [
      h("span", { "data-key": "pair-x" }, select("Across", choices, a.name, (value) => set({ x: value, y: b.name }))),
      h("span", { "data-key": "pair-y" }, select("Down", choices, b.name, (value) => set({ x: a.name, y: value }))),
    ],
    option: (colours) => ({
      grid: { left: 8, right: 8, top: 6, bottom: 30, containLabel: true },
      tooltip: tip(colours, ({ dataIndex }) => {
        const cell = cells[dataIndex]!;
        return { title: `${a.name}=${a.values[cell.x]} ${b.name}=${b.values[cell.y]}`, rows: [["best", time(cell.best)], ["to the best of all", ratio(cell.best / best)], ["trials", String(cell.count)], ["configuration", trials.config(cell.trial)]] };
      }),
      xAxis: axis(colours, { type: "category", data: a.values.map(String), name: a.name, nameGap: 22, splitLine: { show: false } }),
      yAxis: axis(colours, { type: "category", data: b.values.map(String), name: b.name, nameGap: 40, splitLine: { show: false } }),
      visualMap: { type: "continuous", show: false, dimension: 2, min: 0, max: Math.log(4), inRange: { color: colours.scale } },
      series: [{
        type: "heatmap",
        data: cells.map((cell) => ({
          value: [cell.x, cell.y, Math.min(Math.log(4), Math.log(cell.best / best))],
          label: { color: label_colour(colours.dark, cell.best / best) },
        })),
        label: { show: !small, fontSize: 10.5, formatter: ({ dataIndex }: any) => (cells[dataIndex]!.best / best).toFixed(2) },
        itemStyle: { borderColor: colours.surface, borderWidth: 2, borderRadius: 3 },
      }],
    }),
    table: () => ({
      caption: `Best time by ${a.name} and ${b.name}`,
      rows: cells,
      sort: { column: 2, down: false },
      columns: [
        { title: a.name, value: (cell) => a.values[cell.x] },
        { title: b.name, value: (cell) => b.values[cell.y] },
        { title: "Best time", value: (cell) => cell.best, show: (cell) => time(cell.best), align: "right" },
        { title: "To the best", value: (cell) => cell.best / best, show: (cell) => ratio(cell.best / best), align: "right" },
        { title: "Trials", value: (cell) => cell.count, align: "right" },
      ],
    }),
  });
}

/** Text that can be read on a colour of the scale. */
function label_colour(dark: boolean, slower: number): string {
  const at = Math.min(1, Math.log(slower) / Math.log(4));
  if (dark) return at < 0.3 || at > 0.93 ? "#10151b" : "#f2f5f8";
  return at < 0.24 ? "#ffffff" : "#16191d";
}

/** A small chart for each parameter: the times of its values. */
export function values(trials: Trials): HTMLElement {
  const ok = trials.places().filter((i) => trials.ok(i));
  const range = trials.range();
  const step = Math.max(1, Math.floor(ok.length / 1500));
  const charts = trials.varied().slice(0, most_small_charts).map((parameter) => {
    const of = trials.search.importance.marginals.find((one) => one.parameter === parameter.index);
    const mean = parameter.values.map((value) => of?.us[of.values.indexOf(value)] ?? null);
    const best = parameter.values.map((_, place) => Math.min(...ok.filter((i) => parameter.places[i] === place).map((i) => trials.us[i]!)));
    return chart({
      title: parameter.name,
      summary: `Time by ${parameter.name}: ${parameter.values.map((value, i) => `${value}: best ${time(best[i])}`).join(", ")}.`,
      height: 190,
      points: ok.length / step,
      option: (colours) => ({
        grid: { left: 4, right: 8, top: 6, bottom: 4, containLabel: true },
        tooltip: tip(colours, ({ data }) => trial_tip(trials, data[2])),
        xAxis: [
          axis(colours, { type: "category", data: parameter.values.map(String), splitLine: { show: false }, axisLabel: { color: colours.muted, fontSize: 10.5, hideOverlap: true } }),
          { type: "value", show: false, min: -0.5, max: parameter.values.length - 0.5 },
        ],
        yAxis: axis(colours, { type: "log", ...range, axisLabel: { color: colours.muted, fontSize: 10.5, formatter: (us: number) => tick(time(us)), hideOverlap: true } }),
        series: [
          { type: "scatter", xAxisIndex: 1, symbolSize: 4, itemStyle: { color: colours.categories[5 % 7], opacity: 0.5 },
            data: ok.filter((i, at) => at % step === 0 && parameter.places[i]! < parameter.values.length).map((i) => [parameter.places[i]! + jitter(i) * 0.6, trials.us[i], i]) },
          { type: "line", name: "mean of the model", data: mean, symbol: "diamond", symbolSize: 7, silent: true, lineStyle: { color: colours.categories[1], width: 1.6 }, itemStyle: { color: colours.categories[1] } },
        ],
      }),
      table: () => ({
        caption: `Time by ${parameter.name}`,
        rows: parameter.values.map((value, i) => ({ value, best: best[i]!, mean: mean[i], count: ok.filter((one) => parameter.places[one] === i).length })),
        columns: [
          { title: parameter.name, value: (row) => row.value },
          { title: "Best", value: (row) => row.best, show: (row) => time(row.best), align: "right" },
          { title: "Marginal mean", value: (row) => row.mean, show: (row) => time(row.mean), align: "right" },
          { title: "Correct trials", value: (row) => row.count, align: "right" },
        ],
      }),
    });
  });
  return h("div", {},
    h("p", { class: "lead", style: "margin:14px 0 10px" }, "Times by the values of each parameter, the most important first. The line is the marginal mean of the forest, with the other parameters as in the trials. Times beyond 30 times the best are not drawn."),
    h("div", { class: "grid three values" }, charts));
}

/** Parallel coordinates: an axis for each parameter, a line for each trial. */
export function parallel(trials: Trials): HTMLElement {
  const axes = trials.varied().slice(0, most_axes);
  const ok = trials.places().filter((i) => trials.ok(i));
  const step = Math.max(1, Math.ceil(ok.length / most_lines));
  const lines = ok.filter((_, at) => at % step === 0);
  const best = trials.best();
  const chosen = new Map<number, string>();
  let brushed: number[] | null = null;
  let instance: Instance | null = null;
  const said = h("p", { class: "count selection", role: "status" });
  const selection = h("div", { class: "selected" });
  const line = (i: number) => [...axes.map((one) => (one.places[i]! < one.values.length ? String(one.values[one.places[i]!]) : "none")), trials.us[i]!, Math.min(Math.log(4), Math.log(trials.us[i]! / best))];
  const filtered = () => lines.filter((i) => [...chosen].every(([axis, value]) => line(i)[axis] === value));
  const tell = () => {
    const rows = filtered().filter((i) => brushed === null || brushed.includes(i));
    const least = Math.min(...rows.map((i) => trials.us[i]!));
    said.textContent = rows.length ? `${count(rows.length, "trial")} of ${lines.length} selected, the best ${time(least)}` : "No trial is selected";
    selection.replaceChildren(rows.length < lines.length ? table({ ...trial_rows(trials, rows, "Selected trials"), first: 10 }) : "");
  };
  const controls: Child = h("div", { class: "filters" }, axes.map((one, at) =>
    select(one.name, [{ value: "", text: "any" }, ...one.values.map((value) => ({ value: String(value), text: String(value) }))], "", (value) => {
      if (value) chosen.set(at, value);
      else chosen.delete(at);
      brushed = null;
      draw();
      tell();
    })));
  const draw = () => instance?.setOption({ series: [{ data: filtered().map(line) }] });
  const range = log_range(lines.map((i) => trials.us[i]!));
  const figure = chart({
    title: "Parallel coordinates",
    note: "A line is a trial; the bluer, the faster. Drag along an axis to select, or choose values below.",
    summary: `Parallel coordinates of ${lines.length} trials over ${axes.map((one) => one.name).join(", ")} and time.`,
    height: 340,
    points: lines.length,
    controls,
    ready: (made) => {
      instance = made;
      if (chosen.size) draw();
      made.on("axisareaselected", () => {
        const model = (made as any).getModel().getSeries()[0];
        const active = model.getRawIndicesByActiveState("active") as number[];
        const rows = filtered();
        brushed = active.length === rows.length || active.length === 0 ? null : active.map((at) => rows[at]!);
        tell();
      });
    },
    option: (colours, narrow) => ({
      parallel: {
        left: 30, right: 56, top: 44, bottom: 20, layout: "horizontal",
        parallelAxisDefault: {
          nameTextStyle: { color: colours.ink, fontSize: narrow ? 9 : 11 }, nameLocation: "end", nameGap: 12,
          axisLine: { lineStyle: { color: colours.muted } }, axisTick: { show: false },
          axisLabel: { color: colours.muted, fontSize: 10 }, splitLine: { show: false },
          areaSelectStyle: { width: 18, color: colours.accent, opacity: 0.25, borderColor: colours.accent },
        },
      },
      parallelAxis: [
        ...axes.map((one, at) => ({
          dim: at, name: one.name, type: "category",
          data: [...(Array.prototype.some.call(one.places, (place: number) => place >= one.values.length) ? ["none"] : []), ...one.values.map(String)],
          nameTruncate: { maxWidth: narrow ? 36 : 90 },
        })),
        { dim: axes.length, name: "time", type: "log", ...range, inverse: false, axisLabel: { color: colours.muted, formatter: (us: number) => tick(time(us)) } },
      ],
      visualMap: { type: "continuous", show: false, dimension: axes.length + 1, min: 0, max: Math.log(4), inRange: { color: colours.dark ? [...colours.scale] : ["#08306b", "#2171b5", "#6baed6", "#c6dbef", "#e2e6ea"] } },
      series: [{
        type: "parallel", smooth: false, data: filtered().map(line), progressive: 0,
        lineStyle: { width: 1, opacity: lines.length > 400 ? 0.35 : 0.55 }, inactiveOpacity: 0.03, activeOpacity: 0.9,
      }],
    }),
    table: () => ({ ...trial_rows(trials, lines, "Trials") }),
  });
  figure.append(said, selection);
  tell();
  return figure;
}
