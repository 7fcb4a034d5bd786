// Matrices of quantised weights, of which a thread loads chunks of 32 at a time, with UNROLL chunks
// of every line in flight.
#pragma once

#include "quantized_gemm/weights.hip"

typedef u8 Stored;

// Lines of `length` weights, one after the other, of which an expert has `lines`, and their scales
// and zero points where these are beside them.
struct Matrix {
  const Stored* elements;
  const Scale* scales;
  const u8* zeros;
  u32 length, lines;
};

// Adds the products of a chunk of each line with the vector's neighbours from `vector` on.
template <u32 lines, typename T>
GRETA_DEVICE void add_chunk(const WeightChunk (&chunk)[lines], const T* vector,
                            float (&sum)[lines]) {
  constexpr u32 eights = CHUNK_WEIGHTS / 8, of_segment = eights / SEGMENTS;
  GRETA_UNROLL
  for (u32 segment = 0; segment < SEGMENTS; ++segment) {
    float part[lines] = {};
    GRETA_UNROLL
    for (u32 e = segment * of_segment; e < (segment + 1) * of_segment; ++e) {
      float x[8];
      load_neighbours(vector + 8 * e, x);
      GRETA_UNROLL
      for (u32 l = 0; l < lines; ++l) {
        float weight[8];
        weight8(chunk[l], e, weight);
        GRETA_UNROLL
        for (u32 i = 0; i < 8; ++i) part[l] = multiply_add(x[i], weight[i], part[l]);
      }
    }
    GRETA_UNROLL
    for (u32 l = 0; l < lines; ++l) {
      sum[l] = multiply_add(scale_of(chunk[l], segment), part[l], sum[l]);
    }
  }
}

// Adds this thread's part of the product of each line with `vector`.
template <u32 lanes, u32 lines, typename T>
GRETA_DEVICE void add_products(const Matrix& matrix, const u32 (&line)[lines], const T* vector,
                               u32 lane, float (&sum)[lines]) {
  const Weights weights = {matrix.elements, matrix.scales, matrix.zeros};
  const u32 chunks = matrix.length / CHUNK_WEIGHTS;
  GRETA_NO_UNROLL
  for (u32 at = lane; at < chunks; at += lanes * UNROLL) {
    WeightChunk chunk[UNROLL][lines];
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      GRETA_UNROLL
      for (u32 l = 0; l < lines; ++l) {
        // Threads past the end repeat the last chunk.
        chunk[u][l] =
            load_chunk(weights, line[l], smaller(at + u * lanes, chunks - 1), matrix.length);
      }
    }
    loads_go_ahead();
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      if (at + u * lanes < chunks)
        add_chunk(chunk[u], vector + (at + u * lanes) * CHUNK_WEIGHTS, sum);
    }
  }
}
