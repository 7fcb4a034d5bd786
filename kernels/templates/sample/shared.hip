// What the threads of a block share while they search and draw.
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

// Bins of the list, which have a number and both words of a mass in the place of the row's bins: a
// power of two, of at most one for each thread.
constexpr u32 list_bins = BINS * COPIES / 4 < THREADS ? BINS * COPIES / 4 : THREADS;

// Where a search ended: an index, and what is left of a draw or before the index.
struct Found {
  u32 index, count;
  u64 mass;
};

struct Shared {
  u32* power;                             // `powers` of 2
  u32* count;                             // of bins, COPIES times
  u32 *list_far, *list_column;            // LIST of each
  u32* listed;                            // their number
  u32 *part_low, *part_high, *part_ties;  // `sections` of each: masses, and ties
  Sums* sums;                             // of waves
  Mass* masses;                           // of waves
  Found* found;                           // two

  // After the block's next barrier, the weights are known.
  GRETA_DEVICE void fill_powers() const {
    for (u32 i = thread_index(); i < powers; i += THREADS) power[i] = power_at(i);
  }
  GRETA_DEVICE void zero_bins(u32 bins = BINS * COPIES) const {
    for (u32 i = thread_index(); i < bins; i += THREADS) count[i] = 0;
  }
  GRETA_DEVICE void clear_bins(u32 bins = BINS * COPIES) const {
    zero_bins(bins);
    block_barrier();
  }
  // Of far <= farthest.
  GRETA_DEVICE u32 weight_at(u32 far) const {
    return weight_of(far, power[far >> 15 & (powers - 1)]);
  }
};

#define GRETA_SAMPLE_SHARED                                                                 \
  GRETA_SHARED(u32, powers_of_2, powers);                                                   \
  GRETA_SHARED(u32, bins_count, BINS* COPIES);                                              \
  GRETA_SHARED(u32, list_far, LIST);                                                        \
  GRETA_SHARED(u32, list_column, LIST);                                                     \
  GRETA_SHARED(u32, part_low, sections);                                                    \
  GRETA_SHARED(u32, part_high, sections);                                                   \
  GRETA_SHARED(u32, part_ties, sections);                                                   \
  GRETA_SHARED(u32, listed, 1);                                                             \
  GRETA_SHARED(Sums, wave_sums, waves + 1);                                                 \
  GRETA_SHARED(Mass, wave_masses, waves + 1);                                               \
  GRETA_SHARED(Found, found, 2);                                                            \
  GRETA_SHARED(float, maxima, 2 * (THREADS / wave_size) + 1);                               \
  const Shared shared {                                                                     \
    powers_of_2, bins_count, list_far, list_column, listed, part_low, part_high, part_ties, \
        wave_sums, wave_masses, found                                                       \
  }
