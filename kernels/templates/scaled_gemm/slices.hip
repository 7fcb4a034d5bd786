// Elements of C from sums over k, or with SPLIT > 1 over a slice of k, of which the workgroup's z picks
// one: the last slice to arrive adds them all, in the order of k whatever the order of arrival.
#pragma once

#if !defined(SPLIT) || SPLIT < 1
#error "SPLIT must be defined and at least 1"
#endif

#include "scaled_gemm/numbers.hip"
#if SPLIT > 1
#include "common/arrival.hip"
#endif

// A sum of products of any k: with SCALES >= 2 of scaled ones. Others are scaled in the end.
#if FORMAT == 4 && SCALES < 2
typedef int Total;
#else
typedef float Total;
#endif

// What follows the extents among a kernel's parameters.
#if SPLIT > 1
#define SLICE_PARAMETERS , u32 *counters, Total *partial, u32 slice
#define SLICES {counters, partial, slice}
#else
#define SLICE_PARAMETERS
#define SLICES {}
#endif

struct Slices {
#if SPLIT > 1
  u32* counters;   // slices that are done, one for each tile; zero
  Total* partial;  // sums of each slice, SPLIT x m x n
  u32 length;      // k of a slice
#endif

  GRETA_DEVICE u32 begin(u32 k) const {
#if SPLIT > 1
    return smaller(block_z() * length, k);
#else
    return 0;
#endif
  }
  GRETA_DEVICE u32 end(u32 k) const {
#if SPLIT > 1
    return smaller(begin(k) + length, k);
#else
    return k;
#endif
  }
};

struct Result {
  ScalePair scales;
  Out* c;
  u32 m, n;
  Slices slices;

  GRETA_DEVICE void store(u32 row, u32 col, Total total) const {
    float value = float(total);
    if (SCALES < 2) value *= scales.of_a(row, 0) * scales.of_b(col, 0);
    c[u64(row) * n + col] = narrow<Out>(value);
  }

  // The sum of this workgroup's slice.
  GRETA_DEVICE void put(u32 row, u32 col, Total total) const {
#if SPLIT > 1
    slices.partial[(u64(block_z()) * m + row) * n + col] = total;
#else
    store(row, col, total);
#endif
  }

  // Once a workgroup has put its sums of a tile: finishes its elements, if it is the last to arrive.
  template <u32 threads, u32 rows, u32 columns>
  GRETA_DEVICE void finish(u32 tile, u32 first_row, u32 first_col) const {
#if SPLIT > 1
    GRETA_SHARED(u32, before, 1);  // slices before this one
    if (!last_to_arrive(slices.counters + tile, SPLIT, before)) return;
    for (u32 e = thread_index(); e < rows * columns; e += threads) {
      const u32 row = first_row + e / columns, col = first_col + e % columns;
      if (row >= m || col >= n) continue;
      Total total = 0;
      GRETA_UNROLL
      for (u32 s = 0; s < SPLIT; ++s) total += slices.partial[(u64(s) * m + row) * n + col];
      store(row, col, total);
    }
#endif
  }
};
