// A workgroup has BQ queries of one head, each of its WAVES waves WQ of them, and walks through
// their keys in tiles of BK, on matrix cores. A wave holds its outputs, and the scores of a tile,
// in registers; there they become weights, which are an operand of the next product without a way
// through shared memory (layout.hip). Greatest scores and sums of exponentials run along
// (Dao, "FlashAttention-2", 2023). Tiles of keys and of values take turns: with ASYNC in BUFFERS
// that asynchronous copies fill ahead, else in one buffer each, and the next tile waits in
// registers. With QREG queries stay in registers, else they are read from shared memory for each
// tile.

#if !defined(BK) || !defined(WQ) || !defined(WAVES) || !defined(BUFFERS) || !defined(ASYNC) || \
    !defined(QREG) || !defined(TOGETHER) || !defined(WAVE)
#error "BK WQ WAVES BUFFERS ASYNC QREG TOGETHER and WAVE must be defined"
#endif
#if BK % 32 != 0 || WQ % 16 != 0 || WAVES < 1 || TOGETHER < 1
#error "BK is a multiple of 32, WQ of 16; WAVES and TOGETHER are at least 1"
#endif
#if ASYNC ? BUFFERS < 2 : BUFFERS != 2
#error "BUFFERS are at least 2, and 2 without ASYNC"
#endif

#define THREADS (WAVES * WAVE)
#define BQ (WAVES * WQ)

#include "attention/key_tiles.hip"
#include "attention/order.hip"

static_assert(WAVE == wave_size, "WAVE is the size of a wave");
static_assert(!ASYNC || GRETA_LANE_COPY, "ASYNC needs copies that go where a lane says");

constexpr u32 row_blocks = WQ / 16, key_blocks = BK / 16, dim_blocks = padded / 16;
constexpr u32 depths = padded / depth;

// Where things are in shared memory. Queries that stay in registers leave their place to keys.
typedef LinesTile<BQ> QueryTile;
constexpr u32 keys_start = QREG ? 0 : QueryTile::bytes;
constexpr u32 keys_bytes = LineLoader::Tile::bytes;
#if ASYNC
constexpr u32 tiles_bytes = BUFFERS * keys_bytes;
#else
constexpr u32 tiles_bytes = keys_bytes + ValueLoader::Tile::bytes;
#endif
constexpr u32 shared_bytes = QREG && QueryTile::bytes > tiles_bytes ? QueryTile::bytes
                                                                    : keys_start + tiles_bytes;

// The workgroup's walk: tile 2 n holds keys from n BK on, tile 2 n + 1 their values.
struct Walk {
  SharedMemory shared;
  const In *k, *v;
  u32 end;   // of the keys
  u32 tile;  // that is read
#if ASYNC
  GRETA_DEVICE void copy(u32 t) {
    const u32 first = t / 2 * BK;
    if (first < end) {
      const In* const from = (t % 2 == 0 ? k : v) + u64(first) * DIM;
      LineLoader::copy(shared, keys_start + t % BUFFERS * keys_bytes, from, end - first);
    }
    close_copies();
  }

  GRETA_DEVICE void begin() {
    tile = 0;
    GRETA_UNROLL
    for (u32 t = 0; t + 1 < BUFFERS; ++t) copy(t);
  }

  // The tile is complete when this returns, and seen by all. Gives its place.
  GRETA_DEVICE u32 arrive() {
    wait_for_copies<BUFFERS - 2, LineLoader::units>();
    block_barrier();  // the tile before this one was read
    copy(tile + BUFFERS - 1);
    return keys_start + tile++ % BUFFERS * keys_bytes;
  }
  GRETA_DEVICE u32 arrive_keys() { return arrive(); }
  GRETA_DEVICE u32 arrive_values() { return arrive(); }
#else
  LineLoader key_loader;
  ValueLoader value_loader;

  GRETA_DEVICE void begin() {
    tile = 0;
    key_loader.fetch(k, end);
  }

  GRETA_DEVICE u32 arrive_keys() {
    key_loader.put(shared.bytes + keys_start);
    block_barrier();
    const u32 first = tile++ / 2 * BK;
    value_loader.fetch(v + u64(first) * DIM, end - first);
    return keys_start;
  }
  GRETA_DEVICE u32 arrive_values() {
    value_loader.put(shared.bytes + keys_start + keys_bytes);
    block_barrier();
    const u32 next = (tile++ / 2 + 1) * BK;
    if (next < end) key_loader.fetch(k + u64(next) * DIM, end - next);
    return keys_start + keys_bytes;
  }
#endif
};

// What a wave has of its queries.
struct Rows {
  Core::Fragment q[QREG ? row_blocks : 1][QREG ? depths : 1];
  Core::Sums scores[row_blocks][key_blocks], out[row_blocks][dim_blocks];
  // What is subtracted from a row's scores: the greatest of them, or less than `ease` below it.
  float base[row_blocks][lane_rows];
  float sum[row_blocks][lane_rows];  // of this lane's keys

  GRETA_DEVICE void begin() {
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      GRETA_UNROLL
      for (u32 r = 0; r < lane_rows; ++r) {
        base[i][r] = float_from_bits(0xff800000U);
        sum[i][r] = 0.0f;
      }
      GRETA_UNROLL
      for (u32 c = 0; c < dim_blocks; ++c) out[i][c] = Core::Sums();
    }
  }

  typedef Reader<Operand::a, true, QueryTile> QueryReader;

  GRETA_DEVICE void keep_queries(SharedMemory shared) {
    const QueryReader reader(shared, 0, wave_index() * WQ);
    GRETA_UNROLL
    for (u32 i = 0; QREG && i < row_blocks; ++i) {
      GRETA_UNROLL
      for (u32 d = 0; d < depths; ++d) {
        q[QREG ? i : 0][QREG ? d : 0] = reader.read(i * 16, d * depth);
      }
    }
  }

  GRETA_DEVICE void score(SharedMemory shared, u32 start) {
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      GRETA_UNROLL
      for (u32 j = 0; j < key_blocks; ++j) scores[i][j] = Core::Sums();
    }
    const QueryReader queries(shared, 0, wave_index() * WQ);
    const Reader<Operand::b, true, LineLoader::Tile> reader(shared, start);
    GRETA_UNROLL
    for (u32 d = 0; d < depths; ++d) {
      Core::Fragment rows[row_blocks];
      GRETA_UNROLL
      for (u32 i = 0; i < row_blocks; ++i) {
        rows[i] = QREG ? q[QREG ? i : 0][QREG ? d : 0] : queries.read(i * 16, d * depth);
      }
      GRETA_UNROLL
      for (u32 j = 0; j < key_blocks; ++j) {
        const Core::Fragment keys = reader.read(j * 16, d * depth);
        GRETA_UNROLL
        for (u32 i = 0; i < row_blocks; ++i) add_scores(scores[i][j], rows[i], keys);
      }
    }
  }

  // Hides keys of the tile that a row does not see; `left`: how many it does.
  GRETA_DEVICE void mask(u32 i, const u32 (&left)[lane_rows]) {
    GRETA_UNROLL
    for (u32 j = 0; j < key_blocks; ++j) {
      GRETA_UNROLL
      for (u32 e = 0; e < lane_sums; ++e) {
        if (j * 16 + column_of(e) >= left[row_of(e)]) {
          sum_of(scores[i][j], e) = float_from_bits(0xff800000U);
        }
      }
    }
  }

  // Turns scores into weights: 2 to the power of `scale` times a score, less the base. Bases move
  // only for greater scores by more than `ease`, so that outputs are rarely multiplied; weights are
  // at most 2^ease then, which every type holds with the same relative error.
  GRETA_DEVICE void weigh(u32 i, float scale) {
    constexpr float ease = 8.0f;
    float most[lane_rows], offset[lane_rows], kept[lane_rows];
    GRETA_UNROLL
    for (u32 r = 0; r < lane_rows; ++r) most[r] = base[i][r];
    GRETA_UNROLL
    for (u32 j = 0; j < key_blocks; ++j) {
      GRETA_UNROLL
      for (u32 e = 0; e < lane_sums; ++e) {
        most[row_of(e)] = larger(most[row_of(e)], sum_of(scores[i][j], e));
      }
    }
    bool moved = false;
    GRETA_UNROLL
    for (u32 r = 0; r < lane_rows; ++r) {
      const float now = row_largest(most[r]), before = base[i][r] * scale;
      const bool moves = now * scale > before + ease;
      moved = moved || moves;
      if (moves) base[i][r] = now;
      // A row that sees no key yet: any finite number serves.
      const float after = base[i][r] * scale;
      offset[r] = after == float_from_bits(0xff800000U) ? 0.0f : after;
      kept[r] = moves ? fast_exp2(before - offset[r]) : 1.0f;
    }
    if (wave_any(moved)) multiply_rows(i, kept);
    GRETA_UNROLL
    for (u32 j = 0; j < key_blocks; ++j) {
      GRETA_UNROLL
      for (u32 e = 0; e < lane_sums; ++e) {
        float& x = sum_of(scores[i][j], e);
        x = fast_exp2(multiply_add(x, scale, -offset[row_of(e)]));
        sum[i][row_of(e)] += x;
      }
    }
  }

  GRETA_DEVICE void multiply_rows(u32 i, const float (&factor)[lane_rows]) {
    GRETA_UNROLL
    for (u32 r = 0; r < lane_rows; ++r) sum[i][r] *= factor[r];
    GRETA_UNROLL
    for (u32 c = 0; c < dim_blocks; ++c) {
      GRETA_UNROLL
      for (u32 e = 0; e < lane_sums; ++e) sum_of(out[i][c], e) *= factor[row_of(e)];
    }
  }

  GRETA_DEVICE void add(SharedMemory shared, u32 start) {
    const Reader<Operand::b, !matrix_load_turns, ValueLoader::Tile> reader(shared, start);
    GRETA_UNROLL
    for (u32 j = 0; j < key_blocks; j += depth_blocks) {
      Core::Fragment weights[row_blocks];
      GRETA_UNROLL
      for (u32 i = 0; i < row_blocks; ++i) weights[i] = weights_of(scores[i] + j);
      GRETA_UNROLL
      for (u32 c = 0; c < dim_blocks; ++c) {
        const Core::Fragment values = reader.read(c * 16, j * 16);
        GRETA_UNROLL
        for (u32 i = 0; i < row_blocks; ++i) add_values(out[i][c], weights[i], values);
      }
    }
  }

  // Of row r of block i.
  GRETA_DEVICE void put(Out* to, u32 i, u32 r, float factor) {
    GRETA_UNROLL
    for (u32 c = 0; c < dim_blocks; ++c) {
      GRETA_UNROLL
      for (u32 e = 0; e < lane_sums; e += run) {
        const u32 column = c * 16 + column_of(e);
        if (row_of(e) != r || (padded != DIM && column >= DIM)) continue;
        float some[run];
        GRETA_UNROLL
        for (u32 x = 0; x < run; ++x) some[x] = sum_of(out[i][c], e + x) * factor;
        store_run(to + column, some);
      }
    }
  }

  static GRETA_DEVICE void store_run(Out* to, const float (&some)[run]) {
    constexpr u32 most = run * sizeof(Out) > 16 ? 16 / sizeof(Out) : run;
    GRETA_UNROLL
    for (u32 x = 0; x < run; x += most) {
      float part[most];
      GRETA_UNROLL
      for (u32 y = 0; y < most; ++y) part[y] = some[x + y];
      store_pack(to + x, narrow_pack<Out>(part));
    }
  }
};

// The workgroup's queries into shared memory; zeros behind the last one, and behind DIM.
GRETA_DEVICE void bring_queries(const Arguments& args, const Tile& tile, u8* shared) {
  GRETA_UNROLL
  for (u32 at = 0; at < BQ * padded_chunks; at += THREADS) {
    const u32 number = at + thread_index();
    const u32 row = number / padded_chunks, chunk = number % padded_chunks;
    const u32 query = tile.first + row;
    if (BQ * padded_chunks % THREADS != 0 && row >= BQ) continue;
    Chunk c = {};
    if (query < args.queries && chunk < line_chunks) {
      const u64 from = query_offset(args, tile.sequence, query, tile.head) + chunk * 8;
      c = load_words<16>(args.q + from);
    }
    store_words(shared + QueryTile::offset(row, chunk), c);
  }
}

// What lies behind DIM in tiles of keys meets the queries' zeros, and must be a number.
GRETA_DEVICE void clear_shared(u8* shared) {
  for (u32 at = thread_index() * 16; at < shared_bytes; at += THREADS * 16) {
    store_words(shared + at, Chunk{});
  }
  block_barrier();
}

GRETA_KERNEL(THREADS) attention_matrix(ATTENTION_PARAMETERS) {
  GRETA_DYNAMIC_SHARED(u8, shared);
  const Arguments args = ATTENTION_ARGUMENTS;
  if (block_index<THREADS>() >= batch * heads * tiles) return;
  const Tile tile = pick_tile(args, block_index<THREADS>());
  const u32 count = key_count(args, tile.sequence);
  const u64 start = keys_offset(args, tile.sequence, tile.head / (heads / kv_heads));

  Walk walk;
  walk.shared = shared_memory(shared);
  walk.k = k + start;
  walk.v = v + start;
  walk.end = tile_keys(args, tile).end;
  Rows rows;
  rows.begin();
#if QREG
  bring_queries(args, tile, shared);
  block_barrier();
  rows.keep_queries(walk.shared);
  block_barrier();
  if (padded != DIM) clear_shared(shared);
#else
  if (padded != DIM) clear_shared(shared);
  bring_queries(args, tile, shared);
#endif
  walk.begin();

  // Keys that some row of the wave sees, and those that all see.
  const u32 first = tile.first + wave_index() * WQ;
  const u32 last = smaller(first + WQ, queries) - 1;
  const u32 wave_end = first < queries ? visible_keys(count, queries, last) : 0;
  const u32 seen_by_all = visible_keys(count, queries, first);
  GRETA_NO_UNROLL
  for (u32 key = 0; key < walk.end; key += BK) {
    const u32 key_tile = walk.arrive_keys();
    if (key < wave_end) {
      rows.score(walk.shared, key_tile);
      GRETA_UNROLL
      for (u32 i = 0; i < row_blocks; ++i) {
        if (key + BK > seen_by_all) {
          u32 left[lane_rows];
          GRETA_UNROLL
          for (u32 r = 0; r < lane_rows; ++r) {
            const u32 seen = visible_keys(count, queries, first + i * 16 + line(r));
            left[r] = seen - smaller(seen, key);
          }
          rows.mask(i, left);
        }
        rows.weigh(i, scale);
      }
    }
    const u32 value_tile = walk.arrive_values();
    if (key < wave_end) rows.add(walk.shared, value_tile);
  }

  GRETA_UNROLL
  for (u32 i = 0; i < row_blocks; ++i) {
    GRETA_UNROLL
    for (u32 r = 0; r < lane_rows; ++r) {
      const float sum = row_sum(rows.sum[i][r]);
      const u32 query = first + i * 16 + line(r);
      if (query >= queries) continue;
      // Without a key, nothing is attended to.
      rows.put(out + output_offset(args, tile.sequence, query, tile.head), i, r,
               sum > 0.0f ? 1.0f / sum : 0.0f);
    }
  }
}
