// The draw of a row's token. Tokens are kept in the order of their distances to the largest logit,
// equal ones in that of their columns: a histogram of distances finds where the kept ones end, to the
// bin; the tokens of that bin are listed, and histograms of the list find the distance. Sections of
// the row then sum what is kept, and the draw walks them in the order of columns.
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

struct Shared {
  u32 *low, *high, *count;       // of bins, COPIES times
  u32 *list_far, *list_column;   // LIST of each
  u32* listed;                   // their number
  u32 *part_low, *part_high, *part_ties;  // THREADS of each
  u32 *run_low, *run_high, *run_ties;     // `runs` of each

  GRETA_DEVICE u32 bin(u32 i) const {
    return i < BINS ? low[i] : i < 2 * BINS ? high[i - BINS] : count[i - 2 * BINS];
  }
};

// Searches first look at the sums of runs.
constexpr u32 bins_of_run = 16, parts_of_run = 32;
constexpr u32 runs = BINS / bins_of_run > THREADS / parts_of_run ? BINS / bins_of_run
                                                                 : THREADS / parts_of_run;

// Of numbers with two words, and counts beside them: the sums of runs of `length`.
template <u32 length>
GRETA_DEVICE void add_runs(const Shared& s, const u32* low, const u32* high, const u32* count,
                           u32 numbers) {
  for (u32 run = thread_index(); run < numbers / length; run += THREADS) {
    u64 sum = 0;
    u32 counts = 0;
    for (u32 i = run * length; i < (run + 1) * length; ++i) {
      sum += u64(high[i]) << 32 | low[i];
      counts += count[i];
    }
    s.run_low[run] = u32(sum);
    s.run_high[run] = u32(sum >> 32);
    s.run_ties[run] = counts;
  }
  block_barrier();
}

#define GRETA_SAMPLE_SHARED                                     \
  GRETA_SHARED(u32, bins_low, BINS * COPIES);                   \
  GRETA_SHARED(u32, bins_high, BINS * COPIES);                  \
  GRETA_SHARED(u32, bins_count, BINS * COPIES);                 \
  GRETA_SHARED(u32, list_far, LIST);                            \
  GRETA_SHARED(u32, list_column, LIST);                         \
  GRETA_SHARED(u32, part_low, THREADS);                         \
  GRETA_SHARED(u32, part_high, THREADS);                        \
  GRETA_SHARED(u32, part_ties, THREADS);                        \
  GRETA_SHARED(u32, listed, 1);                                 \
  GRETA_SHARED(u32, run_low, runs);                             \
  GRETA_SHARED(u32, run_high, runs);                            \
  GRETA_SHARED(u32, run_ties, runs);                            \
  GRETA_SHARED(float, maxima, THREADS / wave_size + 1);         \
  const Shared shared{bins_low, bins_high, bins_count, list_far, list_column, listed,   \
                      part_low, part_high, part_ties,  run_low,  run_high,    run_ties}

// What is kept: tokens nearer than `far`, and the first `ties` of those at `far`.
struct Border {
  u32 far, ties;
  u64 mass;  // of all that is kept
};

// Distances from `from` to from + span - 1, and what is nearer.
struct Range {
  u32 from, span;
  u32 count;
  u64 mass;
};

constexpr u32 no_count = 0xffffffffU;
constexpr u64 no_mass = ~u64(0);

struct Draw {
  const Shared& s;
  const In* x;
  u32 cols;
  Settings settings;
  float most = 0, scale = 0;
  bool greedy = false, any = false;
  bool listing = false;  // the list has the tokens of `held`, and the sections those nearer
  Range held = {};

  GRETA_DEVICE void relate_to(float largest) {
    most = largest;
    any = largest > float_from_bits(0xff800000U);
    greedy = !(settings.temperature > 0x1p-64f);
    // 2^24 / ln 2 / temperature
    if (!greedy) scale = divide(0x1.715476p+24f, settings.temperature);
    if (settings.top_k >= cols) settings.top_k = 0;
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
  GRETA_DEVICE u32 weight(u32 far) const {
    const u32 full = far < farthest ? weight_at(far) : 0;
    return full < settings.least_weight ? 0 : full;
  }

  GRETA_DEVICE static u32 first_shift() {
    u32 shift = 28;  // of 16 octaves
    for (u32 bins = BINS; bins > 1; bins /= 2) --shift;
    return shift;
  }

  GRETA_DEVICE void clear_bins() const {
    for (u32 i = thread_index(); i < BINS * COPIES; i += THREADS) {
      s.low[i] = 0;
      s.high[i] = 0;
      s.count[i] = 0;
    }
    block_barrier();
  }

  GRETA_DEVICE void add_to_bin(u32 bin, u32 weight, bool counted) const {
    const u32 at = bin * COPIES + thread_index() % COPIES;
    add_mass(s.low + at, s.high + at, weight);
    if (counted) add_shared(s.count + at, 1);
  }

  // Leaves the sums of the copies in the first BINS places.
  GRETA_DEVICE void merge_bins() const {
    block_barrier();
    if constexpr (COPIES > 1) {
      u64 mass[(BINS + THREADS - 1) / THREADS];
      u32 count[(BINS + THREADS - 1) / THREADS];
      GRETA_UNROLL
      for (u32 k = 0; k < (BINS + THREADS - 1) / THREADS; ++k) {
        mass[k] = 0;
        count[k] = 0;
        const u32 bin = thread_index() + k * THREADS;
        for (u32 copy = bin * COPIES; bin < BINS && copy < (bin + 1) * COPIES; ++copy) {
          mass[k] += u64(s.high[copy]) << 32 | s.low[copy];
          count[k] += s.count[copy];
        }
      }
      block_barrier();
      GRETA_UNROLL
      for (u32 k = 0; k < (BINS + THREADS - 1) / THREADS; ++k) {
        const u32 bin = thread_index() + k * THREADS;
        if (bin >= BINS) break;
        s.low[bin] = u32(mass[k]);
        s.high[bin] = u32(mass[k] >> 32);
        s.count[bin] = count[k];
      }
      block_barrier();
    }
  }

  // The histogram of a part of the row, by which the first search begins.
  GRETA_DEVICE void measure(u32 first, u32 end) const {
    fill_bins({0, farthest, 0, 0}, first_shift(), settings.top_k > 0, first, end);
  }

  GRETA_DEVICE void fill_bins(Range range, u32 shift, bool counted, u32 first, u32 end) const {
    clear_bins();
    walk<true>(x, first, end, [&](float value, u32) {
      const u32 far = distance(value), inside = far - range.from;
      if (inside >= range.span) return;
      const u32 w = weight(far);
      if (w != 0) add_to_bin(smaller(inside >> shift, BINS - 1), w, counted);
    });
    merge_bins();
  }

  GRETA_DEVICE void fill_bins_from_list(Range range, u32 shift) const {
    clear_bins();
    for (u32 i = thread_index(); i < *s.listed; i += THREADS) {
      const u32 inside = s.list_far[i] - range.from;
      if (inside < range.span) {
        add_to_bin(smaller(inside >> shift, BINS - 1), weight(s.list_far[i]), true);
      }
    }
    merge_bins();
  }

  struct Found {
    u32 bin, count, bin_count;  // `count` and `mass`: of the bins before
    u64 mass, bin_mass;
  };

  // The bin in which the count or the mass is reached; BINS if none is.
  GRETA_DEVICE Found search(u32 count, u64 mass) const {
    add_runs<bins_of_run>(s, s.low, s.high, s.count, BINS);
    Found found = {0, 0, 0, 0, 0};
    u32 run = 0;
    for (; run < BINS / bins_of_run; ++run) {
      const u64 sum = u64(s.run_high[run]) << 32 | s.run_low[run];
      if (found.count + s.run_ties[run] >= count || found.mass + sum >= mass) break;
      found.count += s.run_ties[run];
      found.mass += sum;
    }
    for (found.bin = run * bins_of_run; found.bin < BINS; ++found.bin) {
      found.bin_mass = u64(s.high[found.bin]) << 32 | s.low[found.bin];
      found.bin_count = s.count[found.bin];
      if (found.count + found.bin_count >= count || found.mass + found.bin_mass >= mass) break;
      found.count += found.bin_count;
      found.mass += found.bin_mass;
    }
    block_barrier();
    return found;
  }

  // The mass that top-p keeps of this one.
  GRETA_DEVICE u64 share(u64 mass) const {
    const u64 part = settings.top_p > 0 ? u64(settings.top_p * 0x1p32f) : 0;
    const u64 target = (mass >> 32) * part + ((mass & 0xffffffffU) * part >> 32);
    return target > 0 ? target : 1;
  }

  // Where `top_k` tokens end, or if that is 0 the share top_p of `mass`, or of everything if that is
  // no_mass. `measured`: the bins have the histogram with which the search begins.
  GRETA_DEVICE Border find(u32 top_k, u64 mass, bool measured) {
    Range range = {0, farthest, 0, 0};
    u32 shift = first_shift();
    const u32 count = top_k > 0 ? top_k : no_count;
    bool from_list = listing && held.from == 0;
    u64 target = top_k > 0 ? no_mass : mass == no_mass ? no_mass : share(mass);
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
      if (found.bin == BINS) return {farthest, 0, range.mass + found.mass};
      const u32 skipped = found.bin << shift;
      range.from += skipped;
      range.span = found.bin == BINS - 1 ? range.span - skipped
                                         : smaller(1U << shift, range.span - skipped);
      range.count += found.count;
      range.mass += found.mass;
      if (range.span == 1) return border_at(range, count, target);
      if (!from_list) {
        const u64 most_listed =
            top_k > 0 ? found.bin_count : found.bin_mass / weight_at(range.from + range.span - 1);
        // Of few tokens in all, top-p also takes its share from the list.
        const bool all = top_k > 0 && range.count + found.bin_count <= LIST;
        if (all) range = {0, range.from + range.span, 0, 0};
        from_list = all || most_listed <= LIST;
        if (from_list) gather(range, true);
      }
      shift = 0;
      while (u64(BINS) << shift < range.span) ++shift;
    }
  }

  GRETA_DEVICE Border border_at(Range range, u32 count, u64 target) const {
    const u32 w = weight_at(range.from);
    u32 ties = count == no_count ? no_count : count - range.count;
    if (target != no_mass) ties = u32((target - range.mass + w - 1) / w);
    return {range.from, ties, range.mass + u64(ties) * w};
  }

  // Sums what is nearer than the range in each section, and lists, or counts, what lies in it.
  GRETA_DEVICE void gather(Range range, bool list) {
    for (u32 i = thread_index(); i < sections; i += THREADS) {
      s.part_low[i] = 0;
      s.part_high[i] = 0;
      s.part_ties[i] = 0;
    }
    if (thread_index() == 0) *s.listed = 0;
    block_barrier();
    u64 mass = 0;
    u32 ties = 0;
    walk(x, 0, cols, [&](float value, u32 column) {
      const u32 far = distance(value);
      if (far < range.from) {
        mass += weight(far);
      } else if (far - range.from < range.span && weight(far) != 0) {
        if (list) {
          const u32 place = add_shared(s.listed, 1);
          if (place < LIST) {
            s.list_far[place] = far;
            s.list_column[place] = column;
          }
        } else {
          ++ties;
        }
      }
    });
    const u32 section = thread_index() / section_lanes;
    add_mass(s.part_low + section, s.part_high + section, mass);
    if (ties != 0) add_shared(s.part_ties + section, ties);
    block_barrier();
    listing = list;
    held = range;
  }

  // Adds what is kept of the list to the sections.
  GRETA_DEVICE void add_list(Border border) const {
    const u32 length = section_length(cols);
    for (u32 i = thread_index(); i < *s.listed; i += THREADS) {
      const u32 far = s.list_far[i], section = s.list_column[i] / length;
      if (far < border.far) add_mass(s.part_low + section, s.part_high + section, weight(far));
      if (far == border.far) add_shared(s.part_ties + section, 1);
    }
    block_barrier();
  }

  // What is left of a draw in the order of columns.
  struct Left {
    u64 mass;
    u32 ties;
  };

  // Passes by parts with their masses and numbers of ties, from `first` to `end`; returns the one
  // in which the draw ends.
  GRETA_DEVICE static u32 pass(const u32* low, const u32* high, const u32* ties, u32 first, u32 end,
                               u32 tie_weight, Left& left) {
    u32 i = first;
    for (; i < end - 1; ++i) {
      const u32 kept = smaller(ties[i], left.ties);
      const u64 mass = (u64(high[i]) << 32 | low[i]) + u64(kept) * tie_weight;
      if (left.mass < mass) break;
      left.mass -= mass;
      left.ties -= kept;
    }
    return i;
  }

  GRETA_DEVICE int token(bool measured) {
    if (!any) return -1;
    Border border = {farthest, 0, 0};
    if (greedy) border = {0, 1, 0};
    if (filtered() && settings.top_k > 0) border = find(settings.top_k, 0, measured);
    if (filtered() && settings.top_p < 1) {
      border = find(0, settings.top_k > 0 ? border.mass : no_mass, measured && settings.top_k == 0);
    }
    if (listing) {
      add_list(border);
    } else {
      gather({border.far, 1, 0, 0}, false);
    }
    return draw_from(border);
  }

  GRETA_DEVICE int draw_from(Border border) const {
    const u32 tie_weight = weight(border.far);
    u64 total = 0;
    u32 tied = 0;
    for (u32 i = 0; i < sections; ++i) {
      total += u64(s.part_high[i]) << 32 | s.part_low[i];
      tied += s.part_ties[i];
    }
    const u32 kept = smaller(tied, border.ties);
    Left left = {multiply_high(settings.random, total + u64(kept) * tie_weight), kept};
    const u32 section =
        pass(s.part_low, s.part_high, s.part_ties, 0, sections, tie_weight, left);
    block_barrier();

    const u32 length = section_length(cols), each = (length + THREADS - 1) / THREADS;
    const u32 first = smaller(section * length, cols), end = smaller(first + length, cols);
    u64 mass = 0;
    u32 ties = 0;
    const u32 from = first + thread_index() * each;
    for (u32 column = from; column < from + each && column < end; ++column) {
      const u32 far = distance(to_float(x[column]));
      if (far < border.far) mass += weight(far);
      if (far == border.far) ++ties;
    }
    s.part_low[thread_index()] = u32(mass);
    s.part_high[thread_index()] = u32(mass >> 32);
    s.part_ties[thread_index()] = ties;
    block_barrier();
    add_runs<parts_of_run>(s, s.part_low, s.part_high, s.part_ties, THREADS);
    const u32 run = pass(s.run_low, s.run_high, s.run_ties, 0, THREADS / parts_of_run, tie_weight,
                         left);
    const u32 part = pass(s.part_low, s.part_high, s.part_ties, run * parts_of_run,
                          (run + 1) * parts_of_run, tie_weight, left);
    u32 column = first + part * each;
    for (; column < end - 1; ++column) {
      const u32 far = distance(to_float(x[column]));
      const bool tie = far == border.far && left.ties > 0;
      const u32 own = far < border.far || tie ? weight(far) : 0;
      if (left.mass < own) break;
      left.mass -= own;
      if (tie) --left.ties;
    }
    return int(column);
  }
};
