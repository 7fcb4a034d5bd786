// Where the rows of experts are in the permuted matrix: one expert's after the other's, each expert's
// number of rows rounded up to a multiple of BLOCK; or, with CAPACITY rows for each expert, from the
// expert's first on. The assignments of an expert keep their order.
#pragma once

#if !defined(EXPERTS) || !defined(TOP_K) || !defined(BLOCK) || !defined(CAPACITY)
#error "EXPERTS, TOP_K, BLOCK and CAPACITY must be defined"
#endif
#if EXPERTS < 1 || TOP_K < 1 || TOP_K > 64 || BLOCK < 1 || CAPACITY > 0 && BLOCK != 1
#error "TOP_K is at most 64, and experts with a CAPACITY have no blocks"
#endif

#include "common/elementwise.glsl"

// The arguments are in the order of the kernel's operands, then those of the workspace.
layout(push_constant, std430) uniform Arguments { ARGUMENTS } args;

uint id_at(uint at) { return uint(I32(args.ids + uint64_t(at) * 4).v); }

// Rows that an expert takes up.
uint rows_of(uint count) { return (count + BLOCK - 1) / BLOCK * BLOCK; }

#if COUNTS_EXPERTS
shared uint count[EXPERTS];
#endif

#if FINDS_STARTS
shared uint start[EXPERTS];
shared uint part[THREADS];

// Each expert's first row, from its number of assignments.
void find_starts() {
  const uint me = gl_LocalInvocationIndex;
#if CAPACITY > 0
  for (uint e = me; e < EXPERTS; e += THREADS) start[e] = e * CAPACITY;
  barrier();
#else
  const uint each = (EXPERTS + THREADS - 1) / THREADS;
  uint sum = 0;
  for (uint i = 0; i < each; ++i)
    if (me * each + i < EXPERTS) sum += rows_of(count[me * each + i]);
  part[me] = sum;
  barrier();
  [[dont_unroll]] for (uint step = 1; step < THREADS; step *= 2) {
    const uint before = me >= step ? part[me - step] : 0;
    barrier();
    part[me] += before;
    barrier();
  }
  uint at = part[me] - sum;
  for (uint i = 0; i < each && me * each + i < EXPERTS; ++i) {
    start[me * each + i] = at;
    at += rows_of(count[me * each + i]);
  }
  barrier();
#endif
}
#endif

// The row of an expert's assignment with this number; -1 beyond the capacity.
int place_of(uint first, uint rank) {
  return CAPACITY > 0 && rank >= CAPACITY ? -1 : int(first + rank);
}
