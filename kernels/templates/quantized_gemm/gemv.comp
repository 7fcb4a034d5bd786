#version 460
// Products with quantised weights, bound by reading these once. A workgroup has COLS x TN columns of
// ROWS rows of C. Its threads divide K among LANES = THREADS / COLS, each with UNROLL chunks of 32
// weights of each of its TN columns in flight, and add their sums in the end. With NORM, A is multiplied by
// its weight as it is loaded, and its squares are one more sum, by which the others are scaled in the end.
//
// Neighbouring threads divide K. With ACROSS=1, for words of AWQ and GPTQ, they have neighbouring columns, so that they
// load neighbouring words; and with SPLIT > 1 workgroups share K, too.

#if !defined(ROWS) || !defined(THREADS) || !defined(COLS) || !defined(TN) || !defined(UNROLL) || !defined(ACROSS) || \
    !defined(SPLIT)
#error "ROWS THREADS COLS TN UNROLL ACROSS SPLIT must be defined"
#endif
#if ROWS < 1 || TN < 1 || UNROLL < 1 || THREADS % COLS != 0
#error "ROWS, TN and UNROLL are at least 1; COLS divides THREADS"
#endif
#if SPLIT < 1 || !ACROSS && SPLIT > 1
#error "SPLIT is at least 1; above that it needs ACROSS=1"
#endif
#if !defined(NORM)
#error "NORM must be defined"
#endif

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#include "quantized_gemm/stored_weights.glsl"

layout(local_size_x = THREADS) in;

layout(push_constant, std430) uniform Arguments {
  uint64_t a, b, scales, zeros, added, c;
  uint m, n, k, tiles_n;
#if NORM
  uint64_t weight;
  float epsilon;
#endif
#if SPLIT > 1
  uint64_t counters;  // slices that are done, one for each tile; zero
  uint64_t partial;   // sums of each slice, SPLIT x tiles x TILE_SUMS
#endif
} args;

#include "quantized_gemm/columns.glsl"

#if GATED && TN % 2 != 0
#error "a thread has the gate and the up of a column"
#endif

#define LANES (THREADS / COLS)
#if ACROSS
#include "quantized_gemm/gemv_sums.glsl"
#else
#define REDUCED float
float merge(float x, float y) { return x + y; }
float across(float value, uint mask) { return subgroupShuffleXor(value, mask); }
#include "common/reduce.glsl"
#endif

float sum[ROWS * TN];
#if NORM
float squares[ROWS];
#endif

// Eight neighbours of A.
void load_a8(uint64_t at, out float a[8]) {
#if IN_F16 || IN_BF16
  unpack(Quad(at).v, a);
#else
  const vec4 low = F32x4(at).v, high = F32x4(at + 16).v;
  a = float[8](low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w);
#endif
}

// Adds the products of a chunk of each column with ROWS rows of A from `first_row` on, of which `last` is
// the last one that A has, and with NORM the squares of these. `first`: the chunk's first k.
void add_products(uint first_row, uint last, uint first, Columns chunk) {
  const uint64_t a = args.a + (uint64_t(first_row) * args.k + first) * IN_BYTES;
#if NORM
  float some[ROWS];
  [[unroll]] for (uint row = 0; row < ROWS; ++row) some[row] = 0.0;
#endif
  const uint eights = CHUNK_WEIGHTS / 8, of_segment = eights / SEGMENTS;
  [[unroll]] for (uint segment = 0; segment < SEGMENTS; ++segment) {
    float part[ROWS * TN];
    [[unroll]] for (uint i = 0; i < ROWS * TN; ++i) part[i] = 0.0;
    [[unroll]] for (uint e = segment * of_segment; e < (segment + 1) * of_segment; ++e) {
      float weight[TN * 8];
      [[unroll]] for (uint i = 0; i < TN * 8; ++i) weight[i] = column_weight(chunk, i / 8, 8 * e + i % 8);
#if NORM
      float of_norm[8];
      load_a8(args.weight + uint64_t(first + 8 * e) * IN_BYTES, of_norm);
#endif
      [[unroll]] for (uint row = 0; row < ROWS; ++row) {
        float x[8];
        load_a8(a + (uint64_t(min(row, last)) * args.k + 8 * e) * IN_BYTES, x);
#if NORM
        [[unroll]] for (uint i = 0; i < 8; ++i) {
          some[row] = fma(x[i], x[i], some[row]);
          x[i] *= of_norm[i];
        }
#endif
        [[unroll]] for (uint i = 0; i < TN * 8; ++i)
          part[row * TN + i / 8] = fma(x[i % 8], weight[i], part[row * TN + i / 8]);
      }
    }
    [[unroll]] for (uint i = 0; i < ROWS * TN; ++i)
      sum[i] = fma(column_scale(chunk, i % TN, segment), part[i], sum[i]);
  }
#if NORM
  [[unroll]] for (uint row = 0; row < ROWS; ++row) squares[row] += some[row];
#endif
}

#if ACROSS
// Stores what the sums of a tile are worth.
void put_tile(uint first_row, uint last_row, uint tile_col) {
  for (uint e = gl_LocalInvocationIndex; e < ROWS * COLS * TN / RUNS; e += THREADS) {
    const uint row = e / (COLS * TN / RUNS), at = e % (COLS * TN / RUNS) * RUNS;
    const uint col = (tile_col + at) / RUNS, sums = row * SUMS_OF_ROW * COLS + at / TN;
    if (row > last_row || col >= args.n) continue;
#if NORM
    const float factor = inversesqrt(met[sums + TN * COLS] / float(args.k) + args.epsilon);
#else
    const float factor = 1.0;
#endif
    const float total = met[sums + at % TN * COLS] * factor;
#if GATED
    put_gated(args.c, first_row + row, col, total, met[sums + (at % TN + 1) * COLS] * factor);
#else
    put(args.c, first_row + row, col, total);
#endif
  }
}
#else
// Adds up what the threads of each column have, and stores what it is worth.
void put_columns(uint lane, uint first_row, uint last_row, uint first_col) {
#if GATED
  float gate = 0.0;
#endif
#if NORM
  [[unroll]] for (uint row = 0; row < ROWS; ++row) {
    const float total = reduce_threads(squares[row], row % 2);
    const float factor = inversesqrt(total / float(args.k) + args.epsilon);
    [[unroll]] for (uint t = 0; t < TN; ++t) sum[row * TN + t] *= factor;
  }
  barrier();  // all have read the parts of the last sums
#endif
  [[unroll]] for (uint i = 0; i < ROWS * TN; ++i) {
    const float total = reduce_threads(sum[i], i % 2);
    const uint row = i / TN, col = first_col + i % TN;
    const bool stores = lane == 0 && row <= last_row && col < product_columns();
#if GATED
    if (stores && i % 2 == 1) put_gated(args.c, first_row + row, col / 2, gate, total);
    gate = total;
#else
    if (stores) put(args.c, first_row + row, col, total);
#endif
  }
}
#endif

void main() {
#if ACROSS
  const uint lane = thread_index() / COLS, column = thread_index() % COLS;
#else
  const uint lane = thread_index() % LANES, column = thread_index() / LANES;
#endif
  const uint first_row = workgroup() / args.tiles_n * ROWS;
  const uint tile_col = workgroup() % args.tiles_n * (COLS * TN), first_col = tile_col + column * TN;
  if (first_row >= args.m) return;  // of the whole workgroup
  const uint last_row = min(ROWS - 1, args.m - 1 - first_row);
  const uint chunks = args.k / CHUNK_WEIGHTS;
#if SPLIT > 1
  const uint begin = chunks * gl_WorkGroupID.z / SPLIT, end = chunks * (gl_WorkGroupID.z + 1) / SPLIT;
#else
  const uint begin = 0, end = chunks;
#endif

  [[unroll]] for (uint i = 0; i < ROWS * TN; ++i) sum[i] = 0.0;
#if NORM
  [[unroll]] for (uint row = 0; row < ROWS; ++row) squares[row] = 0.0;
#endif
  for (uint at = begin + lane; at < end; at += LANES * UNROLL) {
    Columns chunk[UNROLL];
    // Threads past the last chunk repeat it.
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) chunk[u] = load_columns(first_col, min(at + u * LANES, end - 1));
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      if (at + u * LANES < end) {
        add_products(first_row, last_row, (at + u * LANES) * CHUNK_WEIGHTS, chunk[u]);
      }
    }
  }
#if ACROSS
  [[unroll]] for (uint row = 0; row < ROWS; ++row) {
    [[unroll]] for (uint t = 0; t < TN; ++t) meet_in_subgroup(sum[row * TN + t], row * SUMS_OF_ROW + t);
#if NORM
    meet_in_subgroup(squares[row], row * SUMS_OF_ROW + TN);
#endif
  }
  if (!meet(workgroup(), args.tiles_n * ((args.m + ROWS - 1) / ROWS))) return;
  put_tile(first_row, last_row, tile_col);
#else
  put_columns(lane, first_row, last_row, first_col);
#endif
}
