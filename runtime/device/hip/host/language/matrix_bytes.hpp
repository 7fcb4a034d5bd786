#pragma once

// Matrix instructions on numbers of eight bits, with the layouts of the PTX manual and of the
// CDNA3, RDNA3 and RDNA4 instruction set manuals. Registers are 32-bit words that hold four
// numbers, the one with the lowest index in the lowest byte. Sums are f32, or i32 of int8.

#include "runtime/device/hip/host/language/float_formats.hpp"
#include "runtime/device/hip/host/language/wave.hpp"

namespace greta_host {

/// The value of a number: `format` 0 is e4m3, 1 e5m2, 4 int8. On gfx942, e4m3 and e5m2 have AMD's
/// fnuz form: a bias greater by one, NaN for the bits of -0, and no infinity.
template <int format>
auto number_of_byte(uint8_t bits) {
  if constexpr (format == 4) {
    return int(int8_t(bits));
  } else {
    constexpr int mantissa = format == 0 ? 3 : 2;
#if GRETA_HOST == 942
    constexpr bool fnuz = true;
#else
    constexpr bool fnuz = false;
#endif
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

#endif

}  // namespace greta_host
