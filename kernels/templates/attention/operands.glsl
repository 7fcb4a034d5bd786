// The arguments of every attention kernel. Queries and outputs lie token by token, [sequence]
// [query][head][DIM]; keys and values head by head, [sequence][KV head][capacity][DIM].
#pragma once

#if !defined(IN_F16) || !defined(IN_BF16) || !defined(OUT_F16) || !defined(OUT_BF16) || \
    !defined(DIM) || !defined(CAUSAL) || !defined(Q_STRIDE)
#error "{IN,OUT}_{F16,BF16}, DIM, CAUSAL and Q_STRIDE must be defined"
#endif
#if DIM < 8 || DIM % 8 != 0
#error "DIM is a multiple of 8"
#endif

layout(push_constant, std430) uniform Arguments {
  uint64_t q, k, v;
  uint64_t lengths;   // valid keys of each sequence, i32
  uint64_t result;
  uint64_t partial;   // what slices of the keys give
  uint64_t counters;  // slices that are done, one for each sequence and KV head; zero
  uint batch, heads, kv_heads;
  uint queries, capacity;  // of a sequence; `capacity` counts keys
  uint tiles;              // of a sequence's queries
  float scale;             // of the scores, times log2(e)
} args;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer I32 { int v; };

// Less than any score; 2 to the power of its difference to one is 0.
#define LOWEST_SCORE (-1e30)

// Valid keys of a sequence: never more than there are.
uint key_count(uint sequence) {
  const int length = I32(args.lengths + uint64_t(sequence) * 4).v;
  return min(uint(max(length, 0)), args.capacity);
}

// How many of the first `count` keys a query sees.
uint visible_keys(uint count, uint query) {
#if CAUSAL
  const uint end = count + query + 1;
  return min(end > args.queries ? end - args.queries : 0, count);
#else
  return count;
#endif
}

// Where a head of a query is in results; in elements.
uint64_t result_offset(uint sequence, uint query, uint head) {
  return ((uint64_t(sequence) * args.queries + query) * args.heads + head) * DIM;
}

// And in queries, whose tokens may be further apart.
uint64_t query_offset(uint sequence, uint query, uint head) {
#if Q_STRIDE
  return (uint64_t(sequence) * args.queries + query) * Q_STRIDE + uint64_t(head) * DIM;
#else
  return result_offset(sequence, query, head);
#endif
}

// Where a KV head's keys and values start.
uint64_t keys_offset(uint sequence, uint kv_head) {
  return (uint64_t(sequence) * args.kv_heads + kv_head) * args.capacity * DIM;
}
