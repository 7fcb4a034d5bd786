// Rows that share keys (rows.hip) by warpgroups of sm_90: a workgroup has 64 rows and walks through their keys,
// or one of SPLIT slices of them, in tiles of BK lines, which serve both products. Of a tile, each of GROUPS
// warpgroups has a part of the keys for the scores, and a part of the dimensions of the outputs: sums of 512
// dimensions are too many for the registers of one. Greatest scores and weights pass between them through
// shared memory. Asynchronous copies fill BUFFERS tiles ahead. Slices are joined by rows_join.hip.
#if !defined(BK) || !defined(GROUPS) || !defined(BUFFERS)
#error "BK GROUPS and BUFFERS must be defined"
#endif
#if BK % (GROUPS * 8) != 0 || BK % 16 != 0 || GROUPS < 1 || BUFFERS < 2
#error "BK is a multiple of 16, and of 8 for each of GROUPS; BUFFERS are at least 2"
#endif

#define THREADS (GROUPS * 128)
#define COPIERS THREADS
#define BQ 64
#define ASYNC 1

#include "attention/layout.hip"
#include "attention/panel_copy.hip"
#include "latent_attention/rows.hip"
#include "latent_attention/staged_lines.hip"

constexpr u32 padded = (DIM + 15) / 16 * 16;  // dimensions
typedef PanelTile<BQ, padded / 8> QueryTile;
typedef PanelTile<BK, padded / 8> KeyTile;
typedef PanelTile<BQ, BK / 8> WeightTile;

// A warpgroup's keys of a tile, and its dimensions of the outputs: whole panels.
constexpr u32 panel = KeyTile::width * 8;
constexpr u32 group_keys = BK / GROUPS;
constexpr u32 group_values = (V_DIM + GROUPS * panel - 1) / (GROUPS * panel) * panel;
static_assert(GROUPS * group_values <= padded, "values are in tiles of keys");

// Where things are in shared memory.
GRETA_DEVICE constexpr u32 panels_bytes(u32 bytes) { return (bytes + 1023) / 1024 * 1024; }
constexpr u32 keys_start = panels_bytes(QueryTile::bytes), tile_bytes = panels_bytes(KeyTile::bytes);
constexpr u32 weights_start = keys_start + BUFFERS * tile_bytes;
constexpr u32 parts_start =
    weights_start + WeightTile::bytes;  // of warpgroups: their rows' maxima or sums
static_assert(staged_bytes <= parts_start, "outputs are ahead of what join_sums() reads");

// The queries of a tile's rows.
struct QueryRows {
  const Arguments& args;
  const Part& part;

  GRETA_DEVICE const In* line(u32 number) const {
    return query_row(args, part.tile, part.tile.first + smaller(number, part.own - 1));
  }
  GRETA_DEVICE const In* later(const In*, u32 number, u32 more, u32 at, bool) const {
    return line(number + more) + at;
  }
};

// What a lane has of its warpgroup's products: two rows.
struct Rows {
  WarpgroupSums<group_keys> scores;
  WarpgroupSums<group_values> out;
  float base[2];  // as in matrix_rows.hip
  float sum[2];   // of this lane's keys
  u32 group;      // this warpgroup, asked while all lanes are there

  static GRETA_DEVICE u32 row(u32 r) { return wave_index() % 4 * 16 + lane_index() / 4 + r * 8; }
  static GRETA_DEVICE u32 column(u32 c) { return c * 8 + lane_index() % 4 * 2; }
  static GRETA_DEVICE bool first_lane() { return lane_index() % 4 == 0; }

  GRETA_DEVICE void begin() {
    group = warpgroup_index();
    out = {};
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      base[r] = float_from_bits(0xff800000U);
      sum[r] = 0.0f;
    }
  }

  // Starts the scores of the warpgroup's keys of the tile at `start`.
  GRETA_DEVICE void start_scores(SharedMemory shared, u32 start) {
    const OperandPlace queries = operand_place<QueryTile, true>(shared, 0);
    const OperandPlace keys =
        operand_place<KeyTile, true>(shared, start + KeyTile::template part<true>(group * group_keys, 0));
    products_begin();
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
  GRETA_DEVICE void finish_scores() {
    wait_for_products<0>();
    claim_sums(scores);
  }

  // Adds the warpgroup's dimensions of the values at `start`, times the weights.
  GRETA_DEVICE void add_values(SharedMemory shared, u32 start) {
    const OperandPlace weights = operand_place<WeightTile, true>(shared, weights_start);
    const OperandPlace values =
        operand_place<KeyTile, false>(shared, start + KeyTile::template part<false>(group * group_values, 0));
    products_begin();
    GRETA_UNROLL
    for (u32 key = 0; key < BK; key += 16) {
      const OperandPlace a = further(weights, WeightTile::template part<true>(0, key));
      const OperandPlace b = further(values, KeyTile::template part<false>(0, key));
      multiply_async<true, false, true>(In(), out, a, b);
    }
    close_products();
    wait_for_products<0>();
    claim_sums(out);
  }

  // Hides keys that a row does not see. `key` is the warpgroup's first.
  GRETA_DEVICE void mask(const Sight (&sight)[2], u32 key) {
    GRETA_UNROLL
    for (u32 c = 0; c < group_keys / 8; ++c) {
      GRETA_UNROLL
      for (u32 e = 0; e < 4; ++e) {
        float& score = scores.eight[c][e];
        score = sight[e / 2].sees(key + column(c) + e % 2) ? score : float_from_bits(0xff800000U);
      }
    }
  }

  // Leaves the greatest scores of the warpgroup's keys for the others.
  GRETA_DEVICE void leave_greatest(float* parts) const {
    float most[2] = {scores.eight[0][0], scores.eight[0][2]};
    GRETA_UNROLL
    for (u32 c = 0; c < group_keys / 8; ++c) {
      GRETA_UNROLL
      for (u32 e = 0; e < 4; ++e) most[e / 2] = larger(most[e / 2], scores.eight[c][e]);
    }
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      const float greatest = row_largest(most[r]);
      if (first_lane()) parts[group * BQ + row(r)] = greatest;
    }
  }

  // Moves the bases to the greatest scores of all warpgroups, as matrix_rows.hip does.
  GRETA_DEVICE void move_bases(const float* parts, float scale) {
    constexpr float ease = 8.0f;
    float kept[2];
    bool moved = false;
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      float now = base[r];
      GRETA_UNROLL
      for (u32 g = 0; g < GROUPS; ++g) now = larger(now, parts[g * BQ + row(r)]);
      const float before = base[r] * scale;
      const bool moves = now * scale > before + ease;
      moved = moved || moves;
      if (moves) base[r] = now;
      kept[r] = moves ? fast_exp2(before - now * scale) : 1.0f;
      sum[r] *= kept[r];
    }
    if (!wave_any(moved)) return;
    GRETA_UNROLL
    for (u32 c = 0; c < group_values / 8; ++c) {
      GRETA_UNROLL
      for (u32 e = 0; e < 4; ++e) out.eight[c][e] *= kept[e / 2];
    }
  }

  // Turns scores into weights, and puts them into shared memory.
  GRETA_DEVICE void weigh(float scale, u8* weights) {
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      // A row that sees no key yet: any finite number serves.
      const float after = base[r] * scale;
      const float offset = after == float_from_bits(0xff800000U) ? 0.0f : after;
      GRETA_UNROLL
      for (u32 c = 0; c < group_keys / 8; ++c) {
        float some[2];
        GRETA_UNROLL
        for (u32 x = 0; x < 2; ++x) {
          some[x] = fast_exp2(multiply_add(scores.eight[c][r * 2 + x], scale, -offset));
          sum[r] += some[x];
        }
        const u32 chunk = group * (group_keys / 8) + c;
        const u32 place = WeightTile::chunk_at(row(r), chunk % WeightTile::width);
        u8* const line = weights + chunk / WeightTile::width * WeightTile::panel_bytes +
                         row(r) * WeightTile::line_bytes;
        store_words(line + place * 16 + lane_index() % 4 * 4, Words<4>{{narrow_pair(some[0], some[1])}});
      }
    }
  }

  // Makes each lane's sums those of all keys of its rows.
  GRETA_DEVICE void join_sums(float* parts) {
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      const float own = row_sum(sum[r]);
      if (first_lane()) parts[group * BQ + row(r)] = own;
    }
    block_barrier();
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      sum[r] = 0.0f;
      GRETA_UNROLL
      for (u32 g = 0; g < GROUPS; ++g) sum[r] += parts[g * BQ + row(r)];
    }
  }

  // Puts the outputs into shared memory, for store_lines(), and log-sum-exps where they belong.
  GRETA_DEVICE void finish(const Arguments& args, const Part& part, u8* memory) const {
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      if (row(r) >= part.own) continue;
      RowSum total{base[r] * args.scale, sum[r]};
      const u32 number = part.tile.first + row(r);
      const float factor = total.factor(args, head_of(part.tile, number));
      if (group == 0 && first_lane()) total.put_lse(args, output_row(args, part.tile, number));
      put<Out>(memory, r, factor);
    }
  }

  // The same for what a slice leaves.
  GRETA_DEVICE void leave(const OwnSums& sums, u32 own, float scale, u8* memory) const {
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      if (row(r) >= own) continue;
      put<float>(memory, r, 1.0f);
      if (group > 0 || !first_lane()) continue;
      const float greatest = larger(base[r] * scale, lowest_score);
      store_pack(sums.scores(row(r)), narrow_pack<float>({greatest, sum[r]}));
    }
  }

  template <typename T>
  GRETA_DEVICE void put(u8* memory, u32 r, float factor) const {
    T* const to = staged_line<T>(memory, row(r));
    GRETA_UNROLL
    for (u32 c = 0; c < group_values / 8; ++c) {
      const u32 dimension = group * group_values + column(c);
      if (GROUPS * group_values != V_DIM && dimension >= V_DIM) continue;
      const float two[2] = {out.eight[c][r * 2] * factor, out.eight[c][r * 2 + 1] * factor};
      store_pack(to + dimension, narrow_pack<T>(two));
    }
  }
};

GRETA_KERNEL(THREADS) latent_attention_warpgroups(TREE_PARAMETER ATTENTION_PARAMETERS) {
  begin_launch();
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
  GRETA_UNROLL
  for (u32 r = 0; r < 2; ++r) {
    sight[r] = Sight(args, TREE_ARGUMENT, part.tile.sequence, part.count,
                     part.tile.first + Rows::row(r));
  }
  GRETA_NO_UNROLL
  for (u32 tile = 0; tile * BK < end; ++tile) {
    const u32 start = keys_start + tile % BUFFERS * tile_bytes;
    wait_for_copies<BUFFERS - 2, 0>();
    show_to_products();
    block_barrier();  // the tile is there, and the one before was read
    rows.start_scores(shared, start);
    copy(tile + BUFFERS - 1);  // starting copies takes about as long as the scores
    rows.finish_scores();
    const u32 key = part.slice.begin + tile * BK + rows.group * group_keys;
    const bool whole = sight[0].sees_all_before(key + group_keys) &&
                       sight[1].sees_all_before(key + group_keys);
    if (wave_any(!whole)) rows.mask(sight, key);
    rows.leave_greatest(parts);
    block_barrier();
    rows.move_bases(parts, args.scale);
    rows.weigh(args.scale, memory + weights_start);
    show_to_products();
    block_barrier();
    rows.add_values(shared, start);
  }

  wait_for_copies<0, 0>();  // of queries, if there is no key
  rows.join_sums(parts);    // after its barrier, nobody reads tiles
  store_rows<true>(args, part, rows, memory);
}
