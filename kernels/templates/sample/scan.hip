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

struct PlusSums {
  GRETA_DEVICE Sums operator()(Sums a, Sums b) const { return a.plus(b); }
};

GRETA_DEVICE u64 joined(u32 low, u32 high) { return u64(high) << 32 | low; }

template <typename F>
GRETA_DEVICE Sums each_word(Sums value, F f) {
  return {f(value.count), joined(f(u32(value.least)), f(u32(value.least >> 32))),
          joined(f(u32(value.most)), f(u32(value.most >> 32)))};
}

// The lane `step` before this one.
struct Earlier {
  u32 step;
  GRETA_DEVICE u32 operator()(u32 value) const { return shuffle(value, lane_index() - step); }
};

// Of the lanes up to this one.
GRETA_DEVICE Sums scan_wave(Sums own) {
  GRETA_NO_UNROLL
  for (u32 step = 1; step < wave_size; step *= 2) {
    const Sums before = each_word(own, Earlier{lane_index() >= step ? step : 0});
    if (lane_index() >= step) own = own.plus(before);
  }
  return own;
}

constexpr u32 waves = THREADS / wave_size;
static_assert(waves >= 1 && waves <= wave_size, "the waves' sums are scanned by one of them");

// Of the threads before this one, of this one, and of all.
struct Scan {
  Sums before, own, all;
};

// `shared`: waves + 1 sums; it may be written again after the block's next barrier.
GRETA_DEVICE Scan scan_threads(Sums own, Sums* shared) {
  const Sums upto = scan_wave(own);
  const u32 wave = thread_index() / wave_size;
  if (lane_index() == wave_size - 1) shared[wave] = upto;
  block_barrier();
  if (wave == 0) {
    const u32 lane = lane_index();
    const Sums of_wave = lane < waves ? shared[lane] : Sums{0, 0, 0};
    const Sums upto_wave = scan_wave(of_wave);
    if (lane < waves) shared[lane] = upto_wave.minus(of_wave);
    if (lane == waves - 1) shared[waves] = upto_wave;
  }
  block_barrier();
  return {shared[wave].plus(upto).minus(own), own, shared[waves]};
}

// Whether the sums reach something with this thread's, and did not before: those of one thread do,
// if those of all threads do.
template <typename Reached>
GRETA_DEVICE bool reaches(const Scan& scan, Reached reached) {
  return (thread_index() == 0 || !reached(scan.before)) && reached(scan.before.plus(scan.own));
}
