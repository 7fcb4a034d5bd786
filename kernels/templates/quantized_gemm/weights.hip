// Quantised weights in chunks of CHUNK_WEIGHTS of a row, 32 or 8, as they lie in memory
// (kernels/model/weight_formats.hpp).
//
// FORMAT is the number of the format: 0 int4, 1 int8, 2 q4_0, 3 q8_0, 4 q4_k, 5 q6_k, 6 mxfp4. A loaded
// chunk has one byte for each weight, in their order. A weight is scale (byte - zero), or with q4_k
// scale byte - minimum, which weight8() has computed already.
#pragma once

#if !defined(FORMAT) || !defined(GROUP) || !defined(ZEROS) || !defined(SCALES_BF16)
#error "FORMAT, GROUP, ZEROS and SCALES_BF16 must be defined"
#endif
#if FORMAT < 0 || FORMAT > 6
#error "FORMAT is 0 to 6"
#endif
#define SCALES_BESIDE (FORMAT < 2 || FORMAT == 6)  // an operand of their own
#define PACKED_FOURS (FORMAT == 0 || FORMAT == 6)   // two neighbours in a byte
#if SCALES_BESIDE && GROUP % 32 != 0
#error "GROUP is a multiple of 32"
#endif
#if !defined(PACKING)  // stored_weights.hip
#define PACKING 0
#endif
#define PANELS (PACKING == 4)
#if PANELS && !SCALES_BESIDE
#error "blocks have no panels"
#endif

#include "common/in_out.hip"

#if FORMAT == 6
typedef u8 Scale;
#elif SCALES_BF16
typedef bf16 Scale;
#else
typedef f16 Scale;
#endif

#if !defined(CHUNK_WEIGHTS)
#define CHUNK_WEIGHTS 32
#endif
#if CHUNK_WEIGHTS != 32 && CHUNK_WEIGHTS != 8
#error "CHUNK_WEIGHTS is 8 or 32"
#endif
#define BLOCK_CHUNKS (32 / CHUNK_WEIGHTS)  // of the 32 weights that lie together
#define SEGMENTS (FORMAT == 5 && CHUNK_WEIGHTS == 32 ? 2 : 1)  // of a chunk: parts with scales of their own
#define MINIMA (FORMAT == 4)

struct Weights {
  const u8* integers;   // rows of blocks, or of integers alone
  const Scale* scales;  // with SCALES_BESIDE: rows of one for each group
  const u8* zeros;      // of these with ZEROS
};

#if SCALES_BESIDE
// Weights take this number of bytes.
GRETA_DEVICE u64 bytes_of_weights(u64 count) { return PACKED_FOURS ? count / 2 : count; }

// Where a row has a byte. In panels of 16 rows, units of 16 bytes of each row follow each other. The place of a sum
// is the sum of places where all but one of the numbers are whole units.
GRETA_DEVICE u64 place_in_row(u64 byte) { return PANELS ? byte / 16 * 256 + byte % 16 : byte; }

// Where B has the weight `later` ones after weight `first` of a row.
GRETA_DEVICE u64 place_of_weights(u64 row, u64 k, u64 first = 0, u64 later = 0) {
#if PANELS
  return bytes_of_weights(row / 16 * 16 * k) + row % 16 * 16 + place_in_row(bytes_of_weights(first + later));
#else
  return bytes_of_weights(row * k + first + later);
#endif
}
#endif
constexpr u32 sixteen_stride = PANELS ? 256 : 16;  // from 16 bytes of a row to the next ones

struct WeightChunk {
  u32 q[CHUNK_WEIGHTS / 4];
  float scale[SEGMENTS];
  float zero;  // or with MINIMA what is subtracted
};

// Words at an address that is a multiple of 2.
template <int count>
GRETA_DEVICE void load_halves(const u8* from, u32 (&word)[count]) {
  GRETA_UNROLL
  for (int i = 0; i < count; ++i) {
    word[i] = load_words<2>(from + 4 * i).word[0] | u32(load_words<2>(from + 4 * i + 2).word[0]) << 16;
  }
}

// Words at an address that is a multiple of 16, or of all their bytes if these are fewer; with PANELS, units of them.
template <int count>
GRETA_DEVICE void load_aligned(const u8* from, u32 (&word)[count]) {
  constexpr int step = count < 4 ? count : 4;
  GRETA_UNROLL
  for (int i = 0; i < count; i += step) {
    const auto words = load_words<4 * step>(from + i / 4 * sixteen_stride);
    GRETA_UNROLL
    for (int j = 0; j < step; ++j) word[i + j] = words.word[j];
  }
}

GRETA_DEVICE float load_f16(const u8* from) { return to_float(f16{load_words<2>(from).word[0]}); }

// The lower halves of bytes; with `shift` 4 the upper ones.
GRETA_DEVICE u32 halves_of(u32 word, u32 shift) { return word >> shift & 0x0f0f0f0fU; }

#if FORMAT != 6
GRETA_DEVICE float scale_value(Scale scale) { return to_float(scale); }
#else
// 2^(scale - 127), or NaN for 255.
GRETA_DEVICE float scale_value(Scale scale) {
  return float_from_bits(scale == 255 ? 0x7fc00000U : scale == 0 ? 0x00400000U : u32(scale) << 23);
}

// Four weights, the half word `half`, as bytes: twice each of them, plus 12.
GRETA_DEVICE u32 four_of_e2m1(u32 word, u32 half) {
#if defined(GRETA_NVIDIA)
  const u32 codes = word >> 16 * half, sizes = codes & 0x7777U;
  const u32 above = __byte_perm(0x0f0e0d0cU, 0x18141210U, sizes);
  const u32 below = __byte_perm(0x090a0b0cU, 0x00040608U, sizes);
  const u32 negative = __byte_perm(0xff00U, 0U, codes >> 3 & 0x1111U);
  return (above & ~negative) | (below & negative);
#else
  u32 bytes = 0;
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    const u32 code = word >> (16 * half + 4 * i), size = 0xc8643210U >> 4 * (code & 7U) & 15U;
    bytes |= ((code & 8U) != 0 ? 12 - size : 12 + size) << 8 * i;
  }
  return bytes;
#endif
}
#endif

#if SCALES_BESIDE
GRETA_DEVICE WeightChunk load_chunk(const Weights& weights, u32 row, u32 index, u32 k) {
  WeightChunk chunk = {};
  const u8* const from = weights.integers + place_of_weights(row, k, index * CHUNK_WEIGHTS);
#if FORMAT == 0
  u32 word[CHUNK_WEIGHTS / 8];
  load_aligned(from, word);
  GRETA_UNROLL
  for (int i = 0; i < CHUNK_WEIGHTS / 8; ++i) {
    // Neighbours share a byte: as bytes, the even ones and the odd ones.
    const u32 even = halves_of(word[i], 0), odd = halves_of(word[i], 4);
    chunk.q[2 * i] = even;
    chunk.q[2 * i + 1] = odd;
  }
  chunk.zero = 8;
#elif FORMAT == 6
  u32 word[CHUNK_WEIGHTS / 8];
  load_aligned(from, word);
  GRETA_UNROLL
  for (u32 i = 0; i < CHUNK_WEIGHTS / 4; ++i) chunk.q[i] = four_of_e2m1(word[i / 2], i % 2);
  chunk.zero = 12;
#else
  load_aligned(from, chunk.q);
  chunk.zero = 0;
#if !ZEROS
  GRETA_UNROLL
  for (int i = 0; i < CHUNK_WEIGHTS / 4; ++i) chunk.q[i] ^= 0x80808080U;
  chunk.zero = 128;
#endif
#endif
  const u64 group = u64(row) * (k / GROUP) + index * CHUNK_WEIGHTS / GROUP;
  chunk.scale[0] = scale_value(weights.scales[group]);
#if ZEROS
  chunk.zero = float(weights.zeros[group]);
#endif
  return chunk;
}

#elif FORMAT < 4
GRETA_DEVICE WeightChunk load_chunk(const Weights& weights, u32 row, u32 index, u32 k) {
  constexpr u32 block_bytes = FORMAT == 2 ? 18 : 34;
  const u8* const block = weights.integers + (u64(row) * (k / 32) + index / BLOCK_CHUNKS) * block_bytes;
  const u32 part = index % BLOCK_CHUNKS;
  WeightChunk chunk = {};
  chunk.scale[0] = load_f16(block);
#if FORMAT == 2
#if CHUNK_WEIGHTS == 32
  u32 word[4];
  load_halves(block + 2, word);
  GRETA_UNROLL
  for (int i = 0; i < 4; ++i) {
    chunk.q[i] = halves_of(word[i], 0);
    chunk.q[4 + i] = halves_of(word[i], 4);
  }
#else
  load_halves(block + 2 + part % 2 * 8, chunk.q);
  GRETA_UNROLL
  for (int i = 0; i < 2; ++i) chunk.q[i] = halves_of(chunk.q[i], part / 2 * 4);
#endif
  chunk.zero = 8;
#else
  load_halves(block + 2 + part * CHUNK_WEIGHTS, chunk.q);
  GRETA_UNROLL
  for (int i = 0; i < CHUNK_WEIGHTS / 4; ++i) chunk.q[i] ^= 0x80808080U;
  chunk.zero = 128;
#endif
  return chunk;
}

#else
#if FORMAT == 4
// The scale and the minimum of 32 weights.
struct PartScale {
  float scale, minimum;
};

// Six bits each: in bytes 4 + part and 8 + part, or of the last four parts four bits in byte 8 + part and
// two at the top of bytes part and 4 + part.
GRETA_DEVICE PartScale scale_of_part(const u8* block, u32 part) {
  u32 scale = block[4 + part] & 63U, minimum = block[8 + part] & 63U;
  if (part >= 4) {
    const u32 low = block[8 + part];
    scale = (low & 15U) | u32(block[part] >> 6) << 4;
    minimum = low >> 4 | u32(block[4 + part] >> 6) << 4;
  }
  return {load_f16(block) * float(scale), load_f16(block + 2) * float(minimum)};
}
#endif

// 256 weights share a block.
GRETA_DEVICE WeightChunk load_chunk(const Weights& weights, u32 row, u32 index, u32 k) {
  constexpr u32 block_bytes = FORMAT == 4 ? 144 : 210;
  const u8* const block = weights.integers + (u64(row) * (k / 256) + index / (8 * BLOCK_CHUNKS)) * block_bytes;
  const u32 part = index / BLOCK_CHUNKS % 8;                 // of 32 weights
  const u32 first = index % BLOCK_CHUNKS * CHUNK_WEIGHTS;  // of them
  WeightChunk chunk = {};
#if FORMAT == 4
  const PartScale of_part = scale_of_part(block, part);
  chunk.scale[0] = of_part.scale;
  chunk.zero = of_part.minimum;
  load_aligned(block + 16 + part / 2 * 32 + first, chunk.q);
  GRETA_UNROLL
  for (int i = 0; i < CHUNK_WEIGHTS / 4; ++i) chunk.q[i] = halves_of(chunk.q[i], part % 2 * 4);
#else
  const u32 half = part / 4, quarter = part % 4;
  // Scales come before weights, and with one load for both segments: otherwise ptxas spills some of experts' 16
  // chunks in flight. Clang takes more registers for one load.
  const float scale = load_f16(block + 208);
  const u8* const of_segments = block + 192 + 2 * part + first / 16;
#if defined(GRETA_NVIDIA) && SEGMENTS == 2
  const u32 bytes = load_words<2>(of_segments).word[0];
#endif
  GRETA_UNROLL
  for (u32 s = 0; s < SEGMENTS; ++s) {
#if defined(GRETA_NVIDIA) && SEGMENTS == 2
    const u32 of_segment = bytes >> 8 * s;
#else
    const u32 of_segment = of_segments[s];
#endif
    chunk.scale[s] = scale * float(static_cast<signed char>(of_segment));
  }
  u32 high[CHUNK_WEIGHTS / 4];
  load_halves(block + half * 64 + quarter % 2 * 32 + first, chunk.q);
  load_halves(block + 128 + half * 32 + first, high);
  GRETA_UNROLL
  for (int i = 0; i < CHUNK_WEIGHTS / 4; ++i) {
    chunk.q[i] = halves_of(chunk.q[i], quarter / 2 * 4) |
                 (high[i] >> 2 * quarter & 0x03030303U) << 4;
  }
  chunk.zero = 32;
#endif
  return chunk;
}
#endif

// Byte i of a word, as a float.
GRETA_DEVICE float byte_float(u32 word, u32 i) {
#if defined(GRETA_NVIDIA)
  // 2^23 + byte, whose upper bytes come from the second word.
  return __uint_as_float(__byte_perm(word, 0x4b000000U, 0x7540U + i)) - 8388608.0f;
#else
  return float(word >> 8 * i & 255U);
#endif
}

// What byte i of a word is above a zero point.
GRETA_DEVICE float byte_above(u32 word, u32 i, float zero) {
#if defined(GRETA_NVIDIA)
  // One difference of two integers, which is exact.
  return __uint_as_float(__byte_perm(word, 0x4b000000U, 0x7540U + i)) - (8388608.0f + zero);
#else
  return byte_float(word, i) - zero;
#endif
}

// Eight neighbours from weight 8 e on, without their scale; with MINIMA the weights themselves.
GRETA_DEVICE void weight8(const WeightChunk& chunk, u32 e, float (&weight)[8]) {
  GRETA_UNROLL
  for (u32 i = 0; i < 8; ++i) {
#if FORMAT == 0
    const u32 word = chunk.q[2 * e + i % 2], at = i / 2;
#else
    const u32 word = chunk.q[2 * e + i / 4], at = i % 4;
#endif
#if MINIMA
    weight[i] = multiply_add(chunk.scale[0], byte_float(word, at), -chunk.zero);
#elif FORMAT == 6
    // A halved scale could be below all normal numbers.
    weight[i] = multiply_add(0.5f, byte_float(word, at), -6.0f);
#else
    weight[i] = byte_above(word, at, chunk.zero);
#endif
  }
}

// What sums of products with a segment's weights are multiplied by.
GRETA_DEVICE float scale_of(const WeightChunk& chunk, u32 segment) {
  return MINIMA ? 1.0f : chunk.scale[segment];
}
