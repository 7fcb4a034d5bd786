// A search's trials, decoded.
import { log_range } from "../chart";
import { numbers, type Numbers, type Search } from "../data";

export interface Parameter {
  /** The place among the search's parameters; −1: the variant. */
  index: number;
  name: string;
  values: (number | string)[];
  /** For each trial the place of its value; beyond the values: it has none. */
  places: Numbers;
}

export class Trials {
  readonly count: number;
  readonly us: Numbers;
  readonly status: Numbers;
  readonly end_s: Numbers;
  readonly parameters: Parameter[];
  readonly best_trial: Numbers;
  readonly best_us: Numbers;

  constructor(readonly search: Search) {
    this.count = search.trials;
    this.us = this.column("us");
    this.status = this.column("status");
    this.end_s = this.column("end_s");
    this.best_trial = numbers(search.best.trial);
    this.best_us = numbers(search.best.us);
    this.parameters = [
      { index: -1, name: "variant", values: search.variants, places: this.column("variant") },
      ...search.parameters.map((one, i) => ({ index: i, name: one.name, values: one.values, places: this.column(`p${i}`) })),
    ];
  }

  column(name: string): Numbers {
    const column = this.search.columns[name];
    return column ? numbers(column) : new Float32Array(this.count).fill(NaN);
  }

  /** Parameters with several values, the most important first. */
  varied(): Parameter[] {
    const shares = new Map(this.search.importance.marginals.map((one) => [one.parameter, one.share]));
    return this.parameters
      .filter((one) => one.values.length > 1)
      .sort((a, b) => (shares.get(b.index) ?? 0) - (shares.get(a.index) ?? 0));
  }

  parameter(index: number): Parameter {
    return this.parameters[index + 1]!;
  }

  value(parameter: Parameter, trial: number): number | string | null {
    return parameter.values[parameter.places[trial]!] ?? null;
  }

  config(trial: number): string {
    const [variant, ...rest] = this.parameters;
    const values = rest
      .map((one) => [one.name, this.value(one, trial)])
      .filter(([, value]) => value !== null)
      .map(([name, value]) => `${name}=${value}`);
    return [this.value(variant!, trial), ...values].join(" ");
  }

  status_text(trial: number): string {
    return this.search.statuses[this.status[trial]!] ?? "?";
  }

  message(trial: number): string {
    const code = this.column("message")[trial]!;
    return code > 0 ? (this.search.messages[code - 1]?.text ?? "") : "";
  }

  ok(trial: number): boolean {
    return this.us[trial]! > 0;
  }

  best(): number {
    return this.best_us.length ? this.best_us[this.best_us.length - 1]! : NaN;
  }

  /** A range of times without trials far slower than the best. */
  range(): { min: number; max: number } {
    const most = 30 * this.best();
    return (this.range_ ??= log_range(this.us.filter((us) => us <= most)));
  }

  places(): number[] {
    if (!this.places_) {
      this.places_ = [];
      for (let i = 0; i < this.count; i++) this.places_.push(i);
    }
    return this.places_;
  }

  /** The places of correct trials. */
  correct(): number[] {
    return (this.correct_ ??= this.places().filter((i) => this.ok(i)));
  }

  private range_: { min: number; max: number } | undefined;
  private places_: number[] | undefined;
  private correct_: number[] | undefined;
}

const made = new WeakMap<Search, Trials>();
export function trials_of(search: Search): Trials {
  let trials = made.get(search);
  if (!trials) made.set(search, (trials = new Trials(search)));
  return trials;
}
