// Workgroups that share rows of queries and divide their keys into slices. Each leaves its sums in
// the workspace, where the last one to arrive joins them, or in shared memory, where those of a
// cluster do; slice by slice whatever the order of arrival.
#pragma once

#include "attention/operands.hip"
#include "common/arrival.hip"

// Those of a workgroup that join slices: all, or the first JOINERS threads, which meet at
// joiners_barrier().
#if !defined(JOINERS)
#define JOINERS THREADS
GRETA_DEVICE void joiners_barrier() { block_barrier(); }
#endif

// Joins sums of up to `most` slices of up to `rows` rows each. A thread has up to `ahead` loads in
// flight, which take four registers each, of up to `at_once` slices. `Sums` says where a slice's sums of a row are:
//   values(slice, row)  of values, each times 2 to the power of its score less the greatest one
//   scores(slice, row)  the greatest score, and the sum of the powers; without keys lowest_score, 0
template <u32 rows, u32 most, u32 threads, u32 ahead, u32 at_once = ahead>
struct SliceJoin {
  static constexpr u32 shared_floats = rows * (2 * most + 2);
  static constexpr u32 together = smaller(most, at_once);
  // Of four elements: no more than a thread has, since each of them takes code.
  static constexpr u32 needed = (rows * (V_DIM / 4) + threads - 1) / threads;
  static constexpr u32 fitting = ahead / together < 8 ? ahead / together : 8;
  static constexpr u32 units = needed < fitting ? needed : fitting;

  // Joins `count` slices of the first `own` rows, and of their elements part `part` of `parts`.
  // Gives put(row, d, four, sum) the sums of dimensions d to d + 3, and the row's RowSum.
  // `shared`: shared_floats.
  template <typename Sums, typename Put>
  static GRETA_DEVICE void join(const Sums& sums, u32 count, u32 own, u32 part, u32 parts,
                                float* shared, Put put) {
    float *const weight = shared, *const sum = shared + most * rows;  // of slices
    float *const total = sum + most * rows, *const greatest = total + rows;  // of rows
    bring_scores(sums, count, own, weight, sum);
    joiners_barrier();
    weigh(count, own, weight, sum, total, greatest);
    joiners_barrier();
    const u32 end = own * (V_DIM / 4), step = parts * threads;
    GRETA_NO_UNROLL
    for (u32 first = part * threads + thread_index(); first < end; first += units * step) {
      float four[units][4] = {};
      GRETA_NO_UNROLL
      for (u32 s = 0; s < count; s += together) {
        Words<16> piece[units][together];
        GRETA_UNROLL
        for (u32 u = 0; u < units; ++u) {
          const u32 e = smaller(first + u * step, end - 1), row = e / (V_DIM / 4);
          GRETA_UNROLL
          for (u32 i = 0; i < together; ++i) {
            piece[u][i] = load_words<16>(sums.values(smaller(s + i, count - 1), row) +
                                         e % (V_DIM / 4) * 4);
          }
        }
        GRETA_UNROLL
        for (u32 u = 0; u < units; ++u) {
          const u32 row = smaller(first + u * step, end - 1) / (V_DIM / 4);
          GRETA_UNROLL
          for (u32 i = 0; i < together; ++i) {
            const float of_slice = s + i < count ? weight[(s + i) * rows + row] : 0.0f;
            GRETA_UNROLL
            for (u32 x = 0; x < 4; ++x) {
              four[u][x] = multiply_add(of_slice, float_from_bits(piece[u][i].word[x]), four[u][x]);
            }
          }
        }
      }
      GRETA_UNROLL
      for (u32 u = 0; u < units; ++u) {
        const u32 e = first + u * step, row = e / (V_DIM / 4);
        if (e < end) put(row, e % (V_DIM / 4) * 4, four[u], RowSum{greatest[row], total[row]});
      }
    }
  }

 private:
  // All of them at once.
  template <typename Sums>
  static GRETA_DEVICE void bring_scores(const Sums& sums, u32 count, u32 own, float* greatest,
                                        float* sum) {
    constexpr u32 units = (most * rows + threads - 1) / threads;
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      const u32 at = thread_index() + i * threads;
      if (at >= count * rows || at % rows >= own) continue;
      const Words<8> pair = load_words<8>(sums.scores(at / rows, at % rows));
      greatest[at] = float_from_bits(pair.word[0]);
      sum[at] = float_from_bits(pair.word[1]);
    }
  }

  // Turns greatest scores into weights; a wave takes a row.
  static GRETA_DEVICE void weigh(u32 count, u32 own, float* weight, const float* sum,
                                 float* total, float* greatest_of) {
    GRETA_NO_UNROLL
    for (u32 row = thread_index() / wave_size; row < own; row += threads / wave_size) {
      float greatest = lowest_score, part = 0.0f;
      for (u32 s = lane_index(); s < count; s += wave_size) {
        greatest = larger(greatest, weight[s * rows + row]);
      }
      greatest = reduce_lanes<wave_size>(greatest, Larger{});
      for (u32 s = lane_index(); s < count; s += wave_size) {
        float& mine = weight[s * rows + row];
        mine = fast_exp2(mine - greatest);
        part = multiply_add(mine, sum[s * rows + row], part);
      }
      part = reduce_lanes<wave_size>(part, Add{});
      if (lane_index() == 0) {
        total[row] = part;
        greatest_of[row] = greatest;
      }
    }
  }
};

// The sums of a reader's slices in the workspace. Readers are workgroups that share no row.
template <u32 rows, u32 most>
struct Slices {
  float *first_values, *first_scores;  // of the reader

  GRETA_DEVICE Slices(const Arguments& args, u32 reader, u32 readers)
      : first_values(args.partial + u64(reader) * most * rows * V_DIM),
        first_scores(args.partial + u64(readers) * most * rows * V_DIM +
                     u64(reader) * most * rows * 2) {}

  // Those of the rows from `row` on.
  GRETA_DEVICE Slices from(u32 row) const {
    Slices others = *this;
    others.first_values += row * V_DIM;
    others.first_scores += row * 2;
    return others;
  }
  GRETA_DEVICE float* values(u32 slice, u32 row) const {
    return first_values + (slice * rows + row) * V_DIM;
  }
  GRETA_DEVICE float* scores(u32 slice, u32 row) const {
    return first_scores + (slice * rows + row) * 2;
  }
};
