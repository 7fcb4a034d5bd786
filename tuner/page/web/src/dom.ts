// Elements are made here only. Text is always a text node, so that nothing from a database is read
// as HTML.

export type Child = Node | string | number | null | undefined | false | Child[];
type Handler = (event: Event) => void;
export type Properties = Record<string, string | number | boolean | null | undefined | Handler>;

/** Makes an element: properties that begin with "on" are listeners, the others attributes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, String(value));
  }
  add(element, children);
  return element;
}

function add(element: Element, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) add(element, child);
    else if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== false)
      element.append(document.createTextNode(String(child)));
  }
}

let last_id = 0;
export function new_id(): string {
  return `e${++last_id}`;
}

export interface Choice {
  value: string;
  text: string;
}

/** A labelled list to choose from. */
export function select(label: string, choices: Choice[], value: string, change: (value: string) => void) {
  const list = h(
    "select",
    { onchange: () => change(list.value) },
    choices.map((one) => h("option", { value: one.value, selected: one.value === value }, one.text)),
  );
  return h("label", { class: "field" }, h("span", {}, label), list);
}

/** Buttons of which one is pressed. */
export function segmented(label: string, choices: Choice[], value: string, change: (value: string) => void) {
  return h(
    "div",
    { class: "segmented", role: "group", "aria-label": label },
    choices.map((one) =>
      h(
        "button",
        { type: "button", "aria-pressed": String(one.value === value), onclick: () => change(one.value) },
        one.text,
      ),
    ),
  );
}

/** A button that copies a command line, which it shows as its title. */
export function copy_button(text: string) {
  const button = h("button", { type: "button", class: "copy", title: text, "aria-label": `Copy ${text}` }, "Copy");
  button.addEventListener("click", () => {
    const done = () => {
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    };
    const area = h("textarea", { class: "off-screen" }, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");  // the clipboard's own interface needs a secure origin
    area.remove();
    button.focus();
    done();
  });
  return button;
}

/** Commands name files as the report was given them. */
export const where_commands_run = "For the folder in which this report was made, on the machine with the device. Results of databases that ship go to your own database.";

/** A command line with a button that copies it. */
export function command(text: string) {
  return h("div", { class: "command" }, h("code", { tabindex: 0 }, text), copy_button(text));
}

/** Figures with what they mean. */
export function tiles(list: { label: string; value: string; note?: string; tone?: string }[]) {
  return h(
    "dl",
    { class: "tiles" },
    list.map((one) =>
      h(
        "div",
        { class: "tile" },
        h("dt", {}, one.label),
        h("dd", { class: one.tone ?? "" }, one.value, one.note ? h("small", {}, one.note) : null),
      ),
    ),
  );
}

/** A section with a heading. */
export function section(title: string, ...children: Child[]) {
  const id = new_id();
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), ...children);
}

export function empty(text: string, example?: string) {
  return h("div", { class: "empty" }, h("p", {}, text), example ? command(example) : null);
}

export function tag(text: string, kind = "") {
  return h("span", { class: `tag ${kind}` }, text);
}
