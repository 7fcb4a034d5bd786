// Rows that share keys (rows.hip) by warpgroups of sm_90: a workgroup has 64 rows and walks through their keys,
// or one of SPLIT slices of them, in tiles of BK lines. Of a tile, each of GROUPS warpgroups has a part of the
// keys for the scores, and a part of the dimensions of the outputs (group_rows.hip). Greatest scores and weights
// pass between them through shared memory. Asynchronous copies fill BUFFERS tiles ahead. Slices are joined by
// rows_join.hip.
#if !defined(BK) || !defined(GROUPS) || !defined(BUFFERS)
#error "BK GROUPS and BUFFERS must be defined"
#endif
#if BK % (GROUPS * 8) != 0 || BK % 16 != 0 || GROUPS < 1 || BUFFERS < 2
#error "BK is a multiple of 16, and of 8 for each of GROUPS; BUFFERS are at least 2"
#endif

#define THREADS (GROUPS * 128)
#define COPIERS THREADS

#include "latent_attention/group_rows.hip"

constexpr u32 group_keys = BK / GROUPS;  // a warpgroup's keys of a tile

// Where things are in shared memory.
constexpr u32 weights_start = keys_start + BUFFERS * tile_bytes;
constexpr u32 parts_start =
    weights_start + WeightTile::bytes;  // of warpgroups: their rows' maxima or sums

struct Rows : GroupRows<group_keys> {
  // Leaves the greatest scores of the warpgroup's keys for the others.
  GRETA_DEVICE void leave_greatest(float* parts) const {
    float greatest[2];
    find_greatest(greatest);
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      if (first_lane()) parts[group * BQ + row(r)] = greatest[r];
    }
  }

  // Moves the bases to the greatest scores of all warpgroups.
  GRETA_DEVICE void move_to_greatest(const float* parts, float scale) {
    float greatest[2], kept[2];
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      greatest[r] = parts[row(r)];
      GRETA_UNROLL
      for (u32 g = 1; g < GROUPS; ++g) greatest[r] = larger(greatest[r], parts[g * BQ + row(r)]);
    }
    if (move_bases(greatest, scale, kept)) multiply_out(kept);
  }
};

GRETA_KERNEL(THREADS) latent_attention_warpgroups(TREE_PARAMETER ATTENTION_PARAMETERS) {
#if SPLIT > 1
  begin_launch_whole();  // as in pingpong.hip
#else
  begin_launch();
#endif
  GRETA_PANELS_SHARED(u8, memory);
  Arguments args = ATTENTION_ARGUMENTS;
  const Part part = pick_part(args);
  if (!part.exists()) return;
  const SharedMemory shared = shared_memory(memory);
  float* const parts = reinterpret_cast<float*>(memory + parts_start);
  const KeyLines keys = KeyLines(args, args.k, part.tile.sequence, part.tile.head).from(part.slice.begin);
  const u32 end = part.slice.end - part.slice.begin;
  const auto copy = [&](u32 tile) {
    const u32 first = tile * BK;
    if (first < end) {
      copy_lines<KeyTile, BK, DIM>(shared, keys_start + tile % BUFFERS * tile_bytes,
                                   CachedLines<DIM>{keys.from(first)}, end - first);
    }
    close_copies();
  };
  copy_lines<QueryTile, BQ, DIM>(shared, 0, QueryRows{args, part}, part.own);
  GRETA_UNROLL
  for (u32 tile = 0; tile + 1 < BUFFERS; ++tile) copy(tile);

  Rows rows;
  rows.begin();
  Sight sight[2];
  find_sight(args, TREE_ARGUMENT, part, sight);
  GRETA_NO_UNROLL
  for (u32 tile = 0; tile * BK < end; ++tile) {
    const u32 start = keys_start + tile % BUFFERS * tile_bytes;
    wait_for_copies<BUFFERS - 2, 0>();
    show_to_products();
    block_barrier();  // the tile is there, and the one before was read
    products_begin();
    rows.start_scores<padded, false>(shared, start, rows.group * group_keys, 0);
    close_products();
    copy(tile + BUFFERS - 1);  // starting copies takes about as long as the scores
    rows.finish_scores();
    rows.mask(sight, part.slice.begin + tile * BK + rows.group * group_keys);
    rows.leave_greatest(parts);
    block_barrier();
    rows.move_to_greatest(parts, args.scale);
    rows.weigh(args.scale, [&](u32 r, u32 c, u32 pair) {
      put_weights(memory + weights_start, rows.row(r), rows.group * (group_keys / 8) + c,
                  rows.column(0), pair);
    });
    show_to_products();
    block_barrier();
    products_begin();
    rows.start_values(shared, weights_start, start);
    rows.finish_values();
  }

  wait_for_copies<0, 0>();  // of queries, if there is no key
  rows.join_sums(parts);    // after its barrier, nobody reads tiles
  rows.store(args, part, memory);
}
