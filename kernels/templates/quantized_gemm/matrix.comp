#version 460
// Products of many rows with quantised weights on matrix cores. A workgroup computes a BM x BN tile of C from
// tiles in shared memory, as gemm/matrix.comp does (gemm/matrix_memory.glsl). Elements of A come there as
// they are. Weights are loaded as they are stored, DECODE of a row at a time, while the step before is
// multiplied. They are decoded in registers, and each of their PARTS (weight_parts.glsl) has a tile.

#if !defined(DECODE) || !defined(PARTS) || !defined(SWIZZLE)
#error "DECODE PARTS and SWIZZLE must be defined"
#endif

#define A_ALONG_K 1
#define B_ALONG_K 1
#define CHUNK_WEIGHTS DECODE

#include "gemm/matrix_memory.glsl"
#include "quantized_gemm/stored_weights.glsl"
#include "quantized_gemm/weight_parts.glsl"

#if BK % 32 != 0 || BN * BK % (DECODE * THREADS) != 0
#error "BK is a multiple of 32, and every thread must decode the same number of chunks"
#endif

layout(push_constant, std430) uniform Arguments {
  uint64_t a, b, scales, zeros, added, c;
  uint m, n, k;
  uint tiles_n, tiles_m;  // tiles of C
#if GROUPED
  uint64_t group_rows;  // ends or numbers of rows of the groups, i32
  uint groups;
#endif
} args;

#include "common/groups.glsl"
#include "quantized_gemm/epilogue.glsl"
#include "gemm/tile_order.glsl"

#if GROUPED == 3
#error "there are no batches"
#endif

Group group;      // whose rows the tile has
uint64_t a_next;  // this thread's first chunk of A's K step to load next

#define LOAD load_a
#define STORE store_a
#define FIRST_CHUNK first_a
#define CHUNK a_chunk
#define VEC 8
#define BASE a_next
#define PLACE 0
#define PITCH A_PITCH
#define SPAN BM
#define START row0
#define EXTENT group.rows
#define ALONG_K 1
#define STRIDE args.k
#define PAIRS 0
#include "gemm/matrix_loader.glsl"

// A thread's chunks of a step. Lanes have neighbours in k; of packed weights, whose words or units are side by
// side along n, neighbouring lines.
#define WEIGHT_CHUNKS (BN * BK / (DECODE * THREADS))
#if PACKING
#define CHUNK_LINE(i) ((tid + (i) * THREADS) % BN)
#define CHUNK_PLACE(i) ((tid + (i) * THREADS) / BN * DECODE)
#else
#define CHUNK_LINE(i) ((tid + (i) * THREADS) / (BK / DECODE))
#define CHUNK_PLACE(i) ((tid + (i) * THREADS) % (BK / DECODE) * DECODE)
#endif
WeightChunk weights[WEIGHT_CHUNKS];
uint weights_at;  // the k of the step that is loaded

// What lies past k is 0 in shared memory; here the line's first weights are in its place. Lines past the
// last one repeat that.
void load_weights(uint k0) {
  weights_at = k0;
  const uint first_line = group.index * product_columns(), last = product_columns() - 1;
  [[unroll]] for (uint i = 0; i < WEIGHT_CHUNKS; ++i) {
    const uint at = k0 + CHUNK_PLACE(i), column = min(col0 + CHUNK_LINE(i), last);
    weights[i] = load_stored_chunk(args.b, args.scales, args.zeros, product_columns(),
                                   first_line + line_of_column(column), at < args.k ? at / DECODE : 0, args.k);
  }
}

void store_weights(uint stage) {
  [[unroll]] for (uint i = 0; i < WEIGHT_CHUNKS; ++i) {
    const uint place = stage * STAGE_CHUNKS + A_CHUNKS + CHUNK_LINE(i) * B_PITCH + CHUNK_PLACE(i) / 8;
    const bool inside = weights_at + CHUNK_PLACE(i) < args.k;
    [[unroll]] for (uint first = 0; first < DECODE; first += 8) {
      const float scale = WEIGHT_FACTOR * scale_of(weights[i], first * SEGMENTS / DECODE);
      float x[8];
      [[unroll]] for (uint e = 0; e < 8; ++e) x[e] = inside ? scale * weight_of(weights[i], first + e) : 0.0;
      [[unroll]] for (uint part = 0; part < PARTS; ++part)
        matrix_memory[place + part * B_CHUNKS + first / 8] = take_part(part, x);
    }
  }
}

void load(uint k0, uint k_end) {
  load_a(k0, k_end);
  load_weights(k0);
  a_next += BK * 2;
}

void store(uint stage) {
  store_a(stage);
  store_weights(stage);
}

void put_four(uint row, uint col, vec4 sum) {
  const uint64_t c = args.c + uint64_t(group.first) * args.n * OUT_BYTES;
  if (row < group.rows) put4(c, row, col, sum * (1.0 / WEIGHT_FACTOR));
}

#include "gemm/matrix_products.glsl"

void main() {
  if (workgroup() >= args.tiles_m * args.tiles_n) return;
  tid = gl_LocalInvocationIndex;
  pick_tile();
  group = find_group(BM, row0 / BM);
  if (group.row >= group.rows) return;  // of the whole workgroup
  row0 = group.row;
  a_next = first_a(args.a + uint64_t(group.first) * args.k * 2, 0);
  multiply_steps(0, args.k);
  put_sums();
}
