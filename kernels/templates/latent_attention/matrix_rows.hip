// What a wave of rows_matrix.hip holds in registers: scores of its keys, and outputs of its dimensions.
#pragma once

#include "latent_attention/matrix_walk.hip"

// The wave's rows in the tile, its place in its group, and its dimensions.
GRETA_DEVICE u32 wave_row() { return wave_index() / VWAVES * WQ; }
GRETA_DEVICE u32 place_in_group() { return wave_index() % VWAVES; }

// Reads fragments of values, `value_blocks` of them at a time, from a tile whose lines are keys.
struct ValueFragments {
  Core::Fragment block[value_blocks];
};
#if defined(GRETA_MATRIX_MMA)
GRETA_DEVICE ValueFragments read_values(SharedMemory shared, u32 start, u32 dimension, u32 key) {
  static_assert(matrix_load_turns<In>, "loads turn tiles");
  const Reader<Operand::b, false, Values::Tile> reader(shared, start);
  return {{reader.read(dimension, key)}};
}
// The dimension of a block's column, from the wave's first on.
GRETA_DEVICE u32 dimension_of(u32 block, u32 column) { return block * span + column; }
#else
// A lane reads four neighbouring dimensions of eight keys, and turns them: column n of the four
// blocks has dimensions 4 n to 4 n + 3.
GRETA_DEVICE ValueFragments read_values(SharedMemory shared, u32 start, u32 dimension, u32 key) {
  const u32 column = lane_index() % span, group = Core::groups == 1 ? 0 : lane_index() / span;
  const u32 chunk = dimension / 8 + column / 2;
  ValueFragments f;
  GRETA_UNROLL
  for (u32 c = 0; c < Core::lane_chunks; ++c) {
    Words<8> piece[8];
    GRETA_UNROLL
    for (u32 e = 0; e < 8; ++e) {
      const u32 line = key + (group + c) * 8 + e;
      piece[e] = load_words<8>(shared.bytes + start + Values::Tile::offset(line, chunk) + column % 2 * 8);
    }
    GRETA_UNROLL
    for (u32 b = 0; b < value_blocks; ++b) {
      GRETA_UNROLL
      for (u32 w = 0; w < 4; ++w) {
        const u32 low = piece[2 * w].word[b / 2], high = piece[2 * w + 1].word[b / 2];
        f.block[b].chunk[c].word[w] = b % 2 == 0 ? low_halves(low, high) : high_halves(low, high);
      }
    }
  }
  return f;
}
GRETA_DEVICE u32 dimension_of(u32 block, u32 column) {
  return block / value_blocks * value_step + column * value_blocks + block % value_blocks;
}
#endif

// What a wave has of its rows.
struct Rows {
#if QREG
  Core::Fragment q[row_blocks][depths];
#endif
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

  // The row of block i in the tile.
  static GRETA_DEVICE u32 row(u32 i, u32 r) { return wave_row() + i * span + line(r); }

#if QREG
  GRETA_DEVICE void load_queries(const Arguments& args, const Part& part) {
    const u32 first = Core::groups == 1 ? 0 : lane_index() / span;
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      const bool inside = row(i, 0) < part.own;
      const In* const from = query_row(args, part.tile, part.tile.first + (inside ? row(i, 0) : 0));
      GRETA_UNROLL
      for (u32 d = 0; d < depths; ++d) {
        GRETA_UNROLL
        for (u32 c = 0; c < Core::lane_chunks; ++c) {
          const u32 chunk = d * depth / 8 + first + c;
          q[i][d].chunk[c] = {};
          if (inside && (padded == DIM || chunk < line_chunks)) {
            q[i][d].chunk[c] = load_words<16>(from + chunk * 8);
          }
        }
      }
    }
  }
#endif

  // Scores of the wave's keys of the tile at `start`.
  GRETA_DEVICE void score(SharedMemory shared, u32 start) {
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      GRETA_UNROLL
      for (u32 j = 0; j < key_blocks; ++j) scores[i][j] = Core::Sums();
    }
    const Reader<Operand::a, true, Queries> queries(shared, 0, wave_row());
    const Reader<Operand::b, true, Keys::Tile> reader(shared, start, place_in_group() * wave_keys);
    GRETA_UNROLL
    for (u32 d = 0; d < depths; ++d) {
      Core::Fragment rows[row_blocks];
      GRETA_UNROLL
      for (u32 i = 0; i < row_blocks; ++i) {
#if QREG
        rows[i] = q[i][d];
#else
        rows[i] = queries.read(i * span, d * depth);
#endif
      }
      GRETA_UNROLL
      for (u32 j = 0; j < key_blocks; ++j) {
        const Core::Fragment keys = reader.read(j * span, d * depth);
        GRETA_UNROLL
        for (u32 i = 0; i < row_blocks; ++i) add_scores(scores[i][j], rows[i], keys);
      }
    }
  }

  // Hides keys that a row does not see. `key` is the wave's first.
  GRETA_DEVICE void mask(u32 i, const Sight (&sight)[lane_rows], u32 key) {
    GRETA_UNROLL
    for (u32 j = 0; j < key_blocks; ++j) {
      GRETA_UNROLL
      for (u32 e = 0; e < lane_sums; ++e) {
        const u32 number = key + j * span + first_column() + column_step(e);
        float& score = sum_of(scores[i][j], e);
        score = sight[row_of(e)].sees(number) ? score : float_from_bits(0xff800000U);
      }
    }
  }

  // Leaves the greatest scores of the wave's keys for the others of its group.
  GRETA_DEVICE void leave_greatest(float* parts) const {
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      float most[lane_rows];
      GRETA_UNROLL
      for (u32 r = 0; r < lane_rows; ++r) most[r] = float_from_bits(0xff800000U);
      GRETA_UNROLL
      for (u32 j = 0; j < key_blocks; ++j) {
        GRETA_UNROLL
        for (u32 e = 0; e < lane_sums; ++e) {
          const float score = sum_of(const_cast<Core::Sums&>(scores[i][j]), e);
          most[row_of(e)] = larger(most[row_of(e)], score);
        }
      }
      GRETA_UNROLL
      for (u32 r = 0; r < lane_rows; ++r) {
        const float greatest = row_largest(most[r]);
        if (first_column() == 0) parts[place_in_group() * BQ + row(i, r)] = greatest;
      }
    }
  }

  // Moves the bases to the greatest scores of all waves of the group, as all of them do. Bases move
  // only for greater scores by more than `ease`, so that outputs are rarely multiplied; weights are
  // at most 2^ease then, which every type holds with the same relative error.
  GRETA_DEVICE void move_bases(const float* parts, float scale) {
    constexpr float ease = 8.0f;
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      float kept[lane_rows];
      bool moved = false;
      GRETA_UNROLL
      for (u32 r = 0; r < lane_rows; ++r) {
        float now = base[i][r];
        GRETA_UNROLL
        for (u32 w = 0; w < score_waves; ++w) now = larger(now, parts[w * BQ + row(i, r)]);
        const float before = base[i][r] * scale;
        const bool moves = now * scale > before + ease;
        moved = moved || moves;
        if (moves) base[i][r] = now;
        kept[r] = moves ? fast_exp2(before - now * scale) : 1.0f;
      }
      if (wave_any(moved)) multiply_rows(i, kept);
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

  // Turns scores into weights, 2 to the power of `scale` times a score, less the base, and puts them
  // into shared memory.
  GRETA_DEVICE void weigh(float scale, u8* weights) {
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      float offset[lane_rows];
      GRETA_UNROLL
      for (u32 r = 0; r < lane_rows; ++r) {
        // A row that sees no key yet: any finite number serves.
        const float after = base[i][r] * scale;
        offset[r] = after == float_from_bits(0xff800000U) ? 0.0f : after;
      }
      GRETA_UNROLL
      for (u32 j = 0; j < key_blocks; ++j) {
        GRETA_UNROLL
        for (u32 e = 0; e < lane_sums; e += run) {
          const u32 r = row_of(e);  // and that of the next ones
          float some[run];
          GRETA_UNROLL
          for (u32 x = 0; x < run; ++x) {
            some[x] = fast_exp2(multiply_add(sum_of(scores[i][j], e + x), scale, -offset[r]));
            sum[i][r] += some[x];
          }
          const u32 key = place_in_group() * wave_keys + j * span + first_column() + column_step(e);
          put_weights(weights + Weights::offset(row(i, r), key / 8) + key % 8 * 2, some);
        }
      }
    }
  }

  static GRETA_DEVICE void put_weights(u8* to, const float (&some)[run]) {
    if constexpr (run == 1) {
      store_pack(reinterpret_cast<In*>(to), narrow_pack<In>(some));
    } else {
      Words<run * 2> words;
      GRETA_UNROLL
      for (u32 x = 0; x < run; x += 2) words.word[x / 2] = narrow_pair(some[x], some[x + 1]);
      store_words(to, words);
    }
  }

  // Adds the wave's dimensions of the values at `start`, times the weights.
  GRETA_DEVICE void add(SharedMemory shared, u32 start) {
    const Reader<Operand::a, true, Weights> reader(shared, weights_start, wave_row());
    GRETA_UNROLL
    for (u32 step = 0; step < BK / depth; ++step) {
      Core::Fragment weights[row_blocks];
      GRETA_UNROLL
      for (u32 i = 0; i < row_blocks; ++i) weights[i] = reader.read(i * span, step * depth);
      GRETA_UNROLL
      for (u32 c = 0; c < dim_blocks; c += value_blocks) {
        const u32 dimension = place_in_group() * wave_values + c * span;
        const ValueFragments values = read_values(shared, start, dimension, step * depth);
        GRETA_UNROLL
        for (u32 b = 0; b < value_blocks; ++b) {
          GRETA_UNROLL
          for (u32 i = 0; i < row_blocks; ++i) add_values(out[i][c + b], weights[i], values.block[b]);
        }
      }
    }
  }

  // Makes each lane's sums those of all keys of its rows.
  GRETA_DEVICE void join_sums(float* parts) {
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      GRETA_UNROLL
      for (u32 r = 0; r < lane_rows; ++r) {
        const float own = row_sum(sum[i][r]);
        if (place_in_group() < score_waves && first_column() == 0) {
          parts[place_in_group() * BQ + row(i, r)] = own;
        }
      }
    }
    block_barrier();
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      GRETA_UNROLL
      for (u32 r = 0; r < lane_rows; ++r) {
        sum[i][r] = 0.0f;
        GRETA_UNROLL
        for (u32 w = 0; w < score_waves; ++w) sum[i][r] += parts[w * BQ + row(i, r)];
      }
    }
  }

  // Outputs go to shared memory if they are `staged`.
  GRETA_DEVICE void finish(const Arguments& args, const Part& part, u8* memory) {
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      GRETA_UNROLL
      for (u32 r = 0; r < lane_rows; ++r) {
        if (row(i, r) >= part.own) continue;
        RowSum total{base[i][r] * args.scale, sum[i][r]};
        const u32 number = part.tile.first + row(i, r);
        const u64 offset = output_row(args, part.tile, number);
        const float factor = total.factor(args, head_of(part.tile, number));
        if (place_in_group() == 0 && first_column() == 0) total.put_lse(args, offset);
        put(staged ? staged_line<Out>(memory, row(i, r)) : args.out + offset, i, r, factor);
      }
    }
  }

  GRETA_DEVICE void leave(const OwnSums& sums, u32 own, float scale, u8* memory) {
    GRETA_UNROLL
    for (u32 i = 0; i < row_blocks; ++i) {
      GRETA_UNROLL
      for (u32 r = 0; r < lane_rows; ++r) {
        if (row(i, r) >= own) continue;
        put(staged ? staged_line<float>(memory, row(i, r)) : sums.values(row(i, r)), i, r, 1.0f);
        if (place_in_group() > 0 || first_column() > 0) continue;
        const float greatest = larger(base[i][r] * scale, lowest_score);
        store_pack(sums.scores(row(i, r)), narrow_pack<float>({greatest, sum[i][r]}));
      }
    }
  }

  // Of row r of block i: dimensions that are neighbours lie in neighbouring blocks, or elements.
  template <typename T>
  GRETA_DEVICE void put(T* to, u32 i, u32 r, float factor) {
    constexpr u32 elements = value_blocks == 1 ? 2 : 1, width = value_blocks * elements;
    GRETA_UNROLL
    for (u32 c = 0; c < dim_blocks; c += value_blocks) {
      GRETA_UNROLL
      for (u32 e = 0; e < lane_sums; e += elements) {
        const u32 dimension =
            place_in_group() * wave_values + dimension_of(c, first_column() + column_step(e));
        if (row_of(e) != r || (all_values != V_DIM && dimension >= V_DIM)) continue;
        float some[width];
        GRETA_UNROLL
        for (u32 x = 0; x < width; ++x) {
          some[x] = sum_of(out[i][c + x / elements], e + x % elements) * factor;
        }
        store_pack(to + dimension, narrow_pack<T>(some));
      }
    }
  }
};
