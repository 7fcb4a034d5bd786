// Where the kept tokens of a row end. Tokens are kept in the order of their distances to the largest
// logit, equal ones in that of their columns. A histogram counts the tokens by distance, so the mass of
// a bin is known to lie between bounds, and the border in the bins where these reach what is to be
// kept. A pass over the row then sums what is nearer than these bins, and lists what lies in them;
// histograms of the list find the distance.
#pragma once

#include "sample/histogram.glsl"

// Searches first look at the sums of runs.
#define BINS_OF_RUN 32
#define PARTS_OF_RUN 32
#define BIN_RUNS (BINS / BINS_OF_RUN)
#define PART_RUNS (THREADS / PARTS_OF_RUN)
#if BIN_RUNS > PART_RUNS
#define RUNS BIN_RUNS
#else
#define RUNS PART_RUNS
#endif

// Masses have two words. The list's length may exceed LIST.
shared uint list_far[LIST], list_column[LIST], list_length;
shared uint part_low[THREADS], part_high[THREADS], part_ties[THREADS];
shared uint run_low[RUNS], run_high[RUNS], run_ties[RUNS];
shared uint most_low[BIN_RUNS], most_high[BIN_RUNS];  // upper bounds
shared uint total_low[2], total_high[2], total_count;

uint64_t joined(uint low, uint high) { return uint64_t(high) << 32 | low; }

#define ADD_MASS(LOW, HIGH, at, mass)                                                \
  {                                                                                  \
    const uint lower = uint(mass);                                                   \
    uint upper = uint(uint64_t(mass) >> 32);                                         \
    if (lower != 0 && atomicAdd(LOW[at], lower) > 0xffffffffu - lower) ++upper;      \
    if (upper != 0) atomicAdd(HIGH[at], upper);                                      \
  }

// What is kept: tokens nearer than `far`, and the first `ties` of those at `far`.
struct Border {
  uint far, ties;
  uint64_t mass;  // of all that is kept; no_mass: it is that of the row
};

// A number, and two masses: bounds of one, or what is nearer than a range and all.
struct Sums {
  uint count;
  uint64_t least, most;
};

Sums added(Sums a, Sums b) {
  return Sums(a.count + b.count, a.least + b.least, a.most + b.most);
}

const uint no_count = 0xffffffffu;
const uint64_t no_mass = ~uint64_t(0);

// What is kept: `count` tokens, or with no_count the share top_p of `whole`, or of the row's mass if
// that is no_mass. With a count of 0 nothing is looked for: a pass is made.
struct Goal {
  uint count;
  uint64_t whole;
};

// What a pass over the row does with tokens of a range.
#define COUNTING 0
#define LISTING 1
#define TYING 2

// A step of a search: the border lies in the range. `before`: the number of nearer tokens, if it is
// counted. `lower`: the span of the range's other half, before it.
struct Step {
  Range range;
  uint what, before, lower;
};

Step step_of(Range range) { return Step(range, range.span == 1 ? TYING : COUNTING, 0, 0); }

// A search begins with what is known: the first histogram, a step, or what the step's pass found.
#define HISTOGRAM 0
#define STEP_ONLY 1
#define PASSED 2

bool listed = false;         // the list has the tokens of `held`, and the sections those nearer
Range held = Range(0, 0);
uint64_t held_mass = 0;      // of those nearer
// After a pass: masses of the row and of what is nearer than the range, and the number of the latter,
// or of ties; the length of the sections.
uint64_t row_mass = 0, nearer_mass = 0;
uint tally = 0, section_columns = 0;

// Sums over the threads, for all of them.
Sums total_of(Sums own) {
  if (gl_LocalInvocationIndex == 0) {
    total_count = 0;
    for (uint i = 0; i < 2; ++i) total_low[i] = total_high[i] = 0;
  }
  barrier();
  ADD_MASS(total_low, total_high, 0, own.least)
  ADD_MASS(total_low, total_high, 1, own.most)
  if (own.count > 0) atomicAdd(total_count, own.count);
  barrier();
  const Sums all = Sums(total_count, joined(total_low[0], total_high[0]),
                        joined(total_low[1], total_high[1]));
  barrier();
  return all;
}

// Counts what of the list lies in the range. Returns the mass of what is nearer in the row.
uint64_t count_list(Range range) {
  clear_bins();
  const uint shift = bins_of(range).shift;
  uint64_t nearer = 0;
  for (uint i = thread_index(); i < list_length; i += THREADS) {
    const uint far = list_far[i], inside = far - range.from;
    if (far < range.from) {
      nearer += weight_at(far);
    } else if (inside < range.span) {
      count_in(inside, shift);
    }
  }
  merge_bins();
  return held_mass + total_of(Sums(0, nearer, 0)).least;
}

// A pass over a part of the row: sums of this thread, of what is nearer than the range and of all. What
// lies in the range is counted in bins, listed, or as ties; else what is nearer is counted.
Sums gather(Step step, uint first, uint end) {
  const Range range = step.range;
  const uint what = step.what, shift = bins_of(range).shift;
  if (what == LISTING && gl_LocalInvocationIndex == 0) list_length = 0;
  if (what == COUNTING) clear_bins();
  barrier();
  uint64_t nearer = 0, all = 0;
  uint ties = 0, others = 0;
#define VISIT_KEPT(value, column)                                     \
  {                                                                   \
    const uint far = distance_of(value), inside = far - range.from;   \
    const uint w = weight_of(far);                                    \
    all += w;                                                         \
    if (far < range.from) {                                           \
      nearer += w;                                                    \
      ++others;                                                       \
    }                                                                 \
    if (inside < range.span) {                                        \
      if (what == TYING) ++ties;                                      \
      if (what == COUNTING) count_in(inside, shift);                  \
      if (what == LISTING) {                                          \
        const uint place = atomicAdd(list_length, 1);                 \
        if (place < LIST) {                                           \
          list_far[place] = far;                                      \
          list_column[place] = column;                                \
        }                                                             \
      }                                                               \
    }                                                                 \
  }
  WALK(x, first, end, true, VISIT_KEPT)
  if (what == COUNTING) merge_bins();
  return Sums(what == TYING ? ties : others, nearer, all);
}

// Adds what the threads gathered. All see the list afterwards.
void add_up(Sums own) {
  const Sums all = total_of(own);
  tally = all.count;
  nearer_mass = all.least;
  row_mass = all.most;
}

void pass_row(Step step) {
  for (uint i = thread_index(); i < SECTIONS; i += THREADS)
    part_low[i] = part_high[i] = part_ties[i] = 0;
  const Sums own = gather(step, 0, cols);
  const uint section = thread_index() / SECTION_LANES;
  ADD_MASS(part_low, part_high, section, own.least)
  if (step.what == TYING && own.count > 0) atomicAdd(part_ties[section], own.count);
  section_columns = section_length(cols);
  add_up(own);
}

// Distances of a bin that are in the range.
Range bin_range(Range range, Bins bins, uint bin) {
  const int offset = int(bin << bins.shift), width = int(1u << bins.shift);
  const int start = bins.from + offset - int(bins.slack);
  const int end = bins.from + offset + width + int(bins.slack), last = int(end_of(range));
  const uint from = bin == 0 || start < int(range.from) ? range.from : uint(start);
  const uint to = bin == BINS - 1 || end > last ? uint(last) : uint(max(end, 0));
  return Range(from, to > from ? to - from : 0);
}

// The first histogram also has tokens beyond the range, whose weights are 0.
Sums bin_sums(Range range, Bins bins, uint bin) {
  const uint count = bins_count[bin];
  if (count == 0) return Sums(0, 0, 0);
  const Range own = bin_range(range, bins, bin);
  if (own.span == 0) return Sums(0, 0, 0);
  const bool cut = bins.slack > 0 && end_of(own) == end_of(range);
  const uint64_t least = cut ? 0 : uint64_t(count) * weight_at(end_of(own) - 1);
  return Sums(count, least, uint64_t(count) * weight_at(own.from));
}

void add_bin_runs(Range range, Bins bins) {
  for (uint run = thread_index(); run < BIN_RUNS; run += THREADS) {
    Sums sums = Sums(0, 0, 0);
    for (uint bin = run * BINS_OF_RUN; bin < (run + 1) * BINS_OF_RUN; ++bin)
      sums = added(sums, bin_sums(range, bins, bin));
    run_low[run] = uint(sums.least);
    run_high[run] = uint(sums.least >> 32);
    run_ties[run] = sums.count;
    most_low[run] = uint(sums.most);
    most_high[run] = uint(sums.most >> 32);
  }
  barrier();
}

Sums run_sums(uint run) {
  return Sums(run_ties[run], joined(run_low[run], run_high[run]),
              joined(most_low[run], most_high[run]));
}

// What sums are to reach, of these one: a count, an upper bound of a mass, or a lower bound.
struct Target {
  uint count;
  uint64_t most, least;
};

bool reaches(Sums sums, Target target) {
  return sums.count >= target.count || sums.most >= target.most || sums.least >= target.least;
}

// The first bin with which the sums reach the target; BINS if none does. `before`: those of the bins
// before.
uint first_bin(Range range, Bins bins, Target target, out Sums before) {
  before = Sums(0, 0, 0);
  uint run = 0;
  for (; run < BIN_RUNS; ++run) {
    const Sums next = added(before, run_sums(run));
    if (reaches(next, target)) break;
    before = next;
  }
  uint bin = run * BINS_OF_RUN;
  for (; bin < BINS; ++bin) {
    const Sums next = added(before, bin_sums(range, bins, bin));
    if (reaches(next, target)) break;
    before = next;
  }
  return bin;
}

// The mass that top-p keeps of this one.
uint64_t share(uint64_t mass) {
  const uint64_t part = settings.top_p > 0.0 ? uint(settings.top_p * 4294967296.0) : 0;
  const uint64_t target = (mass >> 32) * part + ((mass & 0xffffffffUL) * part >> 32);
  return target > 0 ? target : 1;
}

// Where a search ended: a bin, and the number and the least mass of the tokens before it.
struct Found {
  uint index, count;
  uint64_t mass;
};

// Narrows the step's range to bins that have the border, `nearer` being the mass before it. Returns the
// bin and what is before it; BINS if no bin has it.
Found narrow(inout Step step, Bins bins, Goal goal, uint64_t nearer, bool on_list) {
  const bool by_count = goal.count != no_count, first_histogram = bins.slack > 0;
  const Range range = step.range;
  add_bin_runs(range, bins);
  uint64_t least = share(goal.whole), greatest = least;
  if (!by_count && goal.whole == no_mass) {
    Sums all = Sums(0, 0, 0);
    for (uint run = 0; run < BIN_RUNS; ++run) all = added(all, run_sums(run));
    least = share(all.least);
    greatest = share(all.most);
  }
  // Bins from `first` to `last` have the border.
  Sums passed, until;
  const Target near_target = by_count ? Target(goal.count - step.before, no_mass, no_mass)
                                      : Target(no_count, least - nearer, no_mass);
  const uint first = first_bin(range, bins, near_target, passed);
  uint last = first;
  until = passed;
  if (!by_count) last = first_bin(range, bins, Target(no_count, no_mass, greatest - nearer), until);
  const uint inside = until.count - passed.count + (last < BINS ? bins_count[last] : 0);
  barrier();
  const Found found = Found(first, passed.count, passed.least);
  if (first == BINS) return found;

  const uint start = bin_range(range, bins, first).from;
  const uint end = end_of(bin_range(range, bins, min(last, uint(BINS - 1))));
  step.before += passed.count;
  if (end - start == range.span && (on_list || inside > LIST) && !first_histogram) {
    // The bounds exclude nothing: the mass of the nearer half decides.
    step.lower = range.span / 2;
    step.range = Range(range.from + step.lower, range.span - step.lower);
  } else {
    step.range = Range(start, end - start);
  }
  // What the first histogram has before the range is not exact.
  step.what = step.range.span == 1 && !first_histogram ? TYING
              : inside <= LIST                         ? LISTING
                                                       : COUNTING;
  // Of few tokens in all, top-p also takes its share from the list.
  if (!on_list && by_count && step.before + inside <= LIST)
    step = Step(Range(0, end), LISTING, 0, 0);
  return found;
}

// `ties`: no_count if a mass is the target.
Border border_at(uint far, uint64_t nearer, uint ties, uint64_t target) {
  const uint w = weight_at(far);
  if (ties == no_count) ties = uint((target - nearer + w - 1) / w);
  return Border(far, ties, nearer + uint64_t(ties) * w);
}

// Where what the goal keeps ends.
Border find(Goal goal, uint known, Step step) {
  const bool by_count = goal.count != no_count;
  bool on_list = known == STEP_ONLY && listed && held.from == 0;
  if (on_list) {
    step = step_of(held);
    if (goal.whole == no_mass) goal.whole = row_mass;
  }
  listed = on_list;
  while (true) {
    const Bins first = first_bins();
    const bool measured = known == HISTOGRAM && first.slack > 0;
    Bins bins = first;
    if (!measured) bins = bins_of(step.range);
    uint64_t nearer = 0;
    if (on_list) {
      nearer = count_list(step.range);
    } else if (!measured) {
      if (known != PASSED) pass_row(step);
      if (goal.count == 0) return Border(0, 0, 0);
      nearer = nearer_mass;
      if (goal.whole == no_mass) goal.whole = row_mass;
      if (step.what != TYING) step.before = tally;
    }
    known = STEP_ONLY;
    if (!on_list && !measured && step.what == LISTING) {
      // Rounding of the first histogram may have made the list too long.
      listed = on_list = list_length <= LIST;
      step.what = COUNTING;
      held = step.range;
      held_mass = nearer;
      continue;
    }
    if (step.lower > 0 && nearer >= share(goal.whole)) {  // the border is in the other half
      step = step_of(Range(step.range.from - step.lower, step.lower));
      continue;
    }
    step.lower = 0;
    if (step.range.span == 1 && !measured) {
      if (!on_list && step.what != TYING) {
        step.what = TYING;
        continue;
      }
      return border_at(step.range.from, nearer, by_count ? goal.count - step.before : no_count,
                       share(goal.whole));
    }
    const uint from = step.range.from;
    const Found bin = narrow(step, bins, goal, nearer, on_list);
    if (bin.index == BINS) return Border(beyond, 0, no_mass);
    // Bins of one distance each have exact masses.
    if (on_list && bins.shift == 0)
      return border_at(from + bin.index, nearer + bin.mass,
                       by_count ? goal.count - step.before : no_count, share(goal.whole));
  }
  return Border(beyond, 0, no_mass);
}
