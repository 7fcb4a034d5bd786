// Rows that share keys (rows.hip), on matrix cores. A workgroup has BQ rows and walks through their
// keys, or one of SPLIT slices of them, in tiles of BK lines in shared memory; with SHARED a tile
// serves both products. WAVES groups of VWAVES waves have WQ rows each. Of a tile, the waves of a
// group divide the keys of the scores, and the dimensions of the outputs: sums of 512 dimensions are
// too many for the registers of one. Greatest scores and weights pass between them through shared
// memory. With BUFFERS > 1, asynchronous copies fill tiles ahead, else the next one waits in
// registers. With QREG queries stay in registers (AMD), else they are read for each tile. What slices leave
// is joined by the last one of a tile, or with FOLD=0 by rows_join.hip.

#if !defined(BK) || !defined(WQ) || !defined(WAVES) || !defined(VWAVES) || !defined(BUFFERS) || \
    !defined(QREG) || !defined(WAVE) || !defined(KERNEL_NAME)
#error "BK WQ WAVES VWAVES BUFFERS QREG WAVE and KERNEL_NAME must be defined"
#endif
#if BK % 32 != 0 || WQ % 16 != 0 || WAVES < 1 || VWAVES < 1 || BUFFERS < 1
#error "BK is a multiple of 32, WQ of 16; WAVES, VWAVES and BUFFERS are at least 1"
#endif

#define THREADS (WAVES * VWAVES * WAVE)
#define BQ (WAVES * WQ)
#if BUFFERS > 1
#define ASYNC 1
#else
#define ASYNC 0
#endif

#include "latent_attention/matrix_rows.hip"

GRETA_KERNEL(THREADS) KERNEL_NAME(TREE_PARAMETER ATTENTION_PARAMETERS) {
  begin_launch();
  GRETA_DYNAMIC_SHARED(u8, shared);
  Arguments args = ATTENTION_ARGUMENTS;
  const Part part = pick_part(args);
  if (!part.exists()) return;
  const u32 begin = part.slice.begin;
  Walk walk(args, part, shared);
  float* const parts = reinterpret_cast<float*>(shared + parts_start);

  Rows rows;
  rows.begin();
  if (clears_tiles) {
    for (u32 at = thread_index() * 16; at < BUFFERS * tile_bytes; at += THREADS * 16) {
      store_words(shared + keys_start + at, Chunk{});
    }
    block_barrier();
  }
#if QREG
  walk.begin();
  rows.load_queries(args, part);
#else
  bring_queries(args, part, shared);
  walk.begin();
#endif
  Sight sight[row_blocks][lane_rows];
  GRETA_UNROLL
  for (u32 i = 0; i < row_blocks; ++i) {
    GRETA_UNROLL
    for (u32 r = 0; r < lane_rows; ++r) {
      sight[i][r] = Sight(args, TREE_ARGUMENT, part.tile.sequence, part.count,
                          part.tile.first + Rows::row(i, r));
    }
  }

  const bool scores = place_in_group() < score_waves;
  GRETA_NO_UNROLL
  for (u32 first = 0; first < walk.end; first += BK) {
    const u32 start = walk.arrive(first);
    const u32 key = begin + first + place_in_group() * wave_keys;  // the wave's first
    if (scores) {
      rows.score(walk.shared, start);
      GRETA_UNROLL
      for (u32 i = 0; i < row_blocks; ++i) {
        bool whole = true;
        GRETA_UNROLL
        for (u32 r = 0; r < lane_rows; ++r) {
          whole = whole && sight[i][r].sees_all_before(key + wave_keys);
        }
        if (wave_any(!whole)) rows.mask(i, sight[i], key);
      }
      rows.leave_greatest(parts);
    }
    block_barrier();
    rows.move_bases(parts, args.scale);
    if (scores) rows.weigh(args.scale, shared + weights_start);
    block_barrier();
    rows.add(walk.shared, start + (SHARED ? 0 : Keys::Tile::bytes));
  }

#if ASYNC
  wait_for_copies<0, 0>();  // of queries, if there is no key
#endif
  rows.join_sums(parts);
  store_rows<staged>(args, part, rows, shared);
#if FOLD == 1
  if (part.slice.used == 1) return;
  const Slices<BQ, SPLIT> slices(args, part.reader, part.readers);
  const OwnSums sums{slices, block_z()};
  const Outputs outputs{args, part.tile};
  join_slices(args, sums, part.slice.used, part.own, reinterpret_cast<float*>(shared), outputs);
#endif
}
