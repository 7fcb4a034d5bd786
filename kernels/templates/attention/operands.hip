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

#include "common/in_out.hip"
#include "common/reduce.hip"

struct Arguments {
  const In *q, *k, *v;
  const int* lengths;  // valid keys of each sequence
  Out* out;
  float* partial;  // what slices of the keys give
  u32* counters;   // slices that are done, one for each sequence and KV head; zero
  u32 batch, heads, kv_heads;
  u32 queries, capacity;  // of a sequence; `capacity` counts keys
  u32 tiles;              // of a sequence's queries
  float scale;            // of the scores, times log2(e)
};

#define ATTENTION_PARAMETERS                                                                  \
  const In *__restrict__ q, const In *__restrict__ k, const In *__restrict__ v,               \
      const int *__restrict__ lengths, Out *__restrict__ out, float *partial, u32 *counters,  \
      u32 batch, u32 heads, u32 kv_heads, u32 queries, u32 capacity, u32 tiles, float scale
#define ATTENTION_ARGUMENTS                                                                 \
  Arguments {                                                                               \
    q, k, v, lengths, out, partial, counters, batch, heads, kv_heads, queries, capacity,    \
        tiles, scale                                                                        \
  }

// Less than any score; 2 to the power of its difference to one is 0.
constexpr float lowest_score = -1e30f;

// Valid keys of a sequence: never more than there are.
GRETA_DEVICE u32 key_count(const Arguments& args, u32 sequence) {
  const int length = args.lengths[sequence];
  return length < 0 ? 0 : smaller(u32(length), args.capacity);
}

// How many of the first `count` keys a query sees.
GRETA_DEVICE u32 visible_keys(u32 count, u32 queries, u32 query) {
#if CAUSAL
  const u32 end = count + query + 1;
  return smaller(end > queries ? end - queries : 0, count);
#else
  return count;
#endif
}

// Where a head of a query is in outputs.
GRETA_DEVICE u64 output_offset(const Arguments& args, u32 sequence, u32 query, u32 head) {
  return ((u64(sequence) * args.queries + query) * args.heads + head) * DIM;
}

// And in queries, whose tokens may be further apart.
GRETA_DEVICE u64 query_offset(const Arguments& args, u32 sequence, u32 query, u32 head) {
#if Q_STRIDE
  return (u64(sequence) * args.queries + query) * Q_STRIDE + u64(head) * DIM;
#else
  return output_offset(args, sequence, query, head);
#endif
}

// Where a KV head's keys and values start.
GRETA_DEVICE u64 keys_offset(const Arguments& args, u32 sequence, u32 kv_head) {
  return (u64(sequence) * args.kv_heads + kv_head) * args.capacity * DIM;
}
