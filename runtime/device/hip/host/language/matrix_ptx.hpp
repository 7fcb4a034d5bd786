#pragma once

// NVIDIA's matrix instructions as a warp of sm_80 executes them, with the layouts of the PTX manual
// ("Warp-level matrix instructions"). Registers are 32-bit words that hold two 16-bit elements, the
// one with the lower index in the lower half. Sums are f32.

#if GRETA_HOST == 80

#include "wave.hpp"

namespace greta_host {

/// ldmatrix.sync.aligned.m8n8.x{N}[.trans].shared.b16, N = 1, 2 or 4: lane i gives the address of
/// row i % 8 of matrix i / 8 (16 bytes, aligned; addresses of lanes from 8 N on are not looked at).
/// Register j of lane i gets elements 2 (i % 4) and 2 (i % 4) + 1 of row i / 4 of matrix j; with
/// `trans` of column i / 4.
template <int N>
void ldmatrix(uint32_t (&d)[N], const void* row, GRETA_HOST_HERE);
template <int N>
void ldmatrix_trans(uint32_t (&d)[N], const void* row, GRETA_HOST_HERE);

/// mma.sync.aligned.m16n8k16.row.col.f32.{f16,bf16}.{f16,bf16}.f32: d = a b + c.
void mma_m16n8k16_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      const float (&c)[4], GRETA_HOST_HERE);
void mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                       const float (&c)[4], GRETA_HOST_HERE);
/// mma.sync.aligned.m16n8k8 likewise.
void mma_m16n8k8_f16(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[1],
                     const float (&c)[4], GRETA_HOST_HERE);
void mma_m16n8k8_bf16(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[1],
                      const float (&c)[4], GRETA_HOST_HERE);

}  // namespace greta_host

#endif
