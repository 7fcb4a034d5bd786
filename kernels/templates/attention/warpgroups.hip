// Many queries of a head by warpgroups of sm_90. Each of GROUPS warpgroups has 64 of the workgroup's
// BQ queries, and all walk through the keys together in tiles of BK. Q K^T reads queries and keys
// from shared memory; its sums become weights in registers, which are an operand of the product
// with the values. The scores of a tile are computed while the values of the tile before are
// multiplied, and become weights under that product (Shah et al., "FlashAttention-3", 2024).
// Asynchronous copies fill STAGES buffers of keys and STAGES of values ahead. With PRODUCER, a further
// warpgroup starts them, which needs few registers, and the others wait for nothing but what they
// read; with TURNS, two of these start their products in turn, so that one multiplies while the
// other weighs. With PACK and SPLIT, rows and keys of a workgroup are as in matrix.hip; below, a query is
// a row.

#if !defined(BK) || !defined(GROUPS) || !defined(STAGES) || !defined(PRODUCER) || \
    !defined(TURNS) || !defined(PACK) || !defined(GROUP) || !defined(SPLIT) || !defined(FOLD) ||  \
    !defined(TOGETHER)
#error "BK GROUPS STAGES PRODUCER TURNS PACK GROUP SPLIT FOLD and TOGETHER must be defined"
#endif
#if (TURNS && !(PRODUCER && GROUPS == 2)) || (PRODUCER && (GROUPS < 2 || GROUPS > 3))
#error "TURNS need a PRODUCER and two GROUPS, and a PRODUCER two or three"
#endif
#if BK % 16 != 0 || BK > 256 || GROUPS < 1 || STAGES < 2 || SPLIT < 1 || TOGETHER < 1
#error "BK is a multiple of 16 up to 256, STAGES at least 2, GROUPS, SPLIT and TOGETHER at least 1"
#endif

#define THREADS ((GROUPS + PRODUCER) * 128)
#define COPIERS (PRODUCER ? 128 : THREADS)
#define BQ (GROUPS * 64)

#define KWAVES 1
#define ASYNC 1

#include "attention/layout.hip"
#include "attention/warpgroup_walk.hip"

// A producer has ended when slices are joined.
#define JOINERS (GROUPS * 128)
GRETA_DEVICE void joiners_barrier() { Walk::meet(); }
#include "attention/partial_sums.hip"

// Registers of a producer's threads, and of the others'. A warpgroup waits until there are enough of
// those that the workgroup got at its launch.
constexpr u32 few_registers = GROUPS == 2 ? 24 : 32, many_registers = GROUPS == 2 ? 240 : 160;
static_assert(few_registers + GROUPS * many_registers <= (GROUPS + 1) * registers_at_launch<THREADS>(),
              "a warpgroup would wait for registers for ever");

// Outputs pass through the place of their queries in shared memory, if they fit into panels of 128
// bytes: lanes have pieces of eight rows, and would write to eight lines of memory at once.
constexpr bool staged = sizeof(Out) == 2 && padded_values <= padded && QueryTile::width == 8;

// Where a chunk of a row is in shared memory.
GRETA_DEVICE u32 chunk_place(u32 line, u32 chunk) {
  return chunk / QueryTile::width * QueryTile::panel_bytes + line * QueryTile::line_bytes +
         QueryTile::chunk_at(line, chunk % QueryTile::width) * 16;
}

// Stores the wave's staged rows, from `line` of the tile on.
GRETA_DEVICE void store_staged(const Arguments& args, const Tile& tile, u32 line,
                               const u8* memory) {
  constexpr u32 chunks = V_DIM / 8;
  GRETA_UNROLL
  for (u32 i = 0; i < (16 * chunks + 31) / 32; ++i) {
    const u32 number = i * 32 + lane_index(), row = number / chunks, chunk = number % chunks;
    const u32 query = tile.first + line + row;
    if (row >= 16 || query >= tile_rows(args)) continue;
    const u64 offset = output_row(args, tile, query) + chunk * 8;
    store_words(reinterpret_cast<u8*>(args.out + offset),
                load_words<16>(memory + chunk_place(line + row, chunk)));
  }
}

// What a lane has of its warpgroup's queries: two rows.
struct Rows {
  WarpgroupSums<BK> scores;
  WarpgroupSums<padded_values> out;
  u32 weights[BK / 16][4];
  float base[2];  // as in matrix.hip
  float sum[2];   // of this lane's keys

  GRETA_DEVICE void begin() {
    out = {};
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      base[r] = float_from_bits(0xff800000U);
      sum[r] = 0.0f;
    }
  }

  // Start the products with the keys, and with the values, of a tile.
  GRETA_DEVICE void start_scores(SharedMemory shared, u32 group, u32 tile) {
    const OperandPlace queries =
        operand_place<QueryTile, true>(shared, QueryTile::template part<true>(group * 64, 0));
    const OperandPlace keys =
        operand_place<KeyTile, true>(shared, keys_start + tile % STAGES * KeyTile::bytes);
    GRETA_UNROLL
    for (u32 d = 0; d < padded; d += 16) {
      const OperandPlace a = further(queries, QueryTile::template part<true>(0, d));
      const OperandPlace b = further(keys, KeyTile::template part<true>(0, d));
      if (d == 0) {
        multiply_async<true, true, false>(In(), scores, a, b);
      } else {
        multiply_async<true, true, true>(In(), scores, a, b);
      }
    }
    close_products();
  }
  GRETA_DEVICE void start_values(SharedMemory shared, u32 tile) {
    const OperandPlace values =
        operand_place<ValueTile, false>(shared, values_start + tile % STAGES * ValueTile::bytes);
    GRETA_UNROLL
    for (u32 key = 0; key < BK; key += 16) {
      const OperandPlace b = further(values, ValueTile::template part<false>(0, key));
      multiply_async<false, true>(In(), out, weights[key / 16], b);
    }
    close_products();
  }

  // Scales scores and limits them.
  GRETA_DEVICE void cap(const Arguments& args) {
    GRETA_UNROLL
    for (u32 c = 0; c < BK / 8; ++c) {
      GRETA_UNROLL
      for (u32 e = 0; e < 4; ++e) {
        scores.eight[c][e] = capped(args, scores.eight[c][e] * args.scale);
      }
    }
  }

  // Hides keys of the tile that a row does not see. It sees those from `skipped` to `left`.
  GRETA_DEVICE void mask(const u32 (&skipped)[2], const u32 (&left)[2]) {
    GRETA_UNROLL
    for (u32 c = 0; c < BK / 8; ++c) {
      GRETA_UNROLL
      for (u32 e = 0; e < 4; ++e) {
        const u32 key = c * 8 + lane_index() % 4 * 2 + e % 2;
        if (key >= left[e / 2] || (WINDOW && key < skipped[e / 2])) {
          scores.eight[c][e] = float_from_bits(0xff800000U);
        }
      }
    }
  }

  // Turns scores into weights as matrix.hip does. `kept` is what sums are multiplied by; true if
  // that is not 1 for a row of the wave.
  GRETA_DEVICE bool weigh(float scale, float (&kept)[2]) {
    constexpr float ease = 8.0f;
    float most[2] = {base[0], base[1]}, offset[2];
    GRETA_UNROLL
    for (u32 c = 0; c < BK / 8; ++c) {
      GRETA_UNROLL
      for (u32 e = 0; e < 4; ++e) most[e / 2] = larger(most[e / 2], scores.eight[c][e]);
    }
    bool moved = false;
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      const float now = row_largest(most[r]), before = base[r] * scale;
      const bool moves = now * scale > before + ease;
      moved = moved || moves;
      if (moves) base[r] = now;
      const float after = base[r] * scale;
      offset[r] = after == float_from_bits(0xff800000U) ? 0.0f : after;
      kept[r] = moves ? fast_exp2(before - offset[r]) : 1.0f;
      sum[r] *= kept[r];
    }
    GRETA_UNROLL
    for (u32 c = 0; c < BK / 8; ++c) {
      GRETA_UNROLL
      for (u32 e = 0; e < 4; ++e) {
        float& x = scores.eight[c][e];
        x = fast_exp2(multiply_add(x, scale, -offset[e / 2]));
        sum[e / 2] += x;
      }
    }
    return wave_any(moved);
  }

  GRETA_DEVICE void multiply_out(const float (&factor)[2]) {
    GRETA_UNROLL
    for (u32 c = 0; c < padded_values / 8; ++c) {
      GRETA_UNROLL
      for (u32 e = 0; e < 4; ++e) out.eight[c][e] *= factor[e / 2];
    }
  }

  GRETA_DEVICE void narrow_weights() {
    GRETA_UNROLL
    for (u32 c = 0; c < BK / 8; ++c) {
      GRETA_UNROLL
      for (u32 r = 0; r < 2; ++r) {
        weights[c / 2][c % 2 * 2 + r] =
            narrow_pair(scores.eight[c][r * 2], scores.eight[c][r * 2 + 1]);
      }
    }
  }

  // Puts row r, `line` of the tile, into its query's place in shared memory.
  GRETA_DEVICE void stage(u8* memory, u32 line, u32 r, float factor) {
    GRETA_UNROLL
    for (u32 c = 0; c < padded_values / 8; ++c) {
      const u32 pair = narrow_pair(out.eight[c][r * 2] * factor, out.eight[c][r * 2 + 1] * factor);
      store_words(memory + chunk_place(line, c) + lane_index() % 4 * 4, Words<4>{{pair}});
    }
  }

  // Of row r.
  template <typename T>
  GRETA_DEVICE void put(T* to, u32 r, float factor) {
    GRETA_UNROLL
    for (u32 c = 0; c < padded_values / 8; ++c) {
      const u32 column = c * 8 + lane_index() % 4 * 2;
      if (padded_values != V_DIM && column >= V_DIM) continue;
      const float two[2] = {out.eight[c][r * 2] * factor, out.eight[c][r * 2 + 1] * factor};
      store_pack(to + column, narrow_pack<T>(two));
    }
  }

  // Leaves the slice's sums in `place`, of those of the wave's rows, `line` of the tile and so on, that are
  // among the tile's `own` ones.
  GRETA_DEVICE void leave(const OwnSums& place, u32 line, u32 own, float scale) {
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      const u32 row = line + lane_index() / 4 + r * 8;
      const float total = row_sum(sum[r]), greatest = larger(base[r] * scale, lowest_score);
      if (row >= own) continue;
      put(place.values(row), r, 1.0f);
      if (lane_index() % 4 == 0) store_pack(place.scores(row), narrow_pack<float>({greatest, total}));
    }
  }
};

// The warpgroup's walk through the keys, from which its outputs come.
GRETA_DEVICE void attend(const Arguments& args, const Walk& walk, u32 first, u32 count, Rows& rows) {
  const u32 mine = first + wave_index() % 4 * 16 + lane_index() / 4;  // the lane's first query
  const auto in_walk = [&](u32 key) { return key - smaller(key, walk.first); };
  const auto end_of = [&](u32 row) {
    return in_walk(visible_keys(count, args.queries, query_of(row)));
  };
  const auto begin_of = [&](u32 row) { return in_walk(hidden_keys(args, count, query_of(row))); };
  const u32 rows_end = tile_rows(args);
  const u32 seen_by_all = first < rows_end ? end_of(first) : walk.end;
  const u32 seen_from = WINDOW ? begin_of(smaller(first + 64, rows_end) - 1) : 0;
  const auto weigh = [&](u32 key, float(&kept)[2]) {
    if (SOFTCAP) rows.cap(args);
    if (key + BK > seen_by_all || key < seen_from) {
      u32 skipped[2], left[2];
      GRETA_UNROLL
      for (u32 r = 0; r < 2; ++r) {
        const u32 begin = begin_of(mine + r * 8), end = end_of(mine + r * 8);
        skipped[r] = begin - smaller(begin, key);
        left[r] = end - smaller(end, key);
      }
      rows.mask(skipped, left);
    }
    return rows.weigh(exponent_scale(args), kept);
  };

  float kept[2];
  walk.begin();
  walk.arrive(0);
  walk.take_turn();
  products_begin();
  rows.start_scores(walk.shared, walk.group, 0);
  walk.pass_turn();
  wait_for_products<0>();
  claim_sums(rows.scores);
  walk.leave(0);
  weigh(0, kept);
  rows.narrow_weights();
  u32 step = 1;
  GRETA_NO_UNROLL
  for (; step * BK < walk.end; ++step) {
    walk.arrive(step);
    walk.take_turn();
    products_begin();
    rows.start_scores(walk.shared, walk.group, step);
    rows.start_values(walk.shared, step - 1);
    walk.pass_turn();
    wait_for_products<1>();
    claim_sums(rows.scores);
    const bool moved = weigh(step * BK, kept);
    wait_for_products<0>();
    claim_sums(rows.out);
    walk.leave(step);
    if (moved) rows.multiply_out(kept);
    rows.narrow_weights();
  }
  walk.arrive(step);
  walk.take_turn();
  products_begin();
  rows.start_values(walk.shared, step - 1);
  if (!TURNS || walk.group == 0) walk.pass_turn();
  wait_for_products<0>();
  claim_sums(rows.out);
}

// Makes outputs of the wave's rows, from `line` of the tile on, and stores them.
GRETA_DEVICE void finish(const Arguments& args, const Tile& tile, u32 line, u8* shared,
                         Rows& rows) {
  if (staged) Walk::meet();  // nobody reads queries any more
  GRETA_UNROLL
  for (u32 r = 0; r < 2; ++r) {
    RowSum sum{rows.base[r] * exponent_scale(args), row_sum(rows.sum[r])};
    const u32 own = line + lane_index() / 4 + r * 8, query = tile.first + own;
    if (query >= tile_rows(args)) continue;
    const u64 offset = output_row(args, tile, query);
    const float factor = sum.factor(args, head_of(tile, query));
    if (lane_index() % 4 == 0) sum.put_lse(args, offset);
    if (staged) {
      rows.stage(shared, own, r, factor);
    } else {
      rows.put(args.out + offset, r, factor);
    }
  }
  if (!staged) return;
  Walk::meet();
  store_staged(args, tile, line, shared);
}

#if FOLD == 2
GRETA_CLUSTER_KERNEL(THREADS, SPLIT)
#else
GRETA_KERNEL(THREADS)
#endif
attention_warpgroups(ATTENTION_PARAMETERS) {
  begin_launch();
  GRETA_PANELS_SHARED(u8, shared);
  Arguments args = ATTENTION_ARGUMENTS;
  const u32 reader = block_index<THREADS>(), readers = tile_sets(args) * tile_heads(args) * tiles;
  if (reader >= readers) return;
  const Tile tile = pick_packed_tile(args, reader);
  if (PACKED && tile.first >= tile_rows(args)) return;
  const u32 count = key_count(args, tile.sequence), kv_head = kv_head_of(args, tile);
  const Slice slice =
      pick_slice(tile_begin(args, tile, count), tile_end(args, tile, count), block_z());
  if (SPLIT > 1 && block_z() >= slice.used) return;
  const Walk walk{shared_memory(shared), KeyLines(args, args.k, tile.sequence, kv_head).from(slice.begin),
                  ValueLines(args, args.v, tile.sequence, kv_head).from(slice.begin), slice.begin,
                  slice.end - slice.begin, warpgroup_index()};
  const u32 own = smaller(tile_rows(args) - tile.first, BQ);
  const bool copies = !PRODUCER || walk.group == GROUPS;
  if (copies && walk.end > 0) {
    copy_lines<QueryTile, BQ, DIM>(walk.shared, 0, QueryLines{args, tile}, own);
  }
#if PRODUCER
  if (copies) {
    give_registers<few_registers>();
    if (walk.end > 0) walk.produce();
    return;
  }
  take_registers<many_registers>();
#endif

  Rows rows;
  rows.begin();
  const u32 group = walk.group * 64, line = group + wave_index() % 4 * 16;
  if (walk.end > 0) attend(args, walk, tile.first + group, count, rows);
  if (slice.used == 1) {
    finish(args, tile, line, shared, rows);
    return;
  }

  float* const floats = reinterpret_cast<float*>(shared);
#if FOLD == 2
  Walk::meet();  // nobody reads tiles any more
  const OwnSums sums{floats};
#else
  const Slices<BQ, SPLIT> slices(args, reader, readers);
  const OwnSums sums{slices, block_z()};
#endif
  rows.leave(sums, line, own, exponent_scale(args));
  join_slices(args, sums, slice.used, own, floats, Outputs{args, tile});
}
