// Sums over parts of a row's keys, and how they are joined: those of the KWAVES waves that share a
// tile's rows through shared memory, those of SPLIT workgroups through the workspace or, with FOLD=2,
// as a cluster that reads each other's shared memory.
#pragma once

#include "attention/packing.hip"
#include "attention/slices.hip"

#if FOLD == 2
#include "common/cluster.hip"
#endif

typedef SliceJoin<BQ, SPLIT, JOINERS, ASYNC ? 32 : 16> OwnJoin;

// A workgroup's part of the keys from `first` to `end`: whole tiles, as many for each slice. As many
// slices as have keys are used, and one where there is none.
struct Slice {
  u32 begin, end, used;
};

GRETA_DEVICE Slice pick_slice(u32 first, u32 end, u32 slice) {
  if (SPLIT == 1) return {first, end, 1};
  const u32 all = end - first, keys = (all + SPLIT * BK - 1) / (SPLIT * BK) * BK;
  const u32 begin = smaller(first + slice * keys, end);
  return {begin, smaller(begin + keys, end), keys == 0 ? 1 : (all + keys - 1) / keys};
}

// The outputs of a tile's rows, from sums of values and of weights.
struct Outputs {
  const Arguments& args;
  const Tile& tile;

  GRETA_DEVICE void operator()(u32 row, u32 d, const float (&values)[4], RowSum sum) const {
    float x[4];
    sum.divide(args, head_of(tile, tile.first + row), values, x);
    const u64 offset = output_row(args, tile, tile.first + row);
    store_pack(args.out + offset + d, narrow_pack<Out>(x));
    if (d == 0) sum.put_lse(args, offset);
  }
};

#if FOLD == 2
// A row's sums in this workgroup's slice, in its shared memory, and in those of its cluster.
struct OwnSums {
  static constexpr u32 pitch = V_DIM + 8, floats = BQ * pitch;  // spread over the banks

  float* shared;

  GRETA_DEVICE float* values(u32 row) const { return shared + row * pitch; }
  GRETA_DEVICE float* scores(u32 row) const { return values(row) + V_DIM; }
};
struct ClusterSums {
  OwnSums own;

  GRETA_DEVICE const float* values(u32 slice, u32 row) const {
    return place_in_block(slice, own.values(row));
  }
  GRETA_DEVICE const float* scores(u32 slice, u32 row) const {
    return place_in_block(slice, own.scores(row));
  }
};
#else
// A row's sums in one slice, in the workspace.
struct OwnSums {
  static constexpr u32 floats = 0;

  const Slices<BQ, SPLIT>& slices;
  u32 slice;

  GRETA_DEVICE float* values(u32 row) const { return slices.values(slice, row); }
  GRETA_DEVICE float* scores(u32 row) const { return slices.scores(slice, row); }
};
#endif

// And of one wave, in shared memory: V_DIM values, the greatest score, the sum of weights.
struct WaveSums {
  static constexpr u32 pitch = V_DIM + 8, floats = BQ * pitch;  // spread over the banks

  float* shared;
  u32 wave;

  GRETA_DEVICE float* values(u32 row) const { return shared + wave * floats + row * pitch; }
  GRETA_DEVICE float* scores(u32 row) const { return values(row) + V_DIM; }
};

// Joins the waves' sums of the first `own` rows, into outputs or, with several slices, into one's.
GRETA_DEVICE void join_waves(float* shared, u32 own, const Outputs& outputs, const OwnSums& slice,
                             bool several) {
  GRETA_NO_UNROLL
  for (u32 e = thread_index(); e < own * (V_DIM / 4); e += THREADS) {
    const u32 row = e / (V_DIM / 4), d = e % (V_DIM / 4) * 4;
    float most = lowest_score, total = 0.0f, four[4] = {};
    GRETA_UNROLL
    for (u32 w = 0; w < KWAVES; ++w) most = larger(most, WaveSums{shared, w}.scores(row)[0]);
    GRETA_UNROLL
    for (u32 w = 0; w < KWAVES; ++w) {
      const WaveSums sums{shared, w};
      const float weight = fast_exp2(sums.scores(row)[0] - most);
      const Words<16> part = load_words<16>(sums.values(row) + d);
      total = multiply_add(weight, sums.scores(row)[1], total);
      GRETA_UNROLL
      for (u32 x = 0; x < 4; ++x) {
        four[x] = multiply_add(weight, float_from_bits(part.word[x]), four[x]);
      }
    }
    if (several) {
      store_pack(slice.values(row) + d, narrow_pack<float>(four));
      if (d == 0) store_pack(slice.scores(row), narrow_pack<float>({most, total}));
    } else {
      outputs(row, d, four, {most, total});
    }
  }
}

// Shared memory that joins take, in floats: the sums of waves, of a cluster's slice, and what joins
// slices, which is also the place of the number of arrivals.
constexpr u32 wave_floats = KWAVES > 1 ? KWAVES * WaveSums::floats : 0;
constexpr u32 slice_floats = SPLIT > 1 ? OwnJoin::shared_floats + 4 : 0;
constexpr u32 join_bytes =
    4 * (FOLD == 2 ? wave_floats + OwnSums::floats + slice_floats
                   : wave_floats > slice_floats ? wave_floats : slice_floats);

// Joins the slices of a tile once this workgroup's sums are in their place.
GRETA_DEVICE void join_slices(const Arguments& args, const OwnSums& sums, u32 used, u32 own,
                              float* shared, const Outputs& outputs) {
#if FOLD == 2
  cluster_barrier();
  OwnJoin::join(ClusterSums{sums}, used, own, block_z(), used,
                shared + wave_floats + OwnSums::floats, outputs);
  cluster_barrier();  // the others have read this workgroup's sums
#else
  u32* const before = reinterpret_cast<u32*>(shared + OwnJoin::shared_floats);
  u32* const counter = args.counters + block_index<THREADS>();
  if (!last_to_arrive(counter, used, before, [] { joiners_barrier(); })) return;
  OwnJoin::join(sums.slices, used, own, 0, 1, shared, outputs);
#endif
}
