// The arguments of every attention kernel. Queries and outputs lie token by token, [sequence]
// [query][head][DIM]; keys and values head by head, [sequence][KV head][capacity][DIM]. Those of
// values and outputs have V_DIM elements.
#pragma once

#if !defined(IN_F16) || !defined(IN_BF16) || !defined(OUT_F16) || !defined(OUT_BF16) || \
    !defined(DIM) || !defined(V_DIM) || !defined(CAUSAL) || !defined(Q_STRIDE)
#error "{IN,OUT}_{F16,BF16}, DIM, V_DIM, CAUSAL and Q_STRIDE must be defined"
#endif
#if !defined(WINDOW) || !defined(SOFTCAP) || !defined(SINKS) || !defined(LSE) || !defined(PAGE)
#error "WINDOW, SOFTCAP, SINKS, LSE and PAGE must be defined"
#endif
#if WINDOW && !CAUSAL
#error "a WINDOW is one of causal queries"
#endif
#if DIM < 8 || DIM % 8 != 0 || V_DIM < 8 || V_DIM % 8 != 0
#error "DIM and V_DIM are multiples of 8"
#endif

layout(push_constant, std430) uniform Arguments {
  uint64_t q, k, v;
  uint64_t lengths;   // valid keys of each sequence, i32
#if PAGE
  uint64_t table;     // of each sequence's pages: their numbers, i32
#endif
#if SINKS
  uint64_t sinks;     // scores without a key, f32, one for each head
#endif
  uint64_t result;
#if LSE
  uint64_t lse;       // the logarithm of each row's sum, f32
#endif
  uint64_t partial;   // what slices of the keys give
  uint64_t counters;  // slices that are done, one for each sequence and KV head; zero
  uint batch, heads, kv_heads;
  uint queries, capacity;  // of a sequence; `capacity` counts keys
  uint tiles;              // of a sequence's queries
  float scale;             // of the scores, times log2(e)
#if WINDOW
  uint window;             // keys that a query sees at most
#endif
#if SOFTCAP
  float softcap;           // limit of the scores, times log2(e)
#endif
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

// Of these, how many of the first it does not see.
uint hidden_keys(uint count, uint query) {
#if WINDOW
  const uint seen = visible_keys(count, query);
  return seen - min(seen, args.window);
#else
  return 0;
#endif
}

// A scaled score, below the limit. As operands.hip.
float capped(float score) {
#if SOFTCAP
  const float power = exp2(score / args.softcap * 2.8853900817779268);  // 2 log2(e)
  return args.softcap - 2.0 * args.softcap / (power + 1.0);
#else
  return score;
#endif
}

// Adds a head's sink to a row's sum of powers of 2, which are relative to the greatest exponent, and
// gives the factor of the sums of values.
float add_sink(uint head, inout float greatest, inout float sum) {
#if SINKS
  const float sink = F32(args.sinks + uint64_t(head) * 4).v * 1.4426950408889634;
  const float most = max(greatest, sink), kept = exp2(greatest - most);
  sum = fma(sum, kept, exp2(sink - most));
  greatest = most;
  return kept;
#else
  return 1.0;
#endif
}

// Of the row whose results are at `offset`.
void put_lse(uint64_t offset, float greatest, float sum) {
#if LSE
  F32(args.lse + offset / V_DIM * 4).v =
      sum > 0.0 ? (greatest + log2(sum)) * 0.69314718055994531 : uintBitsToFloat(0xff800000u);
#endif
}

// Where a head of a query is in results; in elements.
uint64_t result_offset(uint sequence, uint query, uint head) {
  return ((uint64_t(sequence) * args.queries + query) * args.heads + head) * V_DIM;
}

// And in queries, whose tokens may be further apart.
uint64_t query_offset(uint sequence, uint query, uint head) {
#if Q_STRIDE
  return (uint64_t(sequence) * args.queries + query) * Q_STRIDE + uint64_t(head) * DIM;
#else
  return ((uint64_t(sequence) * args.queries + query) * args.heads + head) * DIM;
#endif
}

// Where element `at` of a KV head's keys is, from key `first` on, after find_lines(), and element `at`
// of its values. Their lines of DIM and V_DIM elements lie one after the other, or with PAGE so many of
// them do, on the pages that a table names. The key must be a valid one.
#if PAGE
uint64_t page_table, page_lines, head_lines;
void find_lines(uint sequence, uint kv_head) {
  const uint pages = (args.capacity + PAGE - 1) / PAGE;
  page_table = args.table + uint64_t(sequence) * pages * 4;
  page_lines = uint64_t(args.kv_heads) * PAGE;
  head_lines = uint64_t(kv_head) * PAGE;
}
uint64_t line_of_key(uint key) {
  const uint64_t page = uint64_t(I32(page_table + uint64_t(key / PAGE) * 4).v);
  return page * page_lines + head_lines + key % PAGE;
}
uint64_t key_offset(uint first, uint at) { return line_of_key(first + at / DIM) * DIM + at % DIM; }
uint64_t value_offset(uint first, uint at) {
  return line_of_key(first + at / V_DIM) * V_DIM + at % V_DIM;
}
#else
uint64_t head_keys, head_values;
void find_lines(uint sequence, uint kv_head) {
  const uint64_t lines = (uint64_t(sequence) * args.kv_heads + kv_head) * args.capacity;
  head_keys = lines * DIM;
  head_values = lines * V_DIM;
}
uint64_t key_offset(uint first, uint at) { return head_keys + uint64_t(first) * DIM + at; }
uint64_t value_offset(uint first, uint at) { return head_values + uint64_t(first) * V_DIM + at; }
#endif
