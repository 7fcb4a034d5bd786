#version 460
// Few assignments: a workgroup takes a token, or completes an expert. Each counts all assignments on
// its own, so that one launch is enough.

#define ARGUMENTS uint64_t x, ids, out_, groups, places; uint tokens, dim;
#define COUNTS_EXPERTS 1
#define FINDS_STARTS 1
#include "permute/places.glsl"

uint count_of(uint expert) { return count[expert]; }
uint start_of(uint expert) { return start[expert]; }
#include "permute/copy_row.glsl"

shared uint own[TOP_K], rank[TOP_K];

void main() {
  const uint token = workgroup(), me = gl_LocalInvocationIndex;
  if (token >= args.tokens + FINISHERS) return;
  for (uint e = me; e < EXPERTS; e += THREADS) count[e] = 0;
  if (me < TOP_K) {
    own[me] = EXPERTS;
    if (token < args.tokens) own[me] = id_at(token * TOP_K + me);
    rank[me] = 0;
  }
  barrier();
  for (uint i = me; i < args.tokens * TOP_K; i += THREADS) {
    const uint expert = id_at(i);
    if (expert >= EXPERTS) continue;
    atomicAdd(count[expert], 1);
    for (uint k = 0; k < TOP_K; ++k)
      if (own[k] == expert && i < token * TOP_K + k) atomicAdd(rank[k], 1);
  }
  barrier();
  find_starts();
  if (token >= args.tokens) {
    finish(token - args.tokens);
    return;
  }
  if (me < TOP_K) {
    place[me] = -1;
    if (own[me] < EXPERTS) place[me] = place_of(start[own[me]], rank[me]);
    I32(args.places + uint64_t(token * TOP_K + me) * 4).v = place[me];
  }
  barrier();
  copy_row(token);
}
