// A chart: a figure with a title, a drawing and a table of the same data.
import { BarChart, CustomChart, HeatmapChart, LineChart, ParallelChart, ScatterChart } from "echarts/charts";
import {
  AxisPointerComponent,
  DataZoomInsideComponent,
  GridComponent,
  LegendComponent,
  MarkAreaComponent,
  MarkLineComponent,
  ParallelComponent,
  TooltipComponent,
  VisualMapContinuousComponent,
} from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";
import { h, new_id, type Child } from "./dom";
import { ratio, tick } from "./format";
import { font } from "./labels";
import { forget_waiting, make_waiting, when_near } from "./later";
import { table, type TableOptions } from "./table";
import { on_theme, theme, type Theme } from "./theme";

echarts.use([
  BarChart, CustomChart, HeatmapChart, LineChart, ParallelChart, ScatterChart, AxisPointerComponent,
  DataZoomInsideComponent, GridComponent, LegendComponent, MarkAreaComponent, MarkLineComponent,
  ParallelComponent, TooltipComponent, VisualMapContinuousComponent, CanvasRenderer, SVGRenderer,
]);

// eslint-disable-next-line -- ECharts' own type of options is a union that literals do not fit.
export type Option = Record<string, any>;
export type Instance = echarts.ECharts;

/** Points beyond which a chart is drawn on a canvas, which is faster than SVG. */
const most_svg_points = 1200;
/** Width in pixels below which charts have less beside each other. */
export const most_narrow = 520;
/** Points of a chart beyond which those of a series are drawn as one shape. */
const most_shapes = 5000;
/** What a series of points needs in a chart with this number of them. */
export function many_points(count: number): Option {
  return count > most_shapes ? { large: true, largeThreshold: 0, progressive: 0 } : {};
}
/** Many points are smaller; below 4 pixels, ECharts draws them as squares, which is much faster. */
export function point_size(count: number): number {
  return count > most_shapes ? 3 : count > 1000 ? 4 : 6;
}

export interface ChartOptions {
  title: string;
  note?: Child;
  /** Says what the chart shows, for readers who do not see it. */
  summary: string;
  /** In pixels, or for the width of the chart. */
  height: number | ((width: number) => number);
  points?: number;
  /** The height where the chart is narrow, if it is another one. */
  tall?: number | undefined;
  option: (theme: Theme, narrow: boolean, width: number) => Option;
  table: () => TableOptions<any>;
  controls?: Child;
  ready?: (instance: Instance) => void;
  /** If there is nothing to draw: why, and what gives it data. */
  missing?: string | false | null;
}

/** Points as ECharts takes them: pairs and their places, or one array of numbers where there are many. */
export function packed(places: number[], x: (place: number) => number, y: (place: number) => number): number[][] | Float32Array {
  if (places.length <= most_shapes) return places.map((place) => [x(place), y(place), place]);
  const numbers = new Float32Array(2 * places.length);
  places.forEach((place, i) => {
    numbers[2 * i] = x(place);
    numbers[2 * i + 1] = y(place);
  });
  return numbers;
}

const alive = new Set<{ host: HTMLElement; instance: Instance; draw: () => void; fit: () => void }>();

/** Removes charts that have left the page. */
export function dispose_charts(): void {
  forget_waiting();
  for (const one of alive) {
    one.instance.dispose();
    alive.delete(one);
  }
}

/** The place of a chart without data: why, and what gives it data. */
export function no_chart(title: string, why: string): HTMLElement {
  const id = new_id();
  return h("figure", { class: "chart", "aria-labelledby": id, "data-missing": "yes" },
    h("figcaption", {}, h("h3", { id }, title)),
    h("p", { class: "missing" }, why));
}

export function chart(options: ChartOptions): HTMLElement {
  if (options.missing) return no_chart(options.title, options.missing);
  const id = new_id();
  const host = h("div", { class: "plot", role: "img", "aria-label": options.summary });
  host.style.height = `${height_of(options, document.documentElement.clientWidth - 60)}px`;
  const alternative = h("div", { class: "alternative", hidden: true });
  const button = h("button", { type: "button", class: "as-table", "aria-pressed": "false" }, "Table");
  button.addEventListener("click", () => {
    const on = alternative.hidden;
    if (on && !alternative.firstChild) alternative.append(table(options.table()));
    alternative.hidden = !on;
    host.hidden = on;
    button.setAttribute("aria-pressed", String(on));
  });
  button.setAttribute("aria-label", `Table: ${options.title}`);
  const figure = h(
    "figure",
    { class: "chart", "aria-labelledby": id },
    h(
      "figcaption",
      {},
      h("h3", { id }, options.title),
      button,
      options.note ? h("p", { class: "note" }, options.note) : null,
    ),
    options.controls ? h("div", { class: "controls" }, options.controls) : null,
    host,
    alternative,
  );
  when_near(host, () => start(host, options));
  return figure;
}

function height_of(options: ChartOptions, width: number): number {
  if (width < most_narrow && options.tall !== undefined) return options.tall;
  return typeof options.height === "number" ? options.height : options.height(width);
}

function start(host: HTMLElement, options: ChartOptions): void {
  const renderer = (options.points ?? 0) > most_svg_points ? "canvas" : "svg";
  const instance = echarts.init(host, null, { renderer });
  const draw = () => {
    const colours = theme();
    const narrow = host.clientWidth < most_narrow;
    const height = height_of(options, host.clientWidth);
    if (host.style.height !== `${height}px`) {
      host.style.height = `${height}px`;
      instance.resize({ animation: { duration: 0 } });
    }
    instance.setOption(
      { ...defaults(colours), ...options.option(colours, narrow, host.clientWidth) },
      { notMerge: true },
    );
    host.dataset["drawn"] = "yes";
  };
  draw();
  options.ready?.(instance);
  let width = host.clientWidth;
  const fit = () => {
    if (instance.isDisposed() || host.clientWidth === 0 || host.clientWidth === width) return false;
    width = host.clientWidth;
    instance.resize({ animation: { duration: 0 } });
    return true;
  };
  alive.add({ host, instance, draw, fit });
  new ResizeObserver(() => {
    if (fit()) draw();
  }).observe(host);
}

on_theme(() => {
  make_waiting();  // a print has all of them
  for (const one of alive) {
    one.fit();
    one.draw();
  }
});

function defaults(colours: Theme): Option {
  return {
    animation: false,
    color: colours.categories,
    textStyle: { fontFamily: font, color: colours.muted, fontSize: 11 },
    grid: { left: 8, right: 16, top: 12, bottom: 8, containLabel: true },
  };
}

/** An axis in the page's style. */
export function axis(colours: Theme, more: Option): Option {
  return {
    nameLocation: "middle",
    nameGap: 28,
    nameTextStyle: { color: colours.muted, fontSize: 11 },
    axisLine: { lineStyle: { color: colours.line } },
    axisTick: { show: false },
    axisLabel: { color: colours.muted, fontSize: 11, hideOverlap: true },
    splitLine: { lineStyle: { color: colours.line, width: 1 } },
    ...more,
  };
}

/**
 * An axis of ratios, whose data are natural logarithms: ticks are ratios in equal steps, and 1 is
 * always on it.
 */
export function ratio_axis(colours: Theme, logs: number[], more: Option = {}): Option {
  const { low, high } = logs.reduce((ends, one) => ({ low: Math.min(ends.low, one), high: Math.max(ends.high, one) }), { low: 0, high: 0 });
  const pad = Math.max(0.004, (high - low) * 0.05);
  const ticks = ratio_ticks(low - pad, high + pad);
  return axis(colours, {
    type: "value",
    min: low - pad,
    max: high + pad,
    ...more,
    axisTick: { show: false, customValues: ticks },
    splitLine: { lineStyle: { color: colours.line, width: 1 } },
    axisLabel: {
      color: colours.muted, fontSize: 11, hideOverlap: true, customValues: ticks,
      formatter: (value: number) => tick(ratio(Math.exp(value))),
    },
  });
}

/** Logarithms of round ratios between two logarithms, at most about eight, with that of 1. */
function ratio_ticks(low: number, high: number): number[] {
  const sets = [
    [1.005, 1.01, 1.015, 1.02, 1.025, 1.03], [1.01, 1.02, 1.03, 1.04, 1.05, 1.06], [1.02, 1.04, 1.06, 1.08, 1.1, 1.12],
    [1.05, 1.1, 1.15, 1.2, 1.25, 1.3], [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8], [1.2, 1.5, 2, 2.5, 3],
    [1.5, 2, 3, 5, 7, 10], [2, 5, 10, 20, 50, 100, 1000, 1e4, 1e5, 1e6],
  ];
  let ticks: number[] = [0];
  for (const set of sets) {
    const ups = set.map(Math.log);
    ticks = [...ups.map((one) => -one), 0, ...ups].filter((one) => one >= low && one <= high);
    const reaches = Math.log(set[set.length - 1]!) >= Math.max(high, -low) * 0.8;
    if (ticks.length <= 9 && reaches) break;
  }
  return ticks.sort((a, b) => a - b);
}

/** A tooltip of text nodes: a title and rows of a label and a value. */
export function tip(colours: Theme, content: (at: any) => { title: string; rows: [string, string][] } | null): Option {
  return {
    confine: true,
    backgroundColor: colours.surface,
    borderColor: colours.line,
    padding: 10,
    textStyle: { color: colours.ink, fontSize: 12, fontFamily: font },
    extraCssText: "box-shadow: 0 4px 16px rgb(0 0 0 / 18%); max-width: 420px; white-space: normal",
    formatter: (at: any) => {
      const text = content(at);
      if (!text) return "";
      return h(
        "div",
        { class: "tip" },
        h("strong", {}, text.title),
        h("dl", {}, text.rows.map(([label, value]) => [h("dt", {}, label), h("dd", {}, value)])),
      );
    },
  };
}

export function legend(colours: Theme, more: Option = {}): Option {
  return {
    top: 0,
    left: 0,
    itemWidth: 10,
    itemHeight: 10,
    itemGap: 14,
    textStyle: { color: colours.muted, fontSize: 11 },
    formatter: (name: string) => (name.length > 30 ? `${name.slice(0, 29)}…` : name),
    ...more,
  };
}

/** Ends of logarithmic axes at 1, 2 or 5 times a power of ten around the values. */
export function log_range(values: ArrayLike<number>): { min: number; max: number } {
  let low = Infinity;
  let high = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (!(value > 0) || !Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (!(high > 0)) return { min: 1, max: 10 };
  return { min: round_125(low / 1.05, false), max: round_125(high * 1.05, true) };
}

function round_125(value: number, up: boolean): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const steps = [1, 2, 5, 10];
  const step = up
    ? steps.find((one) => one * power >= value * (1 - 1e-9))
    : [...steps].reverse().find((one) => one * power <= value * (1 + 1e-9));
  return (step ?? 1) * power;
}

/**
 * A line from low to high with ends, drawn at data [place, low, high]; `upright` or lying. `other` is the colour of
 * those with a 1 after that.
 */
export function intervals(name: string, data: number[][], colour: string, upright: boolean, { other, ...more }: Option = {}): Option {
  return {
    name,
    type: "custom",
    data,
    silent: true,
    renderItem: (_: unknown, api: any) => {
      const at = api.value(0);
      const a = api.coord(upright ? [at, api.value(1)] : [api.value(1), at]);
      const b = api.coord(upright ? [at, api.value(2)] : [api.value(2), at]);
      const end = 3;
      const ends = upright ? [end, 0] : [0, end];
      const lines = [
        [a, b],
        [[a[0] - ends[0]!, a[1] - ends[1]!], [a[0] + ends[0]!, a[1] + ends[1]!]],
        [[b[0] - ends[0]!, b[1] - ends[1]!], [b[0] + ends[0]!, b[1] + ends[1]!]],
      ];
      return {
        type: "group",
        children: lines.map(([from, to]) => ({
          type: "line",
          shape: { x1: from[0], y1: from[1], x2: to[0], y2: to[1] },
          style: { stroke: api.value(3) === 1 ? other : colour, lineWidth: 1.4 },
        })),
      };
    },
    encode: upright ? { x: 0, y: [1, 2] } : { x: [1, 2], y: 0 },
    z: 3,
    ...more,
  };
}

/** A point's jitter between −0.5 and 0.5, the same each time. */
export function jitter(i: number): number {
  return ((i * 0.6180339887) % 1) - 0.5;
}
