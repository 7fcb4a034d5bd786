// Sums of slices of k in tma.hip, which includes this. With SPLIT > 1 the workgroup's z picks a slice. Slices
// are added in the order of k, whatever the order in which workgroups arrive.
//
// A slice's sums lie as the lanes of its warpgroups have them: of each product and eight columns, four sums
// of a lane, one lane after the other, so that a wave writes and reads whole lines.
#pragma once

#if SPLIT > 1 && FOLD == 1
#include "common/arrival.hip"
#define SLICE_PARAMETERS , u32 *counters, Total *partial
#define SLICES \
  { counters, partial }
#else
#define SLICE_PARAMETERS
#define SLICES \
  {}
#endif

#if SPLIT > 1
constexpr u32 slice_totals = BM * BN;

GRETA_DEVICE u32 word_of(float x) { return bits_of(x); }
GRETA_DEVICE u32 word_of(int x) { return u32(x); }
GRETA_DEVICE void add_word(u32 word, float& sum) { sum += float_from_bits(word); }
GRETA_DEVICE void add_word(u32 word, int& sum) { sum += int(word); }

// Where this lane's four sums of a product and eight columns lie in a slice.
GRETA_DEVICE u32 place_of_four(u32 product, u32 eight) {
  return (((wave_index() * products + product) * (BN / 8) + eight) * wave_size + lane_index()) * 4;
}

GRETA_DEVICE void put_slice(Total* to, Totals& totals) {
  GRETA_UNROLL
  for (u32 product = 0; product < products; ++product) {
    GRETA_UNROLL
    for (u32 c = 0; c < BN / 8; ++c) {
      const Total(&x)[4] = totals.of(product, c);
      store_words<16>(to + place_of_four(product, c),
                      {{word_of(x[0]), word_of(x[1]), word_of(x[2]), word_of(x[3])}});
    }
  }
}

// Adds up four sums that lie at the same place of all slices.
template <typename SliceAt>
GRETA_DEVICE void add_fours(SliceAt slice_at, u32 place, Total (&sum)[4]) {
  Words<16> four[SPLIT];
  GRETA_UNROLL
  for (u32 s = 0; s < SPLIT; ++s) four[s] = load_words<16>(slice_at(s) + place);
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    sum[i] = 0;
    GRETA_UNROLL
    for (u32 s = 0; s < SPLIT; ++s) add_word(four[s].word[i], sum[i]);
  }
}
#endif

#if SPLIT > 1 && FOLD == 1
struct Slices {
  u32* counters;   // slices that are done, one for each tile; zero
  Total* partial;  // sums of each tile's slices

  // Puts the sums of this workgroup's slice of a tile; true for the last one, which then has those of all.
  // `before`: of the workgroup, in shared memory that nobody uses.
  GRETA_DEVICE bool add_up(u32 tile, u32* before, Totals& totals) const {
    Total* const of_tile = partial + u64(tile) * SPLIT * slice_totals;
    put_slice(of_tile + block_z() * slice_totals, totals);
    if (!last_to_arrive(counters + tile, SPLIT, before, [] { partial_sync<THREADS>(1); })) {
      return false;
    }
    GRETA_UNROLL
    for (u32 product = 0; product < products; ++product) {
      GRETA_UNROLL
      for (u32 c = 0; c < BN / 8; ++c) {
        add_fours([of_tile](u32 s) { return of_tile + s * slice_totals; }, place_of_four(product, c),
                  totals.of(product, c));
      }
    }
    return true;
  }
};
#elif SPLIT > 1
constexpr u32 own_eights = BN / 8 / SPLIT;

// The sums of the columns that a workgroup stores.
struct OwnTotals {
  Total own[products][own_eights][4];

  GRETA_DEVICE Total (&of(u32 product, u32 c))[4] { return own[product][c]; }
};

// A wave that neither puts sums nor adds any.
GRETA_DEVICE void meet_cluster() {
  __syncwarp();
  cluster_barrier_relaxed();
  cluster_barrier_relaxed();
}

struct Slices {
  // Puts the sums of this workgroup's slice to `sums`, at the same place in each workgroup of the cluster,
  // and adds up those of all slices of its columns. cluster_wait() must follow: others may read still.
  GRETA_DEVICE void exchange(Total* sums, Totals& totals, OwnTotals& own) const {
    partial_sync<THREADS>(1);  // all are done with the stages, where sums go
    put_slice(sums, totals);
    cluster_barrier();
    const Total* of_slice[SPLIT];
    GRETA_UNROLL
    for (u32 s = 0; s < SPLIT; ++s) of_slice[s] = place_in_block(s, sums);
    GRETA_UNROLL
    for (u32 product = 0; product < products; ++product) {
      GRETA_UNROLL
      for (u32 c = 0; c < own_eights; ++c) {
        add_fours([&of_slice](u32 s) { return of_slice[s]; },
                  place_of_four(product, block_z() * own_eights + c), own.of(product, c));
      }
    }
    cluster_arrive();
  }
};
#else
struct Slices {};
#endif
#if FOLD != 2
GRETA_DEVICE void meet_cluster() {}
#endif
