// Where the kept tokens of a row end. Tokens are kept in the order of their distances to the
// largest logit, equal ones in that of their columns. A histogram counts the tokens by distance, so
// the mass of a bin is known to lie between bounds, and the border in the bins where these reach
// what is to be kept. A pass over the row then sums what is nearer than these bins, and lists what
// lies in them; histograms of the list find the distance.
#pragma once

#include "sample/walk.hip"

// Returns the old value.
GRETA_DEVICE u32 add_shared(u32* place, u32 value) {
#if defined(GRETA_AMD)
  return __hip_atomic_fetch_add(place, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
#elif defined(GRETA_NVIDIA)
  return atomicAdd(place, value);
#else
  return __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
#endif
}

GRETA_DEVICE void add_mass(u32* low, u32* high, u64 mass) {
  const u32 lower = u32(mass);
  u32 upper = u32(mass >> 32);
  if (lower != 0 && add_shared(low, lower) > 0xffffffffU - lower) ++upper;
  if (upper != 0) add_shared(high, upper);
}

// Searches first look at the sums of runs.
constexpr u32 bins_of_run = 32, parts_of_run = 32;
constexpr u32 bin_runs = BINS / bins_of_run, part_runs = THREADS / parts_of_run;
constexpr u32 runs = bin_runs > part_runs ? bin_runs : part_runs;

struct Shared {
  u32* count;                             // of bins, COPIES times
  u32 *list_far, *list_column;            // LIST of each
  u32* listed;                            // their number
  u32 *part_low, *part_high, *part_ties;  // THREADS of each: masses, and ties
  u32 *run_low, *run_high, *run_ties;     // `runs` of each
  u32 *most_low, *most_high;              // `bin_runs` of each: upper bounds
  u32* all;  // two words: the row's mass, or what is nearer in the list
};

#define GRETA_SAMPLE_SHARED                                                                       \
  GRETA_SHARED(u32, bins_count, BINS* COPIES);                                                    \
  GRETA_SHARED(u32, list_far, LIST);                                                              \
  GRETA_SHARED(u32, list_column, LIST);                                                           \
  GRETA_SHARED(u32, part_low, THREADS);                                                           \
  GRETA_SHARED(u32, part_high, THREADS);                                                          \
  GRETA_SHARED(u32, part_ties, THREADS);                                                          \
  GRETA_SHARED(u32, listed, 1);                                                                   \
  GRETA_SHARED(u32, all_mass, 2);                                                                 \
  GRETA_SHARED(u32, run_low, runs);                                                               \
  GRETA_SHARED(u32, run_high, runs);                                                              \
  GRETA_SHARED(u32, run_ties, runs);                                                              \
  GRETA_SHARED(u32, most_low, bin_runs);                                                          \
  GRETA_SHARED(u32, most_high, bin_runs);                                                         \
  GRETA_SHARED(float, maxima, THREADS / wave_size + 1);                                           \
  const Shared shared {                                                                           \
    bins_count, list_far, list_column, listed, part_low, part_high, part_ties, run_low, run_high, \
        run_ties, most_low, most_high, all_mass                                                   \
  }

// What is kept: tokens nearer than `far`, and the first `ties` of those at `far`.
struct Border {
  u32 far, ties;
  u64 mass;  // of all that is kept; no_mass: it is that of the row
};

// Distances from `from` to from + span - 1.
struct Range {
  u32 from, span;
};

// Of some bins: the number of tokens, and bounds of their mass.
struct Sums {
  u32 count;
  u64 least, most;

  GRETA_DEVICE Sums plus(Sums other) const {
    return {count + other.count, least + other.least, most + other.most};
  }
};

constexpr u32 no_count = 0xffffffffU;
constexpr u64 no_mass = ~u64(0);

enum Pass : u32 { counting, listing, tying };

struct Search {
  const Shared& s;
  const In* x;
  u32 cols;
  Settings settings;
  float most = 0, scale = 0;
  u32 beyond = 0;  // the least distance at which tokens have no probability
  bool greedy = false, any = false;
  bool listed = false;  // the list has the tokens of `held`, and the sections those nearer
  Range held = {};
  u64 held_mass = 0;  // of those nearer
  u64 row_mass = 0;   // after a pass

  GRETA_DEVICE void relate_to(float largest) {
    most = largest;
    any = largest > float_from_bits(0xff800000U);
    greedy = !(settings.temperature > 0x1p-64f);
    // 2^24 / ln 2 / temperature
    if (!greedy) scale = divide(0x1.715476p+24f, settings.temperature);
    if (settings.top_k >= cols) settings.top_k = 0;
    beyond = farthest;
    if (settings.least_weight <= 1) return;
    u32 kept = 0;
    while (kept + 1 < beyond) {
      const u32 middle = (kept + beyond) / 2;
      if (weight_at(middle) < settings.least_weight) {
        beyond = middle;
      } else {
        kept = middle;
      }
    }
  }

  GRETA_DEVICE bool filtered() const {
    return any && !greedy && (settings.top_k > 0 || settings.top_p < 1);
  }

  // Without FMA: no product is added to.
  GRETA_DEVICE u32 distance(float value) const {
    if (value == most) return 0;
    const float far = (most - value) * scale;
    return !greedy && far < float(farthest) ? u32(far) : farthest;
  }

  // 0 where the token has no probability.
  GRETA_DEVICE u32 weight(u32 far) const { return far < beyond ? weight_at(far) : 0; }

  // Bins of a range; the last one has what is left.
  GRETA_DEVICE static u32 bin_of(u32 inside, u32 shift) {
    return smaller(inside >> shift, BINS - 1);
  }

  GRETA_DEVICE static u32 shift_of(u32 span) {
    u32 shift = 0;
    while (u64(BINS) << shift < span) ++shift;
    return shift;
  }

  // The bins of the first search have 16 octaves.
  GRETA_DEVICE u32 first_shift() const { return shift_of(smaller(beyond, 1U << 28)); }

  GRETA_DEVICE void clear_bins() const {
    for (u32 i = thread_index(); i < BINS * COPIES; i += THREADS) s.count[i] = 0;
    if (thread_index() < 2) s.all[thread_index()] = 0;
    block_barrier();
  }

  GRETA_DEVICE void count_in(u32 bin) const {
    add_shared(s.count + bin * COPIES + thread_index() % COPIES, 1);
  }

  // Leaves the sums of the copies in the first BINS places.
  GRETA_DEVICE void merge_bins() const {
    block_barrier();
    if constexpr (COPIES > 1) {
      u32 count[(BINS + THREADS - 1) / THREADS];
      GRETA_UNROLL
      for (u32 k = 0; k < (BINS + THREADS - 1) / THREADS; ++k) {
        count[k] = 0;
        const u32 bin = thread_index() + k * THREADS;
        for (u32 copy = bin * COPIES; bin < BINS && copy < (bin + 1) * COPIES; ++copy)
          count[k] += s.count[copy];
      }
      block_barrier();
      GRETA_UNROLL
      for (u32 k = 0; k < (BINS + THREADS - 1) / THREADS; ++k) {
        const u32 bin = thread_index() + k * THREADS;
        if (bin < BINS) s.count[bin] = count[k];
      }
      block_barrier();
    }
  }

  // The histogram of a part of the row, with which the first search begins.
  GRETA_DEVICE void measure(u32 first, u32 end) const {
    clear_bins();
    const u32 shift = first_shift();
    walk<true>(x, first, end, [&](float value, u32) {
      const u32 far = distance(value);
      if (far < beyond) count_in(bin_of(far, shift));
    });
    merge_bins();
  }

  GRETA_DEVICE u64 all_mass() const { return u64(s.all[1]) << 32 | s.all[0]; }

  // Counts what of the list lies in the range. Returns the mass of what is nearer in the row.
  GRETA_DEVICE u64 count_list(Range range, u32 shift) const {
    clear_bins();
    u64 nearer = 0;
    for (u32 i = thread_index(); i < *s.listed; i += THREADS) {
      const u32 far = s.list_far[i], inside = far - range.from;
      if (far < range.from) {
        nearer += weight_at(far);
      } else if (inside < range.span) {
        count_in(bin_of(inside, shift));
      }
    }
    add_mass(s.all, s.all + 1, nearer);
    merge_bins();
    nearer = held_mass + all_mass();
    block_barrier();
    return nearer;
  }

  // A pass over the row: sums what is nearer than the range in each section, and all of the row;
  // and what lies in the range is counted in bins, listed, or as ties of the section. Returns the
  // mass of what is nearer.
  GRETA_DEVICE u64 pass(Range range, u32 shift, Pass what) {
    clear_bins();
    for (u32 i = thread_index(); i < sections; i += THREADS) {
      s.part_low[i] = 0;
      s.part_high[i] = 0;
      s.part_ties[i] = 0;
    }
    if (what == listing && thread_index() == 0) *s.listed = 0;
    block_barrier();
    u64 nearer = 0, rest = 0;
    u32 ties = 0;
    walk(x, 0, cols, [&](float value, u32 column) {
      const u32 far = distance(value), inside = far - range.from;
      if (far >= beyond) return;
      const u32 w = weight_at(far);
      if (far < range.from) {
        nearer += w;
        return;
      }
      rest += w;
      if (inside >= range.span) return;
      if (what == tying) ++ties;
      if (what == counting) count_in(bin_of(inside, shift));
      if (what == listing) {
        const u32 place = add_shared(s.listed, 1);
        if (place < LIST) {
          s.list_far[place] = far;
          s.list_column[place] = column;
        }
      }
    });
    const u32 section = thread_index() / section_lanes;
    add_mass(s.part_low + section, s.part_high + section, nearer);
    if (ties != 0) add_shared(s.part_ties + section, ties);
    add_mass(s.all, s.all + 1, nearer + rest);
    merge_bins();
    nearer = 0;
    for (u32 i = 0; i < sections; ++i) nearer += u64(s.part_high[i]) << 32 | s.part_low[i];
    row_mass = all_mass();
    block_barrier();
    return nearer;
  }

  GRETA_DEVICE Sums bin_sums(Range range, u32 shift, u32 bin) const {
    const u32 count = s.count[bin], first = bin << shift;
    if (count == 0) return {0, 0, 0};
    const u32 last =
        bin == BINS - 1 ? range.span - 1 : smaller(range.span, first + (1U << shift)) - 1;
    return {count, u64(count) * weight_at(range.from + last),
            u64(count) * weight_at(range.from + first)};
  }

  GRETA_DEVICE void add_bin_runs(Range range, u32 shift) const {
    for (u32 run = thread_index(); run < bin_runs; run += THREADS) {
      Sums sums = {0, 0, 0};
      for (u32 bin = run * bins_of_run; bin < (run + 1) * bins_of_run; ++bin)
        sums = sums.plus(bin_sums(range, shift, bin));
      s.run_low[run] = u32(sums.least);
      s.run_high[run] = u32(sums.least >> 32);
      s.run_ties[run] = sums.count;
      s.most_low[run] = u32(sums.most);
      s.most_high[run] = u32(sums.most >> 32);
    }
    block_barrier();
  }

  GRETA_DEVICE Sums run_sums(u32 run) const {
    return {s.run_ties[run], u64(s.run_high[run]) << 32 | s.run_low[run],
            u64(s.most_high[run]) << 32 | s.most_low[run]};
  }

  // The first bin with which the sums reach a count, or a bound of a mass; BINS if none does.
  // `before`: the number of tokens of the bins before.
  template <typename Reached>
  GRETA_DEVICE u32 first_bin(Range range, u32 shift, Reached reached, u32& before) const {
    Sums sums = {0, 0, 0};
    u32 run = 0;
    for (; run < bin_runs; ++run) {
      const Sums next = sums.plus(run_sums(run));
      if (reached(next)) break;
      sums = next;
    }
    u32 bin = run * bins_of_run;
    for (; bin < BINS; ++bin) {
      const Sums next = sums.plus(bin_sums(range, shift, bin));
      if (reached(next)) break;
      sums = next;
    }
    before = sums.count;
    return bin;
  }

  // The mass that top-p keeps of this one.
  GRETA_DEVICE u64 share(u64 mass) const {
    const u64 part = settings.top_p > 0 ? u64(settings.top_p * 0x1p32f) : 0;
    const u64 target = (mass >> 32) * part + ((mass & 0xffffffffU) * part >> 32);
    return target > 0 ? target : 1;
  }

  // Where `count` tokens end, or with no_count the share top_p of `whole`, or of the row's mass if
  // that is no_mass. `measured`: the bins have the histogram of the row.
  GRETA_DEVICE Border find(u32 count, u64 whole, bool measured) {
    const bool by_count = count != no_count;
    bool on_list = listed && held.from == 0;
    Range range = {0, on_list ? held.span : beyond};
    u32 shift = on_list ? shift_of(range.span) : first_shift(), before = 0;
    u32 lower = 0;  // the span of the range's other half, before it
    Pass what = range.span == 1 ? tying : counting;
    listed = on_list;
    while (true) {
      u64 nearer = 0;
      if (on_list) {
        nearer = count_list(range, shift);
      } else if (!measured) {
        nearer = pass(range, shift, what);
        if (whole == no_mass) whole = row_mass;
        if (what == listing) {
          held = range;
          held_mass = nearer;
          listed = on_list = true;
          continue;
        }
      }
      if (lower > 0 && nearer >= share(whole)) {  // the border is in the other half
        range = {range.from - lower, lower};
        shift = shift_of(lower);
        what = lower == 1 ? tying : counting;
        lower = 0;
        continue;
      }
      lower = 0;
      if (range.span == 1 && !measured) {
        return border_at(range.from, nearer, by_count ? count - before : no_count, share(whole));
      }
      measured = false;

      add_bin_runs(range, shift);
      u64 least = share(whole), greatest = least;
      if (!by_count && whole == no_mass) {
        Sums all = {0, 0, 0};
        for (u32 run = 0; run < bin_runs; ++run) all = all.plus(run_sums(run));
        least = share(all.least);
        greatest = share(all.most);
      }
      // Bins from `first` to `last` have the border; `passed` tokens are before these, and `until`
      // ones before the last of these.
      u32 passed = 0, until = 0, first, last;
      if (by_count) {
        first = last = first_bin(
            range, shift, [&](Sums sums) { return before + sums.count >= count; }, passed);
        until = passed;
      } else {
        first = first_bin(
            range, shift, [&](Sums sums) { return nearer + sums.most >= least; }, passed);
        last = first_bin(
            range, shift, [&](Sums sums) { return nearer + sums.least >= greatest; }, until);
      }
      const u32 inside = until - passed + (last < BINS ? s.count[last] : 0);
      block_barrier();
      if (first == BINS) return {beyond, 0, no_mass};

      const u32 start = first << shift;
      const u32 end = last >= BINS - 1 ? range.span : smaller(range.span, (last + 1) << shift);
      before += passed;
      if (end - start == range.span && (on_list || inside > LIST)) {
        // The bounds exclude nothing: the mass of the nearer half decides.
        lower = range.span / 2;
        range = {range.from + lower, range.span - lower};
      } else {
        range = {range.from + start, end - start};
      }
      if (!on_list) {
        what = range.span == 1 ? tying : inside <= LIST ? listing : counting;
        // Of few tokens in all, top-p also takes its share from the list.
        if (by_count && before + inside <= LIST) {
          range = {0, range.from + range.span};
          before = 0;
          what = listing;
        }
      }
      shift = shift_of(range.span);
    }
  }

  // `ties`: no_count if a mass is the target.
  GRETA_DEVICE Border border_at(u32 far, u64 nearer, u32 ties, u64 target) const {
    const u32 w = weight_at(far);
    if (ties == no_count) ties = u32((target - nearer + w - 1) / w);
    return {far, ties, nearer + u64(ties) * w};
  }
};
