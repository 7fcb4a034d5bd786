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

#include "attention/slices.hip"

#define SLOTS (THREADS / LANES)
static_assert(LANES <= wave_size, "a slot's threads are in one wave");

constexpr u32 pieces = DIM / (LANES * VEC), elements = pieces * VEC;  // of a thread
constexpr u32 value_pieces = V_DIM / (LANES * VEC), value_elements = value_pieces * VEC;

// Of one slot of threads, and a row of queries.
struct Row {
  float q[elements];  // scaled
  float greatest, sum, value[value_elements];
};

// Rows that are joined at a time.
constexpr u32 row_floats = SLOTS * (V_DIM + 2);
constexpr u32 rows_together = row_floats * ROWS <= 6144 ? ROWS
                              : row_floats < 6144       ? 6144 / row_floats
                                                        : 1;

typedef Slices<ROWS, SPLIT> OwnSlices;
typedef SliceJoin<ROWS, SPLIT, THREADS, 16> OwnJoin;
constexpr u32 slot_floats = rows_together * row_floats;
constexpr u32 slice_floats = SPLIT > 1 ? OwnJoin::shared_floats : 0;
constexpr u32 shared_floats = slot_floats > slice_floats ? slot_floats : slice_floats;

// The first dimension of a thread's piece.
GRETA_DEVICE u32 piece_start(u32 piece) { return (piece * LANES + thread_index() % LANES) * VEC; }

struct Keys {
  Pack<In, VEC> k[UNROLL][pieces], v[UNROLL][value_pieces];

  // UNROLL keys of this slot from `first` on; the last one instead of those past the end.
  GRETA_DEVICE void load(const KeyLines& keys, const ValueLines& values, u32 first, u32 end) {
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      const u32 key = smaller(first + u * SLOTS, end - 1);
      const In *const k_line = keys.line(key), *const v_line = values.line(key);
      GRETA_UNROLL
      for (u32 p = 0; p < pieces; ++p) {
        k[u][p] = load_pack<VEC>(k_line + piece_start(p));
      }
      GRETA_UNROLL
      for (u32 p = 0; p < value_pieces; ++p) {
        v[u][p] = load_pack<VEC>(v_line + piece_start(p));
      }
    }
    loads_go_ahead();
  }

  // The row sees keys from `begin` to `end`.
  GRETA_DEVICE void add_to(const Arguments& args, Row& row, u32 first, u32 begin, u32 end) const {
    const auto seen = [&](u32 u) {
      const u32 key = first + u * SLOTS;
      return key < end && (!WINDOW || key >= begin);
    };
    float score[UNROLL], greatest = row.greatest;
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      float dot = 0.0f;
      GRETA_UNROLL
      for (u32 e = 0; e < elements; ++e) {
        dot = multiply_add(row.q[e], element(k[u][e / VEC], int(e % VEC)), dot);
      }
      score[u] = capped(args, reduce_lanes<LANES>(dot, Add{}));
      if (seen(u)) greatest = larger(greatest, score[u]);
    }
    const float kept = fast_exp2(row.greatest - greatest);
    row.greatest = greatest;
    row.sum *= kept;
    GRETA_UNROLL
    for (u32 e = 0; e < value_elements; ++e) row.value[e] *= kept;
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      const float weight = seen(u) ? fast_exp2(score[u] - greatest) : 0.0f;
      row.sum += weight;
      GRETA_UNROLL
      for (u32 e = 0; e < value_elements; ++e) {
        const float x = element(v[u][e / VEC], int(e % VEC));
        row.value[e] = multiply_add(weight, x, row.value[e]);
      }
    }
  }
};

// What a row of a reader, a workgroup and those with its other slices, stands for.
struct Place {
  u32 sequence, query, head;
  bool exists;  // the last reader's rows may be fewer

  GRETA_DEVICE Place(const Arguments& args, u32 reader, u32 row) {
    const u32 pair = reader / PARTS, number = reader % PARTS * ROWS + row;
    exists = PARTS * ROWS == QUERIES || number < QUERIES;
    sequence = pair / args.kv_heads;
    query = number / GROUP;
    head = pair % args.kv_heads * GROUP + number % GROUP;
  }
};

struct Outputs {
  const Arguments& args;
  u32 reader;

  // `count` neighbouring dimensions of a row, from d on.
  template <int count>
  GRETA_DEVICE void operator()(u32 row, u32 d, const float (&values)[count], RowSum sum) const {
    const Place place(args, reader, row);
    if (!place.exists) return;
    const u64 offset = output_offset(args, place.sequence, place.query, place.head);
    float x[count];
    sum.divide(args, place.head, values, x);
    store_pack(args.out + offset + d, narrow_pack<Out>(x));
    if (d == 0) sum.put_lse(args, offset);
  }
};

// Joins the slots' sums of rows from `first` on.
GRETA_DEVICE void join_slots(const Outputs& outputs, const OwnSlices& slices, const float* shared,
                             u32 first) {
  const u32 rows = smaller(rows_together, ROWS - first);
  GRETA_NO_UNROLL
  for (u32 e = thread_index(); e < rows * V_DIM; e += THREADS) {
    const u32 row = e / V_DIM, d = e % V_DIM;
    const float* const sums = shared + row * row_floats;
    float most = lowest_score, total = 0.0f, value = 0.0f;
    for (u32 slot = 0; slot < SLOTS; ++slot) most = larger(most, sums[slot * (V_DIM + 2) + V_DIM]);
    for (u32 slot = 0; slot < SLOTS; ++slot) {
      const float* const at = sums + slot * (V_DIM + 2);
      const float weight = fast_exp2(at[V_DIM] - most);
      total = multiply_add(weight, at[V_DIM + 1], total);
      value = multiply_add(weight, at[d], value);
    }
    if (SPLIT > 1) {
      slices.values(block_z(), first + row)[d] = value;
      if (d > 0) continue;
      slices.scores(block_z(), first + row)[0] = most;
      slices.scores(block_z(), first + row)[1] = total;
    } else {
      outputs(first + row, d, {value}, {most, total});
    }
  }
}

GRETA_KERNEL(THREADS) attention_decode(ATTENTION_PARAMETERS) {
  begin_launch();
  GRETA_SHARED(float, shared, shared_floats);
  const Arguments args = ATTENTION_ARGUMENTS;
  const u32 reader = block_index<THREADS>();
  const u32 pair = reader / PARTS;  // of sequence and KV head
  if (pair >= batch * kv_heads) return;
  const u32 count = key_count(args, pair / kv_heads);
  const u32 hidden = hidden_keys(args, count, Place(args, reader, 0).query);
  const u32 slice = (count - hidden + SPLIT - 1) / SPLIT;
  const u32 begin = smaller(hidden + block_z() * slice, count), end = smaller(begin + slice, count);
  const KeyLines k_lines(args, k, pair / kv_heads, pair % kv_heads);
  const ValueLines v_lines(args, v, pair / kv_heads, pair % kv_heads);

  Row rows[ROWS];
  GRETA_UNROLL
  for (u32 r = 0; r < ROWS; ++r) {
    rows[r] = {};
    rows[r].greatest = lowest_score;
    const Place place(args, reader, r);
    if (!place.exists) continue;
    const In* const from = q + query_offset(args, place.sequence, place.query, place.head);
    GRETA_UNROLL
    for (u32 p = 0; p < pieces; ++p) {
      const Pack<In, VEC> pack = load_pack<VEC>(from + piece_start(p));
      GRETA_UNROLL
      for (u32 e = 0; e < VEC; ++e) rows[r].q[p * VEC + e] = scale * element(pack, int(e));
    }
  }

  const u32 slot = thread_index() / LANES;
  Keys next;
  if (AHEAD && begin < end) next.load(k_lines, v_lines, begin + slot, end);
  GRETA_NO_UNROLL
  for (u32 first = begin; first < end; first += SLOTS * UNROLL) {
    if (!AHEAD) next.load(k_lines, v_lines, first + slot, end);
    const Keys keys = next;
    if (AHEAD) next.load(k_lines, v_lines, first + SLOTS * UNROLL + slot, end);
    GRETA_UNROLL
    for (u32 r = 0; r < ROWS; ++r) {
      const Place place(args, reader, r);
      keys.add_to(args, rows[r], first + slot, hidden_keys(args, count, place.query),
                  smaller(end, visible_keys(count, queries, place.query)));
    }
  }

  const Outputs outputs{args, reader};
  const OwnSlices slices(args, reader, batch * kv_heads * PARTS);
  GRETA_UNROLL
  for (u32 first = 0; first < ROWS; first += rows_together) {
    if (first > 0) block_barrier();
    GRETA_UNROLL
    for (u32 r = first; r < ROWS && r < first + rows_together; ++r) {
      float* const sums = shared + (r - first) * row_floats + slot * (V_DIM + 2);
      GRETA_UNROLL
      for (u32 e = 0; e < value_elements; ++e) sums[piece_start(e / VEC) + e % VEC] = rows[r].value[e];
      if (thread_index() % LANES == 0) {
        sums[V_DIM] = rows[r].greatest;
        sums[V_DIM + 1] = rows[r].sum;
      }
    }
    block_barrier();
    join_slots(outputs, slices, shared, first);
  }
#if SPLIT > 1
  GRETA_SHARED(u32, before, 1);  // slices before this one
  if (!last_to_arrive(counters + reader, SPLIT, before)) return;
  OwnJoin::join(slices, SPLIT, ROWS, 0, 1, shared, outputs);
#endif
}
