// Where the kept tokens of a row end. Tokens are kept in the order of their distances to the
// largest logit, equal ones in that of their columns. A histogram counts the tokens by distance, so
// the mass of a bin is known to lie between bounds, and the border in the bins where these reach
// what is to be kept. A pass over the row then sums what is nearer than these bins, and lists what
// lies in them; histograms of the list find the distance.
#pragma once

#include "sample/list_search.hip"
#include "sample/listing.hip"

GRETA_DEVICE constexpr u32 log2_of(u32 x) {
  return x == 1 ? 0 : 1 + log2_of(x / 2);
}

// Of early bins: differences and products in f32, and the fraction cut off, move a distance of less
// than 2^29 by up to 65.
constexpr int slack = 128;

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
  u32 row_ties = 0;   // after one that counts ties
  // Bins that were filled before the largest logit was known: each has distances from a multiple of
  // its width after `start`, within `slack`.
  bool early = false;
  int start = 0;

  // What does not depend on the row; weights are known after the block's next barrier.
  GRETA_DEVICE void begin() {
    s.fill_powers();
    greedy = !(settings.temperature > 0x1p-64f);
    // 2^24 / ln 2 / temperature
    if (!greedy) scale = divide(0x1.715476p+24f, settings.temperature);
    if (settings.top_k >= cols) settings.top_k = 0;
  }

  GRETA_DEVICE void relate_to(float largest) {
    most = largest;
    any = largest > float_from_bits(0xff800000U);
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

  GRETA_DEVICE bool filters() const {
    return !greedy && (settings.top_k > 0 || settings.top_p < 1);
  }
  GRETA_DEVICE bool filtered() const { return any && filters(); }

  // Without FMA: no product is added to.
  GRETA_DEVICE u32 distance(float value) const {
    if (value == most) return 0;
    const float far = (most - value) * scale;
    return !greedy && far < float(farthest) ? u32(far) : farthest;
  }

  GRETA_DEVICE u32 weight_at(u32 far) const { return s.weight_at(far); }
  // 0 where the token has no probability.
  GRETA_DEVICE u32 weight(u32 far) const { return far < beyond ? weight_at(far) : 0; }

  // Bins of a range; the last one has what is left.
  GRETA_DEVICE static u32 bin_of(u32 inside, u32 shift) {
    return smaller(inside >> shift, BINS - 1);
  }

  static constexpr u32 early_shift = 28 - log2_of(BINS);

  // The bins of the first search have 16 octaves.
  GRETA_DEVICE u32 first_shift() const {
    return early ? early_shift : shift_of(smaller(beyond, 1U << 28));
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
    s.clear_bins();
    const u32 shift = first_shift();
    walk(x, first, end, [&](float value, u32) {
      const u32 far = distance(value);
      if (far < beyond) count_in(bin_of(far, shift));
    });
    merge_bins();
  }

  // A pass over the row: sums what is nearer than the range in each section, and all of the row;
  // and what lies in the range is counted in bins, listed, or as ties of the section. Returns the
  // mass of what is nearer.
  GRETA_DEVICE u64 pass(Range range, u32 shift, Pass what) {
    if (what == counting) {
      block_barrier();  // all have read the bins
      s.clear_bins();
    } else {
      if (what == listing && thread_index() == 0) *s.listed = 0;
      block_barrier();
    }
    Sums own = {0, 0, 0};
    if (what == listing && most < float_from_bits(0x7f800000U)) {
      own = beyond < farthest ? list_range<true>(range) : list_range<false>(range);
    } else {
      walk(x, 0, cols, [&](float value, u32 column) {
        const u32 far = distance(value), inside = far - range.from, w = weight(far);
        const bool before = far < range.from;
        own.least += before ? w : 0;
        own.most += before ? 0 : w;
        if (before || far >= beyond || inside >= range.span) return;
        if (what == tying) ++own.count;
        if (what == counting) count_in(bin_of(inside, shift));
        if (what == listing) list(far, column);
      });
    }
    const Sums part = reduce_lanes<section_lanes>(own, Plus{});
    if (thread_index() % section_lanes == 0) {
      const u32 section = thread_index() / section_lanes;
      s.part_low[section] = u32(part.least);
      s.part_high[section] = u32(part.least >> 32);
      s.part_ties[section] = part.count;
    }
    if (what == counting) merge_bins();
    const Sums all = reduce_threads<THREADS>(own, Plus{}, s.sums);
    row_mass = all.least + all.most;
    row_ties = all.count;
    // Before a scan that needs the place of these sums; of several waves, what lanes have written is
    // known after the reduction's barrier.
    if (what == counting || waves == 1) block_barrier();
    return all.least;
  }

  GRETA_DEVICE void list(u32 far, u32 column) const {
    const u32 place = add_shared(s.listed, 1);
    if (place >= LIST) return;
    s.list_far[place] = far;
    s.list_column[place] = column;
  }

  // A thread's part of a pass that lists, with few instructions for each token: what is listed is
  // rare, so a round notes its elements, and they are read again. The largest logit is finite.
  template <bool limited>
  GRETA_DEVICE Sums list_range(Range range) const {
    Listing<limited> own(range, beyond);
    RoundBits noted = 0;
    walk_rounds<true>(
        x, 0, cols,
        [&](float value, u32, u32 number) {
          const u32 far = u32(lesser((most - value) * scale, float(farthest)));
          own.add(far, weight_at(far), number, noted);
        },
        [&](u32 column) {
          while (noted != 0) {
            const u32 number = lowest_bit(noted);
            noted &= noted - 1;
            const u32 at = column + number / VEC * walk_step + number % VEC;
            list(distance(to_float(x[at])), at);
          }
          lanes_meet();
        });
    return own.sums();
  }

  // The distances of a bin's tokens.
  GRETA_DEVICE Range edges(Range range, u32 shift, u32 bin) const {
    if (!early) {
      const u32 first = bin << shift, end = smaller(range.span, first + (1U << shift));
      return {range.from + first, (bin == BINS - 1 ? range.span : end) - first};
    }
    const int first = start + int(bin << shift) - slack;
    const int end = start + int((bin + 1) << shift) + slack;
    const u32 from = bin > 0 && first > 0 ? smaller(u32(first), beyond) : 0;
    return {from, smaller(end > 0 ? u32(end) : 0, beyond) - from};
  }

  GRETA_DEVICE Sums bin_sums(Range range, u32 shift, u32 bin) const {
    const u32 count = s.count[bin];
    const Range bounds = edges(range, shift, bin);
    if (count == 0 || bounds.span == 0) return {0, 0, 0};
    const u32 end = bounds.from + bounds.span;
    // An early bin may have tokens without probability.
    return {count, early && end == beyond ? 0 : u64(count) * weight_at(end - 1),
            u64(count) * weight_at(bounds.from)};
  }

  // Scans the sums of the threads' bins.
  GRETA_DEVICE Scan<Sums> scan_bins(Range range, u32 shift) const {
    Sums own = {0, 0, 0};
    const u32 first = thread_index() * own_bins;
    for (u32 bin = first; bin < first + own_bins && bin < BINS; ++bin)
      own = own.plus(bin_sums(range, shift, bin));
    return scan_threads(own, s.sums);
  }

  // Leaves the first bin with which the sums reach a count, or a bound of a mass, and the number of
  // tokens of the bins before; BINS if none does. All threads have it after a barrier.
  template <typename Reached>
  GRETA_DEVICE void find_bin(Range range, u32 shift, const Scan<Sums>& scan, Reached reached,
                             Found& found) const {
    if (thread_index() == 0 && !reached(scan.all)) found = {BINS, scan.all.count, 0};
    Sums sums;
    if (!reaches(scan, reached, sums)) return;
    u32 bin = thread_index() * own_bins;
    for (;; ++bin) {
      const Sums next = sums.plus(bin_sums(range, shift, bin));
      if (reached(next)) break;
      sums = next;
    }
    found = {bin, sums.count, 0};
  }

  // A bound of the mass of the tokens in no early bin.
  GRETA_DEVICE u64 uncounted(u32 counted, Range range, u32 shift) const {
    const u32 from = edges(range, shift, BINS - 1).from;
    return u64(cols - counted) * weight(from);
  }

  // The distances in early bins; none where the border may be in no bin.
  GRETA_DEVICE Range early_bounds(u32 first, u32 last, Range range, u32 shift) const {
    if (first >= BINS || last >= BINS) return {0, 0};
    const u32 from = edges(range, shift, first).from;
    const Range bounds = edges(range, shift, last);
    const u32 end = bounds.from + bounds.span;
    return {from, end < beyond ? end - from : 0};
  }

  // The mass that top-p keeps of this one.
  GRETA_DEVICE u64 share(u64 mass) const {
    const u64 part = settings.top_p > 0 ? u64(settings.top_p * 0x1p32f) : 0;
    const u64 target = (mass >> 32) * part + ((mass & 0xffffffffU) * part >> 32);
    return target > 0 ? target : 1;
  }

  GRETA_DEVICE ListSearch list_search() const { return {s, beyond, held, held_mass}; }

  // Where `count` tokens end, or with no_count the share top_p of `whole`, or of the row's mass if
  // that is no_mass. `measured`: the bins have the histogram of the row.
  GRETA_DEVICE Border find(u32 count, u64 whole, bool measured) {
    const bool by_count = count != no_count;
    if (listed && held.from == 0) return list_search().find(count, share(whole));
    listed = false;
    Range range = {0, beyond};
    u32 shift = first_shift(), before = 0;
    u32 lower = 0;  // the span of the range's other half, before it
    Pass what = range.span == 1 ? tying : counting;
    while (true) {
      u64 nearer = 0;
      if (!measured) {
        nearer = pass(range, shift, what);
        if (whole == no_mass) whole = row_mass;
        if (what == listing && *s.listed <= LIST) {
          listed = true;
          held = range;
          held_mass = nearer;
          return list_search().find(by_count ? count - before : no_count, share(whole));
        }
        if (what == listing) {  // early bins count a few less
          what = range.span == 1 ? tying : counting;
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
        // Where early bins did not show the border, the row may have fewer tokens than `count`.
        const u32 ties = by_count ? smaller(count - before, row_ties) : no_count;
        return list_search().border_at(range.from, nearer, ties, share(whole));
      }
      measured = false;

      Scan<Sums> scan = scan_bins(range, shift);
      if (early) scan.all.most += uncounted(scan.all.count, range, shift);
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
      // Of few tokens in all, top-p also takes its share from the list.
      const bool few = by_count && before + passed + inside <= LIST;
      if (early) {
        const Range bounds = early_bounds(first, last, range, shift);
        early = false;
        if (bounds.span == 0 || (by_count && !few)) {  // counts again
          shift = first_shift();
          continue;
        }
        range = bounds;
      } else if (first == BINS) {
        return {beyond, 0, no_mass};
      } else {
        const u32 start = first << shift;
        const u32 end = last >= BINS - 1 ? range.span : smaller(range.span, (last + 1) << shift);
        before += passed;
        if (end - start == range.span && inside > LIST) {
          // The bounds exclude nothing: the mass of the nearer half decides.
          lower = range.span / 2;
          range = {range.from + lower, range.span - lower};
        } else {
          range = {range.from + start, end - start};
        }
      }
      what = range.span == 1 ? tying : inside <= LIST ? listing : counting;
      if (few) {
        range = {0, range.from + range.span};
        before = 0;
        what = listing;
      }
      shift = shift_of(range.span);
    }
  }
};
