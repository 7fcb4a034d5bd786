#version 460
// The largest logit of each of SPLIT parts of `part` columns of a row, as an integer in its order. With
// HISTORY, the penalties of the part's tokens come first.

#if !defined(SPLIT) || SPLIT < 2
#error "SPLIT must be defined, at least 2"
#endif
#if !defined(HISTORY)
#error "HISTORY must be defined, 1 where rows have a history"
#endif

#include "sample/walk.glsl"
#if HISTORY
#include "sample/penalty.glsl"
#endif

layout(push_constant, std430) uniform Arguments {
#if HISTORY
  uint64_t x, penalties, history, counts, most;
  uint rows, cols, part, past;
#else
  uint64_t x, most;
  uint rows, cols, part;
#endif
} args;

#if HISTORY
// What other threads have written.
#define SHARED(PACK) SHARED_AS(PACK)
#define SHARED_AS(PACK) Shared##PACK
X_RAW load_shared(uint64_t at) { return X_RAW(SHARED(X_PACK)(at).v); }

int largest_shared(uint64_t row, uint first, uint end) {
  int most = below_all;
#define VISIT_SHARED(value, column) most = max(most, order(value));
#define load_vector load_shared
  WALK(row, first, end, false, VISIT_SHARED)
#undef load_vector
  return most;
}
#endif

void main() {
  const uint row = workgroup();
  if (row >= args.rows) return;
  const uint first = min(gl_WorkGroupID.z * args.part, args.cols);
  const uint end = min(first + args.part, args.cols);
  const uint64_t from = args.x + row_start(row, args.cols) * IN_BYTES;
#if HISTORY
  penalise(from, args.penalties + uint64_t(row) * 12, args.history + uint64_t(row) * args.past * 4,
           args.counts + uint64_t(row) * args.cols * 4, args.past, first, end);
  memoryBarrierBuffer();
  barrier();
  const int value = reduce_threads(largest_shared(from, first, end), 0);
#else
  const int value = reduce_threads(largest(from, first, end), 0);
#endif
  if (gl_LocalInvocationIndex == 0)
    I32(args.most + (uint64_t(row) * SPLIT + gl_WorkGroupID.z) * 4).v = value;
}
