// Operations on the rows of a matrix, each row on its own: a row's statistic is gathered, then its
// elements are put. An operation is a struct that stands for one row:
//
//   Op(args, row)
//   Raw, load(col)               what is loaded for VEC neighbours
//   Fixed, fixed(args, col)      what all rows have in common there
//   values(raw, col, x)          the numbers that the statistic is of
//   padding()                    the number that stands for what lies past the row's end
//   Statistic, nothing()         of no elements at all
//   gather(x, have)              of a thread's values, the first `have` of whose ITEMS vectors lie
//                                inside; may replace them by what put() takes
//   merge(a, b)                  of both
//   Factors, factors(own, total) what put() needs: `own` is what gather() returned
//   put(factors, fixed, x, col)  computes and stores VEC neighbours
//   inputs, input(k)             number of vectors of a Raw, and the row that the k-th of them is of
//   reads(col)                   whether load() reads anything there
//
// With SECOND, a second statistic follows, the sum of the squares of what the first makes of the values:
//
//   refine(factors, fixed, x)    makes that of VEC values
//   finish(squares)              Factors that put() needs then
//
// A row has LANES threads of the block's; each has ITEMS vectors of VEC neighbours at a time, all of
// whose loads are in flight before it computes. KIND says how a row is walked:
//   HELD      it stays in registers: memory is read and written once. With STAY, blocks stay too,
//             and load their next rows while they work on those that they have.
//   STREAMED  two walks, the second one backwards: what was read last is still in caches
//   PARTIAL   the statistic of one of SPLIT parts of a row, left in args.partial
//   FINISH    one of SPLIT parts of a row is put; its block merges the parts' statistics
//   STAGED    held by blocks that stay, whose next rows are copied to shared memory meanwhile
//             (common/staged_rows.hip)
#pragma once

#define HELD 0
#define STREAMED 1
#define PARTIAL 2
#define FINISH 3
#define STAGED 4

// Where a staged row's KEEP leaves what rows have in common.
#define IN_REGISTERS 1
#define IN_SHARED_MEMORY 2

#if !defined(KIND) || !defined(ROWS) || !defined(WHOLE) || !defined(STAY) || !defined(SPLIT)
#error "KIND, ROWS, WHOLE, STAY and SPLIT must be defined"
#endif
#if KIND < HELD || KIND > STAGED
#error "KIND is 0 (held), 1 (streamed), 2 (partial), 3 (finish) or 4 (staged)"
#endif
#if ROWS < 1 || THREADS % ROWS != 0 || (THREADS & (THREADS - 1)) != 0
#error "THREADS is a power of 2, and ROWS divides it"
#endif
#if SPLIT < 1 || SPLIT > THREADS || (SPLIT > 1 && (KIND < PARTIAL || KIND == STAGED || ROWS != 1))
#error "a row in SPLIT parts has blocks of its own, with at least SPLIT threads"
#endif
#if !defined(X_STRIDE) || !defined(Y_STRIDE)
#error "X_STRIDE and Y_STRIDE must be defined, 0 where rows are packed"
#endif
#ifndef SECOND
#define SECOND 0
#endif
#if SECOND && (KIND == PARTIAL || KIND == FINISH)
#error "a row in parts has one statistic"
#endif
#if (WHOLE || STAY) && KIND != HELD && KIND != STAGED
#error "WHOLE and STAY are for rows that are held"
#endif

// Each thread's first vectors of a chunk that need no test whether they lie inside. Without their
// tests, compilers load the vectors of long rows that are HELD so early that registers spill.
#if WHOLE
#define SURE ITEMS
#elif KIND != STAGED
#define SURE 0
#elif !defined(SURE)
#error "SURE must be defined"
#endif

#include "common/values.hip"

#define LANES (THREADS / ROWS)
// Where a thread holds few elements, or stays, what rows have in common is loaded along with them;
// otherwise when it is needed, vector by vector, and there are registers for longer rows.
#if KIND == STAGED
constexpr bool fixed_first = KEEP == IN_REGISTERS;
#else
constexpr bool fixed_first = STAY || ITEMS * VEC <= 16;
#endif
constexpr u32 chunk = LANES * ITEMS * VEC;  // elements that a row's threads have at a time

struct Arguments {
  const In *in, *other;              // rows x cols; in may be out; null where there is none
  const In *weight, *bias, *gain;    // 1 x cols
  Out *out, *sum;                    // rows x cols
  float* partial;                    // statistics of the parts of each row
  u32 rows, cols;
  u32 step;  // HELD, STAGED: blocks that stay; PARTIAL, FINISH: columns of a part, a multiple of VEC
  float factor;
};

// Elements before a row, of inputs and of outputs.
GRETA_DEVICE u64 in_row(const Arguments& args, u32 row) {
  return u64(row) * (X_STRIDE > 0 ? u32(X_STRIDE) : args.cols);
}
GRETA_DEVICE u64 out_row(const Arguments& args, u32 row) {
  return u64(row) * (Y_STRIDE > 0 ? u32(Y_STRIDE) : args.cols);
}

// As a kernel's parameters, in the same order.
#define ROW_PARAMETERS                                                                       \
  const In *in, const In *GRETA_READ other, const In *GRETA_READ weight,                     \
      const In *GRETA_READ bias, const In *GRETA_READ gain, Out *out, Out *__restrict__ sum, \
      float *partial, u32 rows, u32 cols, u32 step, float factor
#define ROW_ARGUMENTS {in, other, weight, bias, gain, out, sum, partial, rows, cols, step, factor}
#define ROW_STATISTICS ((2 + 2 * SECOND) * (THREADS / wave_size) + 1)
#if KIND == STAGED
#define ROW_KERNEL STAGED_ROW_KERNEL
#else
#define ROW_KERNEL(name, Op)                            \
  GRETA_KERNEL(THREADS) name(ROW_PARAMETERS) {          \
    KIND == PARTIAL ? begin_launch_whole() : begin_launch(); \
    GRETA_SHARED(Op::Statistic, shared, ROW_STATISTICS); \
    walk_rows<Op>(ROW_ARGUMENTS, shared);               \
  }
#endif

template <typename F>
GRETA_DEVICE void each(Values& x, F f) {
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) x[i][j] = f(x[i][j]);
  }
}

template <typename Op>
struct Merge {
  typedef typename Op::Statistic Statistic;
  GRETA_DEVICE Statistic operator()(const Statistic& a, const Statistic& b) const {
    return Op::merge(a, b);
  }
};

GRETA_DEVICE u32 row_lane() { return thread_index() % LANES; }

// Of this thread's vectors from column `first` on, the one with this number.
GRETA_DEVICE u32 column(u32 first, u32 item) { return first + (item * LANES + row_lane()) * VEC; }

// How many of them lie before `end`.
GRETA_DEVICE u32 vectors_before(u32 first, u32 end) {
  if (WHOLE) return ITEMS;
  const u32 mine = column(first, 0);
  return mine < end ? smaller(ITEMS, (end - mine - 1) / (LANES * VEC) + 1) : 0;
}

template <typename Op>
GRETA_DEVICE void load_vectors(const Op& op, u32 first, u32 have,
                               typename Op::Raw (&raw)[ITEMS]) {
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    raw[i] = {};
    if (lies_before(i, have)) raw[i] = op.load(column(first, i));
  }
}

template <typename Op>
GRETA_DEVICE void take_values(const Op& op, const typename Op::Raw (&raw)[ITEMS], u32 first,
                              u32 have, Values& x) {
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    op.values(raw[i], column(first, i), x[i]);
    GRETA_UNROLL
    for (u32 j = 0; j < VEC; ++j) x[i][j] = lies_before(i, have) ? x[i][j] : Op::padding();
  }
}

template <typename Op>
GRETA_DEVICE void put_vectors(const Op& op, const typename Op::Factors& factors,
                              const typename Op::Fixed (&fixed)[ITEMS], Values& x, u32 first,
                              u32 have) {
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    if (lies_before(i, have)) op.put(factors, fixed[i], x[i], column(first, i));
  }
}

#if SECOND
template <typename Op>
GRETA_DEVICE void refine_vectors(const Op& op, const typename Op::Factors& factors,
                                 const typename Op::Fixed (&fixed)[ITEMS], Values& x, u32 have) {
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    if (lies_before(i, have)) op.refine(factors, fixed[i], x[i]);
  }
}

// Of a row's threads; what lies past its end is 0. `turn` as in hold_rows().
template <typename Statistic>
GRETA_DEVICE float reduce_squares(float squares, Statistic* shared, u32 turn) {
  float* const room = reinterpret_cast<float*>(shared + 2 * (THREADS / wave_size));
  return reduce_threads<LANES>(squares, Add{}, room + turn * (THREADS / wave_size));
}
#endif

// What rows have in common there, of this thread's i-th vector: loaded when it is needed.
template <typename Op>
struct LoadedFixed {
  const Arguments& args;
  u32 first;

  GRETA_DEVICE typename Op::Fixed operator()(u32 i) const {
    return Op::fixed(args, column(first, i));
  }
};

// use(i, fixed) for each vector of a row that is held, with what rows have in common there: from
// `fixed`, or later(i), one vector ahead.
template <typename Op, typename Later, typename Use>
GRETA_DEVICE void with_fixed(const typename Op::Fixed (&fixed)[ITEMS], const Later& later, u32 have,
                             Use use) {
  typename Op::Fixed next = {};
  if (!fixed_first && lies_before(0, have)) next = later(0);
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    const typename Op::Fixed now = fixed_first ? fixed[i] : next;
    if (!fixed_first && i + 1 < ITEMS && lies_before(i + 1, have)) next = later(i + 1);
    if (lies_before(i, have)) use(i, now);
#if defined(GRETA_NVIDIA)
    if (!fixed_first) asm volatile("" ::: "memory");  // or all loads would come first
#else
    if (!fixed_first) loads_stay_behind();
#endif
  }
}

template <typename Op>
GRETA_DEVICE void load_fixed(const Arguments& args, u32 first, u32 have,
                             typename Op::Fixed (&fixed)[ITEMS]) {
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    fixed[i] = {};
    if (lies_before(i, have)) fixed[i] = Op::fixed(args, column(first, i));
  }
}

// The row of this thread among those of a group; the last one again past the end.
GRETA_DEVICE u32 row_of(const Arguments& args, u32 group) {
  return smaller(group * ROWS + thread_index() / LANES, args.rows - 1);
}

struct Itself {
  template <typename T>
  GRETA_DEVICE T operator()(const T& own) const {
    return own;
  }
};

// The rest of a row whose values this thread has from column `first` on: their statistic, and what
// is stored where the row is `inside`. all(own) is the whole row's statistic, or sum, of a block's.
template <typename Op, typename Later, typename All>
GRETA_DEVICE void put_held(const Op& op, const typename Op::Fixed (&fixed)[ITEMS],
                           const Later& later, Values& x, u32 first, u32 have, bool inside,
                           typename Op::Statistic* shared, u32 turn, All all) {
  const auto own = Op::gather(x, have);
  const auto block =
      reduce_threads<LANES>(own, Merge<Op>{}, shared + turn * (THREADS / wave_size));
  typename Op::Factors factors = op.factors(own, all(block));
#if SECOND
  with_fixed<Op>(fixed, later, have,
                 [&](u32 i, const typename Op::Fixed& one) { op.refine(factors, one, x[i]); });
  factors = op.finish(all(reduce_squares(sum_of_squares(x), shared, turn)));
#endif
  if (inside) {
    with_fixed<Op>(fixed, later, have, [&](u32 i, const typename Op::Fixed& one) {
      op.put(factors, one, x[i], column(first, i));
    });
  }
}

template <typename Op>
GRETA_DEVICE void hold_rows(const Arguments& args, typename Op::Statistic* shared) {
  const u32 groups = (args.rows - 1) / ROWS + 1;
  u32 group = block_index<THREADS>();
  if (group >= groups) return;
  const u32 have = vectors_before(0, args.cols);
  typename Op::Raw raw[ITEMS];
  typename Op::Fixed fixed[ITEMS];
  Op next(args, row_of(args, group));
  load_vectors(next, 0, have, raw);
  if (fixed_first) load_fixed<Op>(args, 0, have, fixed);
  for (u32 turn = 0;; turn ^= 1) {
    const Op op = next;
    const bool inside = group * ROWS + thread_index() / LANES < args.rows;
    Values x;
    take_values(op, raw, 0, have, x);
    group += args.step;
    const bool more = STAY && group < groups;
    if (more) {
      next = Op(args, row_of(args, group));
      load_vectors(next, 0, have, raw);
    }
    put_held<Op>(op, fixed, LoadedFixed<Op>{args, 0}, x, 0, have, inside, shared, turn, Itself{});
    if (!more) return;
  }
}

// Of a row's columns from `first` to `end`, this thread's.
template <typename Op>
GRETA_DEVICE typename Op::Statistic read_row(const Op& op, u32 first, u32 end) {
  auto total = Op::nothing();
  GRETA_NO_UNROLL
  for (u32 at = first; at < end; at += chunk) {
    const u32 have = vectors_before(at, end);
    typename Op::Raw raw[ITEMS];
    Values x;
    load_vectors(op, at, have, raw);
    take_values(op, raw, at, have, x);
    total = Op::merge(total, Op::gather(x, have));
  }
  return total;
}

#if SECOND
// The squares of a row's refined values, this thread's.
template <typename Op>
GRETA_DEVICE float read_squares(const Arguments& args, const Op& op,
                                const typename Op::Factors& factors) {
  float squares = 0.0f;
  GRETA_NO_UNROLL
  for (u32 at = 0; at < args.cols; at += chunk) {
    const u32 have = vectors_before(at, args.cols);
    typename Op::Raw raw[ITEMS];
    typename Op::Fixed fixed[ITEMS];
    Values x;
    load_vectors(op, at, have, raw);
    load_fixed<Op>(args, at, have, fixed);
    take_values(op, raw, at, have, x);
    refine_vectors(op, factors, fixed, x, have);
    squares += sum_of_squares(x);
  }
  return squares;
}
#endif

// `squares`: of the whole row, with SECOND.
template <typename Op>
GRETA_DEVICE void write_row(const Arguments& args, const Op& op,
                            const typename Op::Statistic& total, u32 first, u32 end,
                            float squares = 0.0f) {
  if (first >= end) return;
  GRETA_NO_UNROLL
  for (u32 left = (end - first - 1) / chunk + 1; left > 0; --left) {
    const u32 at = first + (left - 1) * chunk, have = vectors_before(at, end);
    typename Op::Raw raw[ITEMS];
    typename Op::Fixed fixed[ITEMS];
    Values x;
    load_vectors(op, at, have, raw);
    load_fixed<Op>(args, at, have, fixed);
    take_values(op, raw, at, have, x);
    const auto own = Op::gather(x, have);
    typename Op::Factors factors = op.factors(own, total);
#if SECOND
    refine_vectors(op, factors, fixed, x, have);
    factors = op.finish(squares);
#endif
    put_vectors(op, factors, fixed, x, at, have);
  }
}

template <typename Op>
GRETA_DEVICE void stream_rows(const Arguments& args, typename Op::Statistic* shared) {
  const u32 group = block_index<THREADS>();
  if (group >= (args.rows - 1) / ROWS + 1) return;
  const Op op(args, row_of(args, group));
  const auto total = reduce_threads<LANES>(read_row(op, 0, args.cols), Merge<Op>{}, shared);
  float squares = 0.0f;
#if SECOND
  squares = reduce_squares(read_squares(args, op, op.factors(total, total)), shared, 0);
#endif
  if (group * ROWS + thread_index() / LANES < args.rows) {
    write_row(args, op, total, 0, args.cols, squares);
  }
}

template <typename Op>
GRETA_DEVICE void split_rows(const Arguments& args, typename Op::Statistic* shared) {
  typedef typename Op::Statistic Statistic;
  const u32 block = block_index<THREADS>(), row = block / SPLIT;
  if (row >= args.rows) return;
  const Op op(args, row);
  const u32 first = smaller(block % SPLIT * args.step, args.cols);
  const u32 end = smaller(first + args.step, args.cols);
  Statistic* const partial = reinterpret_cast<Statistic*>(args.partial) + u64(row) * SPLIT;
  if (KIND == PARTIAL) {
    const auto part = reduce_threads<LANES>(read_row(op, first, end), Merge<Op>{}, shared);
    if (thread_index() == 0) partial[block % SPLIT] = part;
  } else {
    const u32 mine = thread_index();
    const auto part = mine < SPLIT ? partial[mine] : Op::nothing();
    write_row(args, op, reduce_threads<LANES>(part, Merge<Op>{}, shared), first, end);
  }
}

template <typename Op>
GRETA_DEVICE void walk_rows(const Arguments& args, typename Op::Statistic* shared) {
  if constexpr (KIND == HELD) {
    hold_rows<Op>(args, shared);
  } else if constexpr (KIND == STREAMED) {
    stream_rows<Op>(args, shared);
  } else {
    split_rows<Op>(args, shared);
  }
}

#if KIND == STAGED
#include "common/staged_rows.hip"
#endif
