// Matrices of quantised weights, of which a thread loads chunks of 32 at a time, with UNROLL chunks of
// every line in flight.

#include "quantized_gemm/weights.glsl"

// Adds the products of a chunk of each line with the vector's neighbours from `at` on.
void add_chunk(WeightChunk chunk[LINES], uint64_t vector, uint at) {
  const uint eights = CHUNK_WEIGHTS / 8, of_segment = eights / SEGMENTS;
  [[unroll]] for (uint segment = 0; segment < SEGMENTS; ++segment) {
    float part[LINES];
    [[unroll]] for (uint l = 0; l < LINES; ++l) part[l] = 0.0;
    [[unroll]] for (uint e = segment * of_segment; e < (segment + 1) * of_segment; ++e) {
      float x[8];
      load_vector(vector, at + 8 * e, x);
      [[unroll]] for (uint l = 0; l < LINES; ++l) {
        [[unroll]] for (uint i = 0; i < 8; ++i)
          part[l] = fma(x[i], weight_of(chunk[l], 8 * e + i), part[l]);
      }
    }
    [[unroll]] for (uint l = 0; l < LINES; ++l)
      sum[l] = fma(scale_of(chunk[l], segment), part[l], sum[l]);
  }
}

// Adds this thread's part of the product of each line, of `length` weights, with `vector`.
void add_products(uint64_t matrix, uint64_t scales, uint64_t zeros, uint64_t vector, uint length,
                  uint lines, uint lane, uint lanes) {
  const uint chunks = length / CHUNK_WEIGHTS;
  [[dont_unroll]] for (uint at = lane; at < chunks; at += lanes * UNROLL) {
    WeightChunk chunk[UNROLL][LINES];
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      // Threads past the end repeat the last chunk.
      [[unroll]] for (uint l = 0; l < LINES; ++l)
        chunk[u][l] = load_chunk(matrix, scales, zeros, line[l],
                                 min(at + u * lanes, chunks - 1), length);
    }
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      if (at + u * lanes < chunks) add_chunk(chunk[u], vector, (at + u * lanes) * CHUNK_WEIGHTS);
    }
  }
}
