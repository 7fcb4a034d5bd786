// Routes: "#/search/3?by=seconds" is a view, what it shows, and its settings. The slash says that it is no place
// within the page.
import type { Report } from "./data";

export interface Route {
  view: string;
  id: number | null;
  settings: URLSearchParams;
}

export interface View {
  name: string;
  title: string;
  /** How many things it can show; 0: it says what would fill it. */
  count: (report: Report) => number;
  show: (report: Report, route: Route) => Node[];
}

export function read_route(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view = "", id] = path.split("/");
  return {
    view,
    id: id !== undefined && /^\d+$/.test(id) ? Number(id) : null,
    settings: new URLSearchParams(query),
  };
}

export function link(view: string, id?: number | null, settings: Record<string, string> = {}): string {
  const query = new URLSearchParams(settings).toString();
  return `#/${view}${id === undefined || id === null ? "" : `/${id}`}${query ? `?${query}` : ""}`;
}

/** Changes settings of the present view: its address, and what it shows. */
export function set(settings: Record<string, string>): void {
  const route = read_route();
  for (const [name, value] of Object.entries(settings)) {
    if (value) route.settings.set(name, value);
    else route.settings.delete(name);
  }
  location.hash = link(route.view, route.id, Object.fromEntries(route.settings));
}
