#version 460
// Scaled products of few rows by plain arithmetic, bound by reading B once. A workgroup has COLS x TN
// columns of ROWS rows of C. Its threads divide k, or with SPLIT its slice of k, among LANES = THREADS /
// COLS, each with UNROLL chunks of 16 k of each of its TN columns in flight, and add their sums in the
// end. With SCALES >= 2 each chunk's sums are scaled; with SCALES=3 a chunk is the 32 k of a scale. With
// SPLIT > 1 the workgroup's z picks a slice of k, and the last slice to arrive adds them all, in the order
// of k whatever the order of arrival.

#if !defined(ROWS) || !defined(THREADS) || !defined(COLS) || !defined(TN) || !defined(UNROLL) || \
    !defined(SPLIT)
#error "ROWS THREADS COLS TN UNROLL SPLIT must be defined"
#endif
#if ROWS < 1 || TN < 1 || UNROLL < 1 || SPLIT < 1 || THREADS % COLS != 0
#error "ROWS, TN, UNROLL and SPLIT are at least 1; COLS divides THREADS"
#endif

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#include "scaled_gemm/numbers.glsl"

layout(local_size_x = THREADS) in;

layout(push_constant, std430) uniform Arguments {
  uint64_t a, b, scales_a, scales_b, c;
  uint m, n, k, tiles_n;
#if SPLIT > 1
  uint64_t counters;  // slices that are done, one for each tile; zero
  uint64_t partial;   // sums of each slice, SPLIT x m x n
  uint slice;         // k of a slice
#endif
} args;

// A sum of products of any k: with SCALES >= 2 of scaled ones. Others are scaled in the end.
#if FORMAT == 4 && SCALES < 2
#define Total int
#else
#define Total float
#endif

#define LANES (THREADS / COLS)
#define REDUCED Total
Total merge(Total x, Total y) { return x + y; }
Total across(Total value, uint mask) { return subgroupShuffleXor(value, mask); }
#include "common/reduce.glsl"

#if SPLIT > 1
#include "common/arrival.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Partial { Total v; };

Partial partial_total(uint slice, uint row, uint col) {
  return Partial(args.partial + ((uint64_t(slice) * args.m + row) * args.n + col) * 4);
}
#endif

#define CHUNK_K (SCALES == 3 ? 32 : 16)
#define LOADS_A (CHUNK_K / OF_BYTE_A / 16)
#define LOADS_B (CHUNK_K / OF_BYTE_B / 16)

Total total[ROWS * TN];
uint first_row, last_row, first_col;

// Adds the products of a chunk of each column with the same k of A, from k on.
void add_chunk(uvec4 b[TN * LOADS_B], uint k) {
  Number part[ROWS * TN];
  [[unroll]] for (uint i = 0; i < ROWS * TN; ++i) part[i] = Number(0);
  uvec4 rows[ROWS * LOADS_A];
  [[unroll]] for (uint i = 0; i < ROWS * LOADS_A; ++i) {
    const uint64_t row = first_row + min(i / LOADS_A, last_row);
    rows[i] = Quad(args.a + (row * args.k + k) / OF_BYTE_A + i % LOADS_A * 16).v;
  }
  [[unroll]] for (uint e = 0; e < CHUNK_K; ++e) {
    const uint in_a = e / (16 * OF_BYTE_A), word_a = e / (4 * OF_BYTE_A) % 4;
    const uint in_b = e / (16 * OF_BYTE_B), word_b = e / (4 * OF_BYTE_B) % 4;
    const uint shift_a = e % (4 * OF_BYTE_A) * (8 / OF_BYTE_A);
    const uint shift_b = e % (4 * OF_BYTE_B) * (8 / OF_BYTE_B);
    Number of_b[TN];
    [[unroll]] for (uint t = 0; t < TN; ++t)
      of_b[t] = number_of_b(b[t * LOADS_B + in_b][word_b] >> shift_b);
    [[unroll]] for (uint row = 0; row < ROWS; ++row) {
      const Number of_a = number_of(rows[row * LOADS_A + in_a][word_a] >> shift_a);
      [[unroll]] for (uint t = 0; t < TN; ++t)
        part[row * TN + t] = with_product(of_a, of_b[t], part[row * TN + t]);
    }
  }
#if SCALES >= 2
  const uint blocks = (args.k + SCALE_BLOCK - 1) / SCALE_BLOCK;
  [[unroll]] for (uint i = 0; i < ROWS * TN; ++i) {
    const float scale = scale_a(args.scales_a, first_row + min(i / TN, last_row), k, blocks) *
                        scale_b(args.scales_b, min(first_col + i % TN, args.n - 1), k, blocks);
    total[i] = fma(float(part[i]), scale, total[i]);
  }
#else
  [[unroll]] for (uint i = 0; i < ROWS * TN; ++i) total[i] += part[i];
#endif
}

void store_total(uint row, uint col, Total sum) {
  float value = float(sum);
#if SCALES < 2
  value *= scale_a(args.scales_a, row, 0, 1) * scale_b(args.scales_b, col, 0, 1);
#endif
  store_out(args.c + (uint64_t(row) * args.n + col) * OUT_BYTES, value);
}

void main() {
  const uint lane = thread_index() % LANES, column = thread_index() / LANES;
  const uint tile_col = workgroup() % args.tiles_n * (COLS * TN);
  first_row = workgroup() / args.tiles_n * ROWS;
  first_col = tile_col + column * TN;
  if (first_row >= args.m) return;  // of the whole workgroup
  last_row = min(ROWS - 1, args.m - 1 - first_row);
#if SPLIT > 1
  const uint begin = min(gl_WorkGroupID.z * args.slice, args.k);
  const uint end = min(begin + args.slice, args.k);
#else
  const uint begin = 0, end = args.k;
#endif

  [[unroll]] for (uint i = 0; i < ROWS * TN; ++i) total[i] = Total(0);
  for (uint at = begin + lane * CHUNK_K; at < end; at += LANES * UNROLL * CHUNK_K) {
    uvec4 chunk[UNROLL][TN * LOADS_B];
    [[unroll]] for (uint i = 0; i < UNROLL * TN; ++i) {
      // Threads past the last column or chunk repeat it.
      const uint64_t col = min(first_col + i % TN, args.n - 1);
      const uint from = min(at + i / TN * (LANES * CHUNK_K), end - CHUNK_K);
      [[unroll]] for (uint j = 0; j < LOADS_B; ++j)
        chunk[i / TN][i % TN * LOADS_B + j] =
            Quad(args.b + (col * args.k + from) / OF_BYTE_B + j * 16).v;
    }
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      const uint from = at + u * (LANES * CHUNK_K);
      if (from < end) add_chunk(chunk[u], from);
    }
  }
  [[unroll]] for (uint i = 0; i < ROWS * TN; ++i) {
    const Total sum = reduce_threads(total[i], i % 2);
    const uint row = first_row + i / TN, col = first_col + i % TN;
    if (lane == 0 && i / TN <= last_row && col < args.n) {
#if SPLIT > 1
      partial_total(gl_WorkGroupID.z, row, col).v = sum;
#else
      store_total(row, col, sum);
#endif
    }
  }
#if SPLIT > 1
  if (!last_to_arrive(args.counters + uint64_t(workgroup()) * 4, SPLIT)) return;
  for (uint e = gl_LocalInvocationIndex; e < ROWS * COLS * TN; e += THREADS) {
    const uint row = first_row + e / (COLS * TN), col = tile_col + e % (COLS * TN);
    if (row >= args.m || col >= args.n) continue;
    Total sum = Total(0);
    [[unroll]] for (uint s = 0; s < SPLIT; ++s) sum += partial_total(s, row, col).v;
    store_total(row, col, sum);
  }
#endif
}
