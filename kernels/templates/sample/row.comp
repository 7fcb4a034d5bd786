#version 460
// A workgroup takes a row: its largest logit and a histogram in one pass, and the draw.

#include "sample/draw.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t x, settings, seeds, token;
  uint rows, cols;
} args;

void main() {
  const uint row = workgroup();
  if (row >= args.rows) return;
  begin(args.x + row_start(row, args.cols) * IN_BYTES, args.cols,
        settings_of(args.settings, row));
  relate_to(measure(0, args.cols));
  const int drawn = token_of(filters() ? HISTOGRAM : STEP_ONLY, first_step(), args.seeds, row);
  if (gl_LocalInvocationIndex == 0) I32(args.token + uint64_t(row) * 4).v = drawn;
}
