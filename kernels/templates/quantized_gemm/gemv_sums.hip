// What becomes of the sums of gemv's threads with ACROSS=1: threads COLS apart share columns. With SPLIT > 1 the
// workgroup's z picks a slice of K, and the last slice to arrive adds them all, in the order of K whatever the order
// of arrival. A sum's number in a workgroup is (row * sums_of_row + t) * COLS + column.
#pragma once

#if !defined(SPLIT) || SPLIT < 1
#error "SPLIT must be defined and at least 1"
#endif

#include "common/reduce.hip"
#include "quantized_gemm/epilogue.hip"
#include "quantized_gemm/prologue.hip"
#if SPLIT > 1
#include "common/arrival.hip"
#define SLICE_PARAMETERS , u32 *counters, float *partial
#define SLICES {counters, partial}
#else
#define SLICE_PARAMETERS
#define SLICES {}
#endif

// Of a wave, or of threads that are further apart than its lanes, one after the other.
constexpr u32 threads_of_part = THREADS < wave_size ? THREADS : wave_size;
static_assert(COLS <= threads_of_part, "columns are within a wave");
constexpr u32 parts = THREADS / threads_of_part, sums_of_row = TN + NORM, tile_sums = ROWS * sums_of_row * COLS;

struct Slices {
#if SPLIT > 1
  u32* counters;   // slices that are done, one for each tile; zero
  float* partial;  // sums of each slice, SPLIT x tiles x tile_sums
#endif
};

// Leaves a row's sums of a thread where those of a wave have met. `shared`: parts x tile_sums.
GRETA_DEVICE void meet_in_wave(const float (&sum)[TN], float squares, u32 row, float* shared) {
  const u32 thread = thread_index(), column = thread % COLS;
  GRETA_UNROLL
  for (u32 t = 0; t < sums_of_row; ++t) {
    const float total = reduce_lanes<threads_of_part / COLS, COLS>(t < TN ? sum[t % TN] : squares, Add{});
    if (thread % threads_of_part < COLS) {
      shared[thread / threads_of_part * tile_sums + (row * sums_of_row + t) * COLS + column] = total;
    }
  }
}

// All threads, after meet_in_wave(): leaves the sums over K of tile `tile` of `tiles` in the first part of `shared`;
// false in workgroups whose slices are not the last to arrive.
GRETA_DEVICE bool meet(const Slices& slices, u32 tile, u32 tiles, float* shared) {
  block_barrier();
  for (u32 e = thread_index(); e < tile_sums; e += THREADS) {
    float total = 0;
    GRETA_UNROLL
    for (u32 part = 0; part < parts; ++part) total += shared[part * tile_sums + e];
#if SPLIT > 1
    slices.partial[(u64(block_z()) * tiles + tile) * tile_sums + e] = total;
#else
    shared[e] = total;
#endif
  }
#if SPLIT > 1
  GRETA_SHARED(u32, before, 1);  // slices before this one
  if (!last_to_arrive(slices.counters + tile, SPLIT, before)) return false;
  for (u32 e = thread_index(); e < tile_sums; e += THREADS) {
    float total = 0;
    GRETA_UNROLL
    for (u32 s = 0; s < SPLIT; ++s) total += slices.partial[(u64(s) * tiles + tile) * tile_sums + e];
    shared[e] = total;
  }
#endif
  block_barrier();
  return true;
}
