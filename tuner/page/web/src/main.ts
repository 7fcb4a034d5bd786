import "./style.css";
import { dispose_charts } from "./chart";
import { read_report, type Report } from "./data";
import { h, type Child } from "./dom";
import { count, date } from "./format";
import { link, read_route, type View } from "./shell";
import { chosen_theme, next_theme, start_theme } from "./theme";
import { baselines } from "./views/baselines";
import { certification } from "./views/certification";
import { coverage } from "./views/coverage";
import { model } from "./views/model";
import { overview } from "./views/overview";
import { roofline } from "./views/roofline";
import { search } from "./views/search";

const views: View[] = [overview, search, roofline, certification, baselines, coverage, model];

function mark(): Node {
  const template = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, value] of Object.entries({ width: "20", height: "20", viewBox: "0 0 20 20", fill: "none", "aria-hidden": "true" }))
    template.setAttribute(name, value);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  for (const [name, value] of Object.entries({ d: "M2 16 9.5 6H18", stroke: "currentColor", "stroke-width": "2.2", "stroke-linecap": "round", "stroke-linejoin": "round" }))
    path.setAttribute(name, value);
  const dots = document.createElementNS("http://www.w3.org/2000/svg", "path");
  dots.setAttribute("d", "M7.2 14.6a1.3 1.3 0 1 0 .01 0M12.6 10.4a1.3 1.3 0 1 0 .01 0M15.6 13.8a1.3 1.3 0 1 0 .01 0");
  dots.setAttribute("fill", "currentColor");
  template.append(path, dots);
  return template;
}

function header(report: Report): HTMLElement {
  const theme = h("button", { type: "button", class: "theme" });
  const name = (choice: string) => {
    theme.textContent = `Colours: ${choice}`;
  };
  name(chosen_theme());
  theme.addEventListener("click", () => name(next_theme()));
  const all = report.made.files.map((file) => file.name);
  const files = all.slice(0, 3).join(", ") + (all.length > 3 ? ` and ${all.length - 3} more` : "");
  return h(
    "header",
    {},
    h(
      "div",
      { class: "bar" },
      h("a", { class: "brand", href: link("overview") }, mark(), "GRETA report"),
      h("span", { class: "files", title: all.join(", ") }, files),
      theme,
    ),
    h(
      "nav",
      { "aria-label": "Views" },
      h(
        "ul",
        {},
        views.map((view) =>
          h(
            "li",
            {},
            h("a", { href: link(view.name), "data-view": view.name }, view.title,
              h("span", { class: "number" }, view.count(report) || "–")),
          ),
        ),
      ),
    ),
  );
}

/** What the page lacks: rows of databases that are damaged. */
function notices(report: Report): HTMLElement[] {
  return report.made.files.filter((file) => (file.damaged ?? 0) > 0).map((file) =>
    h("p", { class: "notice" }, `${file.name}: ${count(file.damaged!, "row")} skipped because of damage, so that this page is incomplete. greta-db verify names them; tuning a problem again replaces a damaged result.`));
}

function footer(report: Report): HTMLElement {
  const licences = document.getElementById("licences")?.textContent ?? "";
  return h(
    "footer",
    {},
    h("p", {}, `greta-report ${report.made.greta_version}, ${date(report.made.utc)} UTC, from ${count(report.made.files.length, "file")}. Times are medians; intervals are at 95 % unless they say otherwise.`),
    report.made.files.length ? h("details", {}, h("summary", {}, "Files"), h("ul", {}, report.made.files.map((file) => h("li", {}, `${file.name} (${file.kind})`)))) : null,
    h("details", {}, h("summary", {}, "Licences"), h("pre", { tabindex: 0 }, licences)),
  );
}

function start(): void {
  const page = document.getElementById("page")!;
  let report: Report;
  try {
    report = read_report();
  } catch (error) {
    page.append(h("main", {}, h("h1", {}, "GRETA report"), h("p", {}, String(error))));
    return;
  }
  start_theme();
  const main = h("main", { id: "main", tabindex: -1 });
  const skip = h("a", { class: "skip", href: "#main", onclick: (event) => (event.preventDefault(), main.focus()) }, "Skip to the content");
  page.append(skip, header(report), main, footer(report));
  const lost = h("p", { class: "notice", role: "status", "data-notice": "connection", hidden: true });
  let last = "";
  const show = () => {
    const route = read_route();
    const view = views.find((one) => one.name === route.view) ?? views.find((one) => one.count(report) > 0) ?? overview;
    document.title = `${view.title} · GRETA report`;
    for (const item of document.querySelectorAll<HTMLElement>("nav a")) {
      const here = item.dataset["view"] === view.name;
      if (here) item.setAttribute("aria-current", "page");
      else item.removeAttribute("aria-current");
      if (here) item.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    const active = document.activeElement instanceof HTMLElement ? focus_key(document.activeElement) : null;
    dispose_charts();
    const content: Child[] = view.show(report, route);
    main.replaceChildren(lost, ...notices(report), h("div", { "data-view": view.name }, content));
    const place = `${view.name}/${route.id}`;
    if (place !== last) scrollTo(0, 0);
    last = place;
    if (active) focusable(main.querySelector<HTMLElement>(active))?.focus({ preventScroll: true });
  };
  addEventListener("hashchange", show);
  show();
  if (location.protocol === "http:") follow((text) => {
    report = read_report(text);
    const top = scrollY;
    document.querySelector("header")!.replaceWith(header(report));
    show();
    scrollTo(0, top);
  }, lost, () => report);
}

const try_again_ms = 2000;

/** Updates a page that greta-report serve serves: an event says that the databases have changed. */
function follow(update: (text: string) => void, lost: HTMLElement, shown: () => Report): void {
  let waiting = 0;
  const tell = (why: string) => {
    lost.textContent = `${why}; data of ${date(shown().made.utc).slice(11)} UTC. The page tries again.`;
    lost.hidden = false;
  };
  const later = (what: () => void) => {
    clearTimeout(waiting);
    waiting = window.setTimeout(what, try_again_ms);
  };
  const load = async () => {
    try {
      const answer = await fetch("data");
      const text = await answer.text();
      if (!answer.ok) {
        tell(`The server has no data: ${text || answer.status}`);
        return later(load);
      }
      update(text);
      lost.hidden = true;
    } catch {
      tell("Connection lost");
      later(load);
    }
  };
  const listen = () => {
    const events = new EventSource("events");
    events.addEventListener("message", () => void load());
    events.addEventListener("open", () => !lost.hidden && void load());
    events.addEventListener("error", () => {
      tell("Connection lost");
      if (events.readyState === EventSource.CLOSED) later(listen);  // otherwise the browser tries again
    });
  };
  listen();
}

/** The control of a place: itself, its list, its pressed button or its first one. */
function focusable(place: HTMLElement | null): HTMLElement | null {
  if (!place || place.matches("button, select, input")) return place;
  return place.querySelector<HTMLElement>("select, input, button[aria-pressed='true']") ?? place.querySelector("button");
}

/** A selector of the control that has the focus, which a view draws again when a setting changes. */
function focus_key(element: HTMLElement): string | null {
  const key = element.closest<HTMLElement>("[data-key]")?.dataset["key"];
  return key && element.closest("main") ? `[data-key="${CSS.escape(key)}"]` : null;
}

start();
