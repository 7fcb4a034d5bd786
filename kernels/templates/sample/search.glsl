// Where the kept tokens of a row end. Tokens are kept in the order of their distances to the largest
// logit, equal ones in that of their columns. A histogram counts the tokens by distance, so the mass of
// a bin is known to lie between bounds, and the border in the bins where these reach what is to be
// kept. A pass over the row then sums what is nearer than these bins, and lists what lies in them;
// histograms of the list find the distance.
#pragma once

#include "sample/walk.glsl"

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

shared uint powers_of_2[POWERS];
// Masses have two words.
shared uint bins_count[BINS * COPIES];
shared uint list_far[LIST], list_column[LIST], list_length;
shared uint part_low[THREADS], part_high[THREADS], part_ties[THREADS];
shared uint run_low[RUNS], run_high[RUNS], run_ties[RUNS];
shared uint most_low[BIN_RUNS], most_high[BIN_RUNS];  // upper bounds
shared uint all_low[1], all_high[1];  // the row's mass, or what is nearer in the list

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

// Distances from `from` to from + span - 1.
struct Range {
  uint from, span;
};

// Of some bins: the number of tokens, and bounds of their mass.
struct Sums {
  uint count;
  uint64_t least, most;
};

Sums added(Sums a, Sums b) {
  return Sums(a.count + b.count, a.least + b.least, a.most + b.most);
}

const uint no_count = 0xffffffffu;
const uint64_t no_mass = ~uint64_t(0);

// Passes over the row.
#define COUNTING 0
#define LISTING 1
#define TYING 2

// The row that the workgroup draws from.
uint64_t x;
uint cols;
Settings settings;
float most, scale;
int most_order;
uint beyond;  // the least distance at which tokens have no probability
bool greedy, any;
bool listed;         // the list has the tokens of `held`, and the sections those nearer
Range held;
uint64_t held_mass;  // of those nearer
uint64_t row_mass;   // after a pass

uint weight_at(uint far) { return weight_from(far, powers_of_2[far >> 15 & POWERS - 1]); }

void begin(uint64_t row, uint length, Settings with, int largest_order) {
  for (uint i = thread_index(); i < POWERS; i += THREADS) powers_of_2[i] = power_at(i);
  barrier();
  x = row;
  cols = length;
  settings = with;
  most_order = largest_order;
  most = in_order(largest_order);
  any = largest_order > minus_infinity;
  greedy = !(settings.temperature > 5.421010862427522e-20);  // 2^-64
  scale = 0.0;
  // 2^24 / ln 2 / temperature
  if (!greedy) scale = divide(uintBitsToFloat(0x4bb8aa3bu), settings.temperature);
  if (settings.top_k >= cols) settings.top_k = 0;
  listed = false;
  held = Range(0, 0);
  held_mass = 0;
  row_mass = 0;
  beyond = farthest;
  if (settings.least_weight <= 1) return;
  uint kept = 0;
  while (kept + 1 < beyond) {
    const uint middle = (kept + beyond) / 2;
    if (weight_at(middle) < settings.least_weight) {
      beyond = middle;
    } else {
      kept = middle;
    }
  }
}

bool filtered() { return any && !greedy && (settings.top_k > 0 || settings.top_p < 1.0); }

// Without FMA: no product is added to.
uint distance_of(float value) {
  if (order(value) == most_order) return 0;
  precise const float difference = most - value;
  precise const float far = difference * scale;
  return !greedy && far < float(farthest) ? uint(far) : farthest;
}

// 0 where the token has no probability.
uint weight_of(uint far) { return far < beyond ? weight_at(far) : 0; }

uint shift_of(uint span) {
  uint shift = 0;
  while (uint64_t(BINS) << shift < span) ++shift;
  return shift;
}

// The bins of the first search have 16 octaves.
uint first_shift() { return shift_of(min(beyond, 1u << 28)); }

void clear_bins() {
  for (uint i = thread_index(); i < BINS * COPIES; i += THREADS) bins_count[i] = 0;
  if (gl_LocalInvocationIndex == 0) {
    all_low[0] = 0;
    all_high[0] = 0;
  }
  barrier();
}

// The last bin of a range has what is left.
void count_in(uint inside, uint shift) {
  const uint bin = min(inside >> shift, uint(BINS - 1));
  atomicAdd(bins_count[bin * COPIES + thread_index() % COPIES], 1);
}

// Leaves the sums of the copies in the first BINS places.
void merge_bins() {
  barrier();
#if COPIES > 1
  const uint turns = (BINS + THREADS - 1) / THREADS;
  uint count[turns];
  for (uint k = 0; k < turns; ++k) {
    count[k] = 0;
    const uint bin = thread_index() + k * THREADS;
    for (uint copy = bin * COPIES; bin < BINS && copy < (bin + 1) * COPIES; ++copy)
      count[k] += bins_count[copy];
  }
  barrier();
  for (uint k = 0; k < turns; ++k) {
    const uint bin = thread_index() + k * THREADS;
    if (bin < BINS) bins_count[bin] = count[k];
  }
  barrier();
#endif
}

// The histogram of a part of the row, with which the first search begins.
void measure(uint first, uint end) {
  clear_bins();
  const uint shift = first_shift();
#define VISIT_BIN(value, column)               \
  {                                            \
    const uint far = distance_of(value);       \
    if (far < beyond) count_in(far, shift);    \
  }
  WALK(x, first, end, true, VISIT_BIN)
  merge_bins();
}

// Counts what of the list lies in the range. Returns the mass of what is nearer in the row.
uint64_t count_list(Range range, uint shift) {
  clear_bins();
  uint64_t nearer = 0;
  for (uint i = thread_index(); i < list_length; i += THREADS) {
    const uint far = list_far[i], inside = far - range.from;
    if (far < range.from) {
      nearer += weight_at(far);
    } else if (inside < range.span) {
      count_in(inside, shift);
    }
  }
  ADD_MASS(all_low, all_high, 0, nearer)
  merge_bins();
  nearer = held_mass + joined(all_low[0], all_high[0]);
  barrier();
  return nearer;
}

// A pass over the row: sums what is nearer than the range in each section, and all of the row; and what
// lies in the range is counted in bins, listed, or as ties of the section. Returns the mass of what is
// nearer.
uint64_t pass_row(Range range, uint shift, uint what) {
  clear_bins();
  for (uint i = thread_index(); i < SECTIONS; i += THREADS) {
    part_low[i] = 0;
    part_high[i] = 0;
    part_ties[i] = 0;
  }
  if (what == LISTING && gl_LocalInvocationIndex == 0) list_length = 0;
  barrier();
  uint64_t nearer = 0, rest = 0;
  uint ties = 0;
#define VISIT_KEPT(value, column)                                     \
  {                                                                   \
    const uint far = distance_of(value), inside = far - range.from;   \
    const uint w = weight_of(far);                                    \
    if (far < range.from) {                                           \
      nearer += w;                                                    \
    } else if (far < beyond) {                                        \
      rest += w;                                                      \
      if (inside < range.span) {                                      \
        if (what == TYING) ++ties;                                    \
        if (what == COUNTING) count_in(inside, shift);                \
        if (what == LISTING) {                                        \
          const uint place = atomicAdd(list_length, 1);               \
          if (place < LIST) {                                         \
            list_far[place] = far;                                    \
            list_column[place] = column;                              \
          }                                                           \
        }                                                             \
      }                                                               \
    }                                                                 \
  }
  WALK(x, 0, cols, false, VISIT_KEPT)
  const uint section = thread_index() / SECTION_LANES;
  ADD_MASS(part_low, part_high, section, nearer)
  if (ties != 0) atomicAdd(part_ties[section], ties);
  ADD_MASS(all_low, all_high, 0, nearer + rest)
  merge_bins();
  nearer = 0;
  for (uint i = 0; i < SECTIONS; ++i) nearer += joined(part_low[i], part_high[i]);
  row_mass = joined(all_low[0], all_high[0]);
  barrier();
  return nearer;
}

Sums bin_sums(Range range, uint shift, uint bin) {
  const uint count = bins_count[bin], first = bin << shift;
  if (count == 0) return Sums(0, 0, 0);
  const uint last =
      bin == BINS - 1 ? range.span - 1 : min(range.span, first + (1u << shift)) - 1;
  return Sums(count, uint64_t(count) * weight_at(range.from + last),
              uint64_t(count) * weight_at(range.from + first));
}

void add_bin_runs(Range range, uint shift) {
  for (uint run = thread_index(); run < BIN_RUNS; run += THREADS) {
    Sums sums = Sums(0, 0, 0);
    for (uint bin = run * BINS_OF_RUN; bin < (run + 1) * BINS_OF_RUN; ++bin)
      sums = added(sums, bin_sums(range, shift, bin));
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
struct Goal {
  uint count;
  uint64_t most, least;
};

bool reaches(Sums sums, Goal goal) {
  return sums.count >= goal.count || sums.most >= goal.most || sums.least >= goal.least;
}

// The first bin with which the sums reach the goal; BINS if none does. `before`: the number of tokens
// of the bins before.
uint first_bin(Range range, uint shift, Goal goal, out uint before) {
  Sums sums = Sums(0, 0, 0);
  uint run = 0;
  for (; run < BIN_RUNS; ++run) {
    const Sums next = added(sums, run_sums(run));
    if (reaches(next, goal)) break;
    sums = next;
  }
  uint bin = run * BINS_OF_RUN;
  for (; bin < BINS; ++bin) {
    const Sums next = added(sums, bin_sums(range, shift, bin));
    if (reaches(next, goal)) break;
    sums = next;
  }
  before = sums.count;
  return bin;
}

// The mass that top-p keeps of this one.
uint64_t share(uint64_t mass) {
  const uint64_t part = settings.top_p > 0.0 ? uint(settings.top_p * 4294967296.0) : 0;
  const uint64_t target = (mass >> 32) * part + ((mass & 0xffffffffUL) * part >> 32);
  return target > 0 ? target : 1;
}

// `ties`: no_count if a mass is the target.
Border border_at(uint far, uint64_t nearer, uint ties, uint64_t target) {
  const uint w = weight_at(far);
  if (ties == no_count) ties = uint((target - nearer + w - 1) / w);
  return Border(far, ties, nearer + uint64_t(ties) * w);
}

// Where `count` tokens end, or with no_count the share top_p of `whole`, or of the row's mass if that is
// no_mass. `measured`: the bins have the histogram of the row.
Border find(uint count, uint64_t whole, bool measured) {
  const bool by_count = count != no_count;
  bool on_list = listed && held.from == 0;
  Range range = Range(0, on_list ? held.span : beyond);
  uint shift = on_list ? shift_of(range.span) : first_shift(), before = 0;
  uint lower = 0;  // the span of the range's other half, before it
  uint what = range.span == 1 ? TYING : COUNTING;
  listed = on_list;
  while (true) {
    uint64_t nearer = 0;
    if (on_list) {
      nearer = count_list(range, shift);
    } else if (!measured) {
      nearer = pass_row(range, shift, what);
      if (whole == no_mass) whole = row_mass;
      if (what == LISTING) {
        held = range;
        held_mass = nearer;
        listed = on_list = true;
        continue;
      }
    }
    if (lower > 0 && nearer >= share(whole)) {  // the border is in the other half
      range = Range(range.from - lower, lower);
      shift = shift_of(lower);
      what = lower == 1 ? TYING : COUNTING;
      lower = 0;
      continue;
    }
    lower = 0;
    if (range.span == 1 && !measured)
      return border_at(range.from, nearer, by_count ? count - before : no_count, share(whole));
    measured = false;

    add_bin_runs(range, shift);
    uint64_t least = share(whole), greatest = least;
    if (!by_count && whole == no_mass) {
      Sums all = Sums(0, 0, 0);
      for (uint run = 0; run < BIN_RUNS; ++run) all = added(all, run_sums(run));
      least = share(all.least);
      greatest = share(all.most);
    }
    // Bins from `first` to `last` have the border; `passed` tokens are before these, and `until` ones
    // before the last of these.
    uint passed, until;
    const Goal near_goal = by_count ? Goal(count - before, no_mass, no_mass)
                                    : Goal(no_count, least - nearer, no_mass);
    const uint first = first_bin(range, shift, near_goal, passed);
    uint last = first;
    until = passed;
    if (!by_count)
      last = first_bin(range, shift, Goal(no_count, no_mass, greatest - nearer), until);
    const uint inside = until - passed + (last < BINS ? bins_count[last] : 0);
    barrier();
    if (first == BINS) return Border(beyond, 0, no_mass);

    const uint start = first << shift;
    const uint end = last >= BINS - 1 ? range.span : min(range.span, (last + 1) << shift);
    before += passed;
    if (end - start == range.span && (on_list || inside > LIST)) {
      // The bounds exclude nothing: the mass of the nearer half decides.
      lower = range.span / 2;
      range = Range(range.from + lower, range.span - lower);
    } else {
      range = Range(range.from + start, end - start);
    }
    if (!on_list) {
      what = range.span == 1 ? TYING : inside <= LIST ? LISTING : COUNTING;
      // Of few tokens in all, top-p also takes its share from the list.
      if (by_count && before + inside <= LIST) {
        range = Range(0, range.from + range.span);
        before = 0;
        what = LISTING;
      }
    }
    shift = shift_of(range.span);
  }
  return Border(beyond, 0, no_mass);
}
