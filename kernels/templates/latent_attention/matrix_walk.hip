// Tiles of keys and values in shared memory, and the way of a workgroup through them. With SHARED a
// tile of keys is one of values, too.
#pragma once

#include "attention/key_tiles.hip"
#include "latent_attention/rows.hip"
#include "latent_attention/staged_lines.hip"

#if ASYNC && !GRETA_LANE_COPY
#error "BUFFERS need copies to any address of shared memory"
#endif
#if QREG && defined(GRETA_MATRIX_MMA)
#error "QREG needs lanes that hold whole chunks of a row"
#endif

static_assert(WAVE == wave_size, "WAVE is the size of a wave");
static_assert(BK % depth == 0 && WQ % span == 0, "keys and rows fill products");

// Lines of so many elements in shared memory, an odd number of chunks apart.
template <u32 lines, u32 elements>
using LineTile = SharedTile<lines, elements / 8, 1, false>;

// Dimensions that reads of values give together, those of a wave, and of all.
#if defined(GRETA_MATRIX_MMA)
constexpr u32 value_blocks = 1;
#else
constexpr u32 value_blocks = 4;
#endif
constexpr u32 value_step = value_blocks * span;
constexpr u32 wave_values = (V_DIM + VWAVES * value_step - 1) / (VWAVES * value_step) * value_step;
constexpr u32 all_values = wave_values * VWAVES;
constexpr u32 key_elements = SHARED && all_values > padded ? all_values : padded;

// Waves of a group that have scores, and their keys.
constexpr u32 score_waves = BK / span < VWAVES ? BK / span : VWAVES;
constexpr u32 wave_keys = BK / score_waves;
static_assert(wave_keys % span == 0, "a wave's keys fill products");

constexpr u32 row_blocks = WQ / span, key_blocks = wave_keys / span;
constexpr u32 dim_blocks = wave_values / span, depths = padded / depth;

typedef LineTile<BQ, padded> Queries;
typedef LineTile<BQ, BK> Weights;
typedef LineLoader<DIM, LineTile<BK, key_elements>> Keys;
typedef LineLoader<V_DIM, LineTile<BK, SHARED ? key_elements : all_values>> Values;

constexpr u32 keys_start = QREG ? 0 : Queries::bytes;
constexpr u32 tile_bytes = Keys::Tile::bytes + (SHARED ? 0 : Values::Tile::bytes);
constexpr u32 weights_start = keys_start + BUFFERS * tile_bytes;
constexpr u32 parts_start = weights_start + Weights::bytes;  // of waves: their rows' maxima or sums
constexpr u32 walk_bytes = parts_start + VWAVES * BQ * 4;
constexpr u32 shared_bytes = walk_bytes > join_bytes ? walk_bytes : join_bytes;
#if defined(GRETA_MATRIX_MMA)
constexpr bool staged = staged_bytes <= parts_start;
#else
constexpr bool staged = false;  // lanes have pieces of one row
#endif
// What lies behind a line's elements, where copies don't write it, must be a number.
constexpr bool clears_tiles = key_elements != DIM || (!SHARED && all_values != V_DIM);

#if !QREG
// The workgroup's queries into shared memory; zeros behind the last one, and behind DIM. Copies are
// left open.
GRETA_DEVICE void bring_queries(const Arguments& args, const Part& part, u8* memory) {
  const SharedMemory shared = shared_memory(memory);
  GRETA_NO_UNROLL
  for (u32 at = thread_index(); at < BQ * padded_chunks; at += THREADS) {
    const u32 row = at / padded_chunks, chunk = at % padded_chunks;
    const bool inside = row < part.own && chunk < line_chunks;
    const u32 own = part.tile.first + smaller(row, part.own - 1);
    const In* const from = query_row(args, part.tile, own) + (inside ? chunk * 8 : 0);
#if ASYNC
    copy_lane_async<16>(shared, Queries::offset(row, chunk), from, inside);
#else
    store_words(shared.bytes + Queries::offset(row, chunk),
                inside ? load_words<16>(from) : Chunk{});
#endif
  }
}
#endif

// The workgroup's walk through its keys, BK at a time.
struct Walk {
  SharedMemory shared;
  KeyLines k;
#if !SHARED
  ValueLines v;
#endif
  u32 end;  // of the keys

  GRETA_DEVICE Walk(const Arguments& args, const Part& part, u8* memory)
      : shared(shared_memory(memory)),
        k(KeyLines(args, args.k, part.tile.sequence, part.tile.head).from(part.slice.begin)),
#if !SHARED
        v(ValueLines(args, args.v, part.tile.sequence, part.tile.head).from(part.slice.begin)),
#endif
        end(part.slice.end - part.slice.begin) {
  }

#if ASYNC
  u32 place = 0;  // the buffer of the next tile

  GRETA_DEVICE void copy(u32 from, u32 buffer) {
    if (from < end) {
      const u32 start = keys_start + buffer * tile_bytes;
      Keys::copy(shared, start, k.from(from), end - from);
#if !SHARED
      Values::copy(shared, start + Keys::Tile::bytes, v.from(from), end - from);
#endif
    }
    close_copies();
  }
  GRETA_DEVICE void begin() {
    GRETA_UNROLL
    for (u32 t = 0; t + 1 < BUFFERS; ++t) copy(t * BK, t);
  }
  // The tile from key `first` on is complete when this returns, and seen by all. Gives its place. The
  // next copy goes to that of the tile before it, which was read.
  GRETA_DEVICE u32 arrive(u32 first) {
    const u32 here = place;
    wait_for_copies<BUFFERS - 2, 0>();
    block_barrier();
    copy(first + (BUFFERS - 1) * BK, here == 0 ? BUFFERS - 1 : here - 1);
    place = here + 1 == BUFFERS ? 0 : here + 1;
    return keys_start + here * tile_bytes;
  }
#else
  Keys keys;
#if !SHARED
  Values values;
#endif

  GRETA_DEVICE void fetch(u32 from) {
    if (from >= end) return;
    keys.fetch(k.from(from), end - from);
#if !SHARED
    values.fetch(v.from(from), end - from);
#endif
  }
  GRETA_DEVICE void begin() { fetch(0); }
  GRETA_DEVICE u32 arrive(u32 first) {
    block_barrier();  // the tile before was read
    keys.put(shared.bytes + keys_start);
#if !SHARED
    values.put(shared.bytes + keys_start + Keys::Tile::bytes);
#endif
    block_barrier();
    fetch(first + BK);
    return keys_start;
  }
#endif
};
