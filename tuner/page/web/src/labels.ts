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

export interface RowLabels {
  names: string[];
  /** The height of a row. */
  step: number;
  /** Whether the labels lie above what is drawn in their rows, and not beside it. */
  above: boolean;
  /** How far below the middle of its row something is drawn. */
  offset: (row: number) => number;
  axisLabel: Option;
}

/** Labels of rows in a chart of a width. `above`: that they lie above what is drawn. */
export function row_labels(all: string[], width: number, above: boolean): RowLabels {
  const room = above ? width - 40 : Math.min(380, 0.4 * width);
  const names = all.map((name) => wrap(name, room));
  const lines = names.map(line_count);
  const most = lines.reduce((a, b) => Math.max(a, b), 1);
  return {
    names,
    step: above ? 26 + line_height * most : Math.max(17, 5 + line_height * most),
    above,
    offset: (row) => (above ? 7 + (line_height / 2) * lines[row]! : 0),
    axisLabel: { fontSize: size, lineHeight: line_height, interval: 0, ...(above ? { inside: true, align: "left", margin: 2 } : {}) },
  };
}
