// Where the kept tokens of a row end. Tokens are kept in the order of their distances to the
// largest logit, equal ones in that of their columns. A histogram counts the tokens by distance, so
// the mass of a bin is known to lie between bounds, and the border in the bins where these reach
// what is to be kept. A pass over the row then sums what is nearer than these bins, and lists what
// lies in them; histograms of the list find the distance.
#pragma once

#include "sample/histogram.hip"

// Bins of a thread, of those threads that have any.
constexpr u32 own_bins = BINS > THREADS ? BINS / THREADS : 1;

// What is kept: tokens nearer than `far`, and the first `ties` of those at `far`.
struct Border {
  u32 far, ties;
  u64 mass;  // of all that is kept; no_mass: it is that of the row
};

constexpr u32 no_count = 0xffffffffU;
constexpr u64 no_mass = ~u64(0);

// What is kept: `count` tokens, or with no_count the share top_p of `whole`, or of the row's mass
// if that is no_mass. With a count of 0 nothing is looked for: a pass is made.
struct Goal {
  u32 count;
  u64 whole;
  GRETA_DEVICE bool by_count() const { return count != no_count; }
  GRETA_DEVICE bool none() const { return count == 0; }
};

// What a pass over the row does with tokens of a range.
enum Pass : u32 { counting, listing, tying };

// A step of a search: the border lies in the range.
struct Step {
  Range range;
  Pass what;
  u32 before = 0;  // the number of nearer tokens, if it is counted
  u32 lower = 0;   // the span of the range's other half, before it
};

// A search begins with what is known: the first histogram, a step, or what the step's pass found.
enum Known : u32 { histogram, step_only, passed };

struct Search : Histogram {
  bool listed = false;      // the list has the tokens of the last pass's range
  u32 nearest = 0;          // if that begins at 0: its span
  u32 section_columns = 0;  // of the sections that the last pass has summed

  GRETA_DEVICE static Step step_of(Range range) {
    return {range, range.span == 1 ? tying : counting};
  }

  // Counts what of the list lies in the range. Returns the mass of what is nearer in the row.
  GRETA_DEVICE u64 count_list(Range range) const {
    clear_bins();
    const u32 shift = bins_of(range).shift;
    u64 nearer = 0;
    GRETA_NO_UNROLL
    for (u32 i = thread_index(); i < *s.listed; i += THREADS) {
      const u32 far = s.list_far[i], inside = far - range.from;
      if (far < range.from) {
        nearer += weight_at(far);
      } else if (inside < range.span) {
        count_in(smaller(inside >> shift, BINS - 1));
      }
    }
    merge_bins();
    nearer =
        s.totals->nearer + reduce_threads<THREADS>(Sums{0, nearer, 0}, PlusSums{}, s.sums).least;
    block_barrier();
    return nearer;
  }

  GRETA_DEVICE void list(u32 far, u32 column) const {
    const u32 place = add_shared(s.listed, 1);
    if (place >= LIST) return;
    s.list_far[place] = far;
    s.list_column[place] = column;
  }

  // A pass over a part of the row: sums of this thread, of what is nearer than the range and of the
  // rest. What lies in the range is counted in bins, listed, or as ties; else what is nearer is
  // counted.
  GRETA_DEVICE Sums gather(const Step& step, u32 first, u32 end) const {
    const Range range = step.range;
    const Pass what = step.what;
    const u32 shift = bins_of(range).shift;
    if (what == listing && thread_index() == 0) *s.listed = 0;
    if (what == counting) clear_bins();
    block_barrier();
    u64 nearer = 0, all = 0, within = 0;  // within: bits of the round's elements in the range
    u32 ties = 0, others = 0;
    const auto visit = [&](float value, u32 i) {
      const u32 far = distance(value), w = weight(far);
      all += w;
      if (far < range.from) {
        nearer += w;
        ++others;
      }
      within |= u64(far - range.from < range.span) << i;
    };
    // Few elements are in the range: they are loaded again.
    const auto take = [&](u32 column) {
      GRETA_NO_UNROLL
      for (; within != 0; within &= within - 1) {
        const u32 i = lowest_bit(within), place = column + i / VEC * walk_step + i % VEC;
        const u32 far = distance(to_float(x[place]));
        if (what == tying) ++ties;
        if (what == counting) count_in(smaller(far - range.from >> shift, BINS - 1));
        if (what == listing) list(far, place);
      }
    };
    walk<true>(x, first, end, visit, take);
    if (what == counting) merge_bins();
    return {what == tying ? ties : others, nearer, all - nearer};
  }

  // Adds what the threads gathered. All see the list afterwards.
  GRETA_DEVICE void add_up(Sums own) const {
    const Sums all = reduce_threads<THREADS>(own, PlusSums{}, s.sums);
    if (thread_index() == 0) *s.totals = {all.least + all.most, all.least, all.count};
    block_barrier();
  }

  GRETA_DEVICE void pass(const Step& step) {
    const Sums own = gather(step, 0, cols);
    const Sums part = reduce_lanes<section_lanes>(own, PlusSums{});
    if (thread_index() % section_lanes == 0) {
      const u32 section = thread_index() / section_lanes;
      s.part_low[section] = u32(part.least);
      s.part_high[section] = u32(part.least >> 32);
      s.part_ties[section] = step.what == tying ? part.count : 0;
    }
    section_columns = section_length(cols);
    add_up(own);
  }

  // Distances of a bin that are in the range.
  GRETA_DEVICE static Range bin_range(Range range, Bins bins, u32 bin) {
    const int offset = int(bin << bins.shift), width = int(1U << bins.shift);
    const int start = bins.from + offset - int(bins.slack);
    const int end = bins.from + offset + width + int(bins.slack);
    const u32 from = bin == 0 || start < int(range.from) ? range.from : u32(start);
    const u32 to = bin == BINS - 1 || end > int(range.end()) ? range.end() : end < 0 ? 0 : u32(end);
    return {from, to > from ? to - from : 0};
  }

  // The first histogram also has tokens beyond the range, whose weights are 0.
  GRETA_DEVICE Sums bin_sums(Range range, Bins bins, u32 bin) const {
    const u32 count = s.count[bin];
    if (count == 0) return {0, 0, 0};
    const Range own = bin_range(range, bins, bin);
    if (own.span == 0) return {0, 0, 0};
    const bool cut = bins.slack > 0 && own.end() == range.end();
    return {count, cut ? 0 : u64(count) * weight_at(own.end() - 1),
            u64(count) * weight_at(own.from)};
  }

  // Leaves the first bin with which the sums reach a count, or a bound of a mass, and the number
  // and the least mass of the tokens of the bins before; BINS if none does. All threads have it
  // after a barrier.
  template <typename Reached>
  GRETA_DEVICE void find_bin(Range range, Bins bins, const Scan& scan, Reached reached,
                             Found& found) const {
    if (thread_index() == 0 && !reached(scan.all)) found = {BINS, scan.all.count, 0};
    if (!reaches(scan, reached)) return;
    Sums sums = scan.before;
    u32 bin = thread_index() * own_bins;
    GRETA_NO_UNROLL
    for (;; ++bin) {
      const Sums next = sums.plus(bin_sums(range, bins, bin));
      if (reached(next)) break;
      sums = next;
    }
    found = {bin, sums.count, sums.least};
  }

  // The mass that top-p keeps of this one.
  GRETA_DEVICE u64 share(u64 mass) const {
    const u64 part = settings.top_p > 0 ? u64(settings.top_p * 0x1p32f) : 0;
    const u64 target = (mass >> 32) * part + ((mass & 0xffffffffU) * part >> 32);
    return target > 0 ? target : 1;
  }

  // Narrows the step's range to bins that have the border, `nearer` being the mass before it.
  // Returns the bin and what is before it; BINS if no bin has it.
  GRETA_DEVICE Found narrow(Step& step, Bins bins, Goal goal, u64 nearer, bool on_list) const {
    const bool by_count = goal.by_count(), first_histogram = bins.slack > 0;
    const Range range = step.range;
    Sums own = {0, 0, 0};
    const u32 from = thread_index() * own_bins;
    GRETA_NO_UNROLL
    for (u32 bin = from; bin < from + own_bins && bin < BINS; ++bin)
      own = own.plus(bin_sums(range, bins, bin));
    const Scan scan = scan_threads(own, s.sums);
    const bool of_all = !by_count && goal.whole == no_mass;
    const u64 least = share(of_all ? scan.all.least : goal.whole);
    const u64 greatest = of_all ? share(scan.all.most) : least;
    // Bins from `first` to `last` have the border.
    find_bin(
        range, bins, scan,
        [&](Sums sums) {
          return by_count ? step.before + sums.count >= goal.count : nearer + sums.most >= least;
        },
        s.found[0]);
    if (!by_count) {
      find_bin(
          range, bins, scan, [&](Sums sums) { return nearer + sums.least >= greatest; },
          s.found[1]);
    }
    block_barrier();
    const Found first = s.found[0], last = s.found[by_count ? 0 : 1];
    const u32 inside = last.count - first.count + (last.index < BINS ? s.count[last.index] : 0);
    block_barrier();
    if (first.index == BINS) return first;

    const u32 start = bin_range(range, bins, first.index).from;
    const u32 end = bin_range(range, bins, smaller(last.index, BINS - 1)).end();
    step.before += first.count;
    if (end - start == range.span && (on_list || inside > LIST) && !first_histogram) {
      // The bounds exclude nothing: the mass of the nearer half decides.
      step.lower = range.span / 2;
      step.range = {range.from + step.lower, range.span - step.lower};
    } else {
      step.range = {start, end - start};
    }
    // What the first histogram has before the range is not exact.
    step.what = step.range.span == 1 && !first_histogram ? tying
                : inside <= LIST                         ? listing
                                                         : counting;
    // Of few tokens in all, top-p also takes its share from the list.
    if (!on_list && by_count && step.before + inside <= LIST) step = {{0, end}, listing};
    return first;
  }

  // Where what the goal keeps ends.
  GRETA_DEVICE Border find(Goal goal, Known known, Step step) {
    const bool by_count = goal.by_count();
    bool on_list = known == step_only && listed && nearest > 0;
    if (on_list) {
      step = step_of({0, nearest});
      if (goal.whole == no_mass) goal.whole = s.totals->row;
    }
    listed = on_list;
    while (true) {
      const Bins first = first_bins();
      const bool measured = known == histogram && first.slack > 0;
      const Bins bins = measured ? first : bins_of(step.range);
      u64 nearer = 0;
      if (on_list) {
        nearer = count_list(step.range);
      } else if (!measured) {
        if (known != passed) pass(step);
        if (goal.none()) return {};
        nearer = s.totals->nearer;
        if (goal.whole == no_mass) goal.whole = s.totals->row;
        if (step.what != tying) step.before = s.totals->count;
      }
      known = step_only;
      if (!on_list && !measured && step.what == listing) {
        // Rounding of the first histogram may have made the list too long.
        listed = on_list = *s.listed <= LIST;
        step.what = counting;
        nearest = step.range.from == 0 ? step.range.span : 0;
        continue;
      }
      if (step.lower > 0 && nearer >= share(goal.whole)) {  // the border is in the other half
        step = step_of({step.range.from - step.lower, step.lower});
        continue;
      }
      step.lower = 0;
      if (step.range.span == 1 && !measured) {
        if (!on_list && step.what != tying) {
          step.what = tying;
          continue;
        }
        return border_at(step.range.from, nearer, by_count ? goal.count - step.before : no_count,
                         share(goal.whole));
      }
      const u32 from = step.range.from;
      const Found bin = narrow(step, bins, goal, nearer, on_list);
      if (bin.index == BINS) return {beyond, 0, no_mass};
      // Bins of one distance each have exact masses.
      if (on_list && bins.shift == 0) {
        return border_at(from + bin.index, nearer + bin.mass,
                         by_count ? goal.count - step.before : no_count, share(goal.whole));
      }
    }
  }

  // `ties`: no_count if a mass is the target.
  GRETA_DEVICE Border border_at(u32 far, u64 nearer, u32 ties, u64 target) const {
    const u32 w = weight_at(far);
    if (ties == no_count) ties = u32((target - nearer + w - 1) / w);
    return {far, ties, nearer + u64(ties) * w};
  }
};
