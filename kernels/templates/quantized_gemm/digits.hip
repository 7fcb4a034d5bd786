// Products of one row of f16 with quantised weights, by matrix cores of integers. An element of A is a
// multiple of 2^-24 below 2^16, which six digits of eight bits represent exactly. These are columns of a
// product, of which an instruction has eight in any case. Weights are bytes: int8 as they lie in memory, and
// of int4 each half of a byte, as sixteen times the weight, so that one instruction converts four weights
// and subtracts 8. A product with ones yields the sums of digits, for zero points of groups. A unit's sums
// of integers are exact. They are scaled in f32, and what digits stand for is added in the end.
//
// As in stream, a number of workgroups computes tiles of TN x 16 columns of C in turn. Of a tile, the WAVES
// divide K among themselves in pairs of units, which each wave copies to shared memory by itself, STAGES - 1 of
// them ahead. A wave has its part of A there as digits.

#define RT 1  // tiles of rows
#include "common/byte_types.hip"
#include "common/reduce.hip"
#include "quantized_gemm/ring.hip"

#if !IN_F16 || FORMAT > 1 || NORM
#error "digits are of f16, and weights int4 or int8"
#endif

// Of a unit of A: in halves of 64 weights of four parts, 16 bytes of each digit and part. Halves are apart
// so that lanes that write both find them in different banks.
constexpr u32 digits = 6, digit_bytes = parts * 16, half_bytes = digits * digit_bytes + 64;
constexpr u32 unit_bytes = 2 * half_bytes;
constexpr u32 sums_bytes = WAVES * 2 * tile_lines * 4;
constexpr u32 fixed_bytes = WAVES * ring_bytes + sums_bytes;

// A number below 2^22 as the last bits of a float.
constexpr float above = 12582912.0f;  // 1.5 x 2^23
constexpr u32 bits_above = 0x4b400000U;

GRETA_DEVICE bool is_finite(u32 half) { return (half & 0x7c00U) != 0x7c00U; }

// The digits of an element, lowest first, in three bytes of two words: x = high / 4 + low / 2^24.
struct Digits {
  u32 low, high;
};

// Bytes of the number in the last bits of `x`, in -128 to 127.
GRETA_DEVICE u32 three_digits(float x) { return (bits_of(x) + (0x808080U - bits_above)) ^ 0x808080U; }

GRETA_DEVICE Digits digits_of(u32 half) {
  const float x = to_float(f16{u16(half)});
  const float high = multiply_add(x, 4.0f, above);
  const float rest = multiply_add(high - above, -0.25f, x);
  return {three_digits(multiply_add(rest, 0x1p24f, above)), three_digits(high)};
}

// Bytes of two words, which `selector` numbers from the lowest of `low` on.
template <u32 selector>
GRETA_DEVICE u32 bytes_of(u32 low, u32 high) {
#if defined(GRETA_NVIDIA)
  return __byte_perm(low, high, selector);
#else
  const u64 both = u64(high) << 32 | low;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) result |= u32(both >> 8 * (selector >> 4 * i & 7U) & 255U) << 8 * i;
  return result;
#endif
}

// Bytes 0, 1 and 2 of four words.
GRETA_DEVICE void transpose(const u32 (&from)[4], u32 (&to)[3]) {
  const u32 first = bytes_of<0x5140>(from[0], from[1]), second = bytes_of<0x5140>(from[2], from[3]);
  to[0] = bytes_of<0x5410>(first, second);
  to[1] = bytes_of<0x7632>(first, second);
  to[2] = bytes_of<0x5410>(bytes_of<0x0062>(from[0], from[1]), bytes_of<0x0062>(from[2], from[3]));
}

// Writes the digits of eight elements; `unit`: where the lane has them of the unit. Returns whether all are
// finite.
GRETA_DEVICE bool put_digits(u8* unit, const Words<16>& eight) {
  bool finite = true;
  u32 column[digits][2];
  GRETA_UNROLL
  for (u32 half = 0; half < 2; ++half) {
    u32 low[4], high[4], of_low[3], of_high[3];
    GRETA_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      const u32 element = FORMAT == 0 ? 2 * i + half : 4 * half + i;  // neighbours share a byte of int4
      const u32 bits = eight.word[element / 2] >> 16 * (element % 2) & 0xffffU;
      finite = finite && is_finite(bits);
      const Digits of_element = digits_of(bits);
      low[i] = of_element.low;
      high[i] = of_element.high;
    }
    transpose(low, of_low);
    transpose(high, of_high);
    GRETA_UNROLL
    for (u32 d = 0; d < 3; ++d) {
      column[d][half] = of_low[d];
      column[d + 3][half] = of_high[d];
    }
  }
  GRETA_UNROLL
  for (u32 d = 0; d < digits; ++d) {
    store_words<8>(unit + d * digit_bytes, {{column[d][0], column[d][1]}});
  }
  return finite;
}

// Eight elements of A of each lane: the wave's of a pair of units.
GRETA_DEVICE Words<16> load_pair(const In* a, u32 pair) {
  return load_now<true>(a + pair * (pair_units * unit_weights) + lane_index() * 8);
}

// Whether it is so in all lanes.
GRETA_DEVICE bool in_all_lanes(bool mine) {
#if defined(GRETA_NVIDIA)
  return __all_sync(0xffffffffU, mine) != 0;
#else
  return reduce_lanes<wave_size>(mine ? 0U : 1U, Add{}) == 0;
#endif
}

// Brings the wave's part of A to shared memory, of which `eight` are the first pair's. Returns whether all of
// it is finite.
GRETA_DEVICE bool put_pairs(const In* a, Words<16> eight, u8* rows, u32 pairs) {
  const u32 lane = lane_index(), part = lane % 16 / 4, word = lane % 4;
  u8* unit = rows + lane / 16 * unit_bytes + word / 2 * half_bytes + part * 16 + word % 2 * 8;
  bool finite = true;
  for (u32 pair = wave_index(); pair < pairs; pair += WAVES) {
    const Words<16> later = load_pair(a, smaller(pair + WAVES, pairs - 1));
    finite = put_digits(unit, eight) && finite;
    eight = later;
    unit += pair_units * unit_bytes;
  }
  return in_all_lanes(finite);
}

// Sums of a tile in a wave: of digits as columns, and a lane's products with what is no number.
struct Columns {
  float sum[TN][4];
  float infinite[TN][lane_lines];
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

// What is added to such a byte for the zero point of its group.
GRETA_DEVICE int shift_of(u32 zero) {
  return !ZEROS ? 0 : FORMAT == 0 ? 16 * (8 - int(zero)) : 128 - int(zero);
}

// Adds the products of a unit with A's digits, of which `of_lane` are the lane's.
GRETA_DEVICE void add_unit_digits(const Unit& unit, const u8* of_lane, Columns& columns) {
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
    // Zero points may be any bytes, so that sums with them need not be below 2^22.
    const float exact = ZEROS ? float(of_bytes + of_digits[i % 4] * shift_of(unit.zero[t][i % 4 / 2]))
                              : float_from_bits(u32(of_bytes)) - above;
    columns.sum[t][i % 4] = multiply_add(to_float(unit.scale[t][i % 4 / 2]), exact, columns.sum[t][i % 4]);
  }
}

// Adds the products with infinities and NaN of a pair of units in a stage; `a`: the lane's part of the first.
GRETA_DEVICE void add_infinite(const u8* stage, const Zeros& zero, const In* a, Columns& columns) {
  constexpr u32 pair_weights = pair_units * CHUNK_WEIGHTS;
  GRETA_NO_UNROLL
  for (u32 e = 0; e < pair_weights; ++e) {
    const u32 u = e / CHUNK_WEIGHTS, i = e % CHUNK_WEIGHTS;
    const In x = a[u * unit_weights + i];
    if (is_finite(x.bits)) continue;
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
      const int integer = int(byte ^ 128U) - 128 + shift_of(unit.zero[t][l]);
      const float weight = float(integer) * to_float(unit.scale[t][l]);
      columns.infinite[t][l] = multiply_add(to_float(x), weight, columns.infinite[t][l]);
    }
  }
}

// The sums of a wave's lines of a tile, of all digits; `to`: of the wave.
GRETA_DEVICE void store_lines(const Columns& columns, float* to) {
  const u32 column = lane_index() % 4 * 2;
  // Of digits `column` and the next one, which may be those of a word's last and the next one's first.
  const auto worth = [](u32 digit) {
    const u32 exponent = digit < 3 ? 103 + 8 * digit : 101 + 8 * digit;  // 2^-24, or 2^-2 of digit 3
    return float_from_bits(exponent << 23) * of_byte;
  };
  const float first = worth(column), second = worth(column + 1);
  GRETA_UNROLL
  for (u32 line = 0; line < TN * lane_lines; ++line) {
    const u32 t = line / lane_lines, l = line % lane_lines;
    const float(&sum)[4] = columns.sum[t];
    // Columns past the last digit repeat it.
    const float of_digits = column < digits ? multiply_add(first, sum[2 * l], second * sum[2 * l + 1]) : 0.0f;
    const float of_line = reduce_lanes<4>(of_digits + columns.infinite[t][l], Add{});
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
  const bool finite = put_pairs(a, eight, rows, pairs);
  // Lanes of columns past the last digit repeat it.
  const u8* const of_lane = rows + smaller(line_of_lane(), digits - 1) * digit_bytes + part_of_lane() * 16;
  u32 stage = 0, free = (STAGES - 1) * stage_bytes, buffer = 0;
  for (u32 tile = block; tile < tiles_n; tile += blocks) {
    Columns columns = {};
    const u8* digits_of_unit = of_lane;
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
        add_unit_digits(unit, digits_of_unit, columns);
        digits_of_unit += unit_bytes;
      }
      if (!finite) {
        const u32 first = pair * (pair_units * unit_weights) + part_of_lane() * CHUNK_WEIGHTS;
        add_infinite(ring + stage, zero, a + first, columns);
      }
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
