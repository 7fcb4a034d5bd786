#pragma once

// AMD's matrix instructions, with the layouts of the CDNA3, RDNA3 and RDNA4 instruction set
// manuals. Registers are 32-bit words that hold two 16-bit elements, the one with the lower index
// in the lower half, as in the vectors that clang's builtins take. Sums are f32.

#include "runtime/device/hip/host/language/float_formats.hpp"
#include "runtime/device/hip/host/language/wave.hpp"

namespace greta_host {

/// A lane's part of A and B.
template <int elements>
struct MatrixParts {
  float a[elements], b[elements];
};

/// D = A B + C for m x m matrices of which each lane has `each` neighbouring k of one row of A and
/// one column of B: lane i has row or column i % m and k from i / m * each on. row_of(j, i / m) is
/// the row of the lane's element j of D, whose column is i % m.
template <int m, int lanes_along_k, int each, int results, typename RowOf>
void multiply(float (&d)[results], const MatrixParts<each>& mine, const float (&c)[results],
              RowOf row_of, Site site) {
  const auto all = exchange_all(mine, site);
  const unsigned column = current->lane % m, group = current->lane / m;
  for (unsigned j = 0; j < results; ++j) {
    const unsigned row = row_of(j, group);
    float sum = c[j];
    for (unsigned part = 0; part < lanes_along_k; ++part) {
      for (unsigned k = 0; k < each; ++k) {
        sum += all[part * m + row].a[k] * all[part * m + column].b[k];
      }
    }
    d[j] = sum;
  }
}

#if GRETA_HOST == 942

/// v_mfma_f32_16x16x4_f32 (__builtin_amdgcn_mfma_f32_16x16x4f32): lane i has a[i % 16][i / 16] and
/// b[i / 16][i % 16]; d[j] is row 4 (i / 16) + j, column i % 16.
inline void mfma_f32_16x16x4_f32(float (&d)[4], float a, float b, const float (&c)[4],
                                 Site site = here("mfma_16x16x4")) {
  const auto row_of = [](unsigned j, unsigned group) { return 4 * group + j; };
  multiply<16, 4>(d, MatrixParts<1>{{a}, {b}}, c, row_of, site);
}

template <typename Format>
void mfma_16x16x16(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[2],
                   const float (&c)[4], Site site) {
  MatrixParts<4> mine;
  unpack<Format>(a, mine.a);
  unpack<Format>(b, mine.b);
  const auto row_of = [](unsigned j, unsigned group) { return 4 * group + j; };
  multiply<16, 4>(d, mine, c, row_of, site);
}
/// v_mfma_f32_16x16x16_{f16,bf16} (…16x16x16f16, …16x16x16bf16_1k): element j of lane i is
/// a[i % 16][4 (i / 16) + j] and b[4 (i / 16) + j][i % 16]; d as above.
inline void mfma_f32_16x16x16_f16(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[2],
                                  const float (&c)[4], Site site = here("mfma_16x16x16")) {
  mfma_16x16x16<F16>(d, a, b, c, site);
}
inline void mfma_f32_16x16x16_bf16(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[2],
                                   const float (&c)[4], Site site = here("mfma_16x16x16")) {
  mfma_16x16x16<Bf16>(d, a, b, c, site);
}

template <typename Format>
void mfma_32x32x8(float (&d)[16], const uint32_t (&a)[2], const uint32_t (&b)[2],
                  const float (&c)[16], Site site) {
  MatrixParts<4> mine;
  unpack<Format>(a, mine.a);
  unpack<Format>(b, mine.b);
  const auto row_of = [](unsigned j, unsigned group) { return 8 * (j / 4) + 4 * group + j % 4; };
  multiply<32, 2>(d, mine, c, row_of, site);
}
/// v_mfma_f32_32x32x8_{f16,bf16} (…32x32x8f16, …32x32x8bf16_1k): element j of lane i is
/// a[i % 32][4 (i / 32) + j] and b[4 (i / 32) + j][i % 32]; d[j] is row
/// 8 (j / 4) + 4 (i / 32) + j % 4, column i % 32.
inline void mfma_f32_32x32x8_f16(float (&d)[16], const uint32_t (&a)[2], const uint32_t (&b)[2],
                                 const float (&c)[16], Site site = here("mfma_32x32x8")) {
  mfma_32x32x8<F16>(d, a, b, c, site);
}
inline void mfma_f32_32x32x8_bf16(float (&d)[16], const uint32_t (&a)[2], const uint32_t (&b)[2],
                                  const float (&c)[16], Site site = here("mfma_32x32x8")) {
  mfma_32x32x8<Bf16>(d, a, b, c, site);
}

/// ds_read_b64_tr_b16 of gfx950: lane i of each group of 16 names 8 bytes of shared memory,
/// aligned, which are elements 4 (i % 4) to 4 (i % 4) + 3 of row i / 4. It gets element i of the
/// four rows, two in a word, the first in the lower half.
inline void read_transposed(uint32_t (&d)[2], const void* piece,
                            Site site = here("read_transposed")) {
  const auto pieces = exchange_all(piece, site);
  const unsigned lane = current->lane, element = lane % 16;
  for (unsigned word = 0; word < 2; ++word) {
    d[word] = 0;
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned row = 2 * word + half;
      const auto* const from =
          static_cast<const uint16_t*>(pieces[lane - element + 4 * row + element / 4]);
      if (!is_shared(from)) fail(site, "a piece of a row is not in shared memory");
      if (reinterpret_cast<uintptr_t>(from) % 8 != 0) {
        fail(site, "a piece of a row is not aligned to 8");
      }
      d[word] |= uint32_t(from[element % 4]) << 16 * half;
    }
  }
}

#elif GRETA_HOST == 1100

template <typename Format>
void wmma_16x16x16(float (&d)[8], const uint32_t (&a)[8], const uint32_t (&b)[8],
                   const float (&c)[8], Site site) {
  struct Words {
    uint32_t a[8], b[8];
  } words;
  __builtin_memcpy(words.a, a, sizeof a);
  __builtin_memcpy(words.b, b, sizeof b);
  const auto repeated = exchange_all(words, site);
  if (__builtin_memcmp(&repeated[current->lane ^ 16], &words, sizeof words) != 0) {
    fail(site, "lanes 16 to 31 must repeat the operands of lanes 0 to 15");
  }
  MatrixParts<16> mine;
  unpack<Format>(a, mine.a);
  unpack<Format>(b, mine.b);
  const auto row_of = [](unsigned j, unsigned group) { return 2 * j + group; };
  multiply<16, 1>(d, mine, c, row_of, site);
}
/// v_wmma_f32_16x16x16_{f16,bf16} of gfx11, wave of 32 (…_w32): element k of lane i is a[i % 16][k]
/// and b[k][i % 16]; lanes 16 to 31 repeat lanes 0 to 15, which is checked. d[j] is row
/// 2 j + i / 16, column i % 16.
inline void wmma_f32_16x16x16_f16(float (&d)[8], const uint32_t (&a)[8], const uint32_t (&b)[8],
                                  const float (&c)[8], Site site = here("wmma_16x16x16")) {
  wmma_16x16x16<F16>(d, a, b, c, site);
}
inline void wmma_f32_16x16x16_bf16(float (&d)[8], const uint32_t (&a)[8], const uint32_t (&b)[8],
                                   const float (&c)[8], Site site = here("wmma_16x16x16")) {
  wmma_16x16x16<Bf16>(d, a, b, c, site);
}

#elif GRETA_HOST == 1201

template <typename Format>
void wmma_16x16x16(float (&d)[8], const uint32_t (&a)[4], const uint32_t (&b)[4],
                   const float (&c)[8], Site site) {
  MatrixParts<8> mine;
  unpack<Format>(a, mine.a);
  unpack<Format>(b, mine.b);
  const auto row_of = [](unsigned j, unsigned group) { return 8 * group + j; };
  multiply<16, 2>(d, mine, c, row_of, site);
}
/// v_wmma_f32_16x16x16_{f16,bf16} of gfx12, wave of 32 (…_w32_gfx12): element j of lane i is
/// a[i % 16][8 (i / 16) + j] and b[8 (i / 16) + j][i % 16]; d[j] is row 8 (i / 16) + j, column
/// i % 16.
inline void wmma_f32_16x16x16_f16(float (&d)[8], const uint32_t (&a)[4], const uint32_t (&b)[4],
                                  const float (&c)[8], Site site = here("wmma_16x16x16")) {
  wmma_16x16x16<F16>(d, a, b, c, site);
}
inline void wmma_f32_16x16x16_bf16(float (&d)[8], const uint32_t (&a)[4], const uint32_t (&b)[4],
                                   const float (&c)[8], Site site = here("wmma_16x16x16")) {
  wmma_16x16x16<Bf16>(d, a, b, c, site);
}

/// global_load_tr_b128 of gfx12: lane i of each group of 8 names 16 bytes of global memory,
/// aligned, which are 8 elements of row i. It gets element i of the eight rows, two in a word, the
/// first in the lower half.
inline void load_transposed(uint32_t (&d)[4], const void* row,
                            Site site = here("load_transposed")) {
  const auto rows = exchange_all(row, site);
  const unsigned lane = current->lane, element = lane % 8;
  for (unsigned word = 0; word < 4; ++word) {
    d[word] = 0;
    for (unsigned half = 0; half < 2; ++half) {
      const auto* const from = static_cast<const uint16_t*>(rows[lane - element + 2 * word + half]);
      if (is_shared(from)) fail(site, "a row is in shared memory");
      if (reinterpret_cast<uintptr_t>(from) % 16 != 0) fail(site, "a row is not aligned to 16");
      d[word] |= uint32_t(from[element]) << 16 * half;
    }
  }
}

#endif

}  // namespace greta_host
