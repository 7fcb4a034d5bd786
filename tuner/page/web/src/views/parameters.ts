// What a search tells of its parameters.
import { axis, chart, intervals, jitter, log_range, no_chart, tip, type Instance, type Option } from "../chart";
import { h, select, type Child } from "../dom";
import { count, ratio, share, tick, time } from "../format";
import { row_labels } from "../labels";
import { set, type Route } from "../shell";
import { table } from "../table";
import type { Theme } from "../theme";
import { trial_rows, trial_tip } from "./search";
import type { Parameter, Trials } from "./trials";

const most_small_charts = 8;
const most_axes = 9;
const most_lines = 4000;
const most_points = 1500;  // of a small chart
const least_rows = 10;  // of an importance

export function importance(trials: Trials): HTMLElement {
  const found = trials.search.importance;
  const rows = [
    ...found.marginals.map((one) => ({ name: trials.parameter(one.parameter).name, share: one.share, pair: false })),
    ...found.pairs.filter((one) => one.share > 0.01).slice(0, 4).map((one) => ({ name: `${trials.parameter(one.a).name} × ${trials.parameter(one.b).name}`, share: one.share, pair: true })),
  ].sort((a, b) => b.share - a.share).slice(0, 14);
  const labels = (width: number) => row_labels(rows.map((row) => row.name), width);
  const weak = found.fit === null || found.fit < 0.3;
  return chart({
    title: "Importance",
    missing: (found.rows < least_rows || !rows.some((row) => row.share > 0)) && (found.rows < least_rows
      ? `Shares of the variance need at least ${least_rows} correct trials with different times, and this search has ${found.rows}; a longer budget gives more.`
      : "No parameter explains any of the variance: all trials have the same time, or the same values."),
    note: `Share of the variance of the log time that a parameter explains by itself, and pairs beyond that (functional ANOVA on a random forest of ${found.rows} trials). The forest predicts ${share(Math.max(0, found.fit ?? 0))} of the variance of trials that it has not seen${weak ? ": too little to rely on" : ""}.`,
    summary: `Importance of parameters: ${rows.slice(0, 4).map((row) => `${row.name} ${share(row.share)}`).join(", ")}.`,
    height: (width) => 60 + labels(width).step * Math.max(3, rows.length),
    option: (colours, _, width) => ({
      grid: { left: 8, right: 48, top: 4, bottom: 4, containLabel: true },
      tooltip: tip(colours, (at) => ({ title: at.name, rows: [["share", share(at.value)]] })),
      xAxis: axis(colours, { type: "value", min: 0, axisLabel: { color: colours.muted, formatter: share } }),
      yAxis: axis(colours, { type: "category", inverse: true, data: labels(width).names, axisLabel: { color: colours.ink, ...labels(width).axisLabel } }),
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
  const cells = new Map<number, Cell>();
  for (let i = 0; i < trials.count; i++) {
    const x = a.places[i]!;
    const y = b.places[i]!;
    if (!trials.ok(i) || x >= a.values.length || y >= b.values.length) continue;
    const key = x * b.values.length + y;
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
export function pairs(trials: Trials, route: Route): HTMLElement {
  const varied = trials.varied();
  if (varied.length < 2) return no_chart("Two parameters together", "Fewer than two parameters have several values in these trials; a search whose parameters are not fixed has more.");
  const named = (name: string | null) => varied.find((one) => one.name === name);
  const top = trials.search.importance.pairs[0];
  const a = named(route.settings.get("x")) ?? (top ? trials.parameter(top.a) : varied[0]!);
  let b = named(route.settings.get("y")) ?? (top ? trials.parameter(top.b) : varied[1]!);
  if (b === a) b = varied.find((one) => one !== a)!;
  const cells = cells_of(trials, a, b);
  const best = cells.reduce((low, cell) => Math.min(low, cell.best), Infinity);
  const choices = varied.map((one) => ({ value: one.name, text: one.name }));
  const small = a.values.length > 9;
  const choose = [
    h("span", { "data-key": "pair-x" }, select("Across", choices, a.name, (value) => set({ x: value, y: b.name }))),
    h("span", { "data-key": "pair-y" }, select("Down", choices, b.name, (value) => set({ x: a.name, y: value }))),
  ];
  if (!cells.length) {
    const empty = no_chart("Two parameters together", `No correct trial has both ${a.name} and ${b.name}, which belong to different variants or failed; choose other parameters.`);
    empty.append(h("div", { class: "controls", style: "margin-top:10px" }, choose));
    return empty;
  }
  return chart({
    title: "Two parameters together",
    note: "The best time among the trials with both values, divided by the best of all; an empty cell has no correct trial.",
    summary: `Best time by ${a.name} and ${b.name}.`,
    height: 320,
    controls: choose,
    option: (colours) => ({
      grid: { left: 8 + 16, right: 8, top: 40, bottom: 30, containLabel: true },
      tooltip: tip(colours, ({ dataIndex }) => {
        const cell = cells[dataIndex]!;
        return { title: `${a.name}=${a.values[cell.x]} ${b.name}=${b.values[cell.y]}`, rows: [["best", time(cell.best)], ["to the best of all", ratio(cell.best / best)], ["trials", String(cell.count)], ["configuration", trials.config(cell.trial)]] };
      }),
      xAxis: axis(colours, { type: "category", data: a.values.map(String), name: a.name, nameGap: 22, splitLine: { show: false } }),
      yAxis: axis(colours, { type: "category", data: b.values.map(String), name: b.name, nameGap: 14 + 6.2 * Math.max(...b.values.map((value) => String(value).length)), splitLine: { show: false } }),
      visualMap: {
        type: "continuous", dimension: 2, min: 0, max: Math.log(4), inRange: { color: colours.scale }, calculable: false, hoverLink: false,
        orient: "horizontal", left: 0, top: 0, itemWidth: 12, itemHeight: 120, padding: 0, textStyle: { color: colours.muted, fontSize: 11 },
        text: ["4× and more", "the best"], inverse: false,
      },
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
  const ok = trials.correct();
  if (!ok.length || !trials.varied().length) {
    return h("div", { style: "margin-top:14px" }, no_chart("Times by value", ok.length
      ? "All trials have the same values; a search whose parameters are not all fixed has several."
      : "No trial was correct, so there are no times; a search with a correct trial has them."));
  }
  const range = trials.range();
  const step = Math.max(1, Math.floor(ok.length / most_points));
  const drawn = ok.filter((_, at) => at % step === 0);
  const charts = trials.varied().slice(0, most_small_charts).map((parameter) => value_chart(trials, parameter, drawn, range));
  return h("div", {},
    h("p", { class: "lead", style: "margin:14px 0 10px" }, "Times by the values of each parameter, the most important first, of the trials that were measured with the value. The diamonds are the medians, with the quartiles as bars; below each value is its number of correct trials. A search tries good regions more often, so that medians compare what was tried. Times beyond 30 times the best are not drawn." + (step > 1 ? ` Drawn is every ${step}th of ${count(ok.length, "correct trial")}; medians, quartiles and tables are of all.` : "")),
    h("div", { class: "grid three values" }, charts));
}

function value_chart(trials: Trials, parameter: Parameter, drawn: number[], range: { min: number; max: number }): HTMLElement {
  const found = trials.search.effects.find((one) => one.parameter === parameter.index)!;
  const rows = parameter.values.map((value, i) => ({
    value, trials: found.trials[i]!, best: found.best_us[i]!, quarter: found.quarter_us[i]!, median: found.median_us[i]!, three_quarters: found.three_quarters_us[i]!,
  }));
  const timed = rows.map((row, place) => ({ ...row, place })).filter((row) => row.trials > 0);
  const fits = timed.some((row) => row.best <= range.max);
  const own = fits ? range : log_range(timed.flatMap((row) => [row.best, row.three_quarters]));
  return chart({
    title: parameter.name,
    note: fits ? null : "All times are beyond 30 times the best, so this chart has an axis of its own.",
    summary: `Time by ${parameter.name}: ${timed.map((row) => `${row.value}: median ${time(row.median)}, best ${time(row.best)} of ${count(row.trials, "trial")}`).join(", ")}.`,
    height: 204,
    points: drawn.length,
    option: (colours) => ({
      grid: { left: 4, right: 8, top: 6, bottom: 4, containLabel: true },
      tooltip: tip(colours, ({ data, seriesIndex }) => (seriesIndex === 0 ? trial_tip(trials, data[2]) : effect_tip(parameter.name, rows[data[0]]))),
      xAxis: [
        axis(colours, { type: "category", data: rows.map((row) => `${row.value}\n${row.trials.toLocaleString("en")}`), splitLine: { show: false }, axisLabel: { color: colours.muted, fontSize: 10.5, lineHeight: 13, hideOverlap: true } }),
        { type: "value", show: false, min: -0.5, max: rows.length - 0.5 },
      ],
      yAxis: axis(colours, { type: "log", ...own, axisLine: { onZero: false, lineStyle: { color: colours.line } }, axisLabel: { color: colours.muted, fontSize: 10.5, formatter: (us: number) => tick(time(us)), hideOverlap: true } }),
      series: [
        { type: "scatter", xAxisIndex: 1, symbolSize: 4, itemStyle: { color: colours.categories[5 % 7], opacity: 0.5 },
          data: drawn.filter((i) => parameter.places[i]! < rows.length).map((i) => [parameter.places[i]! + jitter(i) * 0.6, trials.us[i], i]) },
        intervals("quartiles", timed.filter((row) => row.median <= own.max).map((row) => [row.place, row.quarter, Math.min(row.three_quarters, own.max)]), colours.categories[1]!, true),
        { type: "scatter", name: "median", data: timed.filter((row) => row.median <= own.max).map((row) => [row.place, row.median]), symbol: "diamond", symbolSize: 9, z: 4, itemStyle: { color: colours.categories[1], borderColor: colours.surface, borderWidth: 1 } },
      ],
    }),
    table: () => ({
      caption: `Time by ${parameter.name}`,
      rows: timed,
      columns: [
        { title: parameter.name, value: (row) => row.value },
        { title: "Best", value: (row) => row.best, show: (row) => time(row.best), align: "right" },
        { title: "Lower quartile", value: (row) => row.quarter, show: (row) => time(row.quarter), align: "right" },
        { title: "Median", value: (row) => row.median, show: (row) => time(row.median), align: "right" },
        { title: "Upper quartile", value: (row) => row.three_quarters, show: (row) => time(row.three_quarters), align: "right" },
        { title: "Correct trials", value: (row) => row.trials, align: "right" },
      ],
    }),
  });
}

function effect_tip(name: string, row: { value: number | string; trials: number; best: number; quarter: number; median: number; three_quarters: number } | undefined) {
  if (!row) return null;
  return { title: `${name}=${row.value}`, rows: [["median", time(row.median)], ["quartiles", `${time(row.quarter)} to ${time(row.three_quarters)}`], ["best", time(row.best)], ["correct trials", row.trials.toLocaleString("en")]] as [string, string][] };
}

/** Parallel coordinates: an axis for each parameter, a line for each trial. */
export function parallel(trials: Trials): HTMLElement {
  const varied = trials.varied();
  const ok = trials.correct();
  if (!ok.length || !varied.length) {
    return no_chart("Parallel coordinates", ok.length
      ? "All trials have the same values, so there is nothing to set beside each other; a search whose parameters are not all fixed has several."
      : "No trial was correct, so there are no times to draw; a search with a correct trial has lines here.");
  }
  return new Parallel(trials, varied.slice(0, most_axes), varied.length, ok).figure();
}

/** An interval of an axis that is brushed: places of values, or times. */
type Brush = [number, number][];

class Parallel {
  private readonly best: number;
  private readonly absent: boolean[];
  private readonly chosen = new Map<number, number>();
  private brushes: Brush[] = [];
  private instance: Instance | null = null;
  private drawn: number[] = [];
  private readonly said = h("p", { class: "count selection", role: "status" });
  private readonly shown = h("p", { class: "count drawn" });
  private readonly selection = h("div", { class: "selected" });

  constructor(private readonly trials: Trials, private readonly axes: Parameter[], private readonly all_axes: number, private readonly ok: number[]) {
    this.best = trials.best();
    this.absent = axes.map((one) => one.places.some((place) => place >= one.values.length));
  }

  /** The place of a trial on an axis, from the bottom. "none" is below the values. */
  private at(axis: number, trial: number): number {
    const one = this.axes[axis]!;
    const place = one.places[trial]!;
    if (place >= one.values.length) return 0;
    return place + (this.absent[axis] ? 1 : 0);
  }

  private line(trial: number): number[] {
    const us = this.trials.us[trial]!;
    return [...this.axes.map((_, axis) => this.at(axis, trial)), us, Math.min(Math.log(4), Math.log(us / this.best))];
  }

  /** The trials with the values that the lists choose. */
  private filtered(): number[] {
    const wanted = [...this.chosen];
    return wanted.length ? this.ok.filter((trial) => wanted.every(([axis, place]) => this.axes[axis]!.places[trial] === place)) : this.ok;
  }

  /** Of all trials, also those that are not drawn. */
  private selected(): number[] {
    const brushed = this.brushes.map((brush, axis) => ({ brush, axis })).filter(({ brush }) => brush.length);
    if (!brushed.length) return this.filtered();
    return this.filtered().filter((trial) => brushed.every(({ brush, axis }) => {
      const value = axis < this.axes.length ? this.at(axis, trial) : this.trials.us[trial]!;
      return brush.some(([low, high]) => low <= value && value <= high);
    }));
  }

  /** The fastest quarter of the lines that can be drawn, and the others at equal steps. */
  private to_draw(): number[] {
    const all = this.filtered();
    if (all.length <= most_lines) return all;
    const us = this.trials.us;
    const limit = Float64Array.from(all, (trial) => us[trial]!).sort()[most_lines / 4 - 1]!;
    const fast: number[] = [];
    const rest: number[] = [];
    for (const trial of all) (us[trial]! <= limit && fast.length < most_lines / 4 ? fast : rest).push(trial);
    const step = rest.length / (most_lines - fast.length);
    return [...fast, ...Array.from({ length: most_lines - fast.length }, (_, i) => rest[Math.floor(i * step)]!)].sort((a, b) => a - b);
  }

  private tell(): void {
    const rows = this.selected();
    const least = rows.reduce((low, i) => Math.min(low, this.trials.us[i]!), Infinity);
    this.said.textContent = rows.length ? `${count(rows.length, "trial")} of ${this.ok.length.toLocaleString("en")} selected, the best ${time(least)}` : "No trial is selected";
    this.selection.replaceChildren(rows.length < this.ok.length ? table({ ...trial_rows(this.trials, rows, "Selected trials, the fastest first"), first: 10 }) : "");
  }

  private tell_drawn(): void {
    const all = this.filtered().length;
    this.shown.textContent = this.drawn.length < all
      ? `Drawn are ${this.drawn.length.toLocaleString("en")} of ${count(all, "correct trial")}: the fastest ${(most_lines / 4).toLocaleString("en")}, and the others at equal steps in the order of the search. Selections and the table have all of them.`
      : "";
  }

  private redraw(): void {
    if (!this.instance) return;  // it draws what is chosen then
    this.drawn = this.to_draw();
    this.tell_drawn();
    this.instance.setOption({ series: [{ data: this.drawn.map((trial) => this.line(trial)) }] });
  }

  private controls(): Child {
    return h("div", { class: "filters" }, this.axes.map((one, axis) =>
      select(one.name, [{ value: "", text: "any" }, ...one.values.map((value, place) => ({ value: String(place), text: String(value) }))], "", (value) => {
        if (value) this.chosen.set(axis, Number(value));
        else this.chosen.delete(axis);
        this.redraw();
        this.tell();
      })));
  }

  private read_brushes(made: Instance): void {
    this.brushes = [];
    (made as any).getModel().eachComponent("parallelAxis", (one: any) => {
      this.brushes[one.get("dim")] = one.activeIntervals.map((ends: [number, number]) => [...ends]);
    });
    this.tell();
  }

  figure(): HTMLElement {
    const { axes, trials } = this;
    const figure = chart({
      title: "Parallel coordinates",
      note: `A line is a correct trial; the bluer, the faster. Drag along an axis to select, or choose values below.${this.all_axes > axes.length ? ` The ${axes.length} most important of ${this.all_axes} parameters with several values.` : ""}`,
      summary: `Parallel coordinates of ${this.ok.length} trials over ${axes.map((one) => one.name).join(", ")} and time.`,
      height: 340,
      points: Math.min(this.ok.length, most_lines),
      tall: axes.length > 3 ? 90 + 58 * (axes.length + 1) : undefined,
      controls: this.controls(),
      ready: (made) => {
        this.instance = made;
        made.on("axisareaselected", () => this.read_brushes(made));
      },
      option: (colours, narrow) => {
        this.drawn = this.to_draw();
        this.tell_drawn();
        return this.option(colours, narrow, trials_range(this.ok, trials));
      },
      table: () => ({ ...trial_rows(trials, this.ok, "Correct trials") }),
    });
    figure.append(this.shown, this.said, this.selection);
    this.tell();
    return figure;
  }

  private option(colours: Theme, narrow: boolean, range: { min: number; max: number }): Option {
    const { axes } = this;
    const lying = narrow && axes.length > 3;  // too narrow for axes beside each other
    return {
      parallel: {
        ...(lying ? { left: 16, right: 22, top: 26, bottom: 26, layout: "vertical" } : { left: 30, right: 56, top: 44, bottom: 20, layout: "horizontal" }),
        parallelAxisDefault: {
          nameTextStyle: { color: colours.ink, fontSize: 11, ...(lying ? { align: "left", verticalAlign: "bottom", padding: [0, 0, 5, 0], fontWeight: 600 } : {}) },
          nameLocation: lying ? "start" : "end", nameGap: lying ? 0 : 12,
          axisLine: { lineStyle: { color: colours.muted } }, axisTick: { show: false },
          axisLabel: { color: colours.ink, fontSize: 10, hideOverlap: true, textBorderColor: colours.surface, textBorderWidth: 3 }, splitLine: { show: false },
          areaSelectStyle: { width: 18, color: colours.accent, opacity: 0.25, borderColor: colours.accent },
        },
      },
      parallelAxis: [
        ...axes.map((one, at) => ({
          dim: at, name: one.name, type: "category",
          data: [...(this.absent[at] ? ["none"] : []), ...one.values.map(String)],
          nameTruncate: { maxWidth: lying ? 200 : 90 },
          axisLabel: { color: colours.ink, fontSize: 10, textBorderColor: colours.surface, textBorderWidth: 3, formatter: (text: string) => (text.length > 12 ? `${text.slice(0, 11)}…` : text) },
        })),
        { dim: axes.length, name: "time", type: "log", ...range, inverse: false, axisLabel: { color: colours.ink, fontSize: 10, textBorderColor: colours.surface, textBorderWidth: 3, hideOverlap: true, formatter: (us: number) => tick(time(us)) } },
      ],
      visualMap: { type: "continuous", show: false, dimension: axes.length + 1, min: 0, max: Math.log(4), inRange: { color: colours.dark ? [...colours.scale] : ["#08306b", "#2171b5", "#6baed6", "#c6dbef", "#e2e6ea"] } },
      series: [{
        type: "parallel", smooth: false, data: this.drawn.map((trial) => this.line(trial)), progressive: 0,
        lineStyle: { width: 1, opacity: this.drawn.length > 400 ? 0.35 : 0.55 }, inactiveOpacity: 0.03, activeOpacity: 0.9,
      }],
    };
  }
}

function trials_range(places: number[], trials: Trials): { min: number; max: number } {
  return log_range(places.length === trials.count ? trials.us : places.map((i) => trials.us[i]!));
}
