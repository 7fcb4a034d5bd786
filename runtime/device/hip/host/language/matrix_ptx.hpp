#pragma once

// NVIDIA's matrix instructions as a warp of sm_80 executes them, with the layouts of the PTX manual
// ("Warp-level matrix instructions"). Registers are 32-bit words that hold two 16-bit elements, the
// one with the lower index in the lower half. Sums are f32.

#if GRETA_HOST == 80

#include <cstring>

#include "runtime/device/hip/host/language/float_formats.hpp"
#include "runtime/device/hip/host/language/wave.hpp"

namespace greta_host {

template <int n>
void load_matrices(uint32_t (&d)[n], const void* row, bool trans, Site site) {
  static_assert(n == 1 || n == 2 || n == 4, "ldmatrix loads 1, 2 or 4 matrices");
  const auto rows = exchange_all(row, site);
  const unsigned lane = current->lane;
  for (unsigned matrix = 0; matrix < n; ++matrix) {
    d[matrix] = 0;
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned along = lane / 4, pair = lane % 4 * 2 + half;
      const unsigned i = trans ? pair : along, k = trans ? along : pair;
      const auto* const from = static_cast<const uint16_t*>(rows[8 * matrix + i]);
      if (!is_shared(from)) fail(site, "a row is not in shared memory");
      if (reinterpret_cast<uintptr_t>(from) % 16 != 0) fail(site, "a row is not aligned to 16");
      d[matrix] |= uint32_t(from[k]) << 16 * half;
    }
  }
}

/// ldmatrix.sync.aligned.m8n8.x{n}.shared.b16, n = 1, 2 or 4: lane i gives the address of row i % 8
/// of matrix i / 8 (16 bytes, aligned; addresses of lanes from 8 n on are not looked at). Word j of
/// lane i gets elements 2 (i % 4) and 2 (i % 4) + 1 of row i / 4 of matrix j.
template <int n>
void ldmatrix(uint32_t (&d)[n], const void* row, Site site = here("ldmatrix")) {
  load_matrices(d, row, false, site);
}
/// ldmatrix….trans: of column i / 4.
template <int n>
void ldmatrix_trans(uint32_t (&d)[n], const void* row, Site site = here("ldmatrix_trans")) {
  load_matrices(d, row, true, site);
}

/// A lane's part of A (16 x k) and of B (k x 8).
template <int k>
struct MmaParts {
  float a[k / 2];
  float b[k / 4];
};

template <typename Format, int k>
void mma_m16n8(float (&d)[4], const uint32_t (&a)[k / 4], const uint32_t (&b)[k / 8],
               const float (&c)[4], Site site) {
  MmaParts<k> mine;
  unpack<Format>(a, mine.a);
  unpack<Format>(b, mine.b);
  const auto all = exchange_all(mine, site);
  // Words of A: rows 0-7 and 8-15 of k 0-7, then of k 8-15; four lanes share a row, two k each.
  const unsigned group = current->lane / 4, in_group = current->lane % 4;
  for (unsigned element = 0; element < 4; ++element) {
    const unsigned lower = element / 2, column = 2 * in_group + element % 2;
    float sum = c[element];
    for (unsigned i = 0; i < k; ++i) {
      const unsigned lane = i % 8 / 2, word = i / 8;
      sum += all[4 * group + lane].a[4 * word + 2 * lower + i % 2] *
             all[4 * column + lane].b[2 * word + i % 2];
    }
    d[element] = sum;
  }
}

/// mma.sync.aligned.m16n8k16.row.col.f32.{f16,bf16}.{f16,bf16}.f32: d = a b + c.
inline void mma_m16n8k16_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                             const float (&c)[4], Site site = here("mma.m16n8k16")) {
  mma_m16n8<F16, 16>(d, a, b, c, site);
}
inline void mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                              const float (&c)[4], Site site = here("mma.m16n8k16")) {
  mma_m16n8<Bf16, 16>(d, a, b, c, site);
}
/// mma.sync.aligned.m16n8k8 likewise.
inline void mma_m16n8k8_f16(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[1],
                            const float (&c)[4], Site site = here("mma.m16n8k8")) {
  mma_m16n8<F16, 8>(d, a, b, c, site);
}
inline void mma_m16n8k8_bf16(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[1],
                             const float (&c)[4], Site site = here("mma.m16n8k8")) {
  mma_m16n8<Bf16, 8>(d, a, b, c, site);
}

/// cvt.rna.tf32.f32: 11 significant bits, rounded to nearest, halves away from zero.
inline uint32_t to_tf32(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const uint32_t sign = bits & 0x80000000U, magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return 0x7fffffffU;  // NaN
  return sign | ((magnitude + 0x1000U) & ~0x1fffU);
}

/// Returns the TF32 that matrix instructions read: they ignore the low 13 bits.
inline float read_tf32(uint32_t bits) {
  bits &= ~0x1fffU;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

struct Tf32Parts {
  float a[4], b[2];
};

/// mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32: d = a b + c.
inline void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                             const float (&c)[4], Site site = here("mma.m16n8k8.tf32")) {
  Tf32Parts mine;
  for (int i = 0; i < 4; ++i) mine.a[i] = read_tf32(a[i]);
  for (int i = 0; i < 2; ++i) mine.b[i] = read_tf32(b[i]);
  const auto all = exchange_all(mine, site);
  // Words of A: rows 0-7 and 8-15 of k 0-3, then of k 4-7; four lanes share a row, one k each.
  const unsigned group = current->lane / 4, in_group = current->lane % 4;
  for (unsigned element = 0; element < 4; ++element) {
    const unsigned lower = element / 2, column = 2 * in_group + element % 2;
    float sum = c[element];
    for (unsigned k = 0; k < 8; ++k) {
      sum += all[4 * group + k % 4].a[2 * (k / 4) + lower] * all[4 * column + k % 4].b[k / 4];
    }
    d[element] = sum;
  }
}

}  // namespace greta_host

#endif
