#pragma once

// Matrix instructions on numbers of eight bits, with the layouts of the PTX manual and of the
// CDNA3, RDNA3 and RDNA4 instruction set manuals. Registers are 32-bit words that hold four
// numbers, the one with the lowest index in the lowest byte. Sums are f32, or i32 of int8.

#include "runtime/device/hip/host/language/float_formats.hpp"
#include "runtime/device/hip/host/language/wave.hpp"

namespace greta_host {

#if GRETA_HOST == 942
constexpr bool has_fnuz = true;
#else
constexpr bool has_fnuz = false;
#endif

/// The value of a number: `format` 0 is e4m3, 1 e5m2, 4 int8. On gfx942, e4m3 and e5m2 have AMD's
/// fnuz form: a bias greater by one, NaN for the bits of -0, and no infinity.
template <int format, bool fnuz = has_fnuz>
auto number_of_byte(uint8_t bits) {
  if constexpr (format == 4) {
    return int(int8_t(bits));
  } else {
    constexpr int mantissa = format == 0 ? 3 : 2;
    constexpr int bias = (format == 0 ? 7 : 15) + (fnuz ? 1 : 0);
    const unsigned magnitude = bits & 0x7f, exponent = magnitude >> mantissa;
    const bool nan = fnuz ? bits == 0x80 : format == 0 ? magnitude == 0x7f : magnitude > 0x7c;
    if (nan) return float_of_bits(0x7fc00000U);
    const uint32_t sign = uint32_t(bits & 0x80) << 24;
    if (!fnuz && format == 1 && magnitude == 0x7c) return float_of_bits(sign | 0x7f800000U);
    const unsigned one = 1U << mantissa, fraction = magnitude % one;
    float value = float(exponent == 0 ? fraction : fraction + one);
    for (int e = int(exponent == 0 ? 1 : exponent) - bias - mantissa; e < 0; ++e) value *= 0.5f;
    for (int e = int(exponent == 0 ? 1 : exponent) - bias - mantissa; e > 0; --e) value *= 2.0f;
    return (bits & 0x80) != 0 ? -value : value;
  }
}

/// A lane's numbers of A and B.
template <int words_a, int words_b>
struct ByteParts {
  uint8_t a[4 * words_a], b[4 * words_b];

  ByteParts() = default;
  ByteParts(const uint32_t (&of_a)[words_a], const uint32_t (&of_b)[words_b]) {
    __builtin_memcpy(a, of_a, sizeof a);
    __builtin_memcpy(b, of_b, sizeof b);
  }
};

#if GRETA_HOST == 80

/// mma.sync.aligned.m16n8k32.row.col on s8 (sm_80), e4m3 and e5m2 (sm_89): d += a b. Words of A:
/// rows 0-7 and 8-15 of k 0-15, then of k 16-31; four lanes share a row, four k each.
template <typename T, typename Sum>
void mma_m16n8k32(Sum (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                  Site site = here("mma.m16n8k32")) {
  const auto all = exchange_all(ByteParts<4, 2>(a, b), site);
  const unsigned group = current->lane / 4, in_group = current->lane % 4;
  for (unsigned element = 0; element < 4; ++element) {
    const unsigned lower = element / 2, column = 2 * in_group + element % 2;
    for (unsigned k = 0; k < 32; ++k) {
      const unsigned lane = k % 16 / 4, half = k / 16;
      d[element] +=
          number_of_byte<T::number>(all[4 * group + lane].a[8 * half + 4 * lower + k % 4]) *
          number_of_byte<T::number>(all[4 * column + lane].b[4 * half + k % 4]);
    }
  }
}

#else

/// d += a b for 16 x 16 matrices of which lane i has neighbouring k of row i % 16 of A and column
/// i % 16 of B: v_mfma_f32_16x16x32_{fp8_fp8,bf8_bf8} and v_mfma_i32_16x16x32_i8 of gfx942,
/// v_wmma_i32_16x16x16_iu8 of gfx11 and gfx12, v_wmma_f32_16x16x16_{fp8_fp8,bf8_bf8} of gfx12.
template <typename T, typename Sum, int results, int words>
void multiply_bytes(Sum (&d)[results], const uint32_t (&a)[words], const uint32_t (&b)[words],
                    Site site = here("multiply_bytes")) {
  const ByteParts<words, words> mine(a, b);
  const auto all = exchange_all(mine, site);
#if GRETA_HOST == 1100
  constexpr unsigned parts = 1;
  if (__builtin_memcmp(&all[current->lane ^ 16], &mine, sizeof mine) != 0) {
    fail(site, "lanes 16 to 31 must repeat the operands of lanes 0 to 15");
  }
#else
  constexpr unsigned parts = unsigned(warpSize) / 16;
#endif
  const unsigned column = current->lane % 16, group = current->lane / 16;
  for (unsigned j = 0; j < results; ++j) {
#if GRETA_HOST == 1100
    const unsigned row = 2 * j + group;
#else
    const unsigned row = results * group + j;
#endif
    for (unsigned part = 0; part < parts; ++part) {
      for (unsigned k = 0; k < 4 * words; ++k) {
        d[j] += number_of_byte<T::number>(all[part * 16 + row].a[k]) *
                number_of_byte<T::number>(all[part * 16 + column].b[k]);
      }
    }
  }
}

#if GRETA_HOST == 942

/// A lane's part of v_mfma_scale_f32_16x16x128_f8f6f4: 32 numbers of A and of B, and their scales.
struct ScaledParts {
  uint8_t a[32], b[32];
  uint8_t scale_a, scale_b;  ///< e8m0
};

/// Returns the place of k of a line of 128, of which each of four lanes has 32: its lane's number
/// among these, and the first bit there. Numbers of four bits lie one after the other, those of
/// eight bits in two runs of 16 that are 64 apart.
struct ScaledPlace {
  unsigned lane, bit;
};
template <int format>
ScaledPlace scaled_place(unsigned k) {
  if (format == 4) return {k / 32, k % 32 * 4};
  return {k / 16 % 4, (k / 64 * 16 + k % 16) * 8};
}

/// Returns a number at its place: `format` 0 is OCP's e4m3, 1 e5m2, 4 e2m1.
template <int format>
float scaled_number(const uint8_t (&bytes)[32], unsigned bit) {
  const unsigned byte = unsigned(bytes[bit / 8]) >> bit % 8;
  if constexpr (format == 4) {
    constexpr float sizes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    return (byte & 8) != 0 ? -sizes[byte & 7] : sizes[byte & 7];
  } else {
    return number_of_byte<format, false>(uint8_t(byte));
  }
}

/// v_mfma_scale_f32_16x16x128_f8f6f4 of gfx950 with the scales, e8m0, in lowest bytes: d[j] is row
/// 4 (i / 16) + j, column i % 16 of A B + D. The scale of lane l is that of the 32 k from 32 (l /
/// 16) on of line l % 16. Sources: AMD's blog "Matrix Core Programming on AMD CDNA3 and CDNA4
/// architecture", and the tests of the instruction in AMD's Composable Kernel.
template <int format_a, int format_b>
void mfma_scale_f32_16x16x128_f8f6f4(float (&d)[4], const uint32_t (&a)[8], const uint32_t (&b)[8],
                                     uint32_t scale_a, uint32_t scale_b,
                                     Site site = here("mfma_scale_16x16x128")) {
  ScaledParts mine;
  __builtin_memcpy(mine.a, a, sizeof mine.a);
  __builtin_memcpy(mine.b, b, sizeof mine.b);
  mine.scale_a = uint8_t(scale_a);
  mine.scale_b = uint8_t(scale_b);
  const auto all = exchange_all(mine, site);
  const unsigned column = current->lane % 16, group = current->lane / 16;
  for (unsigned j = 0; j < 4; ++j) {
    const unsigned row = 4 * group + j;
    double total = double(d[j]);
    for (unsigned part = 0; part < 4; ++part) {
      double sum = 0;
      for (unsigned k = 32 * part; k < 32 * part + 32; ++k) {
        const ScaledPlace of_a = scaled_place<format_a>(k), of_b = scaled_place<format_b>(k);
        sum += double(scaled_number<format_a>(all[16 * of_a.lane + row].a, of_a.bit)) *
               double(scaled_number<format_b>(all[16 * of_b.lane + column].b, of_b.bit));
      }
      const int power_a = all[16 * part + row].scale_a, power_b = all[16 * part + column].scale_b;
      for (int e = 254; e < power_a + power_b; ++e) sum *= 2;
      for (int e = power_a + power_b; e < 254; ++e) sum *= 0.5;
      total += power_a == 255 || power_b == 255 ? double(float_of_bits(0x7fc00000U)) : sum;
    }
    d[j] = float(total);
  }
}

#endif

#endif

}  // namespace greta_host
