#version 460
// Counts the experts of each run of THREADS assignments.

#define ARGUMENTS uint64_t ids, counts; uint assignments;
#define COUNTS_EXPERTS 1
#define FINDS_STARTS 0
#include "permute/places.glsl"

void main() {
  const uint run = workgroup(), me = gl_LocalInvocationIndex;
  if (run > (args.assignments - 1) / THREADS) return;
  for (uint e = me; e < EXPERTS; e += THREADS) count[e] = 0;
  barrier();
  const uint at = run * THREADS + me;
  uint expert = EXPERTS;
  if (at < args.assignments) expert = id_at(at);
  if (expert < EXPERTS) atomicAdd(count[expert], 1);
  barrier();
  for (uint e = me; e < EXPERTS; e += THREADS)
    I32(args.counts + (uint64_t(run) * EXPERTS + e) * 4).v = int(count[e]);
}
