#version 460
// Adds the SPLIT partial sums of each element, in a fixed order, and finishes it. A thread takes
// four neighbours of a row.

#if !defined(SPLIT) || SPLIT < 2
#error "SPLIT must be defined and at least 2"
#endif

#include "common/in_out.glsl"
#include "gemm/operands.glsl"

layout(local_size_x = 256) in;

void main() {
  // Where the partial sums fit into memory, their fours can be counted in 32 bits: 64-bit divisions
  // take longer than the additions.
  const uint groups = (product_cols() + 3) / 4;
  const uint id = workgroup() * 256 + gl_LocalInvocationIndex;
  if (id >= args.m * groups) return;
  const uint row = id / groups, col = id % groups * 4;
  const uint64_t first = partial_sum(0, row, col);
  const uint64_t step = uint64_t(args.m) * product_cols() * 4;
  vec4 part[SPLIT];
  [[unroll]] for (uint s = 0; s < SPLIT; ++s) {
#if STORE_VEC == 4
    part[s] = F32x4(first + s * step).v;
#else
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      part[s][j] = 0.0;
      if (col + j < product_cols()) part[s][j] = F32(first + s * step + j * 4).v;
    }
#endif
  }
  vec4 sum = part[0];
  [[unroll]] for (uint s = 1; s < SPLIT; ++s) sum += part[s];
  put4(row, col, sum);
}
