// Sums over the threads of a block in their order, and where these reach what is looked for.
#pragma once

#include "common/reduce.hip"

// A number, and two masses: bounds of one, or what is nearer than a range and what is not.
struct Sums {
  u32 count;
  u64 least, most;

  GRETA_DEVICE Sums plus(Sums other) const {
    return {count + other.count, least + other.least, most + other.most};
  }
  GRETA_DEVICE Sums minus(Sums other) const {
    return {count - other.count, least - other.least, most - other.most};
  }
};

// A number, and a mass.
struct Mass {
  u32 count;
  u64 least;

  GRETA_DEVICE Mass plus(Mass other) const { return {count + other.count, least + other.least}; }
  GRETA_DEVICE Mass minus(Mass other) const { return {count - other.count, least - other.least}; }
};

struct Plus {
  template <typename T>
  GRETA_DEVICE T operator()(T a, T b) const {
    return a.plus(b);
  }
};

GRETA_DEVICE u64 joined(u32 low, u32 high) {
  return u64(high) << 32 | low;
}

template <typename F>
GRETA_DEVICE Sums each_word(Sums value, F f) {
  return {f(value.count), joined(f(u32(value.least)), f(u32(value.least >> 32))),
          joined(f(u32(value.most)), f(u32(value.most >> 32)))};
}
template <typename F>
GRETA_DEVICE Mass each_word(Mass value, F f) {
  return {f(value.count), joined(f(u32(value.least)), f(u32(value.least >> 32)))};
}

// The lane `step` before this one.
struct Earlier {
  u32 step;
  GRETA_DEVICE u32 operator()(u32 value) const { return shuffle(value, lane_index() - step); }
};

// Of the lanes up to this one.
template <typename T>
GRETA_DEVICE T scan_wave(T own) {
  GRETA_NO_UNROLL
  for (u32 step = 1; step < wave_size; step *= 2) {
    const T before = each_word(own, Earlier{lane_index() >= step ? step : 0});
    if (lane_index() >= step) own = own.plus(before);
  }
  return own;
}

constexpr u32 waves = THREADS / wave_size;
static_assert(waves >= 1 && waves <= wave_size, "the waves' sums are scanned by one of them");

// Of the waves before this one, of this one, of this thread, and of all.
template <typename T>
struct Scan {
  T before_wave, wave, own, all;
};

// `shared`: a sum of each wave; it may be written again after the block's next barrier. Waves only
// add their sums, which the first wave scans: no more than one goes on to its threads.
template <typename T>
GRETA_DEVICE Scan<T> scan_threads(T own, T* shared) {
  const T of_wave = reduce_lanes<wave_size>(own, Plus{});
  const u32 wave = thread_index() / wave_size, lane = lane_index();
  if (lane == 0) shared[wave] = of_wave;
  block_barrier();
  if (wave == 0) {
    const T upto = scan_wave(lane < waves ? shared[lane] : T{});
    if (lane < waves) shared[lane] = upto;
  }
  block_barrier();
  return {shared[wave].minus(of_wave), of_wave, own, shared[waves - 1]};
}

// Whether the sums reach something with this thread's, and did not before: those of one thread do,
// if those of all threads do. `before`: of the threads before that one. Whole waves.
template <typename T, typename Reached>
GRETA_DEVICE bool reaches(const Scan<T>& scan, Reached reached, T& before) {
  const bool first = thread_index() < wave_size;
  if (!first && reached(scan.before_wave)) return false;
  if (!reached(scan.before_wave.plus(scan.wave))) return false;
  const T upto = scan.before_wave.plus(scan_wave(scan.own));
  before = upto.minus(scan.own);
  return (thread_index() == 0 || !reached(before)) && reached(upto);
}
