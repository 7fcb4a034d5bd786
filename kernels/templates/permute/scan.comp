#version 460
// One workgroup replaces the counts of runs by those of the runs before, and finds each expert's
// number of assignments and its first row.

#define ARGUMENTS uint64_t ids, totals, starts; uint runs;
#define COUNTS_EXPERTS 1
#define FINDS_STARTS 1
#include "permute/places.glsl"

#define AHEAD 8

// `ids` are the counts.
uint64_t count_at(uint run, uint expert) {
  return args.ids + (uint64_t(run) * EXPERTS + expert) * 4;
}

void main() {
  if (workgroup() != 0) return;
  for (uint e = gl_LocalInvocationIndex; e < EXPERTS; e += THREADS) {
    uint sum = 0;
    for (uint first = 0; first < args.runs; first += AHEAD) {
      uint of_run[AHEAD];
      [[unroll]] for (uint i = 0; i < AHEAD; ++i) {
        of_run[i] = 0;
        if (first + i < args.runs) of_run[i] = uint(I32(count_at(first + i, e)).v);
      }
      [[unroll]] for (uint i = 0; i < AHEAD; ++i) {
        if (first + i < args.runs) I32(count_at(first + i, e)).v = int(sum);
        sum += of_run[i];
      }
    }
    count[e] = sum;
  }
  barrier();
  find_starts();
  for (uint e = gl_LocalInvocationIndex; e < EXPERTS; e += THREADS) {
    I32(args.totals + uint64_t(e) * 4).v = int(count[e]);
    I32(args.starts + uint64_t(e) * 4).v = int(start[e]);
  }
}
