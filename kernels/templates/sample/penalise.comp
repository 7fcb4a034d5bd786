#version 460
// A workgroup changes the logits of the tokens in its row's history, in place.

#if !defined(X_STRIDE)
#error "X_STRIDE must be defined, 0 where rows are packed"
#endif

#include "sample/penalty.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t x, penalties, history, counts;
  uint rows, cols, past;
} args;

void main() {
  const uint row = workgroup();
  if (row >= args.rows) return;
  penalise(args.x + uint64_t(row) * (X_STRIDE > 0 ? uint(X_STRIDE) : args.cols) * IN_BYTES,
           args.penalties + uint64_t(row) * 12, args.history + uint64_t(row) * args.past * 4,
           args.counts + uint64_t(row) * args.cols * 4, args.past, 0, args.cols);
}
