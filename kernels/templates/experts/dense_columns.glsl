// Matrices of the type of the inputs, of which a thread loads VEC neighbours at a time, with UNROLL
// loads of every line in flight.

// Adds this thread's part of the product of each line, of `length` elements, with `vector`. VEC divides
// `length`.
void add_products(uint64_t matrix, uint64_t scales, uint64_t zeros, uint64_t vector, uint length,
                  uint lines, uint lane, uint lanes) {
  uint64_t first[LINES];
  [[unroll]] for (uint l = 0; l < LINES; ++l) first[l] = matrix + uint64_t(line[l]) * length * IN_BYTES;
  [[dont_unroll]] for (uint at = lane * VEC; at < length; at += lanes * VEC * UNROLL) {
    W_RAW part[UNROLL * LINES];
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      // Threads past the end repeat the last vector.
      const uint from = min(at + u * lanes * VEC, length - VEC);
      [[unroll]] for (uint l = 0; l < LINES; ++l)
        part[u * LINES + l] = W_RAW(W_PACK(first[l] + uint64_t(from) * IN_BYTES).v);
    }
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      const uint from = at + u * lanes * VEC;
      if (from < length) {
        float x[VEC];
        load_vector(vector, from, x);
        [[unroll]] for (uint l = 0; l < LINES; ++l) {
          float w[VEC];
          unpack(part[u * LINES + l], w);
          [[unroll]] for (uint j = 0; j < VEC; ++j) sum[l] = fma(x[j], w[j], sum[l]);
        }
      }
    }
  }
}
