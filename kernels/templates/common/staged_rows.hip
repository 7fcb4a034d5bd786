// Rows by blocks that stay. The next AHEAD rows of a block arrive in shared memory while it works
// on one: a thread copies what it will read itself, so that nobody waits for others. With CLUSTER
// blocks for a row, each has its part of the columns of all their rows, and gets the others'
// statistics. KEEP says where what rows have in common stays; with 0, it is loaded for each row.
#pragma once

#if !defined(AHEAD) || !defined(CLUSTER) || !defined(KEEP) || !defined(RESIDENT)
#error "AHEAD, CLUSTER, KEEP and RESIDENT must be defined, and SURE where a row is not WHOLE"
#endif
#if KEEP < 0 || KEEP > IN_SHARED_MEMORY
#error "KEEP is 0, 1 (registers) or 2 (shared memory)"
#endif
#if AHEAD < 1 || RESIDENT < 1
#error "AHEAD and RESIDENT are at least 1"
#endif
#if CLUSTER < 1 || CLUSTER > 8 || (CLUSTER & (CLUSTER - 1)) != 0 || ROWS != 1
#error "CLUSTER is a power of 2, up to 8, and ROWS is 1"
#endif

#include "common/async_copy.hip"

#if !GRETA_LANE_COPY
#error "lanes cannot copy to shared memory here"
#endif

#if CLUSTER > 1
#include "common/row_cluster.hip"
#endif

#if defined(GRETA_NVIDIA) || CLUSTER > 1
#if CLUSTER > 1
#define STAGED_CLUSTER __cluster_dims__(1, 1, CLUSTER)
#else
#define STAGED_CLUSTER
#endif
// With as many registers as RESIDENT blocks have.
#define STAGED_LAUNCH \
  extern "C" __global__ void STAGED_CLUSTER __launch_bounds__(THREADS, RESIDENT)
#else
#define STAGED_LAUNCH GRETA_KERNEL(THREADS)
#endif

#if CLUSTER > 1
#define CLUSTER_PARAMETER , RowCluster& cluster
#define STAGED_ROW_KERNEL(name, Op)                          \
  STAGED_LAUNCH name(ROW_PARAMETERS) {                       \
    begin_launch();                                          \
    GRETA_SHARED(Op::Statistic, shared, ROW_STATISTICS);     \
    GRETA_SHARED(u64, arrived, 2);                           \
    GRETA_SHARED(float, letters, 2 * CLUSTER * 4);           \
    GRETA_DYNAMIC_SHARED(u8, ring);                          \
    RowCluster cluster{arrived, letters, 0};                 \
    stage_rows<Op>(ROW_ARGUMENTS, shared, ring, cluster);    \
  }
#else
#define CLUSTER_PARAMETER
#define STAGED_ROW_KERNEL(name, Op)                          \
  STAGED_LAUNCH name(ROW_PARAMETERS) {                       \
    begin_launch();                                          \
    GRETA_SHARED(Op::Statistic, shared, ROW_STATISTICS);     \
    GRETA_DYNAMIC_SHARED(u8, ring);                          \
    stage_rows<Op>(ROW_ARGUMENTS, shared, ring);             \
  }
#endif

constexpr u32 vector_bytes = sizeof(Vector);

// Where the vector of an item of the k-th input is in the ring, of this thread.
template <typename Op>
GRETA_DEVICE u32 staged_place(u32 slot, u32 k, u32 item) {
  return (((slot * Op::inputs + k) * ITEMS + item) * THREADS + thread_index()) * vector_bytes;
}

template <typename Op>
GRETA_DEVICE void copy_row(SharedMemory ring, u32 slot, const Op& op, u32 first, u32 have) {
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    if (!lies_before(i, have)) continue;
    const u32 col = column(first, i);
    GRETA_UNROLL
    for (u32 k = 0; k < Op::inputs; ++k) {
      copy_lane_async<vector_bytes>(ring, staged_place<Op>(slot, k, i), op.input(k) + col,
                                    op.reads(col));
    }
  }
}

template <typename Op>
GRETA_DEVICE void read_copies(SharedMemory ring, u32 slot, u32 have,
                              typename Op::Raw (&raw)[ITEMS]) {
  static_assert(sizeof(typename Op::Raw) == Op::inputs * sizeof(Vector), "nothing but vectors");
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    raw[i] = {};
    if (!lies_before(i, have)) continue;
    GRETA_UNROLL
    for (u32 k = 0; k < Op::inputs; ++k) {
      const u8* const place = ring.bytes + staged_place<Op>(slot, k, i);
      reinterpret_cast<Vector*>(&raw[i])[k] = {load_words<vector_bytes>(place)};
    }
  }
#if defined(GRETA_NVIDIA)
  asm volatile("" ::: "memory");  // copies that follow take their places
#endif
}

#if KEEP == IN_SHARED_MEMORY
// What rows have in common, of this thread's vectors: shared memory behind the ring.
template <typename Op>
struct SharedFixed {
  typedef typename Op::Fixed Fixed;
  static constexpr u32 vectors = sizeof(Fixed) / vector_bytes;
  static_assert(vectors * vector_bytes == sizeof(Fixed), "nothing but vectors");

  u8* bytes;

  GRETA_DEVICE u8* place(u32 item, u32 k) const {
    const u32 before = AHEAD * Op::inputs * ITEMS;
    return bytes + ((before + k * ITEMS + item) * THREADS + thread_index()) * vector_bytes;
  }

  GRETA_DEVICE void set(u32 i, const Fixed& fixed) const {
    GRETA_UNROLL
    for (u32 k = 0; k < vectors; ++k) {
      store_words(place(i, k), reinterpret_cast<const Vector*>(&fixed)[k].raw);
    }
  }

  GRETA_DEVICE Fixed operator()(u32 i) const {
    Fixed fixed = {};
    GRETA_UNROLL
    for (u32 k = 0; k < vectors; ++k) {
      reinterpret_cast<Vector*>(&fixed)[k] = {load_words<vector_bytes>(place(i, k))};
    }
    return fixed;
  }
};
#endif

#if CLUSTER > 1
// Of statistics of rows, and of sums.
template <typename Op>
struct OfCluster {
  struct MergeBoth {
    template <typename T>
    GRETA_DEVICE T operator()(const T& a, const T& b) const {
      if constexpr (same_type<T, typename Op::Statistic>) {
        return Op::merge(a, b);
      } else {
        return a + b;
      }
    }
  };

  template <typename T>
  GRETA_DEVICE T operator()(const T& own) const {
    return cluster.all(own, MergeBoth{});
  }

  RowCluster& cluster;
};
#endif

template <typename Op>
GRETA_DEVICE void stage_rows(const Arguments& args, typename Op::Statistic* shared,
                             u8* bytes CLUSTER_PARAMETER) {
  u32 row = block_index<THREADS>();  // the same of a cluster's blocks
  if (row >= args.rows) return;
  const SharedMemory ring = shared_memory(bytes);
  u32 first = 0, end = args.cols;
#if CLUSTER > 1
  const u32 part = ((args.cols / VEC - 1) / CLUSTER + 1) * VEC;
  first = smaller(block_z() * part, args.cols);
  end = smaller(first + part, args.cols);
#endif
  const u32 have = vectors_before(first, end);
  GRETA_UNROLL
  for (u32 a = 0; a < AHEAD; ++a) {
    const u32 later = row + a * args.step;
    if (later < args.rows) copy_row(ring, a, Op(args, later), first, have);
    close_copies();
  }
#if CLUSTER > 1
  cluster.open();
#endif
  typename Op::Fixed fixed[ITEMS];
  if (fixed_first) load_fixed<Op>(args, first, have, fixed);
  const LoadedFixed<Op> loaded{args, first};
#if KEEP == IN_SHARED_MEMORY
  const SharedFixed<Op> common{ring.bytes};
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    if (lies_before(i, have)) common.set(i, loaded(i));
  }
#else
  const LoadedFixed<Op>& common = loaded;
#endif
  Op next(args, row);
#if CLUSTER > 1
  cluster.await_others();
#endif
  u32 slot = 0;
  for (u32 turn = 0;; turn ^= 1) {
    const Op op = next;
    typename Op::Raw raw[ITEMS];
    wait_for_copies<AHEAD - 1, ITEMS * Op::inputs>();
    read_copies<Op>(ring, slot, have, raw);
    const u32 later = row + AHEAD * args.step;
    if (later < args.rows) copy_row(ring, slot, Op(args, later), first, have);
    close_copies();
    row += args.step;
    const bool more = row < args.rows;
    if (more) next = Op(args, row);
    Values x;
    take_values(op, raw, first, have, x);
#if CLUSTER > 1
    const OfCluster<Op> all{cluster};
#else
    const Itself all;
#endif
    put_held<Op>(op, fixed, common, x, first, have, true, shared, turn, all);
    if (!more) return;
    slot = slot + 1 == AHEAD ? 0 : slot + 1;
  }
}
