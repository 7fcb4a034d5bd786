#version 460
// Scaled products of numbers of eight bits by plain arithmetic. A workgroup computes BM x BN of C, a
// thread TM x TN of these, whose rows and columns are as far apart as there are threads. It decodes
// BK of k of both operands to shared memory at a time, VEC bytes with each load, and with SCALES >= 2
// scales the sums of each 128 k, or with SCALES=3 of each 32.

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(TM) || !defined(TN) || !defined(VEC)
#error "BM BN BK TM TN VEC must be defined"
#endif
#if BM % TM != 0 || BN % TN != 0 || BK % VEC != 0 || (VEC != 4 && VEC != 16) || 128 % BK != 0
#error "TM divides BM, TN divides BN, VEC is 4 or 16 and divides BK, BK divides 128"
#endif

#include "scaled_gemm/numbers.glsl"

#if SCALES == 3 && (32 % BK != 0 || ((FORMAT == 5 || FORMAT_B == 5) && BK % (VEC * 2) != 0))
#error "with SCALES=3, BK divides 32, and loads of e2m1, 2 VEC numbers, divide BK"
#endif

#define ROWS_OF_THREADS (BM / TM)
#define COLUMNS_OF_THREADS (BN / TN)
#define THREADS (ROWS_OF_THREADS * COLUMNS_OF_THREADS)
#define PITCH_A (BM + 1)
#define PITCH_B (BN + 1)

layout(local_size_x = THREADS) in;

layout(push_constant, std430) uniform Arguments {
  uint64_t a, b, scales_a, scales_b, c;
  uint m, n, k, tiles_n;
#if GROUPED != 0
  uint64_t group_rows;  // ends or numbers of rows of the groups, i32
  uint groups;
#endif
} args;

#define PART BN
#include "scaled_gemm/groups.glsl"

#if GATE != 0 && TN % 2 != 0
#error "a thread has the gate and the up of a column"
#endif

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

// What lies past the end of k is zero.
RAW load_line(uint64_t operand, uint64_t row, uint k, uint of_byte) {
  if (k >= args.k) return RAW(0);
  return load_raw(operand + (row * args.k + k) / of_byte);
}

// Number of VEC loaded bytes of A, or of B, with the bits of further ones above it.
#define BITS_OF_A(raw, i) (WORD_OF(raw, (i) / (4 * OF_BYTE_A)) >> (i) % (4 * OF_BYTE_A) * (8 / OF_BYTE_A))
#define BITS_OF_B(raw, i) (WORD_OF(raw, (i) / (4 * OF_BYTE_B)) >> (i) % (4 * OF_BYTE_B) * (8 / OF_BYTE_B))
#define NUMBERS_A (VEC * OF_BYTE_A)  // of a load
#define NUMBERS_B (VEC * OF_BYTE_B)

// Decodes BK of k, from `k` on, of the workgroup's lines of both operands.
void load_tiles(Group group, uint64_t first_line, uint first_col, uint k) {
  for (uint i = gl_LocalInvocationIndex; i < BM * BK / NUMBERS_A; i += THREADS) {
    const uint line = i / (BK / NUMBERS_A), place = i % (BK / NUMBERS_A) * NUMBERS_A;
    const uint64_t from = group.first + min(group.row + line, group.rows - 1);
    const RAW raw = load_line(args.a, from, k + place, OF_BYTE_A);
    [[unroll]] for (uint j = 0; j < NUMBERS_A; ++j)
      tile_a[(place + j) * PITCH_A + line] = number_of(BITS_OF_A(raw, j));
  }
  for (uint i = gl_LocalInvocationIndex; i < BN * BK / NUMBERS_B; i += THREADS) {
    const uint line = i / (BK / NUMBERS_B), place = i % (BK / NUMBERS_B) * NUMBERS_B;
    const uint64_t from = first_line + line_of_column(first_col + line);
    const RAW raw = load_line(args.b, from, k + place, OF_BYTE_B);
    [[unroll]] for (uint j = 0; j < NUMBERS_B; ++j)
      tile_b[(place + j) * PITCH_B + line] = number_of_b(BITS_OF_B(raw, j));
  }
}

// Stores this thread's elements of C, of which `row` and `col` are the first in the group's tile.
void store_tile(Group group, uint row, uint first_col, uint col, float total[TM * TN]) {
  const uint64_t c = args.c + uint64_t(group.first) * args.n * OUT_BYTES;
  [[unroll]] for (uint i = 0; i < TM * TN; ++i) {
    const uint to_row = group.row + row + i / TN * ROWS_OF_THREADS;
    const uint to_col = column_of_c(first_col + col + i % TN * COLUMNS_OF_THREADS);
    if (to_row >= group.rows || to_col >= args.n) continue;
    const uint64_t place = c + (uint64_t(to_row) * args.n + to_col) * OUT_BYTES;
#if GATE != 0
    if (i % TN < TN / 2) store_out(place, gated_value(total[i], total[i + TN / 2]));
#else
    store_out(place, total[i]);
#endif
  }
}

void main() {
  const uint block = workgroup();
  const uint line_of_tiles = block / args.tiles_n, first_col = block % args.tiles_n * BN;
#if GROUPED == 2
  // A launch may have more workgroups than tiles.
  if (line_of_tiles / ((args.m + (BM - 1)) / BM) >= args.groups) return;
#endif
  const Group group = find_group(BM, line_of_tiles);
  if (group.row >= group.rows) return;  // of the whole workgroup
  const uint64_t first_line = uint64_t(group.index) * product_columns();
  const uint thread = gl_LocalInvocationIndex;
  const uint row = thread / COLUMNS_OF_THREADS, col = thread % COLUMNS_OF_THREADS;
  const uint blocks = (args.k + SCALE_BLOCK - 1) / SCALE_BLOCK;
  const uint64_t scales_a = first_scale_a(group, blocks), scales_b = first_scale_b(group, blocks);

  Number sum[TM * TN];
  [[unroll]] for (uint i = 0; i < TM * TN; ++i) sum[i] = Number(0);
#if SCALES >= 2
  float total[TM * TN];
  [[unroll]] for (uint i = 0; i < TM * TN; ++i) total[i] = 0.0;
#endif
  for (uint at = 0; at < args.k; at += BK) {
    if (at > 0) barrier();  // all have read the tiles before
    load_tiles(group, first_line, first_col, at);
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
#if SCALES >= 2
    if ((at + BK) % SCALE_BLOCK == 0 || at + BK >= args.k) {
      [[unroll]] for (uint i = 0; i < TM * TN; ++i) {
        const uint of_a = min(group.row + row + i / TN * ROWS_OF_THREADS, group.rows - 1);
        const uint of_b = line_of_column(first_col + col + i % TN * COLUMNS_OF_THREADS);
        const float scale = scale_a(scales_a, of_a, at, blocks) * scale_b(scales_b, of_b, at, blocks);
        total[i] = fma(float(sum[i]), scale, total[i]);
        sum[i] = Number(0);
      }
    }
#endif
  }
#if SCALES < 2
  float total[TM * TN];
  [[unroll]] for (uint i = 0; i < TM * TN; ++i) {
    const uint of_a = min(group.row + row + i / TN * ROWS_OF_THREADS, group.rows - 1);
    const uint of_b = line_of_column(first_col + col + i % TN * COLUMNS_OF_THREADS);
    total[i] = float(sum[i]) * (scale_a(scales_a, of_a, 0, blocks) * scale_b(scales_b, of_b, 0, blocks));
  }
#endif
  store_tile(group, row, first_col, col, total);
}
