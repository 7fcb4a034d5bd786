// A workgroup has BQ rows of queries (packing.hip), each WQ of them in the registers of KWAVES
// waves, and walks through their keys in tiles of BK, on matrix cores: all keys, or one of SPLIT
// slices. Of a tile, each of the KWAVES waves has its part. A wave holds its outputs, and the scores
// of its part, in registers; there they become weights, which are an operand of the next product
// without a way through shared memory (layout.hip). Greatest scores and sums of exponentials run
// along (Dao, "FlashAttention-2", 2023). With QREG queries stay in registers, else they are read
// from shared memory for each tile. QREG=2 loads them there straight from memory, where lanes hold
// whole chunks of a product's operand: on AMD.

#if !defined(BK) || !defined(WQ) || !defined(WAVES) || !defined(KWAVES) || !defined(BUFFERS) || \
    !defined(ASYNC) || !defined(QREG) || !defined(PACK) || !defined(GROUP) || !defined(SPLIT) || \
    !defined(FOLD) || !defined(TOGETHER) || !defined(XCDS) || !defined(WAVE)
#error "BK WQ WAVES KWAVES BUFFERS ASYNC QREG PACK GROUP SPLIT FOLD TOGETHER XCDS WAVE are undefined"
#endif
#if BK % 32 != 0 || WQ % 16 != 0 || WAVES < 1 || KWAVES < 1 || SPLIT < 1 || TOGETHER < 1 || XCDS < 1
#error "BK is a multiple of 32, WQ of 16; WAVES, KWAVES, SPLIT, TOGETHER and XCDS are at least 1"
#endif
#if ASYNC ? BUFFERS < 2 : BUFFERS != 2
#error "BUFFERS are at least 2, and 2 without ASYNC"
#endif

#define THREADS (WAVES * KWAVES * WAVE)
#define BQ (WAVES * WQ)

#include "attention/key_walk.hip"
#include "attention/partial_sums.hip"

static_assert(WAVE == wave_size, "WAVE is the size of a wave");

constexpr u32 wave_keys = BK / KWAVES;  // of a tile
static_assert(BK % KWAVES == 0 && wave_keys % granule == 0, "a wave's keys fill products");
static_assert(WQ % span == 0, "a wave's rows fill products");

constexpr u32 row_blocks = WQ / span, key_blocks = wave_keys / span, dim_blocks = padded_values / span;
constexpr u32 depths = padded / depth;

constexpr u32 shared_bytes = walk_bytes > join_bytes ? walk_bytes : join_bytes;

// The first of a wave's rows in the tile, and of its keys.
GRETA_DEVICE u32 wave_row() { return wave_index() / KWAVES * WQ; }
GRETA_DEVICE u32 wave_key() { return wave_index() % KWAVES * wave_keys; }

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
    const QueryReader reader(shared, queries_start, wave_row());
    GRETA_UNROLL
    for (u32 i = 0; QREG && i < row_blocks; ++i) {
      GRETA_UNROLL
      for (u32 d = 0; d < depths; ++d) {
        q[QREG ? i : 0][QREG ? d : 0] = reader.read(i * span, d * depth);
      }
    }
  }

#if QREG == 2
  GRETA_DEVICE void load_queries(const Arguments& args, const Tile& tile) {
    const u32 first = Core::groups == 1 ? 0 : lane_index() / span;
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      const u32 query = tile.first + wave_row() + i * span + line(0);
      const bool inside = query < tile_rows(args);
      const In* const row = query_row(args, tile, inside ? query : tile.first);
      GRETA_UNROLL
      for (u32 d = 0; d < depths; ++d) {
        GRETA_UNROLL
        for (u32 c = 0; c < Core::lane_chunks; ++c) {
          const u32 chunk = d * depth / 8 + first + c;
          q[i][d].chunk[c] = {};
          if (inside && (padded == DIM || chunk < line_chunks)) {
            q[i][d].chunk[c] = load_words<16>(row + chunk * 8);
          }
        }
      }
    }
  }
#endif

  GRETA_DEVICE void score(SharedMemory shared, u32 start) {
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      GRETA_UNROLL
      for (u32 j = 0; j < key_blocks; ++j) scores[i][j] = Core::Sums();
    }
    const QueryReader queries(shared, 0, wave_row());
    const Reader<Operand::b, true, KeyLoader::Tile> reader(shared, start, wave_key());
    GRETA_UNROLL
    for (u32 d = 0; d < depths; ++d) {
      Core::Fragment rows[row_blocks];
      GRETA_UNROLL
      for (u32 i = 0; i < row_blocks; ++i) {
        rows[i] = QREG ? q[QREG ? i : 0][QREG ? d : 0] : queries.read(i * span, d * depth);
      }
      GRETA_UNROLL
      for (u32 j = 0; j < key_blocks; ++j) {
        const Core::Fragment keys = reader.read(j * span, d * depth);
        GRETA_UNROLL
        for (u32 i = 0; i < row_blocks; ++i) add_scores(scores[i][j], rows[i], keys);
      }
    }
  }

  // Scales scores and limits them.
  GRETA_DEVICE void cap(const Arguments& args, u32 i) {
    GRETA_UNROLL
    for (u32 j = 0; j < key_blocks; ++j) {
      GRETA_UNROLL
      for (u32 e = 0; e < lane_sums; ++e) {
        float& x = sum_of(scores[i][j], e);
        x = capped(args, x * args.scale);
      }
    }
  }

  // Hides keys of the tile that a row does not see. It sees those from `skipped` to `left`.
  GRETA_DEVICE void mask(u32 i, const u32 (&skipped)[lane_rows], const u32 (&left)[lane_rows]) {
    int begin[lane_rows], end[lane_rows];  // counted from the lane's first column
    GRETA_UNROLL
    for (u32 r = 0; r < lane_rows; ++r) {
      begin[r] = int(skipped[r]) - int(first_column());
      end[r] = int(left[r]) - int(first_column());
      stay_here(end[r]);
    }
    GRETA_UNROLL
    for (u32 j = 0; j < key_blocks; ++j) {
      GRETA_UNROLL
      for (u32 e = 0; e < lane_sums; ++e) {
        const int key = j * span + column_step(e);
        if (key >= end[row_of(e)] || (WINDOW && key < begin[row_of(e)])) {
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
    float parts[lane_rows][2] = {};
    GRETA_UNROLL
    for (u32 j = 0; j < key_blocks; ++j) {
      GRETA_UNROLL
      for (u32 e = 0; e < lane_sums; e += 2) {
        const u32 r = row_of(e);  // and that of the next one
        weigh_pair(sum_of(scores[i][j], e), sum_of(scores[i][j], e + 1), scale, offset[r], parts[r]);
      }
    }
    GRETA_UNROLL
    for (u32 r = 0; r < lane_rows; ++r) sum[i][r] += parts[r][0] + parts[r][1];
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
    const ValueReader reader(shared, start, 0, wave_key());
    GRETA_UNROLL
    for (u32 step = 0; step < wave_keys / depth; ++step) {
      Core::Fragment weights[row_blocks];
      GRETA_UNROLL
      for (u32 i = 0; i < row_blocks; ++i) weights[i] = weights_of(scores[i], step);
      GRETA_UNROLL
      for (u32 c = 0; c < dim_blocks; ++c) {
        const Core::Fragment values = reader.read(c * span, step * depth);
        GRETA_UNROLL
        for (u32 i = 0; i < row_blocks; ++i) add_values(out[i][c], weights[i], values);
      }
    }
  }

  GRETA_DEVICE void finish(const Arguments& args, const Tile& tile) {
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      GRETA_UNROLL
      for (u32 r = 0; r < lane_rows; ++r) {
        RowSum total{base[i][r] * exponent_scale(args), row_sum(sum[i][r])};
        const u32 row = tile.first + wave_row() + i * span + line(r);
        if (row >= tile_rows(args)) continue;
        const u64 offset = output_row(args, tile, row);
        const float factor = total.factor(args, head_of(tile, row));
        if (first_column() == 0) total.put_lse(args, offset);
        put(args.out + offset, i, r, factor);
      }
    }
  }

  // Leaves the sums of rows in `place`: WaveSums or SliceSums.
  template <typename Place>
  GRETA_DEVICE void leave(const Place& place, u32 own, float scale) {
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      GRETA_UNROLL
      for (u32 r = 0; r < lane_rows; ++r) {
        const float total = row_sum(sum[i][r]);
        const u32 row = wave_row() + i * span + line(r);
        if (row >= own) continue;
        put(place.values(row), i, r, 1.0f);
        if (first_column() > 0) continue;
        const float greatest = larger(base[i][r] * scale, lowest_score);
        store_pack(place.scores(row), narrow_pack<float>({greatest, total}));
      }
    }
  }

  // Of row r of block i.
  template <typename T>
  GRETA_DEVICE void put(T* to, u32 i, u32 r, float factor) {
    GRETA_UNROLL
    for (u32 c = 0; c < dim_blocks; ++c) {
      GRETA_UNROLL
      for (u32 e = 0; e < lane_sums; e += run) {
        const u32 column = first_column() + c * span + column_step(e);
        if (row_of(e) != r || (padded_values != V_DIM && column >= V_DIM)) continue;
        float some[run];
        GRETA_UNROLL
        for (u32 x = 0; x < run; ++x) some[x] = sum_of(out[i][c], e + x) * factor;
        store_run(to + column, some);
      }
    }
  }

  template <typename T>
  static GRETA_DEVICE void store_run(T* to, const float (&some)[run]) {
    constexpr u32 most = run * sizeof(T) > 16 ? 16 / sizeof(T) : run;
    GRETA_UNROLL
    for (u32 x = 0; x < run; x += most) {
      float part[most];
      GRETA_UNROLL
      for (u32 y = 0; y < most; ++y) part[y] = some[x + y];
      store_pack(to + x, narrow_pack<T>(part));
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
    if (query < tile_rows(args) && chunk < line_chunks) {
      c = load_words<16>(query_row(args, tile, query) + chunk * 8);
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

#if FOLD == 2
GRETA_CLUSTER_KERNEL(THREADS, SPLIT)
#else
GRETA_KERNEL(THREADS)
#endif
attention_matrix(ATTENTION_PARAMETERS) {
  begin_launch();
  GRETA_DYNAMIC_SHARED(u8, shared);
  Arguments args = ATTENTION_ARGUMENTS;
  const u32 readers = tile_sets(args) * tile_heads(args) * tiles;
  if (block_index<THREADS>() >= readers) return;
  const Tile tile = pick_packed_tile(args, tile_of_die<XCDS>(block_index<THREADS>(), readers));
  if (PACKED && tile.first >= tile_rows(args)) return;
  const u32 count = key_count(args, tile.sequence);
  const Slice slice = pick_slice(tile_begin(args, tile, count), tile_end(args, tile, count), block_z());
  if (SPLIT > 1 && block_z() >= slice.used) return;
  const u32 kv_head = kv_head_of(args, tile);

  Walk walk{shared_memory(shared), KeyLines(args, args.k, tile.sequence, kv_head).from(slice.begin),
            ValueLines(args, args.v, tile.sequence, kv_head).from(slice.begin), slice.end - slice.begin};
  Rows rows;
  rows.begin();
  if (QREG != 1 || queries_last) {
    if (clears_tiles) clear_shared(shared);
    walk.begin();
  }
#if QREG == 2
  rows.load_queries(args, tile);
#else
  bring_queries(args, tile, shared + queries_start);
#endif
  if (QREG == 1) {
    block_barrier();
    rows.keep_queries(walk.shared);
  }
  if (QREG == 1 && !queries_last) {
    block_barrier();
    if (clears_tiles) clear_shared(shared);
    walk.begin();
  }

  // Keys that some row of the wave sees, and those that all see.
  const u32 first = tile.first + wave_row();
  const u32 last = smaller(first + WQ, tile_rows(args)) - 1;
  const u32 wave_end = first < tile_rows(args) ? visible_keys(count, args.queries, query_of(last)) : 0;
  const u32 seen_by_all = visible_keys(count, args.queries, query_of(first));
  const u32 seen_from =
      WINDOW && wave_end > 0 ? hidden_keys(args, count, query_of(last)) : 0;
  GRETA_NO_UNROLL
  while (walk.first < walk.end) {
    const u32 key = slice.begin + walk.first + wave_key();  // the wave's first
    const u32 key_tile = walk.arrive_keys();
    if (key < wave_end) {
      rows.score(walk.shared, key_tile);
      GRETA_UNROLL
      for (u32 i = 0; i < row_blocks; ++i) {
        if (SOFTCAP) rows.cap(args, i);
        if (key + wave_keys > seen_by_all || key < seen_from) {
          u32 skipped[lane_rows], left[lane_rows];
          GRETA_UNROLL
          for (u32 r = 0; r < lane_rows; ++r) {
            const u32 query = query_of(first + i * span + line(r));
            const u32 begin = hidden_keys(args, count, query);
            const u32 end = visible_keys(count, args.queries, query);
            skipped[r] = begin - smaller(begin, key);
            left[r] = end - smaller(end, key);
          }
          rows.mask(i, skipped, left);
        }
        rows.weigh(i, exponent_scale(args));
      }
    }
    const u32 value_tile = walk.arrive_values();
    if (key < wave_end) rows.add(walk.shared, value_tile);
  }
  walk.finish();

  const u32 own = smaller(tile_rows(args) - tile.first, BQ);
  const Outputs outputs{args, tile};
  float* const floats = reinterpret_cast<float*>(shared);
#if FOLD == 2
  const OwnSums sums{floats + wave_floats};
  if (KWAVES == 1) block_barrier();  // the last tile was read
#else
  const Slices<BQ, SPLIT> slices(args, block_index<THREADS>(), readers);
  const OwnSums sums{slices, block_z()};
#endif
  if (KWAVES > 1) {
    block_barrier();  // the last tile was read
    rows.leave(WaveSums{floats, wave_index() % KWAVES}, own, exponent_scale(args));
    block_barrier();
    join_waves(floats, own, outputs, sums, slice.used > 1);
  } else if (slice.used > 1) {
    rows.leave(sums, own, exponent_scale(args));
  } else {
    rows.finish(args, tile);
  }
  if (slice.used > 1) join_slices(args, sums, slice.used, own, floats, outputs);
}
