// Kernels that take each element once, bound by memory: a thread has ITEMS vectors of VEC
// neighbours, all of whose loads are in flight before it computes.
#pragma once

#if !defined(THREADS) || !defined(VEC) || !defined(ITEMS) || !defined(IN_F16) || \
    !defined(IN_BF16) || !defined(OUT_F16) || !defined(OUT_BF16) || !defined(F16_ARITHMETIC)
#error "THREADS, VEC, ITEMS, {IN,OUT}_{F16,BF16} and F16_ARITHMETIC must be defined"
#endif
#if VEC != 1 && VEC != 2 && VEC != 4 && VEC != 8 || VEC == 8 && !IN_F16 && !IN_BF16
#error "VEC is a power of 2, of at most 16 bytes"
#endif
#if ITEMS < 1
#error "ITEMS is at least 1"
#endif

#if OUT_F16 && F16_ARITHMETIC
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "common/in_out.glsl"

layout(local_size_x = THREADS) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer I32 { int v; };

#define SAME_TYPE (IN_F16 == OUT_F16 && IN_BF16 == OUT_BF16)

// X_PACK in memory, X_RAW in registers: VEC elements of the inputs' type.
X_RAW load_vector(uint64_t at) { return X_RAW(X_PACK(at).v); }

#if VEC > 1 && (OUT_BF16 || OUT_F16 && F16_ARITHMETIC)
#define OUT_WORDS 1
// Elements i and i + 1 as they are in memory.
uint word(float e[VEC], uint i) {
#if OUT_BF16
  const uvec4 bits = bf16_from_float(vec4(e[i], e[i + 1], 0.0, 0.0));
  return bits.x | bits.y << 16;
#else
  return packFloat2x16(f16vec2(e[i], e[i + 1]));
#endif
}
#else
#define OUT_WORDS 0
#endif

// VEC neighbours.
void store_floats(uint64_t at, float e[VEC]) {
#if OUT_WORDS && VEC == 8
  U32x4(at).v = uvec4(word(e, 0), word(e, 2), word(e, 4), word(e, 6));
#elif OUT_WORDS && VEC == 4
  U32x2(at).v = uvec2(word(e, 0), word(e, 2));
#elif OUT_WORDS
  U32(at).v = word(e, 0);
#elif OUT_F16 && VEC >= 4
  [[unroll]] for (uint i = 0; i < VEC; i += 4)
    F16x4(at + i * 2).v = f16vec4(vec4(e[i], e[i + 1], e[i + 2], e[i + 3]));
#elif VEC >= 4
  [[unroll]] for (uint i = 0; i < VEC; i += 4)
    F32x4(at + i * 4).v = vec4(e[i], e[i + 1], e[i + 2], e[i + 3]);
#elif VEC == 2 && !OUT_F16
  F32x2(at).v = vec2(e[0], e[1]);
#else
  [[unroll]] for (uint i = 0; i < VEC; ++i) store_out(at + i * OUT_BYTES, e[i]);
#endif
}

// What was loaded, in the other type; bit for bit where it is the same.
void store_converted(uint64_t at, X_RAW raw) {
#if SAME_TYPE && IN_F16 && VEC == 1
  F16(at).v = float16_t(raw);
#elif SAME_TYPE && IN_BF16 && VEC == 1
  BF16(at).v = uint16_t(raw);
#elif SAME_TYPE
  X_PACK(at).v = raw;
#else
  float e[VEC];
  unpack(raw, e);
  store_floats(at, e);
#endif
}

void store_nan(uint64_t at) {
  float e[VEC];
  [[unroll]] for (uint i = 0; i < VEC; ++i) e[i] = uintBitsToFloat(0x7fc00000u);
  store_floats(at, e);
}

// Row and column of a vector in a matrix whose rows have `width` vectors.
struct Place {
  uint row, col;
};

// Of the first vector of this workgroup, each of which has `tile`.
Place tile_start(uint width, uint tile) {
  const uint64_t first = uint64_t(workgroup()) * tile;
  // Divisions of 64 bits take long.
  if (first >> 32 == 0) return Place(uint(first) / width, uint(first) % width);
  return Place(uint(first / width), uint(first % width));
}

// Of the vector that comes `offset` after it.
Place advance(Place start, uint offset, uint width) {
  const uint col = start.col + offset;
  return Place(start.row + col / width, col % width);
}
