#version 460
// The largest logit of each of SPLIT parts of `part` columns of a row, as an integer in its order.

#if !defined(SPLIT) || SPLIT < 2
#error "SPLIT must be defined, at least 2"
#endif

#include "sample/walk.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t x, most;
  uint rows, cols, part;
} args;

void main() {
  const uint row = workgroup();
  if (row >= args.rows) return;
  const uint first = min(gl_WorkGroupID.z * args.part, args.cols);
  const uint end = min(first + args.part, args.cols);
  const uint64_t from = args.x + row_start(row, args.cols) * IN_BYTES;
  const int value = reduce_threads(largest(from, first, end), 0);
  if (gl_LocalInvocationIndex == 0)
    I32(args.most + (uint64_t(row) * SPLIT + gl_WorkGroupID.z) * 4).v = value;
}
