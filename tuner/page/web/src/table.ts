// Tables that sort, search and show more rows on demand.
import { h, new_id, type Child } from "./dom";
import { count as rows_text } from "./format";

export interface TableColumn<Row> {
  title: string;
  /** What is sorted by; text also takes part in a search. */
  value: (row: Row) => string | number | null | undefined;
  show?: (row: Row) => Child;
  align?: "right";
  /** Hidden on narrow screens. */
  wide?: boolean;
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
  const body = h("tbody");
  const count = h("p", { class: "count", role: "status" });
  const more = h("button", { type: "button", class: "more" });
  const heads = options.columns.map((one, i) =>
    h(
      "th",
      { scope: "col", class: cell_class(one) },
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
    return [...list].sort((a, b) => {
      const x = by.value(a) ?? null;
      const y = by.value(b) ?? null;
      if (x === null || y === null || x !== x || y !== y) {
        return Number(x === null || x !== x) - Number(y === null || y !== y);  // unknown ones last
      }
      if (typeof x === "string" && typeof y === "string")
        return sign * x.localeCompare(y, "en", { numeric: true });
      return sign * (Number(x) - Number(y));
    });
  }

  function fill(): void {
    const list = rows();
    body.replaceChildren(
      ...list.slice(0, shown).map((row) =>
        h(
          "tr",
          {},
          options.columns.map((one) =>
            h("td", { class: cell_class(one) }, one.show ? one.show(row) : (one.value(row) ?? "–")),
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
  fill();
  return h(
    "div",
    { class: "table" },
    options.search ? h("div", { class: "controls" }, box) : null,
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": id },
      h("table", {}, h("caption", { id }, h("span", {}, options.caption)), h("thead", {}, h("tr", {}, heads)), body),
    ),
    h("div", { class: "foot" }, count, more),
  );
}

function cell_class(column: { align?: string; wide?: boolean }): string {
  return [column.align === "right" ? "right" : "", column.wide ? "wide" : ""].filter(Boolean).join(" ");
}
