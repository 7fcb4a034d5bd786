#version 460
// Few long rows: SPLIT workgroups take a part of `part` columns of each, and the last one to arrive
// compares what they found.

#if !defined(SPLIT) || SPLIT < 2 || SPLIT > THREADS
#error "SPLIT must be defined, at least 2, and at most THREADS"
#endif

#define LANES THREADS
#include "argmax/scan.glsl"
#include "common/arrival.glsl"

layout(buffer_reference, std430, buffer_reference_align = 8) coherent buffer Found {
  int value;
  uint column;
};

layout(push_constant, std430) uniform Arguments {
  uint64_t x, index, partial, counters;
  uint rows, cols, part;
} args;

void main() {
  const uint row = workgroup();
  if (row >= args.rows) return;
  const uint first = min(gl_WorkGroupID.z * args.part, args.cols);
  const uint end = min(first + args.part, args.cols);
  const uint64_t from = args.x + row_start(row, args.cols) * IN_BYTES;
  Candidate best = reduce_threads(scan(from, thread_index(), first, end), 0);
  const uint64_t found = args.partial + uint64_t(row) * SPLIT * 8;
  if (gl_LocalInvocationIndex == 0) {
    Found(found + gl_WorkGroupID.z * 8).value = best.value;
    Found(found + gl_WorkGroupID.z * 8).column = best.column;
  }
  if (!last_to_arrive(args.counters + uint64_t(row) * 4, SPLIT)) return;
  const uint me = thread_index();
  best = no_candidate();
  if (me < SPLIT) best = Candidate(Found(found + me * 8).value, Found(found + me * 8).column);
  best = reduce_threads(best, 1);
  if (gl_LocalInvocationIndex == 0) I32(args.index + uint64_t(row) * 4).v = column_of(best);
}
