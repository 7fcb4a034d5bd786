// Quantised weights in chunks of CHUNK_WEIGHTS of a row, 32 or 8, as they lie in memory
// (kernels/model/weight_formats.hpp).
//
// FORMAT is the number of the format: 0 int4, 1 int8, 2 q4_0, 3 q8_0, 4 q4_k, 5 q6_k, 6 mxfp4. A loaded
// chunk has one byte for each weight, in their order. A weight is scale (byte - zero), or with q4_k
// scale byte - minimum, which weight_of() has computed already.
#pragma once

#if !defined(FORMAT) || !defined(GROUP) || !defined(ZEROS) || !defined(SCALES_BF16)
#error "FORMAT, GROUP, ZEROS and SCALES_BF16 must be defined"
#endif
#if FORMAT < 0 || FORMAT > 6
#error "FORMAT is 0 to 6"
#endif
#define SCALES_BESIDE (FORMAT < 2 || FORMAT == 6)  // an operand of their own
#if SCALES_BESIDE && GROUP % 32 != 0
#error "GROUP is a multiple of 32"
#endif
#if !defined(PACKING)  // stored_weights.glsl
#define PACKING 0
#endif
#define PANELS (PACKING == 4)
#if PANELS && !SCALES_BESIDE
#error "blocks have no panels"
#endif
#define UNIT_STRIDE (PANELS ? 256 : 16)  // from 16 bytes of a row to the next ones

#include "common/in_out.glsl"

layout(buffer_reference, std430, buffer_reference_align = 2) buffer Half { uint16_t v; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Quad { uvec4 v; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Word { uint v; };

#if !defined(CHUNK_WEIGHTS)
#define CHUNK_WEIGHTS 32
#endif
#if CHUNK_WEIGHTS != 32 && CHUNK_WEIGHTS != 8
#error "CHUNK_WEIGHTS is 8 or 32"
#endif
#define BLOCK_CHUNKS (32 / CHUNK_WEIGHTS)  // of the 32 weights that lie together
#define SEGMENTS (FORMAT == 5 && CHUNK_WEIGHTS == 32 ? 2 : 1)  // of a chunk: parts with scales of their own
#define MINIMA (FORMAT == 4)

struct WeightChunk {
  uint q[CHUNK_WEIGHTS / 4];
  float scale[SEGMENTS];
  float zero;  // or with MINIMA what is subtracted
};

uint load_half(uint64_t at) { return uint(Half(at).v); }
// A word at an address that is a multiple of 2.
uint load_word(uint64_t at) { return load_half(at) | load_half(at + 2) << 16; }
// Not every driver loads single bytes. The other byte of the half may be the one past an odd number of
// bytes; memory is allocated in multiples of 256 of them.
uint load_byte(uint64_t at) {
  return load_half(at & ~uint64_t(1)) >> (uint(at) & 1u) * 8 & 255u;
}

float load_scale_f16(uint64_t at) { return unpackHalf2x16(load_half(at)).x; }

float load_scale(uint64_t at) {
#if SCALES_BF16
  return uintBitsToFloat(load_half(at) << 16);
#else
  return load_scale_f16(at);
#endif
}

// As many words as a chunk's bytes or half bytes have, at an address that is a multiple of 16, or of
// all their bytes if these are fewer; with PANELS, units of them.
uint[CHUNK_WEIGHTS / 4] load_bytes(uint64_t from) {
  uint word[CHUNK_WEIGHTS / 4];
#if CHUNK_WEIGHTS == 32
  [[unroll]] for (uint i = 0; i < 8; i += 4) {
    const uvec4 quad = Quad(from + i / 4 * UNIT_STRIDE).v;
    [[unroll]] for (uint j = 0; j < 4; ++j) word[i + j] = quad[j];
  }
#else
  [[unroll]] for (uint i = 0; i < 2; ++i) word[i] = Word(from + i * 4).v;
#endif
  return word;
}

uint[CHUNK_WEIGHTS / 8] load_half_bytes(uint64_t from) {
  uint word[CHUNK_WEIGHTS / 8];
#if CHUNK_WEIGHTS == 32
  const uvec4 quad = Quad(from).v;
  [[unroll]] for (uint i = 0; i < 4; ++i) word[i] = quad[i];
#else
  word[0] = Word(from).v;
#endif
  return word;
}

// The lower halves of bytes; with `shift` 4 the upper ones.
uint halves_of(uint word, uint shift) { return word >> shift & 0x0f0f0f0fu; }

#if FORMAT == 6
// 2^(code - 127), or NaN for 255.
float load_power(uint64_t at) {
  const uint code = load_byte(at);
  return uintBitsToFloat(code == 255u ? 0x7fc00000u : code == 0u ? 0x00400000u : code << 23);
}

// Four weights, the half word `half_`, as bytes: twice each of them, plus 12.
uint four_of_e2m1(uint word, uint half_) {
  uint bytes = 0;
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const uint code = word >> (16 * half_ + 4 * i), size = 0xc8643210u >> 4 * (code & 7u) & 15u;
    bytes |= ((code & 8u) != 0u ? 12u - size : 12u + size) << 8 * i;
  }
  return bytes;
}
#endif

#if SCALES_BESIDE
// Where B has weight `first` of a row. In panels of 16 rows, units of 16 bytes of each row follow each other.
uint64_t place_of_weights(uint row, uint k, uint first) {
  const uint of_byte = FORMAT == 1 ? 1 : 2;
#if PANELS
  const uint byte = first / of_byte;
  return uint64_t(row / 16 * 16) * (k / of_byte) + (byte / 16 * 256 + row % 16 * 16 + byte % 16);
#else
  return (uint64_t(row) * k + first) / of_byte;
#endif
}

WeightChunk load_chunk(uint64_t integers, uint64_t scales, uint64_t zeros, uint row, uint index, uint k) {
  WeightChunk chunk;
  const uint64_t from = integers + place_of_weights(row, k, index * CHUNK_WEIGHTS);
#if FORMAT == 0
  const uint word[CHUNK_WEIGHTS / 8] = load_half_bytes(from);
  [[unroll]] for (uint i = 0; i < CHUNK_WEIGHTS / 8; ++i) {
    // Neighbours share a byte: as bytes, the even ones and the odd ones.
    chunk.q[2 * i] = halves_of(word[i], 0);
    chunk.q[2 * i + 1] = halves_of(word[i], 4);
  }
  chunk.zero = 8.0;
#elif FORMAT == 6
  const uint word[CHUNK_WEIGHTS / 8] = load_half_bytes(from);
  [[unroll]] for (uint i = 0; i < CHUNK_WEIGHTS / 4; ++i) chunk.q[i] = four_of_e2m1(word[i / 2], i % 2);
  chunk.zero = 12.0;
#else
  chunk.q = load_bytes(from);
#if !ZEROS
  [[unroll]] for (uint i = 0; i < CHUNK_WEIGHTS / 4; ++i) chunk.q[i] ^= 0x80808080u;
#endif
  chunk.zero = 128.0;
#endif
  const uint64_t group = uint64_t(row) * (k / GROUP) + index * CHUNK_WEIGHTS / GROUP;
#if FORMAT == 6
  chunk.scale[0] = load_power(scales + group);
#else
  chunk.scale[0] = load_scale(scales + group * 2);
#endif
#if ZEROS
  chunk.zero = float(load_byte(zeros + group));
#endif
  return chunk;
}

#elif FORMAT < 4
WeightChunk load_chunk(uint64_t integers, uint64_t scales, uint64_t zeros, uint row, uint index, uint k) {
  const uint block_bytes = FORMAT == 2 ? 18 : 34;
  const uint64_t block = integers + (uint64_t(row) * (k / 32) + index / BLOCK_CHUNKS) * block_bytes;
  const uint part = index % BLOCK_CHUNKS;
  WeightChunk chunk;
  chunk.scale[0] = load_scale_f16(block);
#if FORMAT == 2
#if CHUNK_WEIGHTS == 32
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const uint word = load_word(block + 2 + 4 * i);
    chunk.q[i] = halves_of(word, 0);
    chunk.q[4 + i] = halves_of(word, 4);
  }
#else
  [[unroll]] for (uint i = 0; i < 2; ++i)
    chunk.q[i] = halves_of(load_word(block + 2 + part % 2 * 8 + 4 * i), part / 2 * 4);
#endif
  chunk.zero = 8.0;
#else
  [[unroll]] for (uint i = 0; i < CHUNK_WEIGHTS / 4; ++i)
    chunk.q[i] = load_word(block + 2 + part * CHUNK_WEIGHTS + 4 * i) ^ 0x80808080u;
  chunk.zero = 128.0;
#endif
  return chunk;
}

#else
// 256 weights share a block.
WeightChunk load_chunk(uint64_t integers, uint64_t scales, uint64_t zeros, uint row, uint index, uint k) {
  const uint block_bytes = FORMAT == 4 ? 144 : 210;
  const uint64_t block = integers + (uint64_t(row) * (k / 256) + index / (8 * BLOCK_CHUNKS)) * block_bytes;
  const uint part = index / BLOCK_CHUNKS % 8;                // of 32 weights
  const uint first = index % BLOCK_CHUNKS * CHUNK_WEIGHTS;  // of them
  WeightChunk chunk;
#if FORMAT == 4
  // Six bits each of a scale and a minimum: in bytes 4 + part and 8 + part, or of the last four parts
  // four bits in byte 8 + part and two at the top of bytes part and 4 + part.
  uint scale = load_byte(block + 4 + part) & 63u, minimum = load_byte(block + 8 + part) & 63u;
  if (part >= 4) {
    const uint low = load_byte(block + 8 + part);
    scale = (low & 15u) | load_byte(block + part) >> 6 << 4;
    minimum = low >> 4 | load_byte(block + 4 + part) >> 6 << 4;
  }
  chunk.scale[0] = load_scale_f16(block) * float(scale);
  chunk.zero = load_scale_f16(block + 2) * float(minimum);
  chunk.q = load_bytes(block + 16 + part / 2 * 32 + first);
  [[unroll]] for (uint i = 0; i < CHUNK_WEIGHTS / 4; ++i)
    chunk.q[i] = halves_of(chunk.q[i], part % 2 * 4);
#else
  const uint half_ = part / 4, quarter = part % 4;
  [[unroll]] for (uint i = 0; i < CHUNK_WEIGHTS / 4; ++i) {
    const uint low = load_word(block + half_ * 64 + quarter % 2 * 32 + first + 4 * i);
    const uint high = load_word(block + 128 + half_ * 32 + first + 4 * i);
    chunk.q[i] = halves_of(low, quarter / 2 * 4) | (high >> 2 * quarter & 0x03030303u) << 4;
  }
  const float scale = load_scale_f16(block + 208);
  const uint of_segments = load_half(block + 192 + 2 * part);
  [[unroll]] for (uint s = 0; s < SEGMENTS; ++s) {
    const int at = int(first / 16 + s) * 8;
    chunk.scale[s] = scale * float(bitfieldExtract(int(of_segments), at, 8));
  }
  chunk.zero = 32.0;
#endif
  return chunk;
}
#endif

// Weight i, without its scale; with MINIMA the weight itself.
float weight_of(WeightChunk chunk, uint i) {
#if FORMAT == 0
  const uint word = chunk.q[i / 8 * 2 + i % 2], at = i % 8 / 2;
#else
  const uint word = chunk.q[i / 4], at = i % 4;
#endif
  const float value = float(word >> 8 * at & 255u);
#if MINIMA
  return fma(chunk.scale[0], value, -chunk.zero);
#elif FORMAT == 6
  return 0.5 * (value - chunk.zero);  // a halved scale could be below all normal numbers
#else
  return value - chunk.zero;
#endif
}

// What sums of products with a segment's weights are multiplied by.
float scale_of(WeightChunk chunk, uint segment) { return MINIMA ? 1.0 : chunk.scale[segment]; }
