// Matrix cores on numbers of eight bits: D += A B^T for 16 rows of A and 16 of B, both along k.
//
//   ByteCore<T, Sum>              T is E4m3 or E5m2, in the form that the device's matrix cores have,
//                                 and Sum float; or T is Int8 and Sum int
//     depth                       k of a product
//     Fragment, load(…)           lines of `depth` numbers from a SharedTile of chunks of 16 bytes
//     Sums, multiply(sums, a, b)  D, spread over the wave's registers; sums += a b
//     count                       sums of a lane
//     row(i), column(i)           where a lane's sum i belongs
//
// A chunk has 16 k where MatrixCore (matrix.hip) has 8 elements of 16 bits; lanes load the same chunks.
// Which k a lane holds does not matter as long as A and B agree. Sources: those of matrix.hip.
#pragma once

#include "common/byte_types.hip"
#include "common/matrix.hip"

#if defined(GRETA_MATRIX_MMA)

template <typename T, typename Sum>
struct ByteCore {
  typedef MatrixCore<f16, 16> Halves;
  typedef typename Halves::Fragment Fragment;
  static constexpr u32 depth = 2 * Halves::depth, count = 8;
  struct Sums {
    Sum eight[2][4];  // columns 0-7 and 8-15
    GRETA_DEVICE Sum operator[](u32 i) const { return eight[i / 4][i % 4]; }
  };

  template <Operand operand, typename Tile>
  static GRETA_DEVICE Fragment load(SharedMemory shared, u32 start, u32 line, u32 k) {
    return Halves::template load<operand, true, Tile>(shared, start, line, k / 2);
  }
  static GRETA_DEVICE u32 row(u32 i) { return lane_index() / 4 + i % 4 / 2 * 8; }
  static GRETA_DEVICE u32 column(u32 i) { return i / 4 * 8 + lane_index() % 4 * 2 + i % 2; }

  static GRETA_DEVICE void multiply(Sums& sums, const Fragment& a, const Fragment& b) {
    GRETA_UNROLL
    for (int i = 0; i < 2; ++i) {
      Sum(&d)[4] = sums.eight[i];
#if defined(GRETA_HOST)
      const u32 columns[2] = {b.word[2 * i], b.word[2 * i + 1]};
      greta_host::mma_m16n8k32<T>(d, a.word, columns);
#else
#define GRETA_MMA(types, constraint)                                                    \
  asm volatile("mma.sync.aligned.m16n8k32.row.col" types                                \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"       \
               : constraint(d[0]), constraint(d[1]), constraint(d[2]), constraint(d[3]) \
               : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]),        \
                 "r"(b.word[2 * i]), "r"(b.word[2 * i + 1]))
      if constexpr (same_type<T, E4m3>) {
        GRETA_MMA(".f32.e4m3.e4m3.f32", "+f");
      } else if constexpr (same_type<T, E5m2>) {
        GRETA_MMA(".f32.e5m2.e5m2.f32", "+f");
      } else {
        GRETA_MMA(".s32.s8.s8.s32", "+r");
      }
#undef GRETA_MMA
#endif
    }
  }
};

#else  // AMD

typedef int Integers4 __attribute__((vector_size(16)));
typedef int Integers8 __attribute__((vector_size(32)));

#if defined(GRETA_MATRIX_MFMA)
// Instructions of gfx940 and later take 8 bytes of a lane, those before 4.
#if defined(__gfx908__) || defined(__gfx90a__)
constexpr u32 byte_step = 4;
#else
constexpr u32 byte_step = 8;
#endif
constexpr u32 byte_sums = 4;
template <typename Sum>
struct ByteSumsOf {
  typedef Sums4 Type;
};
template <>
struct ByteSumsOf<int> {
  typedef Integers4 Type;
};
#else
#if defined(GRETA_MATRIX_WMMA11)
constexpr u32 byte_step = 16;
#else
constexpr u32 byte_step = 8;
#endif
constexpr u32 byte_sums = 8;
template <typename Sum>
struct ByteSumsOf {
  typedef Sums8 Type;
};
template <>
struct ByteSumsOf<int> {
  typedef Integers8 Type;
};
#endif

// multiply_step(T(), d, a, b): one instruction, d += a b, for `byte_step` bytes of A and B in each lane.
#if defined(GRETA_HOST)
template <typename T, typename Sums>
GRETA_DEVICE void multiply_step(T, Sums& d, const Words<byte_step>& a, const Words<byte_step>& b) {
  typedef decltype(d[0] + d[0]) Sum;
  greta_host::multiply_bytes<T>(reinterpret_cast<Sum(&)[byte_sums]>(d), a.word, b.word);
}
#elif defined(GRETA_MATRIX_MFMA) && (defined(__gfx908__) || defined(__gfx90a__))
GRETA_DEVICE void multiply_step(Int8, Integers4& d, const Words<4>& a, const Words<4>& b) {
  d = __builtin_amdgcn_mfma_i32_16x16x16i8(int(a.word[0]), int(b.word[0]), d, 0, 0, 0);
}
#elif defined(GRETA_MATRIX_MFMA)
#define GRETA_BYTE_STEP(T, Sums, builtin)                                                   \
  GRETA_DEVICE void multiply_step(T, Sums& d, const Words<8>& a, const Words<8>& b) {       \
    d = builtin(__builtin_bit_cast(long, a), __builtin_bit_cast(long, b), d, 0, 0, 0);      \
  }
GRETA_BYTE_STEP(E4m3, Sums4, __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8)
GRETA_BYTE_STEP(E5m2, Sums4, __builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8)
GRETA_BYTE_STEP(Int8, Integers4, __builtin_amdgcn_mfma_i32_16x16x32_i8)
#undef GRETA_BYTE_STEP
#elif defined(GRETA_MATRIX_WMMA11)
GRETA_DEVICE void multiply_step(Int8, Integers8& d, const Words<16>& a, const Words<16>& b) {
  typedef int V __attribute__((ext_vector_type(4)));
  d = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, __builtin_bit_cast(V, a), true,
                                                 __builtin_bit_cast(V, b), d, false);
}
#else
typedef int IntegerPair __attribute__((ext_vector_type(2)));
GRETA_DEVICE void multiply_step(E4m3, Sums8& d, const Words<8>& a, const Words<8>& b) {
  d = __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(__builtin_bit_cast(IntegerPair, a),
                                                           __builtin_bit_cast(IntegerPair, b), d);
}
GRETA_DEVICE void multiply_step(E5m2, Sums8& d, const Words<8>& a, const Words<8>& b) {
  d = __builtin_amdgcn_wmma_f32_16x16x16_bf8_bf8_w32_gfx12(__builtin_bit_cast(IntegerPair, a),
                                                           __builtin_bit_cast(IntegerPair, b), d);
}
GRETA_DEVICE void multiply_step(Int8, Integers8& d, const Words<8>& a, const Words<8>& b) {
  d = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, __builtin_bit_cast(IntegerPair, a), true,
                                                       __builtin_bit_cast(IntegerPair, b), d, false);
}
#endif

template <typename T, typename Sum>
struct ByteCore {
  typedef MatrixCore<f16, 16> Halves;
  typedef typename Halves::Fragment Fragment;
  typedef typename ByteSumsOf<Sum>::Type Sums;
  static constexpr u32 depth = 2 * Halves::depth, count = byte_sums;

  template <Operand operand, typename Tile>
  static GRETA_DEVICE Fragment load(SharedMemory shared, u32 start, u32 line, u32 k) {
    return Halves::template load<operand, true, Tile>(shared, start, line, k / 2);
  }
  static GRETA_DEVICE u32 row(u32 i) {
    const u32 group = lane_index() / 16;
#if defined(GRETA_MATRIX_WMMA11)
    return i * 2 + group;
#else
    return group * count + i;
#endif
  }
  static GRETA_DEVICE u32 column(u32) { return lane_index() % 16; }

  static GRETA_DEVICE void multiply(Sums& sums, const Fragment& a, const Fragment& b) {
    constexpr u32 steps = sizeof(Fragment) / byte_step;
    struct Steps {
      Words<byte_step> step[steps];
    };
    const Steps x = __builtin_bit_cast(Steps, a), y = __builtin_bit_cast(Steps, b);
    GRETA_UNROLL
    for (u32 i = 0; i < steps; ++i) multiply_step(T(), sums, x.step[i], y.step[i]);
#if defined(__GFX11__) || defined(__GFX12__)
    asm volatile("" : "+v"(sums));  // keeps it here, as MatrixCore does
#endif
  }
};

#endif
