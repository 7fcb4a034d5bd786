// Products of few rows with quantised weights by matrix cores, with K divided twice: the SPLIT workgroups of
// a cluster have a slice of K each, and so that part of A in shared memory, arranged as weights are; of the
// slice, SHARES waves have a share each. The other waves have other columns, TN tiles of 16 each, which are
// more of the slice's columns than one workgroup without a cluster has: so A is read from the second-level
// cache fewer times. Each wave has UNROLL units of weights in flight, the first ones before A arrives.
//
// Each workgroup adds up the sums of some of the tiles, which the waves of the cluster send it.

#if !defined(WAVES) || !defined(SHARES) || !defined(TN) || !defined(UNROLL) || !defined(SPLIT)
#error "WAVES SHARES TN UNROLL SPLIT must be defined"
#endif
#if SHARES < 1 || WAVES % SHARES != 0 || UNROLL < 1 || WAVES / SHARES * TN % SPLIT != 0
#error "SHARES divides WAVES, UNROLL is at least 1, and SPLIT divides the tiles of a workgroup"
#endif

#define RT 1  // tiles of rows
#include "common/tile_sums.hip"
#include "quantized_gemm/arranged_rows.hip"
#if GROUP == 128
#include "quantized_gemm/lines.hip"
typedef Unit UnitOfLane;
#else
#include "quantized_gemm/short_groups.hip"
typedef ShortUnit UnitOfLane;
#endif

#if !defined(GRETA_MATRIX_MMA) || NORM || GROUPED
#error "one product on NVIDIA's GPUs, without a norm"
#endif
#if SPLIT > 1
#define CLUSTER_KERNEL GRETA_CLUSTER_KERNEL(THREADS, SPLIT)
#else
#define CLUSTER_KERNEL GRETA_KERNEL(THREADS)
#endif

constexpr u32 tiles = WAVES / SHARES * TN;  // of a workgroup
typedef TileSums<tiles / SPLIT, SPLIT * SHARES, FEW_ROWS ? 1 : 2> Exchange;

// Units of K from `begin` on.
struct Slice {
  u32 begin, count;
};

// A slice has UNROLL units at least.
GRETA_DEVICE Slice slice_of(u32 units) {
  const u32 rank = SPLIT > 1 ? block_z() : 0, begin = rank * units / SPLIT;
  return {begin, (rank + 1) * units / SPLIT - begin};
}

// Brings the slice's part of A to shared memory, several of its pieces of eight elements at once.
GRETA_DEVICE void copy_slice(const In* a, u8* rows, const Slice& slice, u32 m, u32 k) {
  constexpr u32 lanes = unit_weights / 8, teams = THREADS / lanes, at_once = FEW_ROWS ? 2 : 4;
  const u32 lane = lane_index() % lanes, pieces = slice.count * m;
  u8* const of_lane = rows + part_of_eight(lane) * 16;
  for (u32 of_wave = wave_index() * (wave_size / lanes); of_wave < pieces; of_wave += at_once * teams) {
    const u32 first = of_wave + lane_index() / lanes;
    Eight eight[at_once];
    u32 unit[at_once], row[at_once];
    GRETA_UNROLL
    for (u32 i = 0; i < at_once; ++i) {
      const u32 piece = smaller(first + i * teams, pieces - 1);
      row[i] = piece / slice.count;
      unit[i] = piece - row[i] * slice.count;
      eight[i] = load_elements(a + u64(row[i]) * k + (slice.begin + unit[i]) * unit_weights + lane * 8);
    }
    wave_barrier();  // no load moves past it to the store of what it loads
    GRETA_UNROLL
    for (u32 i = 0; i < at_once; ++i) {
      if (first + i * teams >= pieces) continue;
      put_elements(of_lane + unit[i] * (m * row_bytes), row[i], eight[i]);
    }
  }
}

// Units of each tile.
struct Batch {
  UnitOfLane unit[UNROLL];
};

#if GROUP == 128
GRETA_DEVICE Batch load_batch(const Lines& lines, u32 index) {
  Batch batch;
  GRETA_UNROLL
  for (u32 u = 0; u < UNROLL; ++u) batch.unit[u] = load_unit(lines, index, u);
  return batch;
}
#else
// Lines then begin at the batch.
GRETA_DEVICE Batch load_batch(Lines& lines, u32 index) {
  Batch batch;
  advance(lines, index);
  GRETA_UNROLL
  for (u32 u = 0; u < UNROLL; ++u) batch.unit[u] = load_unit(lines, u);
  return batch;
}
#endif

// Stores sums of eight rows of a tile, whole waves.
GRETA_DEVICE void store_sums(Out* c, const Out* added, u32 first_row, u32 first_col, u32 m,
                             u32 n, const float (&sum)[4]) {
  const u32 lane = lane_index();
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    const u32 row = first_row + lane % 4 * 2 + i % 2, col = first_col + i / 2 * 8 + lane / 4;
#if GATED
    // The next line's lane has the up.
    const float up = shuffle(sum[i], (lane + 4) % wave_size);
    if (lane / 4 % 2 == 0 && row < m && col / 2 < n) put_gated(c, row, col / 2, n, sum[i], up);
#else
    if (row < m && col < n) put(c, added, row, col, n, sum[i]);
#endif
  }
}

CLUSTER_KERNEL quantized_gemm_cluster(const In* GRETA_READ a, const u8* GRETA_READ b,
                                      const Scale* GRETA_READ scales, const u8* GRETA_READ zeros,
                                      const Out* GRETA_READ added, Out* __restrict__ c, u32 m,
                                      u32 n, u32 k, u32 tiles_n) {
  begin_launch_early();
  GRETA_DYNAMIC_SHARED(u8, memory);
  const u32 block = block_index<THREADS>();
  if (block >= tiles_n) return;  // of the whole cluster
  const Slice slice = slice_of(k / unit_weights);
  const u32 share = wave_index() % SHARES, first_tile = wave_index() / SHARES * TN;
  const u32 end = slice.begin + slice.count, first_col = block * (tiles * 16);
  Lines lines = lines_from({b, scales, zeros}, 0, first_col + first_tile * 16, n, k);
  u32 first = slice.begin + share * UNROLL;
  // The last units may be multiplied by another wave or before.
  Batch batch = load_batch(lines, smaller(first, end - UNROLL));

  const Exchange exchange{memory};
  exchange.open();
#if GROUP == 128
  u8* const rows = memory + Exchange::bytes;
#else
  u8* const zero_row = memory + Exchange::bytes;
  u8* const rows = zero_row + row_bytes;
  if (thread_index() < row_bytes / 4) reinterpret_cast<u32*>(zero_row)[thread_index()] = 0;
#endif
  await_earlier_launches();
  copy_slice(a, rows, slice, m, k);
  block_barrier();
  Sums total[RT][TN] = {};
  while (first < end) {
    const u32 index = smaller(first, end - UNROLL);
#if GROUP != 128
    const bool more = first + SHARES * UNROLL < end;
    if (more) advance(lines, smaller(first + SHARES * UNROLL, end - UNROLL) - index);
#endif
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      const u8* const unit_rows = rows + (index + u - slice.begin) * (m * row_bytes);
#if GROUP == 128
      Sums part[RT][TN] = {};
      add_chunk(batch.unit[u], 0, part, [&](u32 r) { return read_rows(unit_rows, r, m); });
      if (index + u >= first) add_unit(batch.unit[u], part, total);
#else
      add_groups(batch.unit[u], read_sets(unit_rows, zero_row, m), index + u >= first, total);
      if (more) batch.unit[u] = load_unit(lines, u);  // of the next batch, in the registers of this unit
#endif
    }
    first += SHARES * UNROLL;
#if GROUP == 128
    if (first < end) batch = load_batch(lines, smaller(first, end - UNROLL));
#endif
  }

  exchange.await_others();
  GRETA_UNROLL
  for (u32 t = 0; t < TN; ++t) {
    const u32 sender = (SPLIT > 1 ? block_z() : 0) * SHARES + share;
#if GROUP == 128
    exchange.send(first_tile + t, sender, total[0][t].column);
#else
    exchange.send(first_tile + t, sender, sum_of_sets(total[0][t]).eight);
#endif
  }
  exchange.receive();
  exchange.add_up(wave_index(), WAVES, [&](u32 tile, u32 eight, const float(&sum)[4]) {
    store_sums(c, added, eight * 8, first_col + tile * 16, m, n, sum);
  });
}
