// Where the kept tokens of a row end. Tokens are kept in the order of their distances to the
// largest logit, equal ones in that of their columns. A histogram counts the tokens by distance, so
// the mass of a bin is known to lie between bounds, and the border in the bins where these reach
// what is to be kept. A pass over the row then sums what is nearer than these bins, and lists what
// lies in them; histograms of the list find the distance.
#pragma once

#include "sample/scan.hip"
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

// Bins of a thread, of those threads that have any.
constexpr u32 own_bins = BINS > THREADS ? BINS / THREADS : 1;

// Where a search ended: an index, and what is left of a draw or before the index.
struct Found {
  u32 index, count;
  u64 mass;
};

struct Shared {
  u32* count;                             // of bins, COPIES times
  u32 *list_far, *list_column;            // LIST of each
  u32* listed;                            // their number
  u32 *part_low, *part_high, *part_ties;  // `sections` of each: masses, and ties
  Sums* sums;                             // of waves
  Found* found;                           // two
};

#define GRETA_SAMPLE_SHARED                                                                      \
  GRETA_SHARED(u32, bins_count, BINS* COPIES);                                                   \
  GRETA_SHARED(u32, list_far, LIST);                                                             \
  GRETA_SHARED(u32, list_column, LIST);                                                          \
  GRETA_SHARED(u32, part_low, sections);                                                         \
  GRETA_SHARED(u32, part_high, sections);                                                        \
  GRETA_SHARED(u32, part_ties, sections);                                                        \
  GRETA_SHARED(u32, listed, 1);                                                                  \
  GRETA_SHARED(Sums, wave_sums, waves + 1);                                                      \
  GRETA_SHARED(Found, found, 2);                                                                 \
  GRETA_SHARED(float, maxima, THREADS / wave_size + 1);                                          \
  const Shared shared {                                                                          \
    bins_count, list_far, list_column, listed, part_low, part_high, part_ties, wave_sums, found  \
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
    merge_bins();
    nearer = held_mass + scan_threads({0, nearer, 0}, s.sums).all.least;
    block_barrier();
    return nearer;
  }

  // A pass over the row: sums what is nearer than the range in each section, and all of the row;
  // and what lies in the range is counted in bins, listed, or as ties of the section. Returns the
  // mass of what is nearer.
  GRETA_DEVICE u64 pass(Range range, u32 shift, Pass what) {
    clear_bins();
    if (what == listing && thread_index() == 0) *s.listed = 0;
    block_barrier();
    u64 nearer = 0, rest = 0;
    u32 ties = 0;
    walk(x, 0, cols, [&](float value, u32 column) {
      const u32 far = distance(value), inside = far - range.from, w = weight(far);
      const bool before = far < range.from;
      nearer += before ? w : 0;
      rest += before ? 0 : w;
      if (before || far >= beyond || inside >= range.span) return;
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
    const Sums own = {ties, nearer, rest}, part = reduce_lanes<section_lanes>(own, PlusSums{});
    if (thread_index() % section_lanes == 0) {
      const u32 section = thread_index() / section_lanes;
      s.part_low[section] = u32(part.least);
      s.part_high[section] = u32(part.least >> 32);
      s.part_ties[section] = part.count;
    }
    merge_bins();
    const Sums all = scan_threads(own, s.sums).all;
    row_mass = all.least + all.most;
    block_barrier();
    return all.least;
  }

  GRETA_DEVICE Sums bin_sums(Range range, u32 shift, u32 bin) const {
    const u32 count = s.count[bin], first = bin << shift;
    if (count == 0) return {0, 0, 0};
    const u32 last =
        bin == BINS - 1 ? range.span - 1 : smaller(range.span, first + (1U << shift)) - 1;
    return {count, u64(count) * weight_at(range.from + last),
            u64(count) * weight_at(range.from + first)};
  }

  // Scans the sums of the threads' bins.
  GRETA_DEVICE Scan scan_bins(Range range, u32 shift) const {
    Sums own = {0, 0, 0};
    const u32 first = thread_index() * own_bins;
    for (u32 bin = first; bin < first + own_bins && bin < BINS; ++bin)
      own = own.plus(bin_sums(range, shift, bin));
    return scan_threads(own, s.sums);
  }

  // Leaves the first bin with which the sums reach a count, or a bound of a mass, and the number of
  // tokens of the bins before; BINS if none does. All threads have it after a barrier.
  template <typename Reached>
  GRETA_DEVICE void find_bin(Range range, u32 shift, const Scan& scan, Reached reached,
                             Found& found) const {
    if (thread_index() == 0 && !reached(scan.all)) found = {BINS, scan.all.count, 0};
    if (!reaches(scan, reached)) return;
    Sums sums = scan.before;
    u32 bin = thread_index() * own_bins;
    for (;; ++bin) {
      const Sums next = sums.plus(bin_sums(range, shift, bin));
      if (reached(next)) break;
      sums = next;
    }
    found = {bin, sums.count, 0};
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

      const Scan scan = scan_bins(range, shift);
      const bool of_all = !by_count && whole == no_mass;
      const u64 least = share(of_all ? scan.all.least : whole);
      const u64 greatest = of_all ? share(scan.all.most) : least;
      // Bins from `first` to `last` have the border; `passed` tokens are before these, and `until`
      // ones before the last of these.
      const auto enough = [&](Sums sums) {
        return by_count ? before + sums.count >= count : nearer + sums.most >= least;
      };
      const auto certain = [&](Sums sums) {
        return by_count ? before + sums.count >= count : nearer + sums.least >= greatest;
      };
      find_bin(range, shift, scan, enough, s.found[0]);
      find_bin(range, shift, scan, certain, s.found[1]);
      block_barrier();
      const u32 first = s.found[0].index, passed = s.found[0].count;
      const u32 last = s.found[1].index, until = s.found[1].count;
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
