// Element types in memory, and packs of neighbouring ones that one instruction loads or stores.
// Arithmetic is f32: to_float() and narrow<T>() convert, to nearest even, NaN stays NaN.
#pragma once

#include "common/device.hip"

struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};

GRETA_DEVICE float to_float(float x) { return x; }

GRETA_DEVICE float to_float(bf16 x) { return float_from_bits(u32(x.bits) << 16); }

GRETA_DEVICE float to_float(f16 x) {
#if defined(GRETA_AMD)
  return float(__builtin_bit_cast(_Float16, x.bits));
#elif defined(GRETA_NVIDIA)
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
  return result;
#else
  const u32 magnitude = u32(x.bits & 0x7fff) << 13, sign = u32(x.bits & 0x8000) << 16;
  const bool finite = magnitude < 0x7c00U << 13;
  const u32 rebiased = bits_of(float_from_bits(magnitude) * 0x1p112f);
  return float_from_bits(sign | (finite ? rebiased : magnitude | 0x7f800000U));
#endif
}

GRETA_DEVICE f16 narrow_f16(float x) {
#if defined(GRETA_AMD)
  return {__builtin_bit_cast(u16, _Float16(x))};
#elif defined(GRETA_NVIDIA)
  f16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
#else
  const u32 magnitude = bits_of(x) & 0x7fffffffU, sign = bits_of(x) >> 16 & 0x8000U;
  u32 half = 0x7c00;  // infinity, from 65520 on
  if (magnitude > 0x7f800000U) {
    half = 0x7e00;
  } else if (magnitude < 0x38800000U) {  // subnormal: multiples of the last bit of 0.5
    half = bits_of(float_from_bits(magnitude) + 0.5f) - bits_of(0.5f);
  } else if (magnitude < 0x477ff000U) {
    half = (magnitude - (112U << 23) + 0xfffU + (magnitude >> 13 & 1)) >> 13;
  }
  return {u16(sign | half)};
#endif
}

GRETA_DEVICE bf16 narrow_bf16(float x) {
#if defined(__gfx950__)
  return {__builtin_bit_cast(u16, __bf16(x))};
#elif defined(GRETA_NVIDIA) && __CUDA_ARCH__ >= 800
  bf16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
#else
  const u32 bits = bits_of(x);
  const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return {u16((nan ? bits | 0x400000U : bits + 0x7fffU + (bits >> 16 & 1)) >> 16)};
#endif
}

template <typename T, typename U>
constexpr bool same_type = false;
template <typename T>
constexpr bool same_type<T, T> = true;

template <typename T>
GRETA_DEVICE T narrow(float x) {
  if constexpr (same_type<T, f16>) {
    return narrow_f16(x);
  } else if constexpr (same_type<T, bf16>) {
    return narrow_bf16(x);
  } else {
    return x;
  }
}

// Bytes that travel together, whatever they stand for.
template <int bytes>
struct alignas(bytes) Words {
  u32 word[bytes / 4];
};
template <>
struct Words<2> {
  u16 word[1];
};

#if defined(GRETA_NVIDIA)
// NVIDIA's compilers move an aligned struct in one instruction, others a vector.
template <int bytes>
struct Wide {
  typedef Words<bytes> Type;
};
#else
template <int bytes>
struct Wide {
  typedef u32 Type __attribute__((vector_size(bytes), may_alias));
};
template <>
struct Wide<4> {
  typedef u32 Type __attribute__((may_alias));
};
template <>
struct Wide<2> {
  typedef u16 Type __attribute__((may_alias));
};
#endif

// 2, 4, 8 or 16 bytes, at an address that is a multiple of their number.
template <int bytes>
GRETA_DEVICE Words<bytes> load_words(const void* address) {
  typedef typename Wide<bytes>::Type Type;
#if defined(GRETA_NVIDIA)
  return *static_cast<const Type*>(address);
#else
  const Type wide = *static_cast<const Type*>(address);  // g++ checks no address within a bit cast
  return __builtin_bit_cast(Words<bytes>, wide);
#endif
}

template <int bytes>
GRETA_DEVICE void store_words(void* address, Words<bytes> words) {
  typedef typename Wide<bytes>::Type Type;
#if defined(GRETA_NVIDIA)
  *static_cast<Type*>(address) = words;
#else
  *static_cast<Type*>(address) = __builtin_bit_cast(Type, words);
#endif
}

// Neighbouring elements as they are in memory.
template <typename T, int count>
struct Pack {
  Words<int(sizeof(T)) * count> raw;
};

template <int count, typename T>
GRETA_DEVICE Pack<T, count> load_pack(const T* first) {
  return {load_words<int(sizeof(T)) * count>(first)};
}

template <int count, typename T>
GRETA_DEVICE void store_pack(T* first, Pack<T, count> pack) {
  store_words(first, pack.raw);
}

template <int count, typename T>
GRETA_DEVICE float element(const Pack<T, count>& pack, int i) {
  if constexpr (sizeof(T) == 4) {
    return float_from_bits(pack.raw.word[i]);
  } else if constexpr (count == 1) {
    return to_float(T{pack.raw.word[0]});
  } else {
    return to_float(T{u16(pack.raw.word[i / 2] >> i % 2 * 16)});
  }
}

// Elements i and i + 1.
template <int count, typename T>
GRETA_DEVICE f32x2 element_pair(const Pack<T, count>& pack, int i) {
  return f32x2{element(pack, i), element(pack, i + 1)};
}

template <typename T, int count>
GRETA_DEVICE Pack<T, count> narrow_pack(const float (&values)[count]) {
  Pack<T, count> pack = {};
  GRETA_UNROLL
  for (int i = 0; i < count; ++i) {
    if constexpr (sizeof(T) == 4) {
      pack.raw.word[i] = bits_of(values[i]);
    } else if constexpr (count == 1) {
      pack.raw.word[0] = narrow<T>(values[0]).bits;
    } else {
      pack.raw.word[i / 2] |= u32(narrow<T>(values[i]).bits) << i % 2 * 16;
    }
  }
  return pack;
}
