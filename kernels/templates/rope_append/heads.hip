// Rotates queries and keys by the angles of their tokens' positions, and appends the keys and the
// values to their caches. NORM: queries and keys are first divided by the root of the mean of their
// squares, each head by its own, and multiplied by weights. HALF: element i is paired with
// i + dim/2, else 2i with 2i + 1. With PAGE so many slots are on a page, which has those of all
// heads, and `table` lists the pages of each sequence.
//
// The heads of a token are those of Q, then of K, then of V. A team of LANES neighbouring threads has
// ITEMS of them, `groups` apart, and each thread the same CHUNKS vectors of each, so that angles are
// read once.
#if !defined(LANES) || !defined(CHUNKS) || !defined(NORM) || !defined(HALF) || !defined(PAGE)
#error "LANES, CHUNKS, NORM, HALF and PAGE must be defined"
#endif
#if !defined(Q_STRIDE) || !defined(KV_STRIDE) || !defined(OUT_STRIDE)
#error "Q_STRIDE, KV_STRIDE and OUT_STRIDE must be defined, 0 where tokens are packed"
#endif

#include "common/elementwise.hip"
#include "common/inverse_root.hip"
#include "common/reduce.hip"

#if VEC < 2 && !HALF
#error "VEC is at least 2 where pairs are neighbours"
#endif
#if LANES < 1 || LANES > 32 || (LANES & (LANES - 1)) != 0
#error "LANES is a power of 2, up to 32"
#endif

#if NORM
#define NORM_PARAMETERS const In *GRETA_READ q_weight, const In *GRETA_READ k_weight,
#define EPSILON_PARAMETER , float epsilon
#else
#define NORM_PARAMETERS
#define EPSILON_PARAMETER
#endif
#if PAGE
#define TABLE_PARAMETER const int *GRETA_READ block_table,
#else
#define TABLE_PARAMETER
#endif

constexpr int parts = HALF ? 2 : 1;  // vectors of a head that one chunk has
typedef Vector Chunk[parts];

// Elements before a token's heads; tokens are `stride` apart, or packed.
GRETA_DEVICE u64 token_start(u32 row, u32 heads, u32 dim, u32 stride) {
  return u64(row) * (stride > 0 ? stride : heads * dim);
}

GRETA_DEVICE void load_chunk(const In* first, u32 dim, Chunk& chunk) {
  GRETA_UNROLL
  for (int p = 0; p < parts; ++p) chunk[p] = load_vector(first + p * (dim / 2));
}

// Of a head whose elements this thread has; every lane of its team takes part.
GRETA_DEVICE float inverse_root_of_mean_square(const Chunk (&x)[CHUNKS], u32 dim, float epsilon) {
  float part[4] = {};  // short sums, for the error bound
  GRETA_UNROLL
  for (int i = 0; i < CHUNKS * parts * VEC; ++i) {
    const float a = element(x[i / (parts * VEC)][i / VEC % parts], i % VEC);
    part[i % 4] = multiply_add(a, a, part[i % 4]);
  }
  const float own = (part[0] + part[1]) + (part[2] + part[3]);
  return fast_inverse_sqrt(reduce_lanes<LANES>(own, Add{}) / float(dim) + epsilon);
}

// The angles of the pairs, a cosine and a sine for each.
GRETA_DEVICE void rotate(const float (&x)[parts][VEC], const float (&angles)[parts * VEC],
                         float (&y)[parts][VEC]) {
#if HALF
  GRETA_UNROLL
  for (int j = 0; j < VEC; ++j) {
    const float a = x[0][j], b = x[parts - 1][j];
    const float cosine = angles[2 * j], sine = angles[2 * j + 1];
    y[0][j] = a * cosine - b * sine;
    y[parts - 1][j] = a * sine + b * cosine;
  }
#else
  GRETA_UNROLL
  for (int j = 0; j < VEC; j += 2) {
    const float a = x[0][j], b = x[0][j + 1];
    const float cosine = angles[j], sine = angles[j + 1];
    y[0][j] = a * cosine - b * sine;
    y[0][j + 1] = a * sine + b * cosine;
  }
#endif
}

template <typename T>
GRETA_DEVICE void store_rotated(T* first, u32 dim, const float (&y)[parts][VEC]) {
  GRETA_UNROLL
  for (int p = 0; p < parts; ++p) store_floats(first + p * (dim / 2), y[p]);
}

// q may be out: a thread overwrites only what it has read before.
GRETA_KERNEL(THREADS)
rope_append_heads(const In* q, const In* GRETA_READ k, const In* GRETA_READ v,
                  NORM_PARAMETERS const int* GRETA_READ positions, const float* GRETA_READ table,
                  const int* GRETA_READ slots, TABLE_PARAMETER Out* __restrict__ k_cache,
                  Out* __restrict__ v_cache, In* out, u32 rows, u32 tokens, u32 heads, u32 kv_heads,
                  u32 dim, u32 table_rows, u32 capacity EPSILON_PARAMETER) {
  begin_launch();
  const u32 width = dim / (parts * VEC), all = heads + 2 * kv_heads;
  const u32 groups = all / ITEMS + (all % ITEMS != 0);
  const u32 lane = thread_index() % LANES;
  const u32 team = block_index<THREADS>() * (THREADS / LANES) + thread_index() / LANES;
  const u32 row = team / groups, group = team % groups;
  const bool inside = row < rows;
  const u64 q_row = token_start(row, heads, dim, Q_STRIDE);
  const u64 kv_row = token_start(row, kv_heads, dim, KV_STRIDE);

  Chunk x[ITEMS][CHUNKS] = {};
#if NORM
  Chunk weights[ITEMS][CHUNKS] = {};
#endif
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    const u32 head = group + i * groups;
    if (!inside || head >= all) continue;
    const u32 key = head - heads, value = key - kv_heads;
    const In* const from = head < heads      ? q + q_row + u64(head) * dim
                           : key < kv_heads ? k + kv_row + u64(key) * dim
                                            : v + kv_row + u64(value) * dim;
    GRETA_UNROLL
    for (u32 c = 0; c < CHUNKS; ++c) {
      const u32 col = lane + c * LANES;
      if (col >= width) continue;
      load_chunk(from + col * VEC, dim, x[i][c]);
#if NORM
      load_chunk((head < heads ? q_weight : k_weight) + col * VEC, dim, weights[i][c]);
#endif
    }
  }

  float angles[CHUNKS][parts * VEC] = {};
  u32 slot = capacity, sequence = 0;
  if (inside) {
    sequence = row / tokens;
    slot = u32(slots[sequence]) + row % tokens;
    const u32 position = u32(positions[row]);
    GRETA_UNROLL
    for (u32 c = 0; c < CHUNKS; ++c) {
      const u32 col = lane + c * LANES;
      if (col >= width) continue;
      if (position < table_rows) {
        load_floats(table + u64(position) * dim + col * (parts * VEC), angles[c]);
      } else {
        GRETA_UNROLL
        for (int j = 0; j < parts * VEC; ++j) angles[c][j] = float_from_bits(0x7fc00000U);
      }
    }
  }
  // Lines of the caches between a head's line and that of head 0, and the latter.
  u64 first_line = 0, head_lines = capacity;
  if (slot < capacity) {
#if PAGE
    const u32 pages = capacity / PAGE + (capacity % PAGE != 0);
    const u64 page = u32(block_table[u64(sequence) * pages + slot / PAGE]);
    first_line = page * kv_heads * PAGE + slot % PAGE;
    head_lines = PAGE;
#else
    first_line = u64(sequence) * kv_heads * capacity + slot;
#endif
  }

  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    const u32 head = group + i * groups;
    const bool query = head < heads;
    const u32 key = head - heads, value = key - kv_heads;
    float scale = 1.0f;
#if NORM
    scale = inverse_root_of_mean_square(x[i], dim, epsilon);
#endif
    if (!inside || head >= all || (!query && slot >= capacity)) continue;
    GRETA_UNROLL
    for (u32 c = 0; c < CHUNKS; ++c) {
      const u32 col = lane + c * LANES;
      if (col >= width) continue;
      if (!query && key >= kv_heads) {
        Out* const to = v_cache + (first_line + value * head_lines) * dim + col * VEC;
        GRETA_UNROLL
        for (int p = 0; p < parts; ++p) store_converted(to + p * (dim / 2), x[i][c][p]);
        continue;
      }
      float a[parts][VEC], y[parts][VEC];
      GRETA_UNROLL
      for (int p = 0; p < parts; ++p) {
        GRETA_UNROLL
        for (int j = 0; j < VEC; ++j) {
          a[p][j] = element(x[i][c][p], j);
#if NORM
          a[p][j] = a[p][j] * scale * element(weights[i][c][p], j);
#endif
        }
      }
      rotate(a, angles[c], y);
      if (query) {
        store_rotated(out + token_start(row, heads, dim, OUT_STRIDE) + u64(head) * dim + col * VEC,
                      dim, y);
      } else {
        store_rotated(k_cache + (first_line + key * head_lines) * dim + col * VEC, dim, y);
      }
    }
  }
}
