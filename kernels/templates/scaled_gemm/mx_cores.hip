// Numbers of microscaling formats in shared memory, and how the matrix cores of waves multiply them.
//
//   step                    k of a stage
//   StoredTile<format, …>   lines of so many numbers in chunks of 16 bytes, and how threads store them
//   StoredScale             a scale beside them
//   Place                   row(i), column(i): where a lane's sum i of a product of 16 x 16 belongs
//   CORES 1 and 2:          Core, whose Sums are of Core::depth k, and sum_of(sums, i)
//   CORES 0:                ScaledOperand, multiply_scaled(…): 128 k with their scales
//
// The layouts of V_MFMA_SCALE_F32_16X16X128_F8F6F4: lane l has 32 k of line l % 16, numbers of four bits
// those from 32 (l / 16) on, numbers of eight bits 16 from 16 (l / 16) on and 16 from 64 + 16 (l / 16) on;
// its scale is that of the 32 k from 32 (l / 16) on. Sources: AMD's blog "Matrix Core Programming on AMD
// CDNA3 and CDNA4 architecture", and the tests of the instruction in AMD's Composable Kernel.
#pragma once

#include "common/byte_matrix.hip"
#include "scaled_gemm/decode.hip"

typedef ByteCore<E4m3, float> Place;

#if CORES == 2
constexpr u32 step = 64;
#else
constexpr u32 step = 128;
#endif

#if CORES == 0

typedef u32 StoredScale;
GRETA_DEVICE StoredScale stored_scale(Scale scale) { return scale; }

template <u32 format, u32 lines>
struct StoredTile {
  static constexpr u32 number_format = format;
  typedef SharedTile<lines, step / of_byte<format> / 16, 0, false> Tile;
  static constexpr u32 bytes = Tile::bytes;
  static GRETA_DEVICE void store(u8* tile, u32 line, u32 unit, const Words<16>& loaded) {
    store_words<16>(tile + Tile::offset(line, unit), loaded);
  }
};

struct ScaledOperand {
  u32 word[8];
  StoredScale scale;

  template <typename Stored>
  GRETA_DEVICE void load(const u8* tile, u32 line) {
    const u32 group = lane_index() / 16;
    constexpr u32 chunks = 2 / of_byte<Stored::number_format>;
    GRETA_UNROLL
    for (u32 i = 0; i < 2; ++i) {
      const Words<16> chunk =
          i < chunks ? load_words<16>(tile + Stored::Tile::offset(line, group + i * 4)) : Words<16>{};
      GRETA_UNROLL
      for (u32 w = 0; w < 4; ++w) word[i * 4 + w] = chunk.word[w];
    }
  }
};

// The instruction's number of a format.
constexpr int instruction_format(u32 format) { return format == 5 ? 4 : int(format); }

GRETA_DEVICE void multiply_scaled(Sums4& sums, const ScaledOperand& a, const ScaledOperand& b) {
  constexpr int format_a = instruction_format(FORMAT), format_b = instruction_format(FORMAT_B);
#if defined(GRETA_HOST)
  greta_host::mfma_scale_f32_16x16x128_f8f6f4<format_a, format_b>(
      reinterpret_cast<float(&)[4]>(sums), a.word, b.word, a.scale, b.scale);
#else
  typedef int V __attribute__((ext_vector_type(8)));
  V x, y;
  __builtin_memcpy(&x, a.word, sizeof x);
  __builtin_memcpy(&y, b.word, sizeof y);
  sums = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(x, y, sums, format_a, format_b, 0,
                                                          int(a.scale), 0, int(b.scale));
#endif
}

#else  // threads scale sums

typedef float StoredScale;
GRETA_DEVICE StoredScale stored_scale(Scale scale) { return value_of_scale(scale); }

#if CORES == 1

#if FORMAT == 1 || FORMAT_B == 1
typedef E5m2 Element;
#else
typedef E4m3 Element;
#endif
typedef ByteCore<Element, float> Core;
GRETA_DEVICE float sum_of(const Core::Sums& sums, u32 i) { return sums[i]; }

// Four numbers of e2m1 in the lower halves of bytes as Element.
GRETA_DEVICE u32 as_bytes(u32 four) {
  constexpr u32 shift = Element::number == 0 ? 2 : 1, half = Element::number == 0 ? 0x30 : 0x38;
  const u32 size = four & 0x07070707U, sign = (four & 0x08080808U) << 4;
  const u32 normal = (size >> 1 | size >> 2) & 0x01010101U;  // 1 and more
  const u32 is_half = size & ~normal & 0x01010101U;
  return sign | ((size << shift) + normal * half + is_half * (half - (1U << shift)));
}

// The lower two bytes of both words in turn.
GRETA_DEVICE u32 alternate(u32 even, u32 odd) {
  return (even & 0xff) | (odd & 0xff) << 8 | (even & 0xff00) << 8 | (odd & 0xff00) << 16;
}

template <u32 format, u32 lines>
struct StoredTile {
  typedef SharedTile<lines, step / 16, 0, false> Tile;
  static constexpr u32 bytes = Tile::bytes;
  static GRETA_DEVICE void store(u8* tile, u32 line, u32 unit, const Words<16>& loaded) {
    if constexpr (format != 5) {
      store_words<16>(tile + Tile::offset(line, unit), loaded);
    } else {
      GRETA_UNROLL
      for (u32 i = 0; i < 2; ++i) {
        Words<16> chunk;
        GRETA_UNROLL
        for (u32 w = 0; w < 2; ++w) {
          const u32 word = loaded.word[i * 2 + w];
          const u32 even = as_bytes(word), odd = as_bytes(word >> 4);
          chunk.word[w * 2] = alternate(even, odd);
          chunk.word[w * 2 + 1] = alternate(even >> 16, odd >> 16);
        }
        store_words<16>(tile + Tile::offset(line, unit * 2 + i), chunk);
      }
    }
  }
};

#else  // 16-bit numbers

// Numbers of e5m2 are below the normal ones of f16, which CDNA2 takes for zero, but none of bf16's.
#if defined(GRETA_MATRIX_MMA)
typedef f16 Half;
#else
typedef bf16 Half;
#endif
struct Core : MatrixCore<Half, 16> {
  template <Operand operand, typename Tile>
  static GRETA_DEVICE Fragment load(SharedMemory shared, u32 start, u32 line, u32 k) {
    return MatrixCore<Half, 16>::load<operand, true, Tile>(shared, start, line, k);
  }
};
GRETA_DEVICE float sum_of(const Core::Sums& sums, u32 i) {
#if defined(GRETA_MATRIX_MMA)
  return sums.column[i / 4][i % 4];
#else
  return sums[i];
#endif
}

// The numbers of a word, or of e2m1 of its lower half.
template <u32 format>
GRETA_DEVICE void as_halves(u32 word, u32 (&pair)[2]) {
#if defined(GRETA_MATRIX_MMA)
  halves_of_word<format>(word, pair);
#else
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    constexpr u32 bits = 8 / of_byte<format>;
    const u32 low = bits_of(number_of<format>(word >> i * 2 * bits));
    const u32 high = bits_of(number_of<format>(word >> (i * 2 + 1) * bits));
    pair[i] = low >> 16 | (high & 0xffff0000U);
  }
#endif
}

template <u32 format, u32 lines>
struct StoredTile {
  typedef SharedTile<lines, step / 8, 0, false> Tile;
  static constexpr u32 bytes = Tile::bytes;
  static GRETA_DEVICE void store(u8* tile, u32 line, u32 unit, const Words<16>& loaded) {
    constexpr u32 chunks = 2 * of_byte<format>;
    GRETA_UNROLL
    for (u32 i = 0; i < chunks; ++i) {
      Words<16> chunk;
      GRETA_UNROLL
      for (u32 h = 0; h < 2; ++h) {
        const u32 four = i * 2 + h, of_word = of_byte<format>;
        u32 pair[2];
        as_halves<format>(loaded.word[four / of_word] >> four % of_word * 16, pair);
        chunk.word[h * 2] = pair[0];
        chunk.word[h * 2 + 1] = pair[1];
      }
      store_words<16>(tile + Tile::offset(line, unit * chunks + i), chunk);
    }
  }
};

#endif
#endif
