// Kernels that take each element once, bound by memory: a thread has ITEMS vectors of VEC
// neighbours, all of whose loads are in flight before it computes.
#pragma once

#if !defined(THREADS) || !defined(VEC) || !defined(ITEMS) || !defined(IN_F16) || \
    !defined(IN_BF16) || !defined(OUT_F16) || !defined(OUT_BF16)
#error "THREADS, VEC, ITEMS and {IN,OUT}_{F16,BF16} must be defined"
#endif
#if VEC != 1 && VEC != 2 && VEC != 4 && VEC != 8 || VEC == 8 && !IN_F16 && !IN_BF16
#error "VEC is a power of 2, of at most 16 bytes"
#endif
#if ITEMS < 1
#error "ITEMS is at least 1"
#endif

#include "common/in_out.hip"

typedef Pack<In, VEC> Vector;

GRETA_DEVICE Vector load_vector(const In* first) { return load_pack<VEC>(first); }

// Of inputs of which as much is written again: NVIDIA's second-level cache is told to drop outputs
// before them. Outputs then leave while inputs come, instead of all at once. Only for at most four
// loads of 16 bytes, as NVIDIA's assembler doesn't spread these among the arithmetic to save
// registers. The compiler may move them across stores: each element is stored by the thread that
// has loaded it, from what it has loaded. T is a parameter so that narrower vectors have no word[4].
template <typename T = Vector>
GRETA_DEVICE T load_before_writing(const In* first) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 16 && ITEMS <= 4) {
    T vector;
    u32(&word)[4] = vector.raw.word;
    u64 policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm("ld.global.L1::evict_last.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;"
        : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
        : "l"(first), "l"(policy));
    return vector;
  }
#endif
  return load_vector(first);
}

// Of any width, 16 bytes at a time.
template <int count, typename T>
GRETA_DEVICE void store_floats(T* first, const float (&x)[count]) {
  constexpr int step = int(smaller(count, 16 / sizeof(T)));
  GRETA_UNROLL
  for (int i = 0; i < count; i += step) {
    float part[step];
    GRETA_UNROLL
    for (int j = 0; j < step; ++j) part[j] = x[i + j];
    store_pack(first + i, narrow_pack<T>(part));
  }
}

template <int count>
GRETA_DEVICE void load_floats(const float* first, float (&x)[count]) {
  constexpr int step = int(smaller(count, 4));
  GRETA_UNROLL
  for (int i = 0; i < count; i += step) {
    const auto pack = load_pack<step>(first + i);
    GRETA_UNROLL
    for (int j = 0; j < step; ++j) x[i + j] = element(pack, j);
  }
}

// What was loaded, in the other type; bit for bit where it is the same.
template <typename From, typename To>
GRETA_DEVICE void store_converted(To* first, const Pack<From, VEC>& vector) {
  if constexpr (same_type<From, To>) {
    store_pack(first, vector);
  } else {
    float x[VEC];
    GRETA_UNROLL
    for (int j = 0; j < VEC; ++j) x[j] = element(vector, j);
    store_floats(first, x);
  }
}

GRETA_DEVICE void store_nan(Out* first) {
  float x[VEC];
  GRETA_UNROLL
  for (int j = 0; j < VEC; ++j) x[j] = float_from_bits(0x7fc00000U);
  store_floats(first, x);
}

// Row and column of a vector in a matrix whose rows have `width` vectors.
struct Place {
  u32 row, col;
};

// Of the first vector of this block, each of which has `tile`.
template <u32 tile>
GRETA_DEVICE Place tile_start(u32 width) {
  const u64 first = u64(block_index<THREADS>()) * tile;
  // Divisions of 64 bits take long.
  if (first >> 32 == 0) return {u32(first) / width, u32(first) % width};
  return {u32(first / width), u32(first % width)};
}

// Of the vector that comes `offset` after it.
GRETA_DEVICE Place advance(Place start, u32 offset, u32 width) {
  const u32 col = start.col + offset;
  return {start.row + col / width, col % width};
}
