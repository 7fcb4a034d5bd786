// The columns of a matrix that the ids name; an id that it does not have gives a column of NaN.
#if !defined(COLS)
#error "COLS must be defined"
#endif

#include "common/elementwise.hip"

GRETA_KERNEL(THREADS)
gather_columns_columns(const int* GRETA_READ ids, const In* GRETA_READ x, Out* __restrict__ out,
                       u32 rows, u32 width) {
  begin_launch();
  constexpr u32 vectors = COLS / VEC;
  const Place start = tile_start<THREADS * ITEMS>(vectors);
  Place place[ITEMS];
  u32 id[ITEMS][VEC] = {};
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    place[i] = advance(start, i * THREADS + thread_index(), vectors);
    if (place[i].row >= rows) continue;
    GRETA_UNROLL
    for (int j = 0; j < VEC; ++j) id[i][j] = u32(ids[place[i].col * VEC + j]);
  }
  float value[ITEMS][VEC];
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    const In* const from = x + u64(place[i].row) * width;
    GRETA_UNROLL
    for (int j = 0; j < VEC; ++j) {
      value[i][j] = float_from_bits(0x7fc00000U);
      if (place[i].row < rows && id[i][j] < width) value[i][j] = to_float(from[id[i][j]]);
    }
  }
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    if (place[i].row < rows)
      store_floats(out + u64(place[i].row) * COLS + place[i].col * VEC, value[i]);
  }
}
