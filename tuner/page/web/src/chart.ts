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
const most_svg_points = 3000;

export interface ChartOptions {
  title: string;
  note?: Child;
  /** Says what the chart shows, for readers who do not see it. */
  summary: string;
  height: number;
  points?: number;
  option: (theme: Theme, narrow: boolean) => Option;
  table: () => TableOptions<any>;
  controls?: Child;
  ready?: (instance: Instance) => void;
}

const alive = new Set<{ host: HTMLElement; instance: Instance; draw: () => void }>();

/** Removes charts that have left the page. */
export function dispose_charts(): void {
  for (const one of alive) {
    one.instance.dispose();
    alive.delete(one);
  }
}

export function chart(options: ChartOptions): HTMLElement {
  const id = new_id();
  const host = h("div", { class: "plot", role: "img", "aria-label": options.summary });
  host.style.height = `${options.height}px`;
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
  requestAnimationFrame(() => {
    if (host.isConnected) start(host, options);
  });
  return figure;
}

function start(host: HTMLElement, options: ChartOptions): void {
  const renderer = (options.points ?? 0) > most_svg_points ? "canvas" : "svg";
  const instance = echarts.init(host, null, { renderer });
  const draw = () => {
    const colours = theme();
    instance.setOption(
      { ...defaults(colours), ...options.option(colours, host.clientWidth < 520) },
      { notMerge: true },
    );
    host.dataset["drawn"] = "yes";
  };
  draw();
  options.ready?.(instance);
  alive.add({ host, instance, draw });
  let width = host.clientWidth;
  new ResizeObserver(() => {
    if (instance.isDisposed() || host.clientWidth === 0 || host.clientWidth === width) return;
    width = host.clientWidth;
    instance.resize({ animation: { duration: 0 } });
    draw();
  }).observe(host);
}

on_theme(() => {
  for (const one of alive) one.draw();
});

export const font = '"Inter", system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';

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
  const low = Math.min(0, ...logs);
  const high = Math.max(0, ...logs);
  const steps = [1.02, 1.05, 1.1, 1.25, 1.5, 2, 4, 10].map(Math.log);
  const step = steps.find((one) => (high - low) / one <= 8) ?? Math.log(100);
  return axis(colours, {
    type: "value",
    min: Math.floor(low / step - 0.3) * step,
    max: Math.ceil(high / step + 0.3) * step,
    interval: step,
    ...more,
    axisLabel: {
      color: colours.muted, fontSize: 11, hideOverlap: true,
      formatter: (value: number) => tick(ratio(Math.exp(value))),
    },
  });
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
    ...more,
  };
}

/** Ends of logarithmic axes at 1, 2 or 5 times a power of ten around the values. */
export function log_range(values: Iterable<number>): { min: number; max: number } {
  let low = Infinity;
  let high = 0;
  for (const value of values) {
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

/** A line from low to high with ends, drawn at data [place, low, high]; `upright` or lying. */
export function intervals(name: string, data: number[][], colour: string, upright: boolean, more: Option = {}): Option {
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
          style: { stroke: api.value(3) === 1 ? more["other"] : colour, lineWidth: 1.4 },
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
