// What takes long to make is made when it is near what is seen, and else when the browser is idle.

/** Elements whose content is not made yet, in the order of the page, and those of them that are near what is seen. */
const waiting = new Map<Element, () => void>();
const wanted = new Set<Element>();
const near = new IntersectionObserver((changes) => {
  for (const { target, isIntersecting } of changes) {
    if (isIntersecting) wanted.add(target);
    else wanted.delete(target);
  }
  plan();
}, { rootMargin: "200px 0px" });

/** Calls `make` once, when the element is near what is seen or the browser is idle. It is not called if the element has left the page. */
export function when_near(element: Element, make: () => void): void {
  waiting.set(element, make);
  near.observe(element);
  if (waiting.size === 1) requestAnimationFrame(plan);
}

/** Makes what waits now. */
export function make_waiting(): void {
  for (const element of [...waiting.keys()]) take(element);
}

export function forget_waiting(): void {
  for (const element of waiting.keys()) near.unobserve(element);
  waiting.clear();
  wanted.clear();
}

function take(element: Element): void {
  const make = waiting.get(element);
  waiting.delete(element);
  wanted.delete(element);
  near.unobserve(element);
  if (element.isConnected) make?.();
}

let planned: "no" | "soon" | "idle" = "no";
let ticket = 0;
/** Plans the next element: one that is near after the browser has shown what is there, another one when it is idle. */
function plan(): void {
  const soon = wanted.size > 0;
  if (!waiting.size || planned === "soon" || (planned === "idle" && !soon)) return;
  planned = soon ? "soon" : "idle";
  const mine = ++ticket;
  const run = () => {
    if (mine !== ticket) return;  // one that is sooner has taken its place
    planned = "no";
    const next = [...wanted][0] ?? [...waiting.keys()][0];
    if (next) take(next);
    plan();
  };
  if (soon) setTimeout(run, 0);
  else if ("requestIdleCallback" in window) requestIdleCallback(run, { timeout: 1000 });
  else setTimeout(run, 50);
}
