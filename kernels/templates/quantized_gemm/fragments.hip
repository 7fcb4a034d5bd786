// Weights without their scales as operand A of products of warpgroups (warpgroup_matrix.hip): a lane has
// of each eight k of a line two neighbours, which one of four lanes finds in a word of int4 or mxfp4 at
// its byte, and in two words of int8 at two bytes. So lanes read the same words, and each takes its own bytes.
#pragma once

#include "quantized_gemm/pairs.hip"

// A part of operand A: 16 k of two lines, eight apart.
typedef u32 Fragment[4];

// Bytes of a word, or two words, that a lane has: in bytes 0 and 2 of the result.
GRETA_DEVICE u32 spread_bytes(u32 word, u32 next, u32 selector) {
#if defined(GRETA_NVIDIA)
  return __byte_perm(word, next, selector);
#else
  const u64 both = u64(next) << 32 | word;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) result |= u32(both >> 8 * (selector >> 4 * i & 7U) & 255U) << 8 * i;
  return result;
#endif
}

#if SCALES_BESIDE
constexpr u32 box_weights = PACKED_FOURS ? 256 : 128;  // of a line, in 128 bytes of shared memory

// What a lane selects: the same for all weights.
GRETA_DEVICE u32 selector_of_lane() {
  const u32 part = lane_index() % 4;
#if FORMAT == 1
  return 2 * part | (2 * part + 1) << 8;
#elif FORMAT == 6
  return 0x0404U | part << 4 | part << 12;  // bytes 1 and 3, above zeros of the other word
#elif IN_F16
  return 0x4040U | part | part << 8;  // between bytes of the other word
#else
  return part | (4 + part) << 8;
#endif
}

// What is subtracted from a pair: the power that holds it and the zero point.
struct PairZero {
#if FORMAT == 0 && IN_BF16 && ZEROS
  u32 power, zero;
#else
  u32 both;
#endif
};

GRETA_DEVICE PairZero pair_zero(u32 zero) {
#if FORMAT == 6
  return {0};  // there is none
#elif FORMAT == 0 && IN_F16
  // 1024 + zero, and that less 960
  return {scaled_differences(zero * 0x10001U | 0x64006400U, 0x3c003c00U, 0x63800000U)};
#elif FORMAT == 1 && IN_F16
  return {zero * 0x10001U | 0x64006400U};
#elif FORMAT == 0 && ZEROS
  return {twice_bf16(128.0f), upper_halves(float(zero), float(zero))};
#elif FORMAT == 0
  return {twice_bf16(128.0f + float(zero))};
#else
  return {twice_bf16(float(zero) - 128.0f)};
#endif
}

// A lane's pair of eight k, which lie in `word`, or of int8 in it and `next`.
GRETA_DEVICE u32 pair_of_weights(u32 word, u32 next, u32 selector, PairZero zero) {
#if FORMAT == 6
  // Exponent and mantissa of a weight become the last bits of A's exponent and the first one of its
  // mantissa. The number is the weight times a power of two then, by the exponents' biases.
  const u32 both = spread_bytes(word, 0, selector), first_sign = (both & 0x0800U) << 4;
  const u32 signs = first_sign | (both & 0x80000000U);
#if IN_F16
  const u32 small = (both & 0x0700U) << 1 | (both >> 3 & 0x0e000000U);
  return scaled_differences(small | signs, 0x74007400U, 0);  // 2^14
#else
  const u32 small = (both & 0x0700U) >> 2 | (both >> 6 & 0x01c00000U);
  return scaled(small | signs, 0x7e807e80U);  // 2^126
#endif
#elif FORMAT == 0 && IN_F16
  // Twice a byte below the byte 0x64, of which the first half keeps the lower four bits and the second
  // one the upper ones, which are sixteen times their integer.
  const u32 large = spread_bytes(word, 0x64646464U, selector) & 0xfff0ff0fU;
  return scaled_differences(large, 0x2c003c00U, zero.both);
#elif FORMAT == 0
  const u32 large = selected(spread_bytes(word, word >> 4, selector), 0x000f000fU, 0x43004300U);
#if ZEROS
  return difference(difference(large, zero.power), zero.zero);  // the type need not have the sum
#else
  return difference(large, zero.both);
#endif
#elif IN_F16
  const u32 flip = ZEROS ? 0U : 0x00800080U;  // from two's complement
  const u32 bytes = (spread_bytes(word, next, selector) & 0x00ff00ffU) ^ flip;
  return scaled_differences(bytes | 0x64006400U, 0x3c003c00U, zero.both);
#elif ZEROS
  // 128 less than an integer, and than the zero point.
  return difference(signed_elements(spread_bytes(word, next, selector) ^ 0x00800080U), zero.both);
#else
  return signed_elements(spread_bytes(word, next, selector));
#endif
}

// Where a box has lines of 128 bytes, and from there a chunk of 16. Of rows, `swap` is what chunks of a line are
// exchanged by. A box of panels is four boxes, each of two units of 16 lines after the other; lanes that share a line
// read the same chunk, so that eight lines of a wave are neighbours.
#if PANELS
constexpr u32 box_line = 512 / 16;  // on average
GRETA_DEVICE u32 place_of_line(u32 line) { return line / 16 * 512 + line % 16 * 16; }
GRETA_DEVICE u32 place_of_chunk(u32 chunk, u32) { return chunk / 2 * (BN / 16 * 512) + chunk % 2 * 256; }
#else
constexpr u32 box_line = 128;
GRETA_DEVICE u32 place_of_line(u32 line) { return line * 128; }
GRETA_DEVICE u32 place_of_chunk(u32 chunk, u32 swap) { return (chunk ^ swap) * 16; }
#endif

// Fragments of k 16 first to 16 (first + count) of a box, from its byte at a lane's line on; the lane's other
// line is `next_line` lines further. `swap`: see place_of_chunk().
template <u32 next_line, u32 count>
GRETA_DEVICE void read_fragments(const u8* line, u32 first, u32 swap, u32 selector,
                                 const PairZero (&zero)[2], Fragment (&fragment)[count]) {
  constexpr u32 of_chunk = PACKED_FOURS ? 2 : 1;  // fragments of 16 bytes
  GRETA_UNROLL
  for (u32 half = 0; half < 2; ++half) {  // lines
    Words<16> chunk;
    GRETA_UNROLL
    for (u32 f = 0; f < count; ++f) {
      const u32 at = first + f;
      if (f == 0 || at % of_chunk == 0) {
        chunk = load_words<16>(line + half * place_of_line(next_line) + place_of_chunk(at / of_chunk, swap));
      }
      GRETA_UNROLL
      for (u32 eight = 0; eight < 2; ++eight) {
        const u32 word = PACKED_FOURS ? at % 2 * 2 + eight : 2 * eight;
        const u32 next = PACKED_FOURS ? word : word + 1;
        fragment[f][2 * eight + half] =
            pair_of_weights(chunk.word[word], chunk.word[next], selector, zero[half]);
      }
    }
  }
}
#endif
