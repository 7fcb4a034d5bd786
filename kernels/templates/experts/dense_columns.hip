// Matrices of the type of the inputs, of which a thread loads VEC neighbours at a time, with UNROLL
// loads of every line in flight.
#pragma once

#if !defined(VEC)
#error "VEC must be defined"
#endif
#if VEC != 1 && VEC != 2 && VEC != 4 && VEC != 8 || VEC == 8 && !IN_F16 && !IN_BF16
#error "VEC is a power of 2, of at most 16 bytes"
#endif

typedef In Stored;
typedef float Scale;  // there are none

// Lines of `length` elements, one after the other, of which an expert has `lines`. VEC divides `length`.
struct Matrix {
  const Stored* elements;
  const Scale* scales;
  const u8* zeros;
  u32 length, lines;
};

// Adds this thread's part of the product of each line with `vector`.
template <u32 lanes, u32 lines, typename T>
GRETA_DEVICE void add_products(const Matrix& matrix, const u32 (&line)[lines], const T* vector,
                               u32 lane, float (&sum)[lines]) {
  const u32 length = matrix.length;
  const In* first[lines];
  GRETA_UNROLL
  for (u32 l = 0; l < lines; ++l) first[l] = matrix.elements + u64(line[l]) * length;
  GRETA_NO_UNROLL
  for (u32 at = lane * VEC; at < length; at += lanes * VEC * UNROLL) {
    Pack<In, VEC> part[UNROLL][lines];
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      // Threads past the end repeat the last vector.
      const u32 from = smaller(at + u * lanes * VEC, length - VEC);
      GRETA_UNROLL
      for (u32 l = 0; l < lines; ++l) part[u][l] = load_pack<VEC>(first[l] + from);
    }
    loads_go_ahead();
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      const u32 from = at + u * lanes * VEC;
      if (from >= length) continue;
      float x[VEC];
      load_neighbours(vector + from, x);
      GRETA_UNROLL
      for (u32 l = 0; l < lines; ++l) {
        GRETA_UNROLL
        for (int j = 0; j < VEC; ++j) sum[l] = multiply_add(x[j], element(part[u][l], j), sum[l]);
      }
    }
  }
}
