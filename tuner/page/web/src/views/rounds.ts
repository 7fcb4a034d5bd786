// The interleaved rounds that certified a result.
import { axis, chart, legend, no_chart, tip } from "../chart";
import { numbers, type Numbers, type Result } from "../data";
import { count, tick, time } from "../format";
import type { Theme } from "../theme";

/** The range of most values: a few that lie far off would squeeze the others. */
export function most_of(values: number[]): { min: number; max: number; outside: number } {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))]!;
  const width = at(0.9) - at(0.1) || at(0.5) * 0.02;
  const low = Math.max(sorted[0]!, at(0.1) - 1.5 * width);
  const high = Math.min(sorted[sorted.length - 1]!, at(0.9) + 1.5 * width);
  const pad = (high - low) * 0.08;
  const [min, max] = [low - pad, high + pad];
  return { min, max, outside: values.filter((one) => one < min || one > max).length };
}

export function outside_text(outside: number): string {
  return outside ? ` ${count(outside, "sample")} far off ${outside === 1 ? "is" : "are"} in the table only.` : "";
}

const no_samples = "These files have no samples of this result's rounds: databases that ship omit them. The database of the tune itself (greta-tune --db) has them.";

export interface Line {
  name: string;
  config: string;
  us: Numbers;
  symbol: string;
  hollow: boolean;
  colour: (colours: Theme) => string;
}

/** The style of a point: hollow ones leave what lies below them in sight. */
export const point_style = (colour: string, hollow: boolean) => (hollow ? { color: "transparent", borderColor: colour, borderWidth: 1.5 } : { color: colour });

/** The times by round of each finalist: the winner first, then the default. */
export function lines(row: Result): Line[] {
  const winner: Line = { name: row.is_default ? "default, the winner" : "winner", config: row.config, us: numbers(row.rounds_us), symbol: "circle", hollow: false, colour: (colours) => colours.categories[0]! };
  const standard: Line = { name: "default", config: row.finalists.find((one) => one.is_default)?.config ?? "default", us: numbers(row.default_rounds_us), symbol: "triangle", hollow: false, colour: (colours) => colours.categories[1]! };
  const list = row.is_default || !standard.us.length ? [winner] : [winner, standard];
  const others = row.finalists.filter((one) => one.config !== row.config && !one.is_default);
  const rest = others.map((one, i): Line => ({
    name: `finalist ${list.length + i + 1}`, config: one.config, us: numbers(one.rounds_us), symbol: "circle", hollow: true,
    colour: (colours) => colours.categories[Math.min(i + 2, colours.categories.length - 1)]!,
  }));
  return [...list, ...rest].filter((one) => one.us.length > 0);
}

export function rounds_chart(row: Result): HTMLElement {
  const list = lines(row);
  if (!numbers(row.rounds_us).length) return no_chart("Rounds", no_samples);
  const all = list.flatMap((one) => Array.from(one.us));
  const { min, max, outside } = most_of(all);
  const rounds = Math.max(...list.map((one) => one.us.length));
  const has_control = list.some((one) => one.name === "default");
  return chart({
    title: "Rounds",
    note: `Each round times every finalist in turn, so that what disturbs the device disturbs all. ${has_control ? "The default is the control: a round that is slow for both is the device's, not the winner's. " : ""}${row.finalists.some((one) => one.left === "slower") ? "A finalist that was significantly slower left the rounds early. " : ""}The band is the interval of the winner's median.${outside_text(outside)}`,
    summary: `${rounds} rounds of ${count(list.length, "finalist")}: the winner's median is ${time(row.us)}${has_control ? `, the default's ${time(row.default_us)}` : ""}.`,
    height: 290,
    points: all.length,
    option: (colours, narrow) => ({
      legend: legend(colours),
      grid: { left: 8, right: 16, top: narrow && list.length > 3 ? 52 : 30, bottom: 34, containLabel: true },
      tooltip: tip(colours, (at) => ({ title: `round ${at.data[0]}, ${at.seriesName}`, rows: [["time", time(at.data[1])], ["configuration", list[at.seriesIndex]?.config ?? ""]] })),
      xAxis: axis(colours, { type: "value", min: 0, max: rounds + 1, name: "round", nameGap: 22, minInterval: 1, splitLine: { show: false }, axisLabel: { color: colours.muted, showMaxLabel: false } }),
      yAxis: axis(colours, { type: "value", min, max, axisLabel: { color: colours.muted, formatter: (us: number) => tick(time(us)), showMinLabel: false, showMaxLabel: false } }),
      series: list.map((one, i) => ({
        name: one.name, type: "scatter", symbol: one.symbol, symbolSize: 6, data: Array.from(one.us, (us, round) => [round + 1, us]), itemStyle: point_style(one.colour(colours), one.hollow),
        ...(i > 0 ? {} : {
          markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: one.colour(colours), width: 1 }, data: [{ yAxis: row.us }] },
          markArea: { silent: true, itemStyle: { color: one.colour(colours), opacity: 0.12 }, data: [[{ yAxis: row.low_us }, { yAxis: row.high_us }]] },
        }),
      })),
    }),
    table: () => ({
      caption: "Times by round",
      rows: Array.from({ length: rounds }, (_, i) => i),
      columns: [
        { title: "Round", value: (i: number) => i + 1, align: "right" as const },
        ...list.map((one) => ({ title: one.name[0]!.toUpperCase() + one.name.slice(1), value: (i: number) => one.us[i] ?? null, show: (i: number) => time(one.us[i]), align: "right" as const })),
      ],
    }),
  });
}
