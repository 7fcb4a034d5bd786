// The draw of a row's token. Tokens are kept in the order of their distances to the largest logit,
// equal ones in that of their columns: a histogram of distances finds where the kept ones end, to the
// bin; the tokens of that bin are listed, and histograms of the list find the distance. Sections of
// the row then sum what is kept, and the draw walks them in the order of columns.
#pragma once

#include "sample/walk.glsl"

// Sums have two words.
shared uint bins_low[BINS * COPIES], bins_high[BINS * COPIES], bins_count[BINS * COPIES];
shared uint list_far[LIST], list_column[LIST], listed;
shared uint part_low[THREADS], part_high[THREADS], part_ties[THREADS];

// Searches first look at the sums of runs.
#define BINS_OF_RUN 16
#define PARTS_OF_RUN 32
#if BINS / BINS_OF_RUN > THREADS / PARTS_OF_RUN
#define RUNS (BINS / BINS_OF_RUN)
#else
#define RUNS (THREADS / PARTS_OF_RUN)
#endif
shared uint run_low[RUNS], run_high[RUNS], run_ties[RUNS];

uint64_t joined(uint low, uint high) { return uint64_t(high) << 32 | low; }

#define ADD_MASS(LOW, HIGH, at, mass)                                                \
  {                                                                                  \
    const uint lower = uint(mass);                                                   \
    uint upper = uint(uint64_t(mass) >> 32);                                         \
    if (lower != 0 && atomicAdd(LOW[at], lower) > 0xffffffffu - lower) ++upper;      \
    if (upper != 0) atomicAdd(HIGH[at], upper);                                      \
  }

void add_bin_runs() {
  for (uint run = thread_index(); run < BINS / BINS_OF_RUN; run += THREADS) {
    uint64_t sum = 0;
    uint counts = 0;
    for (uint i = run * BINS_OF_RUN; i < (run + 1) * BINS_OF_RUN; ++i) {
      sum += joined(bins_low[i], bins_high[i]);
      counts += bins_count[i];
    }
    run_low[run] = uint(sum);
    run_high[run] = uint(sum >> 32);
    run_ties[run] = counts;
  }
  barrier();
}

void add_part_runs() {
  for (uint run = thread_index(); run < THREADS / PARTS_OF_RUN; run += THREADS) {
    uint64_t sum = 0;
    uint counts = 0;
    for (uint i = run * PARTS_OF_RUN; i < (run + 1) * PARTS_OF_RUN; ++i) {
      sum += joined(part_low[i], part_high[i]);
      counts += part_ties[i];
    }
    run_low[run] = uint(sum);
    run_high[run] = uint(sum >> 32);
    run_ties[run] = counts;
  }
  barrier();
}

// What is kept: tokens nearer than `far`, and the first `ties` of those at `far`.
struct Border {
  uint far, ties;
  uint64_t mass;  // of all that is kept
};

// Distances from `from` to from + span - 1, and what is nearer.
struct Range {
  uint from, span;
  uint count;
  uint64_t mass;
};

struct Found {
  uint bin, count, bin_count;  // `count` and `mass`: of the bins before
  uint64_t mass, bin_mass;
};

// What is left of a draw in the order of columns.
struct Left {
  uint64_t mass;
  uint ties;
};

const uint no_count = 0xffffffffu;
const uint64_t no_mass = ~uint64_t(0);

// The row that the workgroup draws from.
uint64_t x;
uint cols;
Settings settings;
float most, scale;
int most_order;
bool greedy, any;
bool listing;  // the list has the tokens of `held`, and the sections those nearer
uint held;     // where its distances begin

void begin(uint64_t row, uint length, Settings with, int largest_order) {
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
  listing = false;
  held = 0;
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
uint weight_of(uint far) {
  const uint full = far < farthest ? weight_at(far) : 0;
  return full < settings.least_weight ? 0 : full;
}

// The bins of the first search have 16 octaves.
uint first_shift() { return 28 - uint(findMSB(BINS)); }

void clear_bins() {
  for (uint i = thread_index(); i < BINS * COPIES; i += THREADS) {
    bins_low[i] = 0;
    bins_high[i] = 0;
    bins_count[i] = 0;
  }
  barrier();
}

void add_to_bin(uint bin, uint weight, bool counted) {
  const uint at = bin * COPIES + thread_index() % COPIES;
  ADD_MASS(bins_low, bins_high, at, weight)
  if (counted) atomicAdd(bins_count[at], 1);
}

// Leaves the sums of the copies in the first BINS places.
void merge_bins() {
  barrier();
#if COPIES > 1
  const uint turns = (BINS + THREADS - 1) / THREADS;
  uint64_t mass[turns];
  uint count[turns];
  for (uint k = 0; k < turns; ++k) {
    mass[k] = 0;
    count[k] = 0;
    const uint bin = thread_index() + k * THREADS;
    for (uint copy = bin * COPIES; bin < BINS && copy < (bin + 1) * COPIES; ++copy) {
      mass[k] += joined(bins_low[copy], bins_high[copy]);
      count[k] += bins_count[copy];
    }
  }
  barrier();
  for (uint k = 0; k < turns; ++k) {
    const uint bin = thread_index() + k * THREADS;
    if (bin < BINS) {
      bins_low[bin] = uint(mass[k]);
      bins_high[bin] = uint(mass[k] >> 32);
      bins_count[bin] = count[k];
    }
  }
  barrier();
#endif
}

void fill_bins(Range range, uint shift, bool counted, uint first, uint end) {
  clear_bins();
#define VISIT_BIN(value, column)                                                    \
  {                                                                                 \
    const uint far = distance_of(value), inside = far - range.from;                 \
    if (inside < range.span) {                                                      \
      const uint w = weight_of(far);                                                \
      if (w != 0) add_to_bin(min(inside >> shift, uint(BINS - 1)), w, counted);     \
    }                                                                               \
  }
  WALK(x, first, end, true, VISIT_BIN)
  merge_bins();
}

// The histogram of a part of the row, by which the first search begins.
void measure(uint first, uint end) {
  fill_bins(Range(0, farthest, 0, 0), first_shift(), settings.top_k > 0, first, end);
}

void fill_bins_from_list(Range range, uint shift) {
  clear_bins();
  for (uint i = thread_index(); i < listed; i += THREADS) {
    const uint inside = list_far[i] - range.from;
    if (inside < range.span)
      add_to_bin(min(inside >> shift, uint(BINS - 1)), weight_of(list_far[i]), true);
  }
  merge_bins();
}

// The bin in which the count or the mass is reached; BINS if none is.
Found search(uint count, uint64_t mass) {
  add_bin_runs();
  Found found = Found(0, 0, 0, 0, 0);
  uint run = 0;
  for (; run < BINS / BINS_OF_RUN; ++run) {
    const uint64_t sum = joined(run_low[run], run_high[run]);
    if (found.count + run_ties[run] >= count || found.mass + sum >= mass) break;
    found.count += run_ties[run];
    found.mass += sum;
  }
  for (found.bin = run * BINS_OF_RUN; found.bin < BINS; ++found.bin) {
    found.bin_mass = joined(bins_low[found.bin], bins_high[found.bin]);
    found.bin_count = bins_count[found.bin];
    if (found.count + found.bin_count >= count || found.mass + found.bin_mass >= mass) break;
    found.count += found.bin_count;
    found.mass += found.bin_mass;
  }
  barrier();
  return found;
}

// The mass that top-p keeps of this one.
uint64_t share(uint64_t mass) {
  const uint64_t part = settings.top_p > 0.0 ? uint(settings.top_p * 4294967296.0) : 0;
  const uint64_t target = (mass >> 32) * part + ((mass & 0xffffffffUL) * part >> 32);
  return target > 0 ? target : 1;
}

// Sums what is nearer than the range in each section, and lists, or counts, what lies in it.
void gather(Range range, bool list) {
  for (uint i = thread_index(); i < SECTIONS; i += THREADS) {
    part_low[i] = 0;
    part_high[i] = 0;
    part_ties[i] = 0;
  }
  if (gl_LocalInvocationIndex == 0) listed = 0;
  barrier();
  uint64_t mass = 0;
  uint ties = 0;
#define VISIT_KEPT(value, column)                                             \
  {                                                                           \
    const uint far = distance_of(value), w = weight_of(far);                  \
    if (far < range.from) {                                                   \
      mass += w;                                                              \
    } else if (far - range.from < range.span && w != 0) {                     \
      if (list) {                                                             \
        const uint place = atomicAdd(listed, 1);                              \
        if (place < LIST) {                                                   \
          list_far[place] = far;                                              \
          list_column[place] = column;                                        \
        }                                                                     \
      } else {                                                                \
        ++ties;                                                               \
      }                                                                       \
    }                                                                         \
  }
  WALK(x, 0, cols, false, VISIT_KEPT)
  const uint section = thread_index() / SECTION_LANES;
  ADD_MASS(part_low, part_high, section, mass)
  if (ties != 0) atomicAdd(part_ties[section], ties);
  barrier();
  listing = list;
  held = range.from;
}

Border border_at(Range range, uint count, uint64_t target) {
  const uint w = weight_at(range.from);
  uint ties = count == no_count ? no_count : count - range.count;
  if (target != no_mass) ties = uint((target - range.mass + w - 1) / w);
  return Border(range.from, ties, range.mass + uint64_t(ties) * w);
}

// Where `top_k` tokens end, or if that is 0 the share top_p of `mass`, or of everything if that is
// no_mass. `measured`: the bins have the histogram with which the search begins.
Border find(uint top_k, uint64_t mass, bool measured) {
  Range range = Range(0, farthest, 0, 0);
  uint shift = first_shift();
  const uint count = top_k > 0 ? top_k : no_count;
  bool from_list = listing && held == 0;
  uint64_t target = top_k > 0 || mass == no_mass ? no_mass : share(mass);
  if (!from_list) listing = false;
  while (true) {
    if (from_list) {
      fill_bins_from_list(range, shift);
    } else if (!measured) {
      fill_bins(range, shift, top_k > 0, 0, cols);
    }
    measured = false;
    if (top_k == 0 && target == no_mass) target = share(search(no_count, no_mass).mass);
    const Found found = search(top_k > 0 ? count - range.count : no_count,
                               target == no_mass ? no_mass : target - range.mass);
    if (found.bin == BINS) return Border(farthest, 0, range.mass + found.mass);
    const uint skipped = found.bin << shift;
    range.from += skipped;
    range.span = found.bin == BINS - 1 ? range.span - skipped
                                       : min(1u << shift, range.span - skipped);
    range.count += found.count;
    range.mass += found.mass;
    if (range.span == 1) return border_at(range, count, target);
    if (!from_list) {
      const uint64_t most_listed =
          top_k > 0 ? found.bin_count : found.bin_mass / weight_at(range.from + range.span - 1);
      // Of few tokens in all, top-p also takes its share from the list.
      const bool all = top_k > 0 && range.count + found.bin_count <= LIST;
      if (all) range = Range(0, range.from + range.span, 0, 0);
      from_list = all || most_listed <= LIST;
      if (from_list) gather(range, true);
    }
    shift = 0;
    while (uint64_t(BINS) << shift < range.span) ++shift;
  }
  return Border(farthest, 0, 0);
}

// Adds what is kept of the list to the sections.
void add_list(Border border) {
  const uint length = section_length(cols);
  for (uint i = thread_index(); i < listed; i += THREADS) {
    const uint far = list_far[i], section = list_column[i] / length;
    if (far < border.far) ADD_MASS(part_low, part_high, section, weight_of(far))
    if (far == border.far) atomicAdd(part_ties[section], 1);
  }
  barrier();
}

// Whether the draw ends in a part with this mass and number of ties; else it is passed by.
bool ends_in(uint64_t mass, uint ties, uint tie_weight, inout Left left) {
  const uint kept = min(ties, left.ties);
  const uint64_t all = mass + uint64_t(kept) * tie_weight;
  if (left.mass < all) return true;
  left.mass -= all;
  left.ties -= kept;
  return false;
}

#define PASS(NAME, i, first, end)                                                      \
  uint i = first;                                                                      \
  while (i < (end) - 1 &&                                                              \
         !ends_in(joined(NAME##_low[i], NAME##_high[i]), NAME##_ties[i], tie_weight, left)) ++i;

int draw_from(Border border) {
  const uint tie_weight = weight_of(border.far);
  uint64_t total = 0;
  uint tied = 0;
  for (uint i = 0; i < SECTIONS; ++i) {
    total += joined(part_low[i], part_high[i]);
    tied += part_ties[i];
  }
  const uint kept = min(tied, border.ties);
  Left left = Left(multiply_high(settings.random, total + uint64_t(kept) * tie_weight), kept);
  PASS(part, section, 0, SECTIONS)
  barrier();

  const uint length = section_length(cols), each = (length + THREADS - 1) / THREADS;
  const uint first = min(section * length, cols), end = min(first + length, cols);
  uint64_t mass = 0;
  uint ties = 0;
  const uint from = first + thread_index() * each;
  for (uint column = from; column < from + each && column < end; ++column) {
    const uint far = distance_of(load_in(x + uint64_t(column) * IN_BYTES));
    if (far < border.far) mass += weight_of(far);
    if (far == border.far) ++ties;
  }
  part_low[thread_index()] = uint(mass);
  part_high[thread_index()] = uint(mass >> 32);
  part_ties[thread_index()] = ties;
  barrier();
  add_part_runs();
  PASS(run, run, 0, THREADS / PARTS_OF_RUN)
  PASS(part, part, run * PARTS_OF_RUN, (run + 1) * PARTS_OF_RUN)
  uint column = first + part * each;
  for (; column < end - 1; ++column) {
    const uint far = distance_of(load_in(x + uint64_t(column) * IN_BYTES));
    const bool tie = far == border.far;
    const uint own = far < border.far ? weight_of(far) : 0;
    if (ends_in(own, tie ? 1 : 0, tie_weight, left)) break;
  }
  return int(column);
}

int token_of(bool measured) {
  if (!any) return -1;
  Border border = Border(greedy ? 0 : farthest, greedy ? 1 : 0, 0);
  // One call of find(), as functions are inlined.
  for (uint turn = 0; turn < 2; ++turn) {
    const bool by_count = turn == 0;
    if (!filtered() || !(by_count ? settings.top_k > 0 : settings.top_p < 1.0)) continue;
    border = find(by_count ? settings.top_k : 0, settings.top_k > 0 ? border.mass : no_mass,
                  measured && (by_count || settings.top_k == 0));
  }
  if (listing) {
    add_list(border);
  } else {
    gather(Range(border.far, 1, 0, 0), false);
  }
  return draw_from(border);
}
