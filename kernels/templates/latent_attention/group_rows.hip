// What warpgroups of sm_90 have of 64 rows that share keys (rows.hip): scores of some keys of a tile of BK lines,
// and a part of the dimensions of the outputs, since sums of 512 dimensions are too many for the registers of one.
// A tile's lines serve both products: values are the first elements of their keys.
#pragma once

#if !defined(BK) || !defined(GROUPS)
#error "BK and GROUPS must be defined"
#endif

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

// A warpgroup's dimensions of the outputs: whole panels.
constexpr u32 panel = KeyTile::width * 8;
constexpr u32 group_values = (V_DIM + GROUPS * panel - 1) / (GROUPS * panel) * panel;
static_assert(GROUPS * group_values <= padded, "values are in tiles of keys");

// Panels of 128 bytes begin at multiples of 1024.
GRETA_DEVICE constexpr u32 panels_bytes(u32 bytes) { return (bytes + 1023) / 1024 * 1024; }
constexpr u32 tile_bytes = panels_bytes(KeyTile::bytes);

// Outputs take the place of the queries, on their way through shared memory: all rows of two bytes, or half of the
// rows at a time.
constexpr u32 stage_bytes = BQ * line_pitch * 2;
constexpr u32 keys_start =
    panels_bytes(QueryTile::bytes > stage_bytes ? QueryTile::bytes : stage_bytes);

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

// Puts two neighbouring weights of a row into shared memory: those of columns `at` and at + 1 of 8 `chunk`.
GRETA_DEVICE void put_weights(u8* weights, u32 row, u32 chunk, u32 at, u32 pair) {
  const u32 place = WeightTile::chunk_at(row, chunk % WeightTile::width);
  u8* const line =
      weights + chunk / WeightTile::width * WeightTile::panel_bytes + row * WeightTile::line_bytes;
  store_words(line + place * 16 + at * 2, Words<4>{{pair}});
}

// What a lane has of its warpgroup's products: two rows. `keys`: those of the warpgroup's scores.
template <u32 keys>
struct GroupRows {
  WarpgroupSums<keys> scores;
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

  // Starts the scores' products of `dims` dimensions, from `first` on, a whole number of panels, with the tile's
  // keys from `key` on. `add`: to those of other dimensions.
  template <u32 dims, bool add>
  GRETA_DEVICE void start_scores(SharedMemory shared, u32 tile, u32 key, u32 first) {
    const u32 panels = first / panel;
    const OperandPlace queries = operand_place<QueryTile, true>(shared, panels * QueryTile::panel_bytes);
    const OperandPlace lines = operand_place<KeyTile, true>(
        shared, tile + panels * KeyTile::panel_bytes + KeyTile::template part<true>(key, 0));
    GRETA_UNROLL
    for (u32 d = 0; d < dims; d += 16) {
      const OperandPlace a = further(queries, QueryTile::template part<true>(0, d));
      const OperandPlace b = further(lines, KeyTile::template part<true>(0, d));
      if (!add && d == 0) {
        multiply_async<true, true, false>(In(), scores, a, b);
      } else {
        multiply_async<true, true, true>(In(), scores, a, b);
      }
    }
  }
  GRETA_DEVICE void finish_scores() {
    wait_for_products<0>();
    claim_sums(scores);
  }

  // The first of the warpgroup's dimensions of the values of a tile.
  GRETA_DEVICE OperandPlace values_of(SharedMemory shared, u32 tile) const {
    return operand_place<KeyTile, false>(shared,
                                         tile + KeyTile::template part<false>(group * group_values, 0));
  }
  // Starts the products of these and the weights at `start`.
  GRETA_DEVICE void start_values(SharedMemory shared, u32 start, u32 tile) {
    const OperandPlace weights = operand_place<WeightTile, true>(shared, start);
    const OperandPlace values = values_of(shared, tile);
    GRETA_UNROLL
    for (u32 key = 0; key < BK; key += 16) {
      const OperandPlace a = further(weights, WeightTile::template part<true>(0, key));
      const OperandPlace b = further(values, KeyTile::template part<false>(0, key));
      multiply_async<true, false, true>(In(), out, a, b);
    }
    close_products();
  }
  GRETA_DEVICE void finish_values() {
    wait_for_products<0>();
    claim_sums(out);
  }

  // Hides keys that a row does not see. `key` is the first of the scores.
  GRETA_DEVICE void mask(const Sight (&sight)[2], u32 key) {
    const bool whole = sight[0].sees_all_before(key + keys) && sight[1].sees_all_before(key + keys);
    if (!wave_any(!whole)) return;
    GRETA_UNROLL
    for (u32 c = 0; c < keys / 8; ++c) {
      GRETA_UNROLL
      for (u32 e = 0; e < 4; ++e) {
        float& score = scores.eight[c][e];
        score = sight[e / 2].sees(key + column(c) + e % 2) ? score : float_from_bits(0xff800000U);
      }
    }
  }

  // The greatest scores of the rows.
  GRETA_DEVICE void find_greatest(float (&greatest)[2]) const {
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      float most = scores.eight[0][r * 2];
      GRETA_UNROLL
      for (u32 c = 0; c < keys / 8; ++c) {
        most = larger(most, larger(scores.eight[c][r * 2], scores.eight[c][r * 2 + 1]));
      }
      greatest[r] = row_largest(most);
    }
  }

  // Moves the bases to greater scores, as matrix_rows.hip does. `kept` is what outputs are multiplied by; true
  // if that is not 1 for a row of the wave.
  GRETA_DEVICE bool move_bases(const float (&greatest)[2], float scale, float (&kept)[2]) {
    constexpr float ease = 8.0f;
    bool moved = false;
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      const float now = larger(base[r], greatest[r]), before = base[r] * scale;
      const bool moves = now * scale > before + ease;
      moved = moved || moves;
      if (moves) base[r] = now;
      kept[r] = moves ? fast_exp2(before - now * scale) : 1.0f;
      sum[r] *= kept[r];
    }
    return wave_any(moved);
  }

  GRETA_DEVICE void multiply_out(const float (&factor)[2]) {
    GRETA_UNROLL
    for (u32 c = 0; c < group_values / 8; ++c) {
      GRETA_UNROLL
      for (u32 e = 0; e < 4; ++e) out.eight[c][e] *= factor[e / 2];
    }
  }

  // Turns scores into weights, and gives put(r, c, pair) those of row r and of columns column(c) and the next.
  template <typename Put>
  GRETA_DEVICE void weigh(float scale, Put put) {
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      // A row that sees no key yet: any finite number serves.
      const float after = base[r] * scale;
      const float offset = after == float_from_bits(0xff800000U) ? 0.0f : after;
      GRETA_UNROLL
      for (u32 c = 0; c < keys / 8; ++c) {
        float some[2];
        GRETA_UNROLL
        for (u32 x = 0; x < 2; ++x) {
          some[x] = fast_exp2(multiply_add(scores.eight[c][r * 2 + x], scale, -offset));
          sum[r] += some[x];
        }
        put(r, c, narrow_pair(some[0], some[1]));
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
    joiners_barrier();
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      sum[r] = 0.0f;
      GRETA_UNROLL
      for (u32 g = 0; g < GROUPS; ++g) sum[r] += parts[g * BQ + row(r)];
    }
  }

  // Stores the outputs and log-sum-exps or, with several slices, what this one leaves. Nobody reads queries any more.
  GRETA_DEVICE void store(const Arguments& args, const Part& part, u8* memory) const {
    float factor[2] = {1.0f, 1.0f};
    if (part.slice.used == 1) {
      GRETA_UNROLL
      for (u32 r = 0; r < 2; ++r) {
        const u32 number = part.tile.first + row(r);
        RowSum total{base[r] * args.scale, sum[r]};
        factor[r] = total.factor(args, head_of(part.tile, number));
        if (leaves(part, r)) total.put_lse(args, output_row(args, part.tile, number));
      }
      store_staged<Out>(memory, part.own, factor, [&](u32 row) {
        return args.out + output_row(args, part.tile, part.tile.first + row);
      });
      return;
    }
    const Slices<BQ, SPLIT> slices(args, part.reader, part.readers);
    const OwnSums sums{slices, block_z()};
    GRETA_UNROLL
    for (u32 r = 0; r < 2; ++r) {
      const float greatest = larger(base[r] * args.scale, lowest_score);
      if (leaves(part, r)) store_pack(sums.scores(row(r)), narrow_pack<float>({greatest, sum[r]}));
    }
    store_staged<float>(memory, part.own, factor, [&](u32 row) { return sums.values(row); });
  }

 private:
  // Whether the lane is the one that stores what belongs to row r.
  GRETA_DEVICE bool leaves(const Part& part, u32 r) const {
    return group == 0 && first_lane() && row(r) < part.own;
  }

  template <typename T, typename Line>
  GRETA_DEVICE void store_staged(u8* memory, u32 own, const float (&factor)[2], Line line) const {
    constexpr u32 rows = BQ * 2 / sizeof(T);  // at a time
    GRETA_NO_UNROLL
    for (u32 first = 0; first < BQ; first += rows) {
      if (first > 0) joiners_barrier();  // the rows before are stored
      const u32 place = row(0) - first;
      if (place < rows) {
        GRETA_UNROLL
        for (u32 r = 0; r < 2; ++r) put(staged_line<T>(memory, place + r * 8), r, factor[r]);
      }
      const u32 left = own - smaller(own, first);
      store_lines<T>(memory, smaller(left, rows), [&](u32 row) { return line(first + row); });
    }
  }
  template <typename T>
  GRETA_DEVICE void put(T* to, u32 r, float factor) const {
    GRETA_UNROLL
    for (u32 c = 0; c < group_values / 8; ++c) {
      const u32 dimension = group * group_values + column(c);
      if (GROUPS * group_values != V_DIM && dimension >= V_DIM) continue;
      const float two[2] = {out.eight[c][r * 2] * factor, out.eight[c][r * 2 + 1] * factor};
      store_pack(to + dimension, narrow_pack<T>(two));
    }
  }
};

// What this thread's two rows see.
GRETA_DEVICE void find_sight(const Arguments& args, const u32* tree, const Part& part, Sight (&sight)[2]) {
  GRETA_UNROLL
  for (u32 r = 0; r < 2; ++r) {
    sight[r] =
        Sight(args, tree, part.tile.sequence, part.count, part.tile.first + GroupRows<BK>::row(r));
  }
}
