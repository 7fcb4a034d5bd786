// Colours. Categories have those of Okabe and Ito, which colour-blind readers can tell apart, and a
// symbol each.

export interface Theme {
  dark: boolean;
  ink: string;
  muted: string;
  line: string;
  surface: string;
  accent: string;
  good: string;
  bad: string;
  categories: string[];
  /** From good to bad, for heat maps. */
  scale: string[];
}

export const symbols = ["circle", "triangle", "rect", "diamond", "path://M0 3H3V0H5V3H8V5H5V8H3V5H0Z", "path://M0 0H8L4 8Z", "path://M0 3H8V5H0Z"];

const light: Theme = {
  dark: false,
  ink: "#1a1f26",
  muted: "#566070",
  line: "#dde2e8",
  surface: "#ffffff",
  accent: "#0072b2",
  good: "#009e73",
  bad: "#d55e00",
  categories: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b7280"],
  scale: ["#08519c", "#3182bd", "#6baed6", "#bdd7e7", "#eff3ff", "#fdd0a2", "#fd8d3c", "#d55e00"],
};

const dark: Theme = {
  dark: true,
  ink: "#e7ebf0",
  muted: "#9ba6b4",
  line: "#2b333e",
  surface: "#161b22",
  accent: "#56b4e9",
  good: "#2fbf91",
  bad: "#f0803c",
  categories: ["#56b4e9", "#e69f00", "#2fbf91", "#cc79a7", "#f0e442", "#f0803c", "#9ba6b4"],
  scale: ["#9ecae1", "#6baed6", "#4292c6", "#2b6a9c", "#264a66", "#6b4a2b", "#b3642a", "#f0803c"],
};

type Choice = "auto" | "light" | "dark";
const choices: Choice[] = ["auto", "light", "dark"];
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let chosen: Choice = "auto";
let printing = false;

export function theme(): Theme {
  if (printing) return light;
  return chosen === "dark" || (chosen === "auto" && system.matches) ? dark : light;
}

/** Calls a function when the colours change. */
export function on_theme(listener: () => void): void {
  listeners.add(listener);
}

function apply(): void {
  document.documentElement.dataset["theme"] = theme().dark ? "dark" : "light";
  for (const listener of listeners) listener();
}

export function next_theme(): Choice {
  chosen = choices[(choices.indexOf(chosen) + 1) % choices.length]!;
  try {
    localStorage.setItem("greta-theme", chosen);
  } catch {
    // A page opened from a disk may have no storage: the choice is forgotten.
  }
  apply();
  return chosen;
}

export function chosen_theme(): Choice {
  return chosen;
}

export function start_theme(): void {
  try {
    const kept = localStorage.getItem("greta-theme") as Choice | null;
    if (kept && choices.includes(kept)) chosen = kept;
  } catch {
    // As above.
  }
  system.addEventListener("change", apply);
  const print = (on: boolean) => {
    printing = on;
    // The style gives the page the width of paper, so that charts can be drawn for it before the
    // browser lays the paper out.
    document.documentElement.classList.toggle("paper", on);
    apply();
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  apply();
}
