// Tables that sort, search and show more rows on demand.
import { h, new_id, type Child } from "./dom";
import { count as rows_text } from "./format";
import { when_near } from "./later";

export interface TableColumn<Row> {
  title: string;
  /** What is sorted by; text also takes part in a search. */
  value: (row: Row) => string | number | null | undefined;
  show?: (row: Row) => Child;
  align?: "right";
}

export interface TableOptions<Row> {
  caption: string;
  columns: TableColumn<Row>[];
  rows: Row[];
  /** The column that sorts at first, and whether it descends. */
  sort?: { column: number; down: boolean };
  first?: number;
  search?: boolean;
}

const page_rows = 50;
/** Columns that lie beside each other on narrow screens; rows of more are stacked there. */
const most_beside = 3;
/** Rows beyond which sorting them waits until the table is near what is seen. */
const most_at_once = 5000;

export function table<Row>(options: TableOptions<Row>): HTMLElement {
  let { column, down } = options.sort ?? { column: -1, down: false };
  let words: string[] = [];
  let shown = options.first ?? page_rows;
  const texts = new Map<Row, string>();
  const text_of = (row: Row) => {
    let text = texts.get(row);
    if (text === undefined) {
      text = options.columns.map((one) => String(one.value(row) ?? "")).join(" ").toLowerCase();
      texts.set(row, text);
    }
    return text;
  };
  const body = h("tbody", { role: "rowgroup" });
  const count = h("p", { class: "count", role: "status" });
  const more = h("button", { type: "button", class: "more" });
  const heads = options.columns.map((one, i) =>
    h(
      "th",
      { scope: "col", class: one.align, role: "columnheader" },
      h(
        "button",
        {
          type: "button",
          onclick: () => {
            down = column === i ? !down : one.align === "right";
            column = i;
            fill();
          },
        },
        one.title,
      ),
    ),
  );

  function rows(): Row[] {
    let list = options.rows;
    if (words.length) list = list.filter((row) => words.every((word) => text_of(row).includes(word)));
    const by = options.columns[column];
    if (!by) return list;
    const sign = down ? -1 : 1;
    const keys = list.map((row) => by.value(row) ?? null);  // once for each row, not for each comparison
    const unknown = (key: string | number | null) => key === null || key !== key;
    return list.map((_, i) => i).sort((a, b) => {
      const x = keys[a]!;
      const y = keys[b]!;
      if (typeof x === "number" && typeof y === "number" && x === x && y === y) return sign * (x - y);
      if (unknown(x) || unknown(y)) return Number(unknown(x)) - Number(unknown(y));  // unknown ones last
      if (typeof x === "string" && typeof y === "string") return sign * x.localeCompare(y, "en", { numeric: true });
      return sign * (Number(x) - Number(y));
    }).map((i) => list[i]!);
  }

  function fill(): void {
    const list = rows();
    body.replaceChildren(
      ...list.slice(0, shown).map((row) =>
        h(
          "tr",
          { role: "row" },
          options.columns.map((one) =>
            h("td", { class: one.align, role: "cell", "data-label": one.title }, one.show ? one.show(row) : (one.value(row) ?? "–")),
          ),
        ),
      ),
    );
    heads.forEach((head, i) =>
      head.setAttribute("aria-sort", i !== column ? "none" : down ? "descending" : "ascending"),
    );
    const all = list.length === options.rows.length;
    const found = all ? rows_text(list.length, "row") : `${list.length.toLocaleString("en")} of ${rows_text(options.rows.length, "row")}`;
    count.textContent = list.length > shown ? `${found}, of which ${shown} are shown` : found;
    more.hidden = list.length <= shown;
    more.textContent = `Show ${Math.min(200, list.length - shown)} more`;
  }

  more.addEventListener("click", () => {
    shown += 200;
    fill();
  });
  const id = new_id();
  const box = h("input", { type: "search", placeholder: "Search", "aria-label": `Search: ${options.caption}` });
  box.addEventListener("input", () => {
    words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = options.first ?? page_rows;
    fill();
  });
  const made = h(
    "div",
    { class: options.columns.length > most_beside ? "table stacks" : "table" },
    options.search ? h("div", { class: "controls" }, box) : null,
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": id },
      // Where rows are stacked, browsers forget that this is a table; roles say it.
      h("table", { role: "table" }, h("caption", { id }, h("span", {}, options.caption)), h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)), body),
    ),
    h("div", { class: "foot" }, count, more),
  );
  if (options.rows.length > most_at_once) when_near(made, fill);
  else fill();
  return made;
}
