// The arguments of every attention kernel. Queries and outputs lie token by token, [sequence]
// [query][head][DIM]; keys and values head by head, [sequence][KV head][capacity][DIM]. Those of
// values and outputs have V_DIM elements. With PACKED, tokens of sequences of any lengths lie one after
// the other, [token][head][DIM], keys and values too, and `starts` say where sequences begin.
#pragma once

#if !defined(IN_F16) || !defined(IN_BF16) || !defined(OUT_F16) || !defined(OUT_BF16) || \
    !defined(DIM) || !defined(V_DIM) || !defined(CAUSAL) || !defined(Q_STRIDE)
#error "{IN,OUT}_{F16,BF16}, DIM, V_DIM, CAUSAL and Q_STRIDE must be defined"
#endif
#if !defined(WINDOW) || !defined(SOFTCAP) || !defined(SINKS) || !defined(LSE) || !defined(PAGE) || \
    !defined(PACKED)
#error "WINDOW, SOFTCAP, SINKS, LSE, PAGE and PACKED must be defined"
#endif
#if PACKED && PAGE
#error "packed sequences have no pages"
#endif
#if WINDOW && !CAUSAL
#error "a WINDOW is one of causal queries"
#endif
#if DIM < 8 || DIM % 8 != 0 || V_DIM < 8 || V_DIM % 8 != 0
#error "DIM and V_DIM are multiples of 8"
#endif

layout(push_constant, std430) uniform Arguments {
  uint64_t q, k, v;
#if PACKED
  uint64_t query_starts, key_starts;  // of each sequence, and the end of the last one; i32
#else
  uint64_t lengths;   // valid keys of each sequence, i32
#endif
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

#if PACKED
// Of the sequence that enter_sequence() found.
uint own_queries, own_keys, queries_before, keys_before;

// Where sequence `number` begins, of which there are args.batch; the end of all tokens after those.
uint start_of(uint64_t starts, uint number, uint tokens) {
  if (number == 0) return 0;
  if (number > args.batch) return tokens;
  return min(uint(max(I32(starts + uint64_t(number) * 4).v, 0)), tokens);
}

// Of packed tokens, a sequence takes those tiles of `rows` rows whose numbers begin with this one: as
// many as it can need, wherever it begins. A token has `heads` rows.
uint first_tile_of(uint number, uint rows, uint heads) {
  return start_of(args.query_starts, number, args.queries) * heads / rows + number;
}

// Finds the sequence that tile `number` of all belongs to, and gives the tile's first row in it.
// Tokens after the last sequence are one more, without keys.
uint enter_sequence(uint number, uint rows, uint heads) {
  uint low = 0, high = args.batch;
  [[dont_unroll]] while (low < high) {
    const uint middle = (low + high + 1) / 2;
    const bool reached = first_tile_of(middle, rows, heads) <= number;
    low = reached ? middle : low;
    high = reached ? high : middle - 1;
  }
  queries_before = start_of(args.query_starts, low, args.queries);
  keys_before = start_of(args.key_starts, low, args.capacity);
  own_queries = max(start_of(args.query_starts, low + 1, args.queries), queries_before) -
                queries_before;
  own_keys = low == args.batch
                 ? 0
                 : max(start_of(args.key_starts, low + 1, args.capacity), keys_before) - keys_before;
  return (number - first_tile_of(low, rows, heads)) * rows;
}

uint query_count() { return own_queries; }
uint key_count(uint sequence) { return own_keys; }
uint64_t token_of(uint sequence, uint query) { return queries_before + query; }
uint tile_sets() { return 1; }  // sequences whose tiles are numbered one by one
#else
uint query_count() { return args.queries; }
uint64_t token_of(uint sequence, uint query) { return uint64_t(sequence) * args.queries + query; }
uint tile_sets() { return args.batch; }

// Valid keys of a sequence: never more than there are.
uint key_count(uint sequence) {
  const int length = I32(args.lengths + uint64_t(sequence) * 4).v;
  return min(uint(max(length, 0)), args.capacity);
}
#endif

// How many of the first `count` keys a query sees.
uint visible_keys(uint count, uint query) {
#if CAUSAL
  const uint end = count + query + 1;
  return min(end > query_count() ? end - query_count() : 0, count);
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
  const float most = max(max(greatest, sink), LOWEST_SCORE), kept = exp2(greatest - most);
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
      sum == 0.0 ? uintBitsToFloat(0xff800000u) : (greatest + log2(sum)) * 0.69314718055994531;
#endif
}

// Where a head of a query is in results; in elements.
uint64_t result_offset(uint sequence, uint query, uint head) {
  return (token_of(sequence, query) * args.heads + head) * V_DIM;
}

// And in queries, whose tokens may be further apart.
uint64_t query_offset(uint sequence, uint query, uint head) {
#if Q_STRIDE
  return token_of(sequence, query) * Q_STRIDE + uint64_t(head) * DIM;
#else
  return (token_of(sequence, query) * args.heads + head) * DIM;
#endif
}

// Where element `at` of a KV head's keys is, from key `first` on, after find_lines(), and element `at`
// of its values. Their lines of DIM and V_DIM elements lie one after the other, or with PAGE so many of
// them do, on the pages that a table names, or with PACKED those of all heads of a key. The key must be a
// valid one.
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
#elif PACKED
uint own_head;
void find_lines(uint sequence, uint kv_head) { own_head = kv_head; }
uint64_t line_of_key(uint key) {
  return uint64_t(keys_before + key) * args.kv_heads + own_head;
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
