// How the rows of common/rows.glsl are walked.

#include "common/reduce.glsl"

uint row_lane() { return thread_index() % LANES; }

// Of this thread's vectors from column `first` on, the one with this number.
uint column(uint first, uint item) { return first + (item * LANES + row_lane()) * VEC; }

// How many of them lie before `end`.
uint vectors_before(uint first, uint end) {
#if WHOLE
  return ITEMS;
#else
  const uint mine = column(first, 0);
  return mine < end ? min(ITEMS, (end - mine - 1) / (LANES * VEC) + 1) : 0;
#endif
}

void load_vectors(Row row, uint first, uint have, out Raw raw[ITEMS]) {
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    // What lies past the end is never read; its place is, where there is one.
    if (WHOLE != 0 || i < have) raw[i] = load(row, column(first, i));
  }
}

void take_values(Row row, Raw raw[ITEMS], uint first, uint have, out float x[ITEMS][VEC]) {
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    if (WHOLE != 0 || i < have) {
      take(row, raw[i], column(first, i), x[i]);
    } else {
      [[unroll]] for (uint j = 0; j < VEC; ++j) x[i][j] = PADDING;
    }
  }
}

void load_all_fixed(uint first, uint have, out Fixed fixed_[ITEMS]) {
  [[unroll]] for (uint i = 0; i < ITEMS; ++i)
    if (WHOLE != 0 || i < have) fixed_[i] = load_fixed(column(first, i));
}

void put_vectors(Row row, Factors f, Fixed fixed_[ITEMS], float x[ITEMS][VEC], uint first,
                 uint have) {
  [[unroll]] for (uint i = 0; i < ITEMS; ++i)
    if (WHOLE != 0 || i < have) put(row, f, fixed_[i], x[i], column(first, i));
}

#if SECOND
void refine_vectors(Factors f, Fixed fixed_[ITEMS], inout float x[ITEMS][VEC], uint have) {
  [[unroll]] for (uint i = 0; i < ITEMS; ++i)
    if (WHOLE != 0 || i < have) refine(f, fixed_[i], x[i]);
}

// Of a row's threads: through the same memory as the first statistic, whose other half `turn` names.
float reduce_squares(float squares, uint turn) {
  Statistic s = nothing();
  s.squares = squares;
  return reduce_threads(s, turn).squares;
}
#endif

#if KIND == HELD || KIND == STREAMED
bool inside(uint group) { return group * ROWS + thread_index() / LANES < args.rows; }

// The row of this thread among those of a group; the last one again past the end.
Row row_of(uint group) { return row_at(min(group * ROWS + thread_index() / LANES, args.rows - 1)); }
#endif

#if KIND == HELD
// Rows that are held have few elements in each thread, or stay: what rows have in common is loaded
// along with them. Otherwise only when it is needed.
#define FIXED_FIRST (STAY != 0 || ITEMS * VEC <= 16)

void main() {
  const uint groups = (args.rows - 1) / ROWS + 1;
  uint group = workgroup();
  if (group >= groups) return;
  const uint have = vectors_before(0, args.cols);
  Raw raw[ITEMS];
  Fixed fixed_[ITEMS];
  Row next = row_of(group);
  load_vectors(next, 0, have, raw);
  if (FIXED_FIRST) load_all_fixed(0, have, fixed_);
#if STAY
  uint turn = 0;
  while (group < groups) {
    const Row row = next;
    const bool writes = inside(group);
    float x[ITEMS][VEC];
    take_values(row, raw, 0, have, x);
    group += args.step_;
    if (group < groups) {
      next = row_of(group);
      load_vectors(next, 0, have, raw);
    }
    const Statistic own = gather(x, have);
    const Statistic total = reduce_threads(own, turn);
    turn ^= 1;
    Factors f = factors(own, total);
#if SECOND
    refine_vectors(f, fixed_, x, have);
    f = finish(reduce_squares(sum_of_squares(x), turn));
    turn ^= 1;
#endif
    if (writes) put_vectors(row, f, fixed_, x, 0, have);
  }
#else
  float x[ITEMS][VEC];
  take_values(next, raw, 0, have, x);
  const Statistic own = gather(x, have);
  const Statistic total = reduce_threads(own, 0);
  if (!FIXED_FIRST) load_all_fixed(0, have, fixed_);
  Factors f = factors(own, total);
#if SECOND
  refine_vectors(f, fixed_, x, have);
  f = finish(reduce_squares(sum_of_squares(x), 1));
#endif
  if (inside(group)) put_vectors(next, f, fixed_, x, 0, have);
#endif
}

#else
// Of a row's columns from `first` to `end`, this thread's.
Statistic read_row(Row row, uint first, uint end) {
  Statistic total = nothing();
  [[dont_unroll]] for (uint at = first; at < end; at += CHUNK) {
    const uint have = vectors_before(at, end);
    Raw raw[ITEMS];
    float x[ITEMS][VEC];
    load_vectors(row, at, have, raw);
    take_values(row, raw, at, have, x);
    total = merge(total, gather(x, have));
  }
  return total;
}

#if SECOND
// The squares of a row's refined values, this thread's.
float read_squares(Row row, Factors f) {
  float squares = 0.0;
  [[dont_unroll]] for (uint at = 0; at < args.cols; at += CHUNK) {
    const uint have = vectors_before(at, args.cols);
    Raw raw[ITEMS];
    Fixed fixed_[ITEMS];
    float x[ITEMS][VEC];
    load_vectors(row, at, have, raw);
    load_all_fixed(at, have, fixed_);
    take_values(row, raw, at, have, x);
    refine_vectors(f, fixed_, x, have);
    squares += sum_of_squares(x);
  }
  return squares;
}
#endif

// `squares`: of the whole row, with SECOND.
void write_row(Row row, Statistic total, uint first, uint end, float squares) {
  if (first >= end) return;
  [[dont_unroll]] for (uint left = (end - first - 1) / CHUNK + 1; left > 0; --left) {
    const uint at = first + (left - 1) * CHUNK, have = vectors_before(at, end);
    Raw raw[ITEMS];
    Fixed fixed_[ITEMS];
    float x[ITEMS][VEC];
    load_vectors(row, at, have, raw);
    load_all_fixed(at, have, fixed_);
    take_values(row, raw, at, have, x);
    const Statistic own = gather(x, have);
    Factors f = factors(own, total);
#if SECOND
    refine_vectors(f, fixed_, x, have);
    f = finish(squares);
#endif
    put_vectors(row, f, fixed_, x, at, have);
  }
}
#endif

#if KIND == STREAMED
void main() {
  const uint group = workgroup();
  if (group >= (args.rows - 1) / ROWS + 1) return;
  const Row row = row_of(group);
  const Statistic total = reduce_threads(read_row(row, 0, args.cols), 0);
  float squares = 0.0;
#if SECOND
  squares = reduce_squares(read_squares(row, factors(total, total)), 1);
#endif
  if (inside(group)) write_row(row, total, 0, args.cols, squares);
}

#elif KIND != HELD
void main() {
  const uint index = workgroup() / SPLIT, part = workgroup() % SPLIT;
  if (index >= args.rows) return;
  const Row row = row_at(index);
  const uint first = min(part * args.step_, args.cols), end = min(first + args.step_, args.cols);
  const uint64_t parts = args.partial + uint64_t(index) * SPLIT * PART_BYTES;
  const uint me = thread_index();
#if KIND == PARTIAL
  const Statistic total = reduce_threads(read_row(row, first, end), 0);
  if (me == 0) put_part(parts + part * PART_BYTES, total);
#else
  Statistic mine = nothing();
  if (me < SPLIT) mine = get_part(parts + me * PART_BYTES);
  write_row(row, reduce_threads(mine, 0), first, end, 0.0);
#endif
}
#endif
