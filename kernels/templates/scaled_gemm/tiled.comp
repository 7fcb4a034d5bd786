#version 460
// Scaled products of numbers of eight bits by plain arithmetic. A workgroup computes BM x BN of C, a
// thread TM x TN of these, whose rows and columns are as far apart as there are threads. It decodes
// BK of k of both operands to shared memory at a time, VEC bytes with each load, and with SCALES=2
// scales the sums of each 128 k.

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(TM) || !defined(TN) || !defined(VEC)
#error "BM BN BK TM TN VEC must be defined"
#endif
#if BM % TM != 0 || BN % TN != 0 || BK % VEC != 0 || (VEC != 4 && VEC != 16) || 128 % BK != 0
#error "TM divides BM, TN divides BN, VEC is 4 or 16 and divides BK, BK divides 128"
#endif

#include "scaled_gemm/numbers.glsl"

#define ROWS_OF_THREADS (BM / TM)
#define COLUMNS_OF_THREADS (BN / TN)
#define THREADS (ROWS_OF_THREADS * COLUMNS_OF_THREADS)
#define PITCH_A (BM + 1)
#define PITCH_B (BN + 1)

layout(local_size_x = THREADS) in;

layout(push_constant, std430) uniform Arguments {
  uint64_t a, b, scales_a, scales_b, c;
  uint m, n, k, tiles_n;
} args;

shared Number tile_a[BK * PITCH_A];
shared Number tile_b[BK * PITCH_B];

// Number of VEC loaded bytes, which are words.
#if VEC == 16
#define RAW uvec4
#define WORD_OF(raw, i) raw[i]
RAW load_raw(uint64_t at) { return Quad(at).v; }
#else
#define RAW uint
#define WORD_OF(raw, i) raw
RAW load_raw(uint64_t at) { return Word(at).v; }
#endif

// What lies past the end of k is zero, and rows past the last one repeat it.
RAW load_line(uint64_t operand, uint row, uint rows, uint k) {
  if (k >= args.k) return RAW(0);
  return load_raw(operand + uint64_t(min(row, rows - 1)) * args.k + k);
}

void main() {
  const uint block = workgroup();
  const uint first_row = block / args.tiles_n * BM, first_col = block % args.tiles_n * BN;
  if (first_row >= args.m) return;  // of the whole workgroup
  const uint thread = gl_LocalInvocationIndex;
  const uint row = thread / COLUMNS_OF_THREADS, col = thread % COLUMNS_OF_THREADS;
  const uint blocks = (args.k + SCALE_BLOCK - 1) / SCALE_BLOCK;

  Number sum[TM * TN];
  [[unroll]] for (uint i = 0; i < TM * TN; ++i) sum[i] = Number(0);
#if SCALES == 2
  float total[TM * TN];
  [[unroll]] for (uint i = 0; i < TM * TN; ++i) total[i] = 0.0;
#endif
  for (uint at = 0; at < args.k; at += BK) {
    if (at > 0) barrier();  // all have read the tiles before
    for (uint i = thread; i < BM * BK / VEC; i += THREADS) {
      const uint line = i / (BK / VEC), place = i % (BK / VEC) * VEC;
      const RAW raw = load_line(args.a, first_row + line, args.m, at + place);
      [[unroll]] for (uint j = 0; j < VEC; ++j)
        tile_a[(place + j) * PITCH_A + line] = number_of(WORD_OF(raw, j / 4) >> j % 4 * 8);
    }
    for (uint i = thread; i < BN * BK / VEC; i += THREADS) {
      const uint line = i / (BK / VEC), place = i % (BK / VEC) * VEC;
      const RAW raw = load_line(args.b, first_col + line, args.n, at + place);
      [[unroll]] for (uint j = 0; j < VEC; ++j)
        tile_b[(place + j) * PITCH_B + line] = number_of(WORD_OF(raw, j / 4) >> j % 4 * 8);
    }
    barrier();
    [[dont_unroll]] for (uint i = 0; i < BK; ++i) {
      Number of_b[TN];
      [[unroll]] for (uint t = 0; t < TN; ++t)
        of_b[t] = tile_b[i * PITCH_B + col + t * COLUMNS_OF_THREADS];
      [[unroll]] for (uint r = 0; r < TM; ++r) {
        const Number of_a = tile_a[i * PITCH_A + row + r * ROWS_OF_THREADS];
        [[unroll]] for (uint t = 0; t < TN; ++t)
          sum[r * TN + t] = with_product(of_a, of_b[t], sum[r * TN + t]);
      }
    }
#if SCALES == 2
    if ((at + BK) % SCALE_BLOCK == 0 || at + BK >= args.k) {
      [[unroll]] for (uint i = 0; i < TM * TN; ++i) {
        const uint of_a = min(first_row + row + i / TN * ROWS_OF_THREADS, args.m - 1);
        const uint of_b = min(first_col + col + i % TN * COLUMNS_OF_THREADS, args.n - 1);
        const float scale = scale_a(args.scales_a, of_a, at, blocks) *
                            scale_b(args.scales_b, of_b, at, blocks);
        total[i] = fma(float(sum[i]), scale, total[i]);
        sum[i] = Number(0);
      }
    }
#endif
  }
  [[unroll]] for (uint i = 0; i < TM * TN; ++i) {
    const uint to_row = first_row + row + i / TN * ROWS_OF_THREADS;
    const uint to_col = first_col + col + i % TN * COLUMNS_OF_THREADS;
    if (to_row < args.m && to_col < args.n) {
#if SCALES == 2
      const float value = total[i];
#else
      const float value = float(sum[i]) * (scale_a(args.scales_a, to_row, 0, blocks) *
                                           scale_b(args.scales_b, to_col, 0, blocks));
#endif
      store_out(args.c + (uint64_t(to_row) * args.n + to_col) * OUT_BYTES, value);
    }
  }
}
