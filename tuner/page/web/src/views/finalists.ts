// The finalists of a result: their times in the certifying rounds, and how they ended.
import { axis, chart, intervals, most_narrow, no_chart, tip, type Option } from "../chart";
import type { Report, Result } from "../data";
import { h } from "../dom";
import { ratio, tick, time } from "../format";
import { labelled_rows, type Rows } from "../labels";
import type { Theme } from "../theme";
import { lines, point_style, type Line } from "./rounds";
import { trials_of } from "./trials";

interface Row {
  config: string;
  role: string;
  mark: "winner" | "tie" | "default" | "other";
  us: number;
  low: number;
  high: number;
  speedup: { estimate: number | null; low: number | null; high: number | null };
  /** Its times by round, which have its number and colour. */
  line?: Line | undefined;
}

export interface Finalists {
  rows: Row[];
  /** Whether the times are those of the rounds; else they are of the search. */
  rounds: boolean;
}

const departures: Record<string, string> = {
  slower: "significantly slower, left the rounds early",
  failed: "failed after the search",
  "slower elsewhere": "not faster than the default in another process",
};

// Trials name their parameters in another order than results.
const key = (config: string) => config.split(" ").sort().join(" ");

function of_rounds(row: Result): Row[] {
  const tied = new Set(row.ties.map((one) => key(one.config)));
  const timed = lines(row);
  const rows = row.finalists.map((one): Row => {
    const won = one.config === row.config;
    const tie = tied.has(key(one.config));
    const line = timed.find((other) => other.config === one.config);
    const stayed = !one.left && !won && !tie && !one.is_default;
    const role = [one.is_default ? "default" : "", won ? "winner" : "", !won && !one.is_default && line ? line.name : "", tie ? "tie" : "", stayed ? "stayed to the end" : "", one.left ? departures[one.left] ?? one.left : ""].filter(Boolean).join(", ");
    return {
      config: one.config, role, line, mark: won ? "winner" : one.is_default ? "default" : tie ? "tie" : "other",
      us: one.us ?? NaN, low: one.low_us ?? NaN, high: one.high_us ?? NaN,
      speedup: { estimate: one.speedup, low: one.speedup_low, high: one.speedup_high },
    };
  });
  return rows.filter((one) => Number.isFinite(one.us)).sort((a, b) => a.us - b.us);
}

/** What the search tells of the finalists of databases that have no rounds of them. */
function of_search(report: Report, row: Result): Row[] {
  if (row.search === null) return [];
  const trials = trials_of(report.searches[row.search]!);
  const phase = trials.column("phase");
  const low = trials.column("low_us");
  const high = trials.column("high_us");
  const tied = new Set(row.ties.map((one) => key(one.config)));
  const winner = key(row.config);
  const mark = (config: string): Row["mark"] => (key(config) === winner ? "winner" : tied.has(key(config)) ? "tie" : "other");
  return trials.places()
    .filter((i) => trials.ok(i))
    .map((i) => ({ i, config: trials.config(i), mark: mark(trials.config(i)) }))
    .filter((one) => phase[one.i] === 2 || one.mark !== "other")
    .map((one): Row => ({
      config: one.config, mark: one.mark, role: one.mark === "winner" ? (row.is_default ? "default, winner" : "winner") : one.mark === "tie" ? "tie" : "",
      us: trials.us[one.i]!, low: low[one.i]!, high: high[one.i]!, speedup: { estimate: null, low: null, high: null },
    }))
    .sort((a, b) => a.us - b.us);
}

export function finalists(report: Report, row: Result): Finalists {
  const rows = of_rounds(row);
  return rows.length ? { rows, rounds: true } : { rows: of_search(report, row), rounds: false };
}

const symbols = { winner: "circle", tie: "diamond", default: "triangle", other: "circle" };

export function finalists_chart(row: Result, { rows, rounds }: Finalists): HTMLElement {
  if (!rows.length) {
    return no_chart("Finalists", row.search === null
      ? "The finalists of this result are not in these files: databases that ship have winners only. The database of the tune itself has them."
      : "No trial of the search is this winner, a tie or of the last phase: the winner was known before the search, whose trials are in the database of that tune.");
  }
  const placed = (width: number) => labelled_rows(rows.map((one) => one.config), width, width < most_narrow);
  const option = (colours: Theme, { at, above, axis: lying }: Rows): Option => {
    const colour = { winner: colours.categories[0], tie: colours.categories[2], default: colours.categories[1], other: colours.muted };
    return {
      grid: { left: 8, right: 20, top: 6, bottom: 28, containLabel: !above },
      tooltip: tip(colours, ({ dataIndex }) => {
        const one = rows[dataIndex];
        return one ? { title: one.config, rows: [["role", one.role || "finalist"], ["median", time(one.us)], ["interval", `${time(one.low)} to ${time(one.high)}`], ["over default", one.speedup.estimate === null ? "unknown" : ratio(one.speedup.estimate)]] } : null;
      }),
      xAxis: axis(colours, { type: "value", scale: true, axisLine: { onZero: false, lineStyle: { color: colours.line } }, name: rounds ? "time in the rounds" : "time in the search", nameGap: 22, axisLabel: { color: colours.muted, hideOverlap: true, formatter: (us: number) => tick(time(us)) } }),
      yAxis: axis(colours, { ...lying, axisLabel: { color: colours.ink, ...lying["axisLabel"] } }),
      series: [
        intervals("interval", rows.map((one, i) => [at[i]!, one.low, one.high]), colours.muted, false),
        { type: "scatter", symbolSize: 9, data: rows.map((one, i) => ({ value: [one.us, at[i]!], symbol: symbols[one.mark], itemStyle: point_style(one.line?.colour(colours) ?? colour[one.mark]!, one.mark === "other") })) },
      ],
    };
  };
  return chart({
    title: "Finalists",
    note: rounds
      ? "Medians in the rounds, with their intervals. The speed-ups in the table are ratios round by round, whose intervals are corrected for the number of comparisons; a short winner was also compared with the default in further processes."
      : "Medians with intervals from the search, which timed them one by one: this file has no rounds of finalists other than the winner and the default. Only the rounds above decide.",
    summary: `${rows.length} finalists, the fastest ${time(rows[0]!.us)}.`,
    height: (width) => 34 + placed(width).height,
    option: (colours, _, width) => option(colours, placed(width)),
    table: () => ({
      caption: "Finalists",
      rows,
      columns: [
        { title: "Configuration", value: (one: Row) => one.config, show: (one: Row) => h("code", {}, one.config) },
        { title: "Role", value: (one: Row) => one.role || "finalist" },
        { title: "Median", value: (one: Row) => one.us, show: (one: Row) => time(one.us), align: "right" },
        { title: "From", value: (one: Row) => one.low, show: (one: Row) => time(one.low), align: "right" },
        { title: "To", value: (one: Row) => one.high, show: (one: Row) => time(one.high), align: "right" },
        ...(rounds ? [
          { title: "Over default", value: (one: Row) => one.speedup.estimate, show: (one: Row) => ratio(one.speedup.estimate), align: "right" as const },
          { title: "Between", value: (one: Row) => one.speedup.low, show: (one: Row) => (one.speedup.low === null ? "" : `${ratio(one.speedup.low)} and ${ratio(one.speedup.high)}`), align: "right" as const },
        ] : []),
      ],
    }),
  });
}
