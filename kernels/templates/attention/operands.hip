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

#include "common/in_out.hip"
#include "common/reduce.hip"

// Arguments of some kernels alone.
#if PACKED
#define LENGTHS_PARAMETER const int *GRETA_READ query_starts, const int *GRETA_READ key_starts
#define LENGTHS_ARGUMENT query_starts, key_starts
#else
#define LENGTHS_PARAMETER const int* GRETA_READ lengths
#define LENGTHS_ARGUMENT lengths
#endif
#if PAGE
#define TABLE_PARAMETER const int *GRETA_READ table,
#define TABLE_ARGUMENT table
#else
#define TABLE_PARAMETER
#define TABLE_ARGUMENT nullptr
#endif
#if SINKS
#define SINKS_PARAMETER const float *GRETA_READ sinks,
#define SINKS_ARGUMENT sinks
#else
#define SINKS_PARAMETER
#define SINKS_ARGUMENT nullptr
#endif
#if LSE
#define LSE_PARAMETER float *__restrict__ lse,
#define LSE_ARGUMENT lse
#else
#define LSE_PARAMETER
#define LSE_ARGUMENT nullptr
#endif
#if WINDOW
#define WINDOW_PARAMETER , u32 window
#define WINDOW_ARGUMENT window
#else
#define WINDOW_PARAMETER
#define WINDOW_ARGUMENT 0
#endif
#if SOFTCAP
#define SOFTCAP_PARAMETER , float softcap
#define SOFTCAP_ARGUMENT softcap
#else
#define SOFTCAP_PARAMETER
#define SOFTCAP_ARGUMENT 0.0f
#endif

struct Arguments {
  const In *q, *k, *v;
#if PACKED
  const int *query_starts, *key_starts;  // of each sequence, and the end of the last one
#else
  const int* lengths;  // valid keys of each sequence
#endif
  const int* table;    // of each sequence's pages: their numbers
  const float* sinks;  // scores without a key, one for each head
  Out* out;
  float* lse;      // the logarithm of each row's sum
  float* partial;  // what slices of the keys give
  u32* counters;   // slices that are done, one for each sequence and KV head; zero
  u32 batch, heads, kv_heads;
  u32 queries, capacity;  // of a sequence; `capacity` counts keys
  u32 tiles;              // of a sequence's queries
  float scale;            // of the scores, times log2(e)
  u32 window;             // keys that a query sees at most
  float softcap;          // limit of the scores, times log2(e)
};

#define ATTENTION_PARAMETERS                                                                   \
  const In *GRETA_READ q, const In *GRETA_READ k, const In *GRETA_READ v, LENGTHS_PARAMETER,   \
      TABLE_PARAMETER SINKS_PARAMETER Out *__restrict__ out, LSE_PARAMETER float *partial,     \
      u32 *counters, u32 batch, u32 heads, u32 kv_heads, u32 queries, u32 capacity, u32 tiles, \
      float scale WINDOW_PARAMETER SOFTCAP_PARAMETER
#define ATTENTION_ARGUMENTS                                                                     \
  Arguments {                                                                                   \
    q, k, v, LENGTHS_ARGUMENT, TABLE_ARGUMENT, SINKS_ARGUMENT, out, LSE_ARGUMENT, partial,      \
        counters, batch, heads, kv_heads, queries, capacity, tiles, scale, WINDOW_ARGUMENT,     \
        SOFTCAP_ARGUMENT                                                                        \
  }

// Less than any score; 2 to the power of its difference to one is 0.
constexpr float lowest_score = -1e30f;

// Valid keys of a sequence: never more than there are.
GRETA_DEVICE u32 key_count(const Arguments& args, u32 sequence) {
#if PACKED
  return args.capacity;  // after enter_sequence()
#else
  const int length = args.lengths[sequence];
  return length < 0 ? 0 : smaller(u32(length), args.capacity);
#endif
}

#if PACKED
// Where sequence `number` begins, of which there are args.batch; the end of all tokens after those.
GRETA_DEVICE u32 start_of(const Arguments& args, const int* starts, u32 number, u32 tokens) {
  if (number == 0) return 0;
  if (number > args.batch) return tokens;
  const int start = starts[number];
  return start < 0 ? 0 : smaller(u32(start), tokens);
}

// Of packed tokens, a sequence takes those tiles of `rows` rows whose numbers begin with this one: as
// many as it can need, wherever it begins. A token has `heads` rows.
GRETA_DEVICE u32 first_tile_of(const Arguments& args, u32 number, u32 rows, u32 heads) {
  return start_of(args, args.query_starts, number, args.queries) * heads / rows + number;
}

// Makes the arguments those of the one sequence that tile `number` of all belongs to, and gives the
// tile's first row in it. Tokens after the last sequence are one more, without keys.
GRETA_DEVICE u32 enter_sequence(Arguments& args, u32 number, u32 rows, u32 heads) {
  u32 low = 0, high = args.batch;
  while (low < high) {
    const u32 middle = (low + high + 1) / 2;
    const bool reached = first_tile_of(args, middle, rows, heads) <= number;
    low = reached ? middle : low;
    high = reached ? high : middle - 1;
  }
  const u32 first_row = (number - first_tile_of(args, low, rows, heads)) * rows;
  const u32 query = start_of(args, args.query_starts, low, args.queries);
  const u32 query_end = start_of(args, args.query_starts, low + 1, args.queries);
  const u32 key = start_of(args, args.key_starts, low, args.capacity);
  const u32 key_end = low == args.batch ? key : start_of(args, args.key_starts, low + 1, args.capacity);
  args.q += u64(query) * (Q_STRIDE ? Q_STRIDE : args.heads * DIM);
  args.k += u64(key) * args.kv_heads * DIM;
  args.v += u64(key) * args.kv_heads * V_DIM;
  args.out += u64(query) * args.heads * V_DIM;
  if (LSE) args.lse += u64(query) * args.heads;
  args.queries = query_end > query ? query_end - query : 0;
  args.capacity = key_end > key ? key_end - key : 0;
  return first_row;
}
#endif

// Sequences whose tiles are numbered one by one: packed ones share the numbers of their tiles.
GRETA_DEVICE u32 tile_sets(const Arguments& args) { return PACKED ? 1 : args.batch; }

// How many of the first `count` keys a query sees.
GRETA_DEVICE u32 visible_keys(u32 count, u32 queries, u32 query) {
#if CAUSAL
  const u32 end = count + query + 1;
  return smaller(end > queries ? end - queries : 0, count);
#else
  return count;
#endif
}

// Of these, how many of the first it does not see.
GRETA_DEVICE u32 hidden_keys(const Arguments& args, u32 count, u32 query) {
#if WINDOW
  const u32 seen = visible_keys(count, args.queries, query);
  return seen - smaller(seen, args.window);
#else
  return 0;
#endif
}

// A division takes ten instructions on AMD, and a reciprocal one. With older compilers, whose powers
// of 2 have several, not enough scalar registers are left for so many at once.
#if defined(GRETA_AMD)
#if __has_builtin(__builtin_amdgcn_exp2f)
#define GRETA_CAP_BY_RECIPROCAL
#endif
#endif

// A scaled score, below the limit: c tanh(x / c), by a power of 2 whose errors are absolute ones of
// the result.
GRETA_DEVICE float capped(const Arguments& args, float score) {
#if SOFTCAP && defined(GRETA_CAP_BY_RECIPROCAL)
  const float power = fast_exp2(score * (2.8853900817779268f / args.softcap));  // 2 log2(e)
  return multiply_add(-2.0f * args.softcap, __builtin_amdgcn_rcpf(power + 1.0f), args.softcap);
#elif SOFTCAP
  const float power = fast_exp2(score / args.softcap * 2.8853900817779268f);  // 2 log2(e)
  return args.softcap - 2.0f * args.softcap / (power + 1.0f);
#else
  return score;
#endif
}

// What turns dot products, or capped scores, into exponents of 2.
GRETA_DEVICE float exponent_scale(const Arguments& args) { return SOFTCAP ? 1.0f : args.scale; }

// What remains of a row's sums when its head's sink is added: the sum of powers of 2, relative to
// their greatest exponent.
struct RowSum {
  float greatest, sum;

  // Adds the sink, and gives the factor of the sums of values.
  GRETA_DEVICE float add_sink(const Arguments& args, u32 head) {
#if SINKS
    const float sink = args.sinks[head] * 1.4426950408889634f;
    const float most = larger(larger(greatest, sink), lowest_score);
    const float kept = fast_exp2(greatest - most);
    sum = multiply_add(sum, kept, fast_exp2(sink - most));
    greatest = most;
    return kept;
#else
    return 1.0f;
#endif
  }

  // The factor of a row's sums of values; 0 without a key, where nothing is attended to.
  GRETA_DEVICE float factor(const Arguments& args, u32 head) {
    const float kept = add_sink(args, head);
    return sum == 0.0f ? 0.0f : kept / sum;
  }

  // Outputs of some sums of values.
  template <int count>
  GRETA_DEVICE void divide(const Arguments& args, u32 head, const float (&values)[count],
                           float (&x)[count]) {
    const float each = factor(args, head);
    // Without a key, sums may be NaN: zero times what others see.
    GRETA_UNROLL
    for (int i = 0; i < count; ++i) x[i] = sum == 0.0f ? 0.0f : values[i] * each;
  }

  // Of the row's output, at `offset`.
  GRETA_DEVICE void put_lse(const Arguments& args, u64 offset) const {
#if LSE
    args.lse[offset / V_DIM] = sum == 0.0f ? float_from_bits(0xff800000U)
                                           : (greatest + fast_log2(sum)) * 0.69314718055994531f;
#endif
  }
};

// Where a head of a query is in outputs.
GRETA_DEVICE u64 output_offset(const Arguments& args, u32 sequence, u32 query, u32 head) {
  return ((u64(sequence) * args.queries + query) * args.heads + head) * V_DIM;
}

// And in queries, whose tokens may be further apart.
GRETA_DEVICE u64 query_offset(const Arguments& args, u32 sequence, u32 query, u32 head) {
#if Q_STRIDE
  return (u64(sequence) * args.queries + query) * Q_STRIDE + u64(head) * DIM;
#else
  return ((u64(sequence) * args.queries + query) * args.heads + head) * DIM;
#endif
}

// Lines of `dim` elements that are the keys, or the values, of a sequence's KV head from some key on.
// They lie one after the other, or with PAGE so many of them do, on the pages that a table names, or
// with PACKED those of all heads of a key.
template <u32 dim>
struct Lines {
#if PAGE
  const In* pool;    // where the head's lines of page 0 are
  const int* table;  // of the sequence
  u64 page;          // elements from one page to the next
  u32 first;         // key

  GRETA_DEVICE Lines(const Arguments& args, const In* tensor, u32 sequence, u32 kv_head)
      : pool(tensor + u64(kv_head) * (PAGE * dim)),
        table(args.table + u64(sequence) * ((args.capacity + PAGE - 1) / PAGE)),
        page(u64(args.kv_heads) * (PAGE * dim)),
        first(0) {}

  GRETA_DEVICE void skip(u32 lines) { first += lines; }
  // Where a line is. It must be one of a valid key.
  GRETA_DEVICE const In* line(u32 number) const {
    const u32 key = first + number;
    return pool + u64(table[key / PAGE]) * page + key % PAGE * dim;
  }
  // Where element `at` of all lines is, and the one that is `further` behind it, at `from`.
  GRETA_DEVICE const In* element(u32 at) const { return line(at / dim) + at % dim; }
  GRETA_DEVICE const In* later(const In*, u32 at, u32 further) const { return element(at + further); }
#elif PACKED
  const In* start;
  u32 pitch;  // elements from one key to the next

  GRETA_DEVICE Lines(const Arguments& args, const In* tensor, u32, u32 kv_head)
      : start(tensor + u64(kv_head) * dim), pitch(args.kv_heads * dim) {}

  GRETA_DEVICE u32 distance() const { return pitch; }
  GRETA_DEVICE void skip(u32 lines) { start += u64(lines) * pitch; }
  GRETA_DEVICE const In* line(u32 number) const { return start + u64(number) * pitch; }
  GRETA_DEVICE const In* element(u32 at) const { return line(at / dim) + at % dim; }
  GRETA_DEVICE const In* later(const In*, u32 at, u32 further) const { return element(at + further); }
#else
  const In* start;

  GRETA_DEVICE Lines(const Arguments& args, const In* tensor, u32 sequence, u32 kv_head)
      : start(tensor + (u64(sequence) * args.kv_heads + kv_head) * args.capacity * dim) {}

  // Elements from one line to the next.
  static GRETA_DEVICE constexpr u32 distance() { return dim; }
  GRETA_DEVICE void skip(u32 lines) { start += u64(lines) * dim; }
  GRETA_DEVICE const In* line(u32 number) const { return start + u64(number) * dim; }
  GRETA_DEVICE const In* element(u32 at) const { return start + at; }
  GRETA_DEVICE const In* later(const In* from, u32, u32 further) const { return from + further; }
#endif

  GRETA_DEVICE Lines from(u32 number) const {
    Lines rest = *this;
    rest.skip(number);
    return rest;
  }
};

typedef Lines<DIM> KeyLines;
typedef Lines<V_DIM> ValueLines;
