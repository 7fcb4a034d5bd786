// Where the kept tokens end among those that a pass has listed. Bins of the list have exact masses.
#pragma once

#include "sample/listing.hip"
#include "sample/shared.hip"

// What is kept: tokens nearer than `far`, and the first `ties` of those at `far`.
struct Border {
  u32 far, ties;
  u64 mass;  // of all that is kept; no_mass: it is that of the row
};

constexpr u32 no_count = 0xffffffffU;
constexpr u64 no_mass = ~u64(0);

// The least with which `bins`, a power of two, have the span.
GRETA_DEVICE u32 shift_of(u32 span, u32 bins = BINS) {
  return bit_length((span - 1) / bins);
}

struct SmallerOf {
  GRETA_DEVICE u32 operator()(u32 a, u32 b) const { return smaller(a, b); }
};

struct FromLane {
  u32 lane;
  GRETA_DEVICE u32 operator()(u32 value) const { return shuffle(value, lane); }
};

struct ListSearch {
  static constexpr u32 few = 32;  // tokens, at most one for each lane, that a wave compares

  static_assert(few <= wave_size, "one for each lane");

  const Shared& s;
  u32 beyond;     // the least distance at which tokens have no probability
  Range held;     // what the list has
  u64 held_mass;  // of tokens nearer than that

  // `ties`: no_count if a mass is the target.
  GRETA_DEVICE Border border_at(u32 far, u64 nearer, u32 ties, u64 target) const {
    const u32 w = s.weight_at(far);
    if (ties == no_count) ties = u32((target - nearer + w - 1) / w);
    return {far, ties, nearer + u64(ties) * w};
  }

  // Where `count` of the list's tokens end, or with no_count the mass `target` of the row.
  GRETA_DEVICE Border find(u32 count, u64 target) const {
    u32 *const low = s.count + list_bins, *const high = low + list_bins;
    const u32 thread = thread_index();
    Range range = held;
    u64 nearer = held_mass;
    while (range.span > 1) {
      const u32 shift = shift_of(range.span, list_bins);
      s.clear_bins(3 * list_bins + 1);
      for (u32 i = thread; i < *s.listed; i += THREADS) {
        const u32 far = s.list_far[i], inside = far - range.from, bin = inside >> shift;
        if (inside >= range.span) continue;
        add_shared(s.count + bin, 1);
        add_mass(low + bin, high + bin, s.weight_at(far));
      }
      block_barrier();
      Mass own = {0, 0};
      if (thread < list_bins) own = {s.count[thread], joined(low[thread], high[thread])};
      const Scan<Mass> scan = scan_threads(own, s.masses);
      const auto reached = [&](Mass sums) {
        return count != no_count ? sums.count >= count : nearer + sums.least >= target;
      };
      if (thread == 0 && !reached(scan.all)) s.found[0] = {list_bins, 0, 0};
      Mass before;
      if (reaches(scan, reached, before)) {
        s.found[0] = {thread, before.count, before.least};
        s.found[1].count = own.count;
      }
      block_barrier();
      const Found found = s.found[0];
      const u32 inside = s.found[1].count;
      if (found.index == list_bins) return {beyond, 0, no_mass};
      if (count != no_count) count -= found.count;
      nearer += found.mass;
      const u32 start = found.index << shift;
      range = {range.from + start, smaller(1U << shift, range.span - start)};
      if (range.span > 1 && inside <= few) return find_among(range, inside, count, nearer, target);
    }
    return border_at(range.from, nearer, count, target);
  }

  // As find(), of the list's `number` tokens in the range. Their distances are in the last quarter of
  // the bins, after their number, which is 0 before. Each wave compares all of them.
  GRETA_DEVICE Border find_among(Range range, u32 number, u32 count, u64 nearer, u64 target) const {
    u32 *const gathered = s.count + 3 * list_bins, *const far = gathered + 1;
    for (u32 i = thread_index(); i < *s.listed; i += THREADS) {
      if (s.list_far[i] - range.from < range.span) far[add_shared(gathered, 1)] = s.list_far[i];
    }
    block_barrier();
    const u32 lane = lane_index(), own = lane < number ? far[lane] : beyond;
    Mass before = {0, 0}, same = {0, 0};
    for (u32 i = 0; i < number; ++i) {
      const u32 other = far[i];
      const Mass one = {1, s.weight_at(other)};
      if (other < own) before = before.plus(one);
      if (other == own) same = same.plus(one);
    }
    const Mass upto = before.plus(same);
    const bool ends = count != no_count
                          ? before.count < count && upto.count >= count
                          : nearer + before.least < target && nearer + upto.least >= target;
    const u32 from = reduce_lanes<wave_size>(ends ? lane : wave_size - 1, SmallerOf{});
    before = each_word(before, FromLane{from});
    return border_at(shuffle(own, from), nearer + before.least,
                     count == no_count ? no_count : count - before.count, target);
  }
};
