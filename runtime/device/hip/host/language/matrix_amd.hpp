#pragma once

// AMD's matrix instructions, with the layouts of the CDNA3, RDNA3 and RDNA4 instruction set
// manuals. Registers are 32-bit words that hold two 16-bit elements, the one with the lower index
// in the lower half, as the vectors that clang's builtins take. Sums are f32.

#include "wave.hpp"

namespace greta_host {

#if GRETA_HOST == 942

/// v_mfma_f32_16x16x4_f32 (__builtin_amdgcn_mfma_f32_16x16x4f32): lane i has a[i % 16][i / 16] and
/// b[i / 16][i % 16]; d[j] is row 4 (i / 16) + j, column i % 16.
void mfma_f32_16x16x4_f32(float (&d)[4], float a, float b, const float (&c)[4], GRETA_HOST_HERE);
/// v_mfma_f32_16x16x16_{f16,bf16} (…16x16x16f16, …16x16x16bf16_1k): element j of lane i is
/// a[i % 16][4 (i / 16) + j] and b[4 (i / 16) + j][i % 16]; d as above.
void mfma_f32_16x16x16_f16(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[2],
                           const float (&c)[4], GRETA_HOST_HERE);
void mfma_f32_16x16x16_bf16(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[2],
                            const float (&c)[4], GRETA_HOST_HERE);
/// v_mfma_f32_32x32x8_{f16,bf16} (…32x32x8f16, …32x32x8bf16_1k): element j of lane i is
/// a[i % 32][4 (i / 32) + j] and b[4 (i / 32) + j][i % 32]; d[j] is row
/// 8 (j / 4) + 4 (i / 32) + j % 4, column i % 32.
void mfma_f32_32x32x8_f16(float (&d)[16], const uint32_t (&a)[2], const uint32_t (&b)[2],
                          const float (&c)[16], GRETA_HOST_HERE);
void mfma_f32_32x32x8_bf16(float (&d)[16], const uint32_t (&a)[2], const uint32_t (&b)[2],
                           const float (&c)[16], GRETA_HOST_HERE);

#elif GRETA_HOST == 1100

/// v_wmma_f32_16x16x16_{f16,bf16} of gfx11, wave of 32 (…_w32): element k of lane i is a[i % 16][k]
/// and b[k][i % 16]; lanes 16 to 31 repeat lanes 0 to 15, which is checked. d[j] is row
/// 2 j + i / 16, column i % 16.
void wmma_f32_16x16x16_f16(float (&d)[8], const uint32_t (&a)[8], const uint32_t (&b)[8],
                           const float (&c)[8], GRETA_HOST_HERE);
void wmma_f32_16x16x16_bf16(float (&d)[8], const uint32_t (&a)[8], const uint32_t (&b)[8],
                            const float (&c)[8], GRETA_HOST_HERE);

#elif GRETA_HOST == 1201

/// v_wmma_f32_16x16x16_{f16,bf16} of gfx12, wave of 32 (…_w32_gfx12): element j of lane i is
/// a[i % 16][8 (i / 16) + j] and b[8 (i / 16) + j][i % 16]; d[j] is row 8 (i / 16) + j, column
/// i % 16.
void wmma_f32_16x16x16_f16(float (&d)[8], const uint32_t (&a)[4], const uint32_t (&b)[4],
                           const float (&c)[8], GRETA_HOST_HERE);
void wmma_f32_16x16x16_bf16(float (&d)[8], const uint32_t (&a)[4], const uint32_t (&b)[4],
                            const float (&c)[8], GRETA_HOST_HERE);

#endif

}  // namespace greta_host
