// Products of one row of f16 or bf16 with quantised weights, by matrix cores of integers. Six digits of eight
// bits represent an element of A exactly. They are columns of a product, of which an instruction has eight in
// any case. Weights are bytes: int8 as they lie in memory, and of int4 each half of a byte, as sixteen times
// the weight, so that one instruction converts four weights and subtracts 8. A product with ones yields the
// sums of digits, for zero points of groups. A unit's sums of integers are exact. They are multiplied by what
// their digit stands for, exactly, and then scaled in f32. Sums of digits are added in the end.
//
// As in stream, a number of workgroups computes tiles of TN x 16 columns of C in turn. Of a tile, the WAVES
// divide K among themselves in pairs of units, which each wave copies to shared memory by itself, STAGES - 1 of
// them ahead. A wave has its part of A there as digits.

#define RT 1  // tiles of rows
#include "quantized_gemm/digit_rows.hip"

#if !(IN_F16 || IN_BF16) || FORMAT > 1 || NORM
#error "digits are of f16 or bf16, and weights int4 or int8"
#endif

constexpr u32 sums_bytes = WAVES * 2 * tile_lines * 4;
constexpr u32 fixed_bytes = WAVES * ring_bytes + sums_bytes;

// Sums of a tile in a wave: of digits as columns, and a lane's products with elements that have no digits.
struct Columns {
  float sum[TN][4];
  float other[TN][lane_lines];
};

GRETA_DEVICE void multiply_bytes(int (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if defined(GRETA_HOST)
  const u32 b[2] = {b0, b1};
  greta_host::mma_m16n8k32<Int8>(d, a, b);
#else
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// The bits of `word` that `mask` selects, some of them changed.
GRETA_DEVICE u32 selected_changed(u32 word, u32 mask, u32 change) {
#if defined(GRETA_NVIDIA)
  u32 result;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(word), "r"(mask), "r"(change));
  return result;
#else
  return (word & mask) ^ change;
#endif
}

// Weights 8 j to 8 j + 7 of a chunk as bytes: of int4 the even ones, then the odd ones, less 8 and times
// sixteen; of int8 with zero points less 128.
GRETA_DEVICE Words<8> byte_weights(const Integers& integers, u32 j) {
#if FORMAT == 0
  const u32 word = integers.word[j];
  return {{selected_changed(word << 4, 0xf0f0f0f0U, 0x80808080U),
           selected_changed(word, 0xf0f0f0f0U, 0x80808080U)}};
#else
  const u32 flip = ZEROS ? 0x80808080U : 0U;
  return {{integers.word[2 * j] ^ flip, integers.word[2 * j + 1] ^ flip}};
#endif
}
constexpr float of_byte = FORMAT == 0 ? 0.0625f : 1.0f;

// What integers in a lane's two columns stand for, over the power of their unit.
struct Worth {
  float of[2];
};

GRETA_DEVICE Worth worth_of_lane() {
  Worth worth;
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    const u32 digit = lane_index() % 4 * 2 + i;
    const u32 exponent = digit < 3 ? 103 + 8 * digit : 101 + 8 * digit;  // 2^-24, or 2^-2 of digit 3
    worth.of[i] = digit < digits ? float_from_bits(exponent << 23) * of_byte : 0.0f;
  }
  return worth;
}

// What is added to such a byte for the zero point of its group.
GRETA_DEVICE int shift_of(u32 zero) {
  return !ZEROS ? 0 : FORMAT == 0 ? 16 * (8 - int(zero)) : 128 - int(zero);
}

// Adds the products of a unit with A's digits, of which `of_lane` are the lane's.
GRETA_DEVICE void add_unit_digits(const Unit& unit, const u8* of_lane, float power, const Worth& worth,
                                  Columns& columns) {
  int sum[TN][4], of_digits[4] = {};
  GRETA_UNROLL
  for (u32 i = 0; i < TN * 4; ++i) sum[i / 4][i % 4] = ZEROS ? 0 : int(bits_above);
  const u32 ones[4] = {0x01010101U, 0x01010101U, 0x01010101U, 0x01010101U};
  GRETA_UNROLL
  for (u32 half = 0; half < 2; ++half) {
    const Words<16> digit = load_words<16>(of_lane + half * half_bytes);
    GRETA_UNROLL
    for (u32 i = 0; i < 2 * TN; ++i) {
      const u32 t = i % TN, j = i / TN;
      const Words<8> first = byte_weights(unit.integers[t][0][0], 2 * half + j);
      const Words<8> second = byte_weights(unit.integers[t][1][0], 2 * half + j);
      const u32 a[4] = {first.word[0], second.word[0], first.word[1], second.word[1]};
      multiply_bytes(sum[t], a, digit.word[2 * j], digit.word[2 * j + 1]);
      if (ZEROS && t == 0) multiply_bytes(of_digits, ones, digit.word[2 * j], digit.word[2 * j + 1]);
    }
  }
  GRETA_UNROLL
  for (u32 i = 0; i < TN * 4; ++i) {
    const u32 t = i / 4;
    const int of_bytes = sum[t][i % 4];
    const float factor = worth.of[i % 2] * power;  // a power of two, so that the product is exact
    // Zero points may be any bytes, so that sums with them need not be below 2^22.
    const float exact = ZEROS ? float(of_bytes + of_digits[i % 4] * shift_of(unit.zero[t][i % 4 / 2])) * factor
                              : multiply_add(float_from_bits(u32(of_bytes)), factor, -above * factor);
    columns.sum[t][i % 4] = multiply_add(to_float(unit.scale[t][i % 4 / 2]), exact, columns.sum[t][i % 4]);
  }
}

// A product of three factors, none of which is beyond f32 before the product is; `integer`: below 2^16.
GRETA_DEVICE float product_of(float x, float integer, float scale) {
  return x > -1.0f && x < 1.0f ? x * integer * scale : x * (integer * scale);
}

// Adds the products with elements of a pair of units that have no digits; `units`: where these have theirs,
// `a`: the lane's part of the first.
GRETA_DEVICE void add_others(const u8* stage, const Zeros& zero, const u8* units, const In* a,
                             Columns& columns) {
  constexpr u32 pair_weights = pair_units * CHUNK_WEIGHTS;
  GRETA_NO_UNROLL
  for (u32 e = 0; e < pair_weights; ++e) {
    const u32 u = e / CHUNK_WEIGHTS, i = e % CHUNK_WEIGHTS;
    const In element = a[u * unit_weights + i];
    const float inverse = inverse_of(power_of(units + u * unit_bytes));
    if (has_digits(element.bits, scaled_element(element.bits, inverse))) continue;
    Unit unit;
    read_unit(stage, u, unit);
    set_zeros(zero, u, unit);
    GRETA_UNROLL
    for (u32 line = 0; line < TN * lane_lines; ++line) {
      const u32 t = line / lane_lines, l = line % lane_lines;
      const u32 in_eight = FORMAT == 0 ? i % 2 * 4 + i % 8 / 2 : i % 8;
      u32 word = 0;
      GRETA_UNROLL
      for (u32 w = 0; w < 8; ++w) {
        const u32 of_weights = byte_weights(unit.integers[t][l][0], w / 2).word[w % 2];
        if (w == i / 8 * 2 + in_eight / 4) word = of_weights;
      }
      const u32 byte = word >> in_eight % 4 * 8 & 255U;
      const float integer = float(int(byte ^ 128U) - 128 + shift_of(unit.zero[t][l])) * of_byte;
      columns.other[t][l] += product_of(to_float(element), integer, to_float(unit.scale[t][l]));
    }
  }
}

// The sums of a wave's lines of a tile, of all digits; `to`: of the wave.
GRETA_DEVICE void store_lines(const Columns& columns, float* to) {
  const u32 column = lane_index() % 4 * 2;
  GRETA_UNROLL
  for (u32 line = 0; line < TN * lane_lines; ++line) {
    const u32 t = line / lane_lines, l = line % lane_lines;
    // Columns past the last digit repeat it.
    const float of_digits = column < digits ? columns.sum[t][2 * l] + columns.sum[t][2 * l + 1] : 0.0f;
    const float of_line = reduce_lanes<4>(of_digits + columns.other[t][l], Add{});
    if (column == 0) to[t * 16 + l * 8 + line_of_lane()] = of_line;
  }
}

// Stores a tile of C; `sums`: of each wave.
GRETA_DEVICE void store_columns(const float* sums, Out* c, const Out* added, u32 tile, u32 n) {
  constexpr u32 columns = GATED ? tile_lines / 2 : tile_lines;
  const auto sum_of = [&](u32 line) {
    float sum = 0.0f;
    GRETA_UNROLL
    for (u32 w = 0; w < WAVES; ++w) sum += sums[w * tile_lines + line];
    return sum;
  };
  const u32 in_tile = thread_index(), col = tile * columns + in_tile;
  if (in_tile >= columns || col >= n) return;
#if GATED
  put_gated(c, 0, col, n, sum_of(2 * in_tile), sum_of(2 * in_tile + 1));
#else
  put(c, added, 0, col, n, sum_of(in_tile));
#endif
}

GRETA_KERNEL(THREADS)
quantized_gemm_digits(const In* GRETA_READ a, const u8* GRETA_READ b,
                      const Scale* GRETA_READ scales, const u8* GRETA_READ zeros,
                      const Out* GRETA_READ added, Out* __restrict__ c, u32, u32 n, u32 k,
                      u32 tiles_n, u32 blocks) {
  begin_launch_early();
  static_assert(tile_lines <= THREADS, "a thread for each column");
  GRETA_DYNAMIC_SHARED(u8, memory);
  const u32 block = block_index<THREADS>();
  if (block >= blocks) return;  // of the whole workgroup
  const u32 pairs = k / (pair_units * unit_weights), pairs_of_wave = (pairs + WAVES - 1) / WAVES;
  u8* const ring = memory + wave_index() * ring_bytes;
  float* const sums = reinterpret_cast<float*>(memory + WAVES * ring_bytes);
  u8* const rows = memory + fixed_bytes + wave_index() * (pairs_of_wave * pair_units * unit_bytes);
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
  const Words<16> eight = load_pair(a, wave_index());
  const bool all_digits = put_pairs(a, eight, rows, pairs);
  // Lanes of columns past the last digit repeat it.
  const u32 place = smaller(line_of_lane(), digits - 1) * digit_bytes + part_of_lane() * 16;
  const Worth worth = worth_of_lane();
  u32 stage = 0, free = (STAGES - 1) * stage_bytes, buffer = 0;
  for (u32 tile = block; tile < tiles_n; tile += blocks) {
    Columns columns = {};
    const u8* units = rows;
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
        const u8* const of_unit = units + u * unit_bytes;
        add_unit_digits(unit, of_unit + place, power_of(of_unit), worth, columns);
      }
      if (!all_digits) {
        const u32 first = pair * (pair_units * unit_weights) + part_of_lane() * CHUNK_WEIGHTS;
        add_others(ring + stage, zero, units, a + first, columns);
      }
      units += pair_units * unit_bytes;
      zero = later;
      free = stage;
      stage = stage + stage_bytes < ring_bytes ? stage + stage_bytes : 0;
    }
    // Waves may still read the other buffer.
    float* const to = sums + buffer * (WAVES * tile_lines);
    store_lines(columns, to + wave_index() * tile_lines);
    block_barrier();
    store_columns(to, c, added, tile, n);
    buffer ^= 1U;
  }
}
