#version 460
// Many assignments, whose places are known: a workgroup takes a token, or completes an expert.

#define ARGUMENTS uint64_t x, ids, totals, starts, out_, groups; uint tokens, dim;
#define COUNTS_EXPERTS 0
#define FINDS_STARTS 0
#include "permute/places.glsl"

uint count_of(uint expert) { return uint(I32(args.totals + uint64_t(expert) * 4).v); }
uint start_of(uint expert) { return uint(I32(args.starts + uint64_t(expert) * 4).v); }
#include "permute/copy_row.glsl"

// `ids` are the places.
void main() {
  const uint token = workgroup(), me = gl_LocalInvocationIndex;
  if (token >= args.tokens + FINISHERS) return;
  if (token >= args.tokens) {
    finish(token - args.tokens);
    return;
  }
  if (me < TOP_K) place[me] = int(id_at(token * TOP_K + me));
  barrier();
  copy_row(token);
}
