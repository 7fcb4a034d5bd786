// Products of few rows with quantised weights by matrix cores, bound by reading the weights. A number of
// workgroups computes tiles of TN x 16 columns and all rows of C in turn. Of a tile, the WAVES divide K
// among themselves in pairs of units. Each wave copies its pairs to shared memory by itself, STAGES - 1
// of them ahead, across tiles too, so that memory is busy while waves multiply and while they add their
// sums. Its part of A stays in shared memory, arranged as weights are.
//
// With NORM, A's elements are multiplied by their weights as they are arranged. A product has twice the bits
// of A's type, and is the sum of two elements of it, its pieces. These are rows of their own of the product,
// which has eight in any case. A power of two for each wave and row keeps them in the type's range; of f16,
// the rest of an element that is far smaller than the largest one is rounded. The sums of tiles are
// multiplied by the norm's factors.

#include "common/reduce.hip"
#include "quantized_gemm/ring.hip"

constexpr u32 sums_bytes = WAVES * 2 * floats_of_sums * 4;
// With NORM what each wave has of each row; then A's rows.
constexpr u32 pieces = NORM ? 2 : 1, most_rows = 8 / pieces;
constexpr u32 fixed_bytes = WAVES * ring_bytes + sums_bytes + (NORM ? WAVES * most_rows * 8 : 0);

// The first of eight k of a pair that a lane brings there.
GRETA_DEVICE u32 first_of_lane(u32 pair) {
  return pair * (pair_units * unit_weights) + lane_index() * 8;
}

#if NORM
GRETA_DEVICE float element_of(const Eight& eight, u32 i) {
#if IN_F16
  return to_float(f16{u16(eight.word[i / 2] >> 16 * (i % 2))});
#else
  return float_from_bits(i % 2 == 0 ? eight.word[i / 2] << 16 : eight.word[i / 2] & 0xffff0000U);
#endif
}

// A power of two that gives the largest element the exponent 14, unless it is nearly zero or infinite, and
// what gives the sums back.
struct Scaling {
  float factor, back;
};

GRETA_DEVICE Scaling scaling_of(float largest) {
  const u32 exponent = smaller(bits_of(largest) >> 23, 253U);
  const u32 bounded = exponent < 40 ? 40 : exponent;
  return {float_from_bits((268 - bounded) << 23), float_from_bits((bounded - 14) << 23)};
}

// The wave's squares of a row of A, and what the wave's sums of it are multiplied by.
struct RowPart {
  float squares, back;
};

// Splits weighted elements into pieces: a rounded one and the rest.
GRETA_DEVICE void split(const Eight& x, const Eight& weight, float factor, Eight (&piece)[pieces]) {
  GRETA_UNROLL
  for (u32 i = 0; i < 8; i += 2) {
    const float first = element_of(x, i) * element_of(weight, i) * factor;
    const float second = element_of(x, i + 1) * element_of(weight, i + 1) * factor;
    const In rounded[2] = {narrow<In>(first), narrow<In>(second)};
    const In rest[2] = {narrow<In>(first - to_float(rounded[0])), narrow<In>(second - to_float(rounded[1]))};
    piece[0].word[i / 2] = u32(rounded[0].bits) | u32(rounded[1].bits) << 16;
    piece[1].word[i / 2] = u32(rest[0].bits) | u32(rest[1].bits) << 16;
  }
}
#endif

// Brings the wave's part of A there.
#if NORM
GRETA_DEVICE void copy_rows(const In* a, const In* weight, u8* rows, RowPart* row_parts, u32 m, u32 k,
                            u32 pairs) {
  const u32 lane = lane_index();
  u8* const of_lane = rows + lane / 16 * (pieces * m * row_bytes) + lane % 16 / 4 * 16;
  for (u32 row = 0; row < m; ++row) {
    const In* const from = a + u64(row) * k;
    float squares = 0.0f, largest = 0.0f;
    for (u32 pair = wave_index(); pair < pairs; pair += WAVES) {
      const Eight x = load_elements(from + first_of_lane(pair));
      const Eight w = load_elements(weight + first_of_lane(pair));
      float some = 0.0f;
      GRETA_UNROLL
      for (u32 i = 0; i < 8; ++i) {
        const float e = element_of(x, i), weighted = e * element_of(w, i);
        some = multiply_add(e, e, some);
        largest = larger(largest, weighted < 0.0f ? -weighted : weighted);
      }
      squares += some;
    }
    squares = reduce_lanes<wave_size>(squares, Add{});
    const Scaling scaling = scaling_of(reduce_lanes<wave_size>(largest, Larger{}));
    if (lane == 0) row_parts[row] = {squares, scaling.back};
    u8* unit = of_lane;
    for (u32 pair = wave_index(); pair < pairs; pair += WAVES) {
      Eight piece[pieces];
      split(load_elements(from + first_of_lane(pair)), load_elements(weight + first_of_lane(pair)),
            scaling.factor, piece);
      GRETA_UNROLL
      for (u32 p = 0; p < pieces; ++p) put_elements(unit, p * m + row, piece[p]);
      unit += 2 * pieces * m * row_bytes;
    }
  }
}

// The sum of all waves of an element of a tile of normalised rows. `row_parts`: four of each wave.
GRETA_DEVICE float sum_of_norm(const float* sums, const RowPart* row_parts, u32 in_row, u32 in_col, u32 m,
                               u32 k, float epsilon) {
  const float* const of_column = sums + in_col * sums_pitch;
  float sum = 0.0f, squares = 0.0f;
  GRETA_UNROLL
  for (u32 w = 0; w < WAVES; ++w) {
    const RowPart part = row_parts[w * most_rows + in_row];
    const float* const at = of_column + w * floats_of_sums + in_row;
    sum = multiply_add(at[0] + at[m], part.back, sum);
    squares += part.squares;
  }
  return sum * norm_factor(squares, k, epsilon);
}
#else
// Several rows at once.
GRETA_DEVICE void copy_rows(const In* a, u8* rows, u32 m, u32 k, u32 pairs) {
  constexpr u32 at_once = FEW_ROWS ? 2 : 4;
  const u32 lane = lane_index();
  u32 pair = wave_index(), row = 0;
  u8* unit = rows + lane / 16 * (m * row_bytes) + lane % 16 / 4 * 16;
  while (pair < pairs) {
    Eight eight[at_once];
    u8* of_unit[at_once];
    u32 of_row[at_once];
    bool inside[at_once];
    GRETA_UNROLL
    for (u32 e = 0; e < at_once; ++e) {
      inside[e] = pair < pairs;
      of_unit[e] = unit;
      of_row[e] = row;
      eight[e] = load_elements(a + u64(row) * k + first_of_lane(smaller(pair, pairs - 1)));
      if (++row == m) {
        row = 0;
        pair += WAVES;
        unit += 2 * m * row_bytes;
      }
    }
    wave_barrier();  // no load moves past it to the store of what it loads
    GRETA_UNROLL
    for (u32 e = 0; e < at_once; ++e) {
      if (inside[e]) put_elements(of_unit[e], of_row[e], eight[e]);
    }
  }
}
#endif

GRETA_KERNEL(THREADS)
quantized_gemm_stream(const In* GRETA_READ a, const u8* GRETA_READ b,
                      const Scale* GRETA_READ scales, const u8* GRETA_READ zeros,
                      const Out* GRETA_READ added, Out* __restrict__ c, u32 m, u32 n, u32 k,
                      u32 tiles_n, u32 blocks NORM_PARAMETERS) {
  begin_launch_early();
  GRETA_DYNAMIC_SHARED(u8, memory);
  const u32 block = block_index<THREADS>();
  if (block >= blocks) return;  // of the whole workgroup
  const u32 pairs = k / (pair_units * unit_weights), pairs_of_wave = (pairs + WAVES - 1) / WAVES;
  const u32 rows_of_a = pieces * m;
  u8* const ring = memory + wave_index() * ring_bytes;
  float* const sums = reinterpret_cast<float*>(memory + WAVES * ring_bytes);
  u8* const rows = memory + fixed_bytes +
                   wave_index() * (pairs_of_wave * pair_units * rows_of_a * row_bytes);
  const SharedMemory shared = shared_memory(ring);
  const Weights weights = {b, scales, zeros};

  Cursor ahead = first_of_tile(weights, block, n, k);
  GRETA_UNROLL
  for (u32 s = 0; s + 1 < STAGES; ++s) {
    if (ahead.tile < tiles_n) copy_pair(shared, s * stage_bytes, ahead, n, k);
    close_copies();
    advance(ahead, weights, pairs, blocks, n, k);
  }
  Zeros zero = load_zeros(weights, block, wave_index(), n, k);
  await_earlier_launches();
#if NORM
  RowPart* const row_parts = reinterpret_cast<RowPart*>(sums + 2 * WAVES * floats_of_sums);
  copy_rows(a, weight, rows, row_parts + wave_index() * most_rows, m, k, pairs);
#else
  copy_rows(a, rows, m, k, pairs);
#endif
  u32 stage = 0, free = (STAGES - 1) * stage_bytes, buffer = 0;
  for (u32 tile = block; tile < tiles_n; tile += blocks) {
    Sums total[RT][TN] = {};
    const u8* unit_rows = rows;
    for (u32 pair = wave_index(); pair < pairs; pair += WAVES) {
      wait_for_copies<STAGES - 2, 0>();
      wave_barrier();  // all lanes' copies are there, and all have read the stage that is filled next
      if (ahead.tile < tiles_n) copy_pair(shared, free, ahead, n, k);
      close_copies();
      advance(ahead, weights, pairs, blocks, n, k);
      const Zeros later = later_zeros(weights, zero, {tile, pair, pairs, blocks, tiles_n}, n, k);
      GRETA_UNROLL
      for (u32 u = 0; u < pair_units; ++u) {
        Unit unit;
        read_unit(ring + stage, u, unit);
        set_zeros(zero, u, unit);
        Sums part[RT][TN] = {};
        add_chunk(unit, 0, part, [&](u32 r) { return read_rows(unit_rows, r, rows_of_a); });
        add_unit(unit, part, total);
        unit_rows += rows_of_a * row_bytes;
      }
      zero = later;
      free = stage;
      stage = stage + stage_bytes < ring_bytes ? stage + stage_bytes : 0;
    }
    GRETA_UNROLL
    for (u32 i = 0; i < RT * TN; ++i) {
      // Waves may still read the buffer before.
      float* const to = sums + buffer * (WAVES * floats_of_sums);
      store(total[i / TN][i % TN], to + wave_index() * floats_of_sums, sums_pitch);
      block_barrier();
      const auto sum_of = [&](u32 in_row, u32 in_col) {
#if NORM
        return sum_of_norm(to, row_parts, in_row, in_col, m, k, epsilon);
#else
        return sum_of_waves(to, in_row, in_col);
#endif
      };
      store_tile(sum_of, c, added, i / TN * 16, tile * tile_lines + i % TN * 16, m, n);
      buffer ^= 1U;
    }
  }
}
