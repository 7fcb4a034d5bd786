#version 460
// The places of a run of THREADS assignments: after those of the same expert in earlier runs, and
// earlier in this one.

#define ARGUMENTS uint64_t ids, counts, starts, places; uint assignments;
#define COUNTS_EXPERTS 0
#define FINDS_STARTS 0
#include "permute/places.glsl"

shared uint experts[THREADS];

void main() {
  const uint run = workgroup(), me = gl_LocalInvocationIndex;
  if (run > (args.assignments - 1) / THREADS) return;
  const uint at = run * THREADS + me;
  uint expert = EXPERTS;
  if (at < args.assignments) expert = id_at(at);
  experts[me] = expert;
  barrier();
  if (at >= args.assignments) return;
  int place = -1;
  if (expert < EXPERTS) {
    uint rank = uint(I32(args.counts + (uint64_t(run) * EXPERTS + expert) * 4).v);
    for (uint i = 0; i < me; ++i) rank += experts[i] == expert ? 1 : 0;
    place = place_of(uint(I32(args.starts + uint64_t(expert) * 4).v), rank);
  }
  I32(args.places + uint64_t(at) * 4).v = place;
}
