// Sums of tiles whose K steps several workgroups multiply: each keeps its own in memory, and the last to
// arrive adds them up and stores the tile. The file that includes this has the tile's sums
// (warpgroup_tile.hip), THREADS, the number of threads that hold them, and team_barrier(), which these
// meet at.
#pragma once

#include "common/arrival.hip"
#include "gemm/operands.hip"
#include "gemm/turns.hip"
#include "gemm/warpgroup_tile.hip"

constexpr u32 sums_of_thread = sizeof(Sums) / sizeof(float);
static_assert(sums_of_thread * THREADS == BM * BN && sums_of_thread % 4 == 0, "threads hold the tile");

// Where a thread's four sums number e are kept. A workgroup has two places: for the tile that it begins
// and for the one that others have begun.
GRETA_DEVICE float* kept_sums(const Arguments& args, u32 workgroup, bool begins, u32 e) {
  const u64 place = u64(workgroup) * 2 + (begins ? 1 : 0);
  return args.partial + place * (BM * BN) + (e * THREADS + thread_index()) * 4;
}

// Returns whether `sums` are those of all K steps now; else another workgroup adds these. More than two
// are added in the order of K, so that bits do not depend on who is last. `before`: a word of shared
// memory that nothing else uses.
GRETA_DEVICE bool collect_sums(const Arguments& args, const Turns& turns, const Turn& turn, u32* before,
                               Sums& sums) {
  auto& own = reinterpret_cast<float(&)[sums_of_thread]>(sums);
  GRETA_UNROLL
  for (u32 e = 0; e < sums_of_thread / 4; ++e) {
    const float* const x = own + e * 4;
    store_words<16>(kept_sums(args, turns.own, turn.step == 0, e),
                    {{bits_of(x[0]), bits_of(x[1]), bits_of(x[2]), bits_of(x[3])}});
  }
  const u32 begin = turn.tile * turns.steps;
  const u32 first = turns.workgroup_of(begin), last = turns.workgroup_of(begin + turns.steps - 1);
  if (!last_to_arrive(args.counters + turn.tile, last - first + 1, before, [] { team_barrier(); })) {
    return false;
  }
  const bool two = last - first == 1;
  GRETA_UNROLL
  for (u32 i = 0; i < sums_of_thread; ++i) own[i] = two ? own[i] : 0.0f;
  GRETA_NO_UNROLL
  for (u32 workgroup = first; workgroup <= last; ++workgroup) {
    if (two && workgroup == turns.own) continue;
    GRETA_UNROLL
    for (u32 e = 0; e < sums_of_thread / 4; ++e) {
      const Pack<float, 4> four =
          load_pack<4>(static_cast<const float*>(kept_sums(args, workgroup, workgroup == first, e)));
      GRETA_UNROLL
      for (u32 j = 0; j < 4; ++j) own[e * 4 + j] += element(four, j);
    }
  }
  return true;
}
