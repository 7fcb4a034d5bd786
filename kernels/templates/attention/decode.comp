#version 460
// Few queries: bound by reading the keys and values once. A workgroup has ROWS of the QUERIES that
// share a KV head (GROUP heads of each query): all of them, or one of PARTS; and a slice of the
// keys, one of SPLIT. LANES threads share a key, each with every LANES-th piece of VEC elements; each
// such slot of threads walks through the slice with UNROLL keys and values in flight, with AHEAD
// while it works on those before them, and keeps its own greatest score, sum of exponentials and sums
// of values. Slots are joined through shared memory; slices through the workspace, by the last one to
// arrive, in their order whatever the order of arrival.

#if !defined(ROWS) || !defined(PARTS) || !defined(QUERIES) || !defined(GROUP) || \
    !defined(THREADS) || !defined(LANES) || !defined(VEC) || !defined(UNROLL) || \
    !defined(AHEAD) || !defined(SPLIT)
#error "ROWS PARTS QUERIES GROUP THREADS LANES VEC UNROLL AHEAD and SPLIT must be defined"
#endif
#if !defined(IN_PACK) || !defined(IN_RAW)
#error "IN_PACK and IN_RAW must be defined"
#endif
#if ROWS < 1 || GROUP < 1 || QUERIES % GROUP != 0 || UNROLL < 1 || SPLIT < 1
#error "GROUP divides QUERIES; UNROLL and SPLIT are at least 1"
#endif
#if PARTS * ROWS < QUERIES || (PARTS - 1) * ROWS >= QUERIES
#error "PARTS of ROWS are the QUERIES"
#endif
#if DIM % (LANES * VEC) != 0 || V_DIM % (LANES * VEC) != 0 || THREADS % LANES != 0
#error "LANES x VEC divide DIM and V_DIM, and LANES divides THREADS"
#endif

#if PACKED
#error "sequences have the same number of queries"
#endif

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#include "common/in_out.glsl"
#include "attention/operands.glsl"
#if SPLIT > 1
#define SLICE_ROWS ROWS
#include "attention/slices.glsl"
#endif

layout(local_size_x = THREADS) in;

#define SLOTS (THREADS / LANES)
#define PIECES (DIM / (LANES * VEC))
#define ELEMENTS (PIECES * VEC)  // of a thread
#define VALUE_PIECES (V_DIM / (LANES * VEC))
#define VALUE_ELEMENTS (VALUE_PIECES * VEC)

// Rows that are joined at a time.
#define ROW_FLOATS (SLOTS * (V_DIM + 2))
#if ROW_FLOATS * ROWS <= 6144
#define ROWS_TOGETHER ROWS
#elif ROW_FLOATS < 6144
#define ROWS_TOGETHER (6144 / ROW_FLOATS)
#else
#define ROWS_TOGETHER 1
#endif

#if SPLIT > 1 && SLICE_FLOATS > ROWS_TOGETHER * ROW_FLOATS
#define SHARED_FLOATS SLICE_FLOATS
#else
#define SHARED_FLOATS (ROWS_TOGETHER * ROW_FLOATS)
#endif

shared float slot_sums[SHARED_FLOATS];
#if SPLIT > 1
float join_float(uint i) { return slot_sums[i]; }
void set_join_float(uint i, float x) { slot_sums[i] = x; }
#endif

uint reader;  // a workgroup and those with its other slices
uint pair;    // of sequence and KV head
uint tid;     // threads of a subgroup are neighbours
float query[ROWS * ELEMENTS];  // scaled
float greatest[ROWS], sum[ROWS], value[ROWS * VALUE_ELEMENTS];
IN_RAW k_raw[UNROLL * PIECES], v_raw[UNROLL * VALUE_PIECES];  // of this step
IN_RAW k_next[UNROLL * PIECES], v_next[UNROLL * VALUE_PIECES];  // and of the next

// The first dimension of a thread's piece.
uint piece_start(uint piece) { return (piece * LANES + tid % LANES) * VEC; }

// Which of the queries a row is; the last reader's rows may be fewer.
uint number_of(uint row) { return reader % PARTS * ROWS + row; }
bool exists(uint row) { return PARTS * ROWS == QUERIES || number_of(row) < QUERIES; }
uint query_of(uint row) { return number_of(row) / GROUP; }
uint head_of(uint row) { return pair % args.kv_heads * GROUP + number_of(row) % GROUP; }

void load_queries() {
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    greatest[r] = LOWEST_SCORE;
    sum[r] = 0.0;
    [[unroll]] for (uint e = 0; e < ELEMENTS; ++e) query[r * ELEMENTS + e] = 0.0;
    [[unroll]] for (uint e = 0; e < VALUE_ELEMENTS; ++e) value[r * VALUE_ELEMENTS + e] = 0.0;
    if (!exists(r)) continue;
    const uint64_t row = query_offset(pair / args.kv_heads, query_of(r), head_of(r));
    [[unroll]] for (uint p = 0; p < PIECES; ++p) {
      float e[VEC];
      unpack(IN_RAW(IN_PACK(args.q + (row + piece_start(p)) * IN_BYTES).v), e);
      [[unroll]] for (uint i = 0; i < VEC; ++i)
        query[r * ELEMENTS + p * VEC + i] = args.scale * e[i];
    }
  }
}

// UNROLL keys of this slot from `first` on; the last one instead of those past the end.
void load_keys(uint first, uint end) {
  [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
    const uint key = min(first + u * SLOTS, end - 1);
    const uint64_t k = key_offset(key, 0), v = value_offset(key, 0);
    [[unroll]] for (uint p = 0; p < max(PIECES, VALUE_PIECES); ++p) {
      if (p < PIECES)
        k_next[u * PIECES + p] = IN_RAW(IN_PACK(args.k + (k + piece_start(p)) * IN_BYTES).v);
      if (p < VALUE_PIECES)
        v_next[u * VALUE_PIECES + p] = IN_RAW(IN_PACK(args.v + (v + piece_start(p)) * IN_BYTES).v);
    }
  }
}

bool is_seen(uint key, uint begin, uint end) { return key < end && (WINDOW == 0 || key >= begin); }

// The row sees keys from `begin` to `end`.
void add_keys(uint r, uint first, uint begin, uint end) {
  float score[UNROLL], most = greatest[r];
  [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
    float dot = 0.0;
    [[unroll]] for (uint p = 0; p < PIECES; ++p) {
      float e[VEC];
      unpack(k_raw[u * PIECES + p], e);
      [[unroll]] for (uint i = 0; i < VEC; ++i)
        dot = fma(query[r * ELEMENTS + p * VEC + i], e[i], dot);
    }
    [[unroll]] for (uint lanes = LANES / 2; lanes > 0; lanes /= 2)
      dot += subgroupShuffleXor(dot, lanes);
    score[u] = capped(dot);
    if (is_seen(first + u * SLOTS, begin, end)) most = max(most, score[u]);
  }
  const float kept = exp2(greatest[r] - most);
  greatest[r] = most;
  sum[r] *= kept;
  [[unroll]] for (uint e = 0; e < VALUE_ELEMENTS; ++e) value[r * VALUE_ELEMENTS + e] *= kept;
  [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
    const float weight =
        is_seen(first + u * SLOTS, begin, end) ? exp2(score[u] - most) : 0.0;
    sum[r] += weight;
    [[unroll]] for (uint p = 0; p < VALUE_PIECES; ++p) {
      float e[VEC];
      unpack(v_raw[u * VALUE_PIECES + p], e);
      [[unroll]] for (uint i = 0; i < VEC; ++i) {
        const uint at = r * VALUE_ELEMENTS + p * VEC + i;
        value[at] = fma(weight, e[i], value[at]);
      }
    }
  }
}

void put_joined(uint row, uint d, float x, float greatest, float sum) {
  // Without a key, nothing is attended to.
  if (!exists(row)) return;
  const uint64_t at = result_offset(pair / args.kv_heads, query_of(row), head_of(row));
  const float kept = add_sink(head_of(row), greatest, sum);
  store_out(args.result + (at + d) * OUT_BYTES, sum == 0.0 ? 0.0 : x * kept / sum);
  if (d == 0) put_lse(at, greatest, sum);
}

// Joins the slots' sums of rows from `first` on.
void join_slots(uint first) {
  const uint rows = min(ROWS_TOGETHER, ROWS - first);
  [[dont_unroll]] for (uint e = tid; e < rows * V_DIM; e += THREADS) {
    const uint row = e / V_DIM, d = e % V_DIM;
    float most = LOWEST_SCORE, total = 0.0, x = 0.0;
    [[dont_unroll]] for (uint s = 0; s < SLOTS; ++s)
      most = max(most, slot_sums[row * ROW_FLOATS + s * (V_DIM + 2) + V_DIM]);
    [[dont_unroll]] for (uint s = 0; s < SLOTS; ++s) {
      const uint at = row * ROW_FLOATS + s * (V_DIM + 2);
      const float weight = exp2(slot_sums[at + V_DIM] - most);
      total = fma(weight, slot_sums[at + V_DIM + 1], total);
      x = fma(weight, slot_sums[at + d], x);
    }
#if SPLIT > 1
    const uint64_t sums = slice_sums(reader, gl_WorkGroupID.z, first + row);
    Partial(sums + uint64_t(d) * 4).v = x;
    if (d == 0) {
      Partial(sums + V_DIM * 4).v = most;
      Partial(sums + (V_DIM + 1) * 4).v = total;
    }
#else
    put_joined(first + row, d, x, most, total);
#endif
  }
}

void main() {
  reader = workgroup();
  pair = reader / PARTS;
  if (pair >= args.batch * args.kv_heads) return;
  tid = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  find_lines(pair / args.kv_heads, pair % args.kv_heads);
  const uint count = key_count(pair / args.kv_heads);
  const uint hidden = hidden_keys(count, query_of(0)), slice = (count - hidden + SPLIT - 1) / SPLIT;
  const uint begin = min(hidden + gl_WorkGroupID.z * slice, count), end = min(begin + slice, count);
  const uint slot = tid / LANES;
  load_queries();

  if (AHEAD != 0 && begin < end) load_keys(begin + slot, end);
  [[dont_unroll]] for (uint first = begin; first < end; first += SLOTS * UNROLL) {
    if (AHEAD == 0) load_keys(first + slot, end);
    k_raw = k_next;
    v_raw = v_next;
    if (AHEAD != 0) load_keys(first + SLOTS * UNROLL + slot, end);
    [[unroll]] for (uint r = 0; r < ROWS; ++r)
      add_keys(r, first + slot, hidden_keys(count, query_of(r)),
               min(end, visible_keys(count, query_of(r))));
  }

  [[unroll]] for (uint first = 0; first < ROWS; first += ROWS_TOGETHER) {
    if (first > 0) barrier();
    [[unroll]] for (uint r = first; r < min(ROWS, first + ROWS_TOGETHER); ++r) {
      const uint at = (r - first) * ROW_FLOATS + slot * (V_DIM + 2);
      [[unroll]] for (uint e = 0; e < VALUE_ELEMENTS; ++e)
        slot_sums[at + piece_start(e / VEC) + e % VEC] = value[r * VALUE_ELEMENTS + e];
      if (tid % LANES == 0) {
        slot_sums[at + V_DIM] = greatest[r];
        slot_sums[at + V_DIM + 1] = sum[r];
      }
    }
    barrier();
    join_slots(first);
  }
#if SPLIT > 1
  if (!last_to_arrive(args.counters + uint64_t(reader) * 4, SPLIT)) return;
  join_slices(tid, reader, SPLIT, ROWS);
#endif
}
