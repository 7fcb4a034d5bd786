// Rotates the pairs of each head's elements by the angles of its token's position, whose cosines and
// sines are a row of the table. HALF: element i is paired with i + dim/2, else 2i with 2i + 1. A
// thread takes the same columns of up to ITEMS heads of a token, so that it reads their angles once.
#if !defined(HEADS) || !defined(DIM) || !defined(HALF) || !defined(X_STRIDE) || !defined(OUT_STRIDE)
#error "HEADS DIM and HALF must be defined, and X_STRIDE and OUT_STRIDE, 0 where tokens are packed"
#endif

#include "common/elementwise.hip"

#if VEC < 2 && !HALF
#error "VEC is at least 2 where pairs are neighbours"
#endif

constexpr int parts = HALF ? 2 : 1;  // vectors that a thread has of a head

// The angles of the pairs, a cosine and a sine for each.
GRETA_DEVICE void rotate(const Vector (&x)[parts], const float (&angles)[parts * VEC],
                         float (&y)[parts][VEC]) {
#if HALF
  GRETA_UNROLL
  for (int j = 0; j < VEC; ++j) {
    const float a = element(x[0], j), b = element(x[parts - 1], j);
    const float cosine = angles[2 * j], sine = angles[2 * j + 1];
    y[0][j] = a * cosine - b * sine;
    y[parts - 1][j] = a * sine + b * cosine;
  }
#else
  GRETA_UNROLL
  for (int j = 0; j < VEC; j += 2) {
    const float a = element(x[0], j), b = element(x[0], j + 1);
    const float cosine = angles[j], sine = angles[j + 1];
    y[0][j] = a * cosine - b * sine;
    y[0][j + 1] = a * sine + b * cosine;
  }
#endif
}

// Elements before a head of a token; tokens are `stride` apart, or packed.
GRETA_DEVICE u64 head_start(u32 token, u32 head, u32 stride) {
  if (stride > 0) return u64(token) * stride + u64(head) * DIM;
  return (u64(token) * HEADS + head) * DIM;
}

// x may be out: a thread overwrites only what it has read before.
GRETA_KERNEL(THREADS)
rope_heads(const In* x, const int* GRETA_READ positions, const float* GRETA_READ table, Out* out,
           u32 tokens, u32 table_rows) {
  begin_launch();
  constexpr u32 width = DIM / (parts * VEC), groups = HEADS / ITEMS + (HEADS % ITEMS != 0);
  const Place place = advance(tile_start<THREADS>(width), thread_index(), width);
  const u32 token = place.row / groups, group = place.row % groups;
  if (token >= tokens) return;
  const u64 first = head_start(token, group, X_STRIDE) + place.col * VEC;
  const u64 to = OUT_STRIDE == X_STRIDE
                     ? first
                     : head_start(token, group, OUT_STRIDE) + place.col * VEC;
  const u64 step = u64(groups) * DIM;  // from one of the thread's heads to the next
  Vector vector[ITEMS][parts] = {};
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    if (group + i * groups >= HEADS) continue;
    GRETA_UNROLL
    for (int p = 0; p < parts; ++p) vector[i][p] = load_vector(x + first + i * step + p * (DIM / 2));
  }
  float angles[parts * VEC];
  const u32 position = u32(positions[token]);
  if (position < table_rows) {
    load_floats(table + u64(position) * DIM + place.col * (parts * VEC), angles);
  } else {
    GRETA_UNROLL
    for (int j = 0; j < parts * VEC; ++j) angles[j] = float_from_bits(0x7fc00000U);
  }
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    if (group + i * groups >= HEADS) continue;
    float y[parts][VEC];
    rotate(vector[i], angles, y);
    GRETA_UNROLL
    for (int p = 0; p < parts; ++p) store_floats(out + to + i * step + p * (DIM / 2), y[p]);
  }
}
