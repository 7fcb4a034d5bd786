// Labels of the rows of a chart: whole, in as many lines as their place needs.
import type { Option } from "./chart";

export const font = '"Inter", system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';

const size = 10.5;
const line_height = 13;

let ruler: CanvasRenderingContext2D | null = null;

/** The width in pixels of a text of a chart. */
export function text_width(text: string): number {
  ruler ??= document.createElement("canvas").getContext("2d")!;
  ruler.font = `${size}px ${font}`;
  return ruler.measureText(text).width;
}

/** Breaks a text into lines of at most this width: between words, and within those that are longer. */
export function wrap(text: string, width: number): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line ? `${line} ${word}` : word;
    if (text_width(longer) <= width) {
      line = longer;
      continue;
    }
    if (line) lines.push(line);
    line = "";
    for (const letter of word) {
      if (line && text_width(line + letter) > width) {
        lines.push(line);
        line = "";
      }
      line += letter;
    }
  }
  return [...lines, line].join("\n");
}

export const line_count = (text: string): number => text.split("\n").length;

/** Labels of the rows of a bar chart, beside the bars. */
export function row_labels(all: string[], width: number): { names: string[]; step: number; axisLabel: Option } {
  const names = all.map((name) => wrap(name, 0.4 * width));
  const most = names.reduce((lines, name) => Math.max(lines, line_count(name)), 1);
  return { names, step: Math.max(22, 5 + line_height * most), axisLabel: { fontSize: size, lineHeight: line_height, interval: 0 } };
}

/** Rows of different heights with their labels, on an axis of pixels. */
export interface Rows {
  height: number;
  /** The middle of what is drawn in each row. */
  at: number[];
  /** Whether labels lie above what is drawn, for which a narrow screen has no place beside them. */
  above: boolean;
  axis: Option;
}

export function labelled_rows(all: string[], width: number, above: boolean): Rows {
  const room = above ? width - 40 : Math.min(380, 0.5 * width);
  const names = new Map<number, string>();
  const at: number[] = [];
  let height = 0;
  for (const name of all.map((one) => wrap(one, room))) {
    const text = line_height * line_count(name);
    names.set(height + (above ? 6 + text / 2 : (text + 6) / 2), name);
    at.push(height + (above ? 6 + text + 8 : (text + 6) / 2));
    height += above ? 6 + text + 18 : text + 6;
  }
  return {
    height, at, above,
    axis: {
      type: "value", inverse: true, min: 0, max: height, splitLine: { show: false },
      axisTick: { show: false, customValues: [...names.keys()] },
      axisLabel: {
        fontSize: size, lineHeight: line_height, customValues: [...names.keys()], formatter: (place: number) => names.get(place) ?? "",
        ...(above ? { inside: true, align: "left", margin: 2 } : {}),
      },
    },
  };
}
