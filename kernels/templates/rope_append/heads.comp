#version 460
// Rotates queries and keys by the angles of their tokens' positions, and appends the keys and the
// values to their caches. NORM: queries and keys are first divided by the root of the mean of their
// squares, each head by its own, and multiplied by weights. HALF: element i is paired with
// i + dim/2, else 2i with 2i + 1. With PAGE so many slots are on a page, which has those of all
// heads, and `table` lists the pages of each sequence.
//
// The heads of a token are those of Q, then of K, then of V. A team of LANES neighbouring threads has
// ITEMS of them, `groups` apart, and each thread the same CHUNKS vectors of each, so that angles are
// read once.
// Caches have the inputs' type, or the inputs are f32.

#if !defined(LANES) || !defined(CHUNKS) || !defined(NORM) || !defined(HALF) || !defined(PAGE)
#error "LANES, CHUNKS, NORM, HALF and PAGE must be defined"
#endif
#if !defined(Q_STRIDE) || !defined(KV_STRIDE) || !defined(OUT_STRIDE)
#error "Q_STRIDE, KV_STRIDE and OUT_STRIDE must be defined, 0 where tokens are packed"
#endif

#if SUBGROUP > 0
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "common/elementwise.glsl"

#if VEC < 2 && !HALF
#error "VEC is at least 2 where pairs are neighbours"
#endif
#if LANES < 1 || LANES > 32 || (LANES & (LANES - 1)) != 0
#error "LANES is a power of 2, up to 32"
#endif
#if !SAME_TYPE && (IN_F16 || IN_BF16)
#error "caches have the inputs' type, or the inputs are f32"
#endif

layout(push_constant, std430) uniform Arguments {
  uint64_t q, k, v;
#if NORM
  uint64_t q_weight, k_weight;
#endif
  uint64_t positions, table, slots;
#if PAGE
  uint64_t block_table;
#endif
  uint64_t k_cache, v_cache;
  uint64_t out_;  // may be q: a thread overwrites only what it has read
  uint rows, tokens, heads, kv_heads, dim, table_rows, capacity;
#if NORM
  float epsilon;
#endif
} args;

#define PARTS (HALF != 0 ? 2 : 1)  // vectors of a head that one chunk has

#if NORM
#define REDUCED float
float merge(float a, float b) { return a + b; }
#if SUBGROUP > 0
float across(float value, uint mask) { return subgroupShuffleXor(value, mask); }
#endif
#include "common/reduce.glsl"
#else
uint thread_index() { return gl_LocalInvocationIndex; }
#endif

float angles[CHUNKS][PARTS * VEC];  // a cosine and a sine for each pair

void load_angles(uint64_t at, uint chunk) {
#if HALF && VEC >= 2 || VEC >= 4
  [[unroll]] for (uint j = 0; j < PARTS * VEC; j += 4) {
    const vec4 two = F32x4(at + j * 4).v;
    angles[chunk][j] = two.x;
    angles[chunk][j + 1] = two.y;
    angles[chunk][j + 2] = two.z;
    angles[chunk][j + 3] = two.w;
  }
#else
  const vec2 one = F32x2(at).v;
  angles[chunk][0] = one.x;
  angles[chunk][1] = one.y;
#endif
}

// Of a token at `position`, for this thread's columns of `width`; NaN past the table.
void load_all_angles(uint position, uint lane, uint width) {
  [[unroll]] for (uint c = 0; c < CHUNKS; ++c) {
    const uint col = lane + c * LANES;
    [[unroll]] for (uint j = 0; j < PARTS * VEC; ++j)
      angles[c][j] = uintBitsToFloat(0x7fc00000u);
    if (col < width && position < args.table_rows)
      load_angles(args.table + (uint64_t(position) * args.dim + col * (PARTS * VEC)) * 4, c);
  }
}

// Elements before a token's heads; tokens are `stride` apart, or packed.
uint64_t token_start(uint row, uint heads, uint stride) {
  return uint64_t(row) * (stride > 0 ? stride : heads * args.dim);
}

// Where a head of Q, then of K, then of V begins; `q_row`, `kv_row`: elements before the token's.
uint64_t start_of(uint64_t q_row, uint64_t kv_row, uint head) {
  const bool query = head < args.heads, key = !query && head < args.heads + args.kv_heads;
  const uint other = head - args.heads;
  uint64_t from = args.v + (kv_row + uint64_t(other - args.kv_heads) * args.dim) * IN_BYTES;
  if (query) from = args.q + (q_row + uint64_t(head) * args.dim) * IN_BYTES;
  if (key) from = args.k + (kv_row + uint64_t(other) * args.dim) * IN_BYTES;
  return from;
}

// VEC neighbours of the inputs' type.
void store_as_input(uint64_t at, float e[VEC]) {
#if SAME_TYPE
  store_floats(at, e);
#elif VEC == 4
  F32x4(at).v = vec4(e[0], e[1], e[2], e[3]);
#elif VEC == 2
  F32x2(at).v = vec2(e[0], e[1]);
#else
  F32(at).v = e[0];
#endif
}

// Of a head whose elements this thread has; every thread of the workgroup takes part.
float inverse_root_of_mean_square(X_RAW x[CHUNKS * PARTS], uint turn) {
#if NORM
  float part[4] = float[4](0.0, 0.0, 0.0, 0.0);  // short sums, for the error bound
  [[unroll]] for (uint i = 0; i < CHUNKS * PARTS; ++i) {
    float e[VEC];
    unpack(x[i], e);
    [[unroll]] for (uint j = 0; j < VEC; ++j) part[(i * VEC + j) % 4] += e[j] * e[j];
  }
  const float own = (part[0] + part[1]) + (part[2] + part[3]);
  return inversesqrt(reduce_threads(own, turn) / float(args.dim) + args.epsilon);
#else
  return 1.0;
#endif
}

#if PAGE
#define HEAD_LINES PAGE  // of the caches, from a head's line to that of the next head
#else
#define HEAD_LINES args.capacity
#endif

// The line of the caches that head 0 of a sequence has for this slot.
uint64_t line_of(uint sequence, uint slot) {
#if PAGE
  const uint pages = args.capacity / PAGE + (args.capacity % PAGE != 0 ? 1 : 0);
  const uint64_t entry = uint64_t(sequence) * pages + slot / PAGE;
  const uint64_t page = uint64_t(I32(args.block_table + entry * 4).v);
  return page * args.kv_heads * PAGE + slot % PAGE;
#else
  return uint64_t(sequence) * args.kv_heads * args.capacity + slot;
#endif
}

// VEC neighbours, with a norm those of the normalised head.
void normalise(X_RAW x, X_RAW weight, float scale, out float a[VEC]) {
  unpack(x, a);
#if NORM
  float w[VEC];
  unpack(weight, w);
  [[unroll]] for (uint j = 0; j < VEC; ++j) a[j] = a[j] * scale * w[j];
#endif
}

// Turns a chunk's pairs by its angles.
void rotate(float a[PARTS][VEC], uint c, out float y[PARTS][VEC]) {
#if HALF
  [[unroll]] for (uint j = 0; j < VEC; ++j) {
    const float cosine = angles[c][2 * j], sine = angles[c][2 * j + 1];
    y[0][j] = a[0][j] * cosine - a[1][j] * sine;
    y[1][j] = a[0][j] * sine + a[1][j] * cosine;
  }
#else
  [[unroll]] for (uint j = 0; j < VEC; j += 2) {
    const float cosine = angles[c][j], sine = angles[c][j + 1];
    y[0][j] = a[0][j] * cosine - a[0][j + 1] * sine;
    y[0][j + 1] = a[0][j] * sine + a[0][j + 1] * cosine;
  }
#endif
}

// Stores a chunk of a head of Q, or of K.
void store_chunk(uint row, uint head, uint64_t first_line, uint col, float y[PARTS][VEC]) {
  [[unroll]] for (uint p = 0; p < PARTS; ++p) {
    const uint element = col * VEC + p * (args.dim / 2);
    if (head < args.heads) {
      const uint64_t first = token_start(row, args.heads, OUT_STRIDE);
      store_as_input(args.out_ + (first + head * args.dim + element) * IN_BYTES, y[p]);
    } else {
      const uint64_t line = first_line + (head - args.heads) * HEAD_LINES;
      store_floats(args.k_cache + (line * args.dim + element) * OUT_BYTES, y[p]);
    }
  }
}

void main() {
  const uint width = args.dim / (PARTS * VEC), all = args.heads + 2 * args.kv_heads;
  const uint groups = all / ITEMS + (all % ITEMS != 0 ? 1 : 0);
  const uint lane = thread_index() % LANES;
  const uint team = workgroup() * (THREADS / LANES) + thread_index() / LANES;
  const uint row = team / groups, group = team % groups;
  const bool inside = row < args.rows;
  const uint64_t q_row = token_start(row, args.heads, Q_STRIDE);
  const uint64_t kv_row = token_start(row, args.kv_heads, KV_STRIDE);

  X_RAW x[ITEMS][CHUNKS * PARTS], weights[ITEMS][CHUNKS * PARTS];
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const uint head = group + i * groups;
    const bool query = head < args.heads;
    const uint64_t from = start_of(q_row, kv_row, head);
    [[unroll]] for (uint c = 0; c < CHUNKS * PARTS; ++c) {
      const uint col = lane + c / PARTS * LANES;
      const uint element = col * VEC + c % PARTS * (args.dim / 2);
      x[i][c] = weights[i][c] = X_RAW(0);
      if (!inside || head >= all || col >= width) continue;
      x[i][c] = load_vector(from + element * IN_BYTES);
#if NORM
      weights[i][c] = load_vector((query ? args.q_weight : args.k_weight) + element * IN_BYTES);
#endif
    }
  }

  uint slot = args.capacity, sequence = 0;
  if (inside) {
    sequence = row / args.tokens;
    slot = uint(I32(args.slots + uint64_t(sequence) * 4).v) + row % args.tokens;
    load_all_angles(uint(I32(args.positions + uint64_t(row) * 4).v), lane, width);
  }
  const uint64_t first_line = slot < args.capacity ? line_of(sequence, slot) : 0;

  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const uint head = group + i * groups;
    const bool query = head < args.heads, key = !query && head < args.heads + args.kv_heads;
    const float scale = inverse_root_of_mean_square(x[i], i % 2);
    if (!inside || head >= all || (!query && slot >= args.capacity)) continue;
    [[unroll]] for (uint c = 0; c < CHUNKS; ++c) {
      const uint col = lane + c * LANES;
      if (col >= width) continue;
      if (!query && !key) {
        const uint64_t line = first_line + (head - args.heads - args.kv_heads) * HEAD_LINES;
        const uint64_t to = args.v_cache + (line * args.dim + col * VEC) * OUT_BYTES;
        [[unroll]] for (uint p = 0; p < PARTS; ++p)
          store_converted(to + p * (args.dim / 2 * OUT_BYTES), x[i][c * PARTS + p]);
        continue;
      }
      float a[PARTS][VEC], y[PARTS][VEC];
      [[unroll]] for (uint p = 0; p < PARTS; ++p)
        normalise(x[i][c * PARTS + p], weights[i][c * PARTS + p], scale, a[p]);
      rotate(a, c, y);
      store_chunk(row, head, first_line, col, y);
    }
  }
}
