#version 460
// Whole rows: a workgroup takes ROWS of them, each with an equal share of its threads.

#if !defined(ROWS) || ROWS < 1 || THREADS % ROWS != 0
#error "ROWS must be defined, and divides THREADS"
#endif

#define LANES (THREADS / ROWS)
#include "argmax/scan.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t x, index;
  uint rows, cols;
} args;

void main() {
  const uint row = workgroup() * ROWS + thread_index() / LANES, lane = thread_index() % LANES;
  Candidate best = no_candidate();
  if (row < args.rows)
    best = scan(args.x + row_start(row, args.cols) * IN_BYTES, lane, 0, args.cols);
  best = reduce_threads(best, 0);
  if (lane == 0 && row < args.rows) I32(args.index + uint64_t(row) * 4).v = column_of(best);
}
