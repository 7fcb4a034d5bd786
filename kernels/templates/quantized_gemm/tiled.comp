#version 460
// Products of many rows with quantised weights by plain arithmetic. A workgroup computes BM x BN of C, a
// thread TM x TN of these, whose rows and columns are as far apart as there are threads. It brings BK of
// k to shared memory at a time, A and the weights in f32, so that a weight is decoded once for BM rows.
// Sums of BK products are added: roundings of a long sum of equal products would add up.

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(TM) || !defined(TN)
#error "BM BN BK TM TN must be defined"
#endif
#if BM % TM != 0 || BN % TN != 0 || BK % 32 != 0 || BK < 32
#error "TM divides BM, TN divides BN, BK is a multiple of 32"
#endif

#include "quantized_gemm/stored_weights.glsl"

#define ROW_THREADS (BM / TM)
#define COLUMN_THREADS (BN / TN)
#define THREADS (ROW_THREADS * COLUMN_THREADS)
#define PITCH_A (BM + 4)
#define PITCH_B (BN + 4)

layout(local_size_x = THREADS) in;

layout(push_constant, std430) uniform Arguments {
  uint64_t a, b, scales, zeros, added, c;
  uint m, n, k, tiles_n;
#if GROUPED
  uint64_t group_rows;  // ends or numbers of rows of the groups, i32
  uint groups;
#endif
} args;

#include "common/groups.glsl"
#include "quantized_gemm/epilogue.glsl"

#if GROUPED == 3
#error "there are no batches"
#endif
#if GATED && TN % 2 != 0
#error "a thread has the gate and the up of a column"
#endif

shared float tile_a[BK * PITCH_A];
shared float tile_b[BK * PITCH_B];

// Eight neighbours of A.
void load_a8(uint64_t at, out float a[8]) {
#if IN_F16 || IN_BF16
  unpack(Quad(at).v, a);
#else
  const vec4 low = F32x4(at).v, high = F32x4(at + 16).v;
  a = float[8](low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w);
#endif
}

// What lies past the end of k is zero, and lines past the last one repeat it.
void load_rows(Group group, uint at) {
  for (uint i = gl_LocalInvocationIndex; i < BM * (BK / 8); i += THREADS) {
    const uint line = i % BM, place = i / BM * 8;
    float x[8] = float[8](0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    if (at + place < args.k) {
      const uint64_t row = group.first + min(group.row + line, group.rows - 1);
      load_a8(args.a + (row * args.k + at + place) * IN_BYTES, x);
    }
    [[unroll]] for (uint e = 0; e < 8; ++e) tile_a[(place + e) * PITCH_A + line] = x[e];
  }
}

// The tile's columns from `first` on, of weights whose rows begin with `first_line`.
void load_weights(uint first_line, uint first, uint at) {
  for (uint i = gl_LocalInvocationIndex; i < BN * (BK / CHUNK_WEIGHTS); i += THREADS) {
    const uint line = i % BN, place = i / BN * CHUNK_WEIGHTS;
    const bool inside = at + place < args.k;
    const WeightChunk chunk =
        load_stored_chunk(args.b, args.scales, args.zeros, product_columns(),
                          first_line + line_of_column(min(first + line, product_columns() - 1)),
                          inside ? (at + place) / CHUNK_WEIGHTS : 0, args.k);
    [[unroll]] for (uint e = 0; e < CHUNK_WEIGHTS; ++e) {
      const float weight = scale_of(chunk, e * SEGMENTS / CHUNK_WEIGHTS) * weight_of(chunk, e);
      tile_b[(place + e) * PITCH_B + line] = inside ? weight : 0.0;
    }
  }
}

// The place of a thread's column t in the tile.
uint place_of_column(uint thread, uint t) {
#if GATED
  return (t / 2 * COLUMN_THREADS + thread) * 2 + t % 2;
#else
  return thread + t * COLUMN_THREADS;
#endif
}

void main() {
  const uint block = workgroup();
  const uint line = block / args.tiles_n, first_col = block % args.tiles_n * BN;
#if GROUPED == 2
  // A launch may have more workgroups than tiles.
  if (line / ((args.m + (BM - 1)) / BM) >= args.groups) return;
#endif
  const Group group = find_group(BM, line);
  if (group.row >= group.rows) return;  // of the whole workgroup
  const uint64_t c = args.c + uint64_t(group.first) * args.n * OUT_BYTES;
  const uint thread = gl_LocalInvocationIndex;
  const uint row = thread / COLUMN_THREADS, col = thread % COLUMN_THREADS;

  float total[TM * TN];
  [[unroll]] for (uint i = 0; i < TM * TN; ++i) total[i] = 0.0;
  for (uint at = 0; at < args.k; at += BK) {
    if (at > 0) barrier();  // all have read the tiles before
    load_rows(group, at);
    load_weights(group.index * product_columns(), first_col, at);
    barrier();
    float sum[TM * TN];
    [[unroll]] for (uint i = 0; i < TM * TN; ++i) sum[i] = 0.0;
    [[dont_unroll]] for (uint i = 0; i < BK; ++i) {
      float of_b[TN];
      [[unroll]] for (uint t = 0; t < TN; ++t)
        of_b[t] = tile_b[i * PITCH_B + place_of_column(col, t)];
      [[unroll]] for (uint r = 0; r < TM; ++r) {
        const float of_a = tile_a[i * PITCH_A + row + r * ROW_THREADS];
        [[unroll]] for (uint t = 0; t < TN; ++t)
          sum[r * TN + t] = fma(of_a, of_b[t], sum[r * TN + t]);
      }
    }
    [[unroll]] for (uint i = 0; i < TM * TN; ++i) total[i] += sum[i];
  }
  [[unroll]] for (uint i = 0; i < TM * TN; ++i) {
    const uint to_row = group.row + row + i / TN * ROW_THREADS;
    const uint to_col = first_col + place_of_column(col, i % TN);
    if (to_row >= group.rows || to_col >= product_columns()) continue;
#if GATED
    if (i % 2 == 0) put_gated(c, to_row, to_col / 2, total[i], total[i + 1]);
#else
    put(c, to_row, to_col, total[i]);
#endif
  }
}
