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

// What is added to a pair: the power that holds it and the zero point, both negative.
struct PairZero {
#if FORMAT == 0 && IN_BF16 && ZEROS
  u32 zero;
#else
  u32 both;
#endif
};

// `none`: 0, of which the compiler need not know.
GRETA_DEVICE PairZero pair_zero(u32 zero, u32 none) {
#if FORMAT == 6
  return {0};  // there is none
#elif FORMAT == 0 && IN_F16 && ZEROS
  // -1024 - zero, and that plus 960
  return {scaled_sums(zero * 0x10001U | 0x64006400U, 0xbc00bc00U, 0x63808000U)};
#elif FORMAT == 0 && IN_F16
  return {0xd480e408U + none};  // -72 and -1032
#elif FORMAT == 1 && IN_F16
  return {ZEROS ? zero * 0x10001U | 0xe400e400U : 0xe480e480U + none};  // -1152
#elif FORMAT == 0 && ZEROS
  return {upper_halves(-float(zero), -float(zero))};
#elif FORMAT == 0
  return {0xc308c308U + none};  // -136
#else
  return {twice_bf16(128.0f - float(zero))};
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
  return scaled_sums(large, 0x2c003c00U, zero.both);
#elif FORMAT == 0
  const u32 large = selected(spread_bytes(word, word >> 4, selector), 0x000f000fU, 0x43004300U);
#if ZEROS
  return sum_of(sum_of(large, 0xc300c300U), zero.zero);  // the type need not have -128 - zero
#else
  return sum_of(large, zero.both);
#endif
#elif IN_F16
  const u32 flip = ZEROS ? 0U : 0x00800080U;  // from two's complement
  const u32 bytes = (spread_bytes(word, next, selector) & 0x00ff00ffU) ^ flip;
  return scaled_sums(bytes | 0x64006400U, 0x3c003c00U, zero.both);
#elif ZEROS
  // 128 less than an integer, and than the zero point.
  return sum_of(signed_elements(spread_bytes(word, next, selector) ^ 0x00800080U), zero.both);
#else
  return signed_elements(spread_bytes(word, next, selector));
#endif
}

// Where a box has a line of 128 bytes, and from there a chunk of 16. Of rows, chunks of a line are exchanged. A box
// of panels is four boxes, each of two units of 16 lines after the other; lanes that share a line
// read the same chunk, so that eight lines of a wave are neighbours.
#if PANELS
constexpr u32 box_line = 512 / 16;  // on average
GRETA_DEVICE u32 place_of_line(u32 line) { return line / 16 * 512 + line % 16 * 16; }
GRETA_DEVICE u32 place_of_chunk(u32 line, u32 chunk) {
  return line + (chunk / 2 * (BN / 16 * 512) + chunk % 2 * 256);
}
#else
constexpr u32 box_line = 128;
GRETA_DEVICE u32 place_of_line(u32 line) { return line * 128 + line % 8 * 16; }
GRETA_DEVICE u32 place_of_chunk(u32 line, u32 chunk) { return line ^ chunk * 16; }
#endif

constexpr u32 chunk_fragments = PACKED_FOURS ? 2 : 1;  // of 16 bytes

// What a lane has of neighbouring fragments of its two lines, as a box has it.
template <u32 count>
struct StoredFragments {
  static constexpr u32 chunks = (count + chunk_fragments - 1) / chunk_fragments;
  Words<16> chunk[2][chunks];
};

// Loads the chunks of k 16 first to 16 (first + count) of a box, whose line is at byte `line` of shared memory; the
// lane's other line is `next_line` lines further.
template <u32 next_line, u32 count>
GRETA_DEVICE void load_fragments(const u8* shared, u32 line, u32 first, StoredFragments<count>& stored) {
  GRETA_UNROLL
  for (u32 half = 0; half < 2; ++half) {  // lines
    GRETA_UNROLL
    for (u32 c = 0; c < StoredFragments<count>::chunks; ++c) {
      stored.chunk[half][c] = load_words<16>(shared + place_of_chunk(line, first / chunk_fragments + c) +
                                             half * place_of_line(next_line));
    }
  }
}

// Makes fragments, the first of which is fragment `first` % chunk_fragments of the chunks.
template <u32 count>
GRETA_DEVICE void make_fragments(const StoredFragments<count>& stored, u32 first, u32 selector,
                                 const PairZero (&zeros)[2], Fragment (&fragment)[count]) {
  GRETA_UNROLL
  for (u32 i = 0; i < count * 4; ++i) {
    const u32 at = first % chunk_fragments + i / 4, eight = i % 4 / 2, half = i % 2;
    const Words<16>& chunk = stored.chunk[half][at / chunk_fragments];
    const u32 word = PACKED_FOURS ? at % 2 * 2 + eight : 2 * eight;
    const u32 next = PACKED_FOURS ? word : word + 1;
    fragment[i / 4][i % 4] = pair_of_weights(chunk.word[word], chunk.word[next], selector, zeros[half]);
  }
}
#endif
