#version 460
// A workgroup takes a row: its largest logit, a histogram of distances to it, and the draw.

#include "sample/draw.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t x, settings, seeds, token;
  uint rows, cols;
} args;

void main() {
  const uint row = workgroup();
  if (row >= args.rows) return;
  const uint64_t from = args.x + row_start(row, args.cols) * IN_BYTES;
  begin(from, args.cols, settings_of(args.settings, args.seeds, row),
        reduce_threads(largest(from, 0, args.cols), 0));
  if (filtered()) measure(0, args.cols);
  const int drawn = token_of(true);
  if (gl_LocalInvocationIndex == 0) I32(args.token + uint64_t(row) * 4).v = drawn;
}
