// Joins what slices of tiles of TILE_ROWS rows leave, or with STREAM_K what groups of workgroups do: a workgroup for
// each JOIN_ROWS rows, so that all of the device reads, not only the workgroups that were the last ones of a tile.
#if !defined(TILE_ROWS) || !defined(JOIN_ROWS) || !defined(KERNEL_NAME)
#error "TILE_ROWS JOIN_ROWS and KERNEL_NAME must be defined"
#endif
#if TILE_ROWS % JOIN_ROWS != 0
#error "TILE_ROWS is a multiple of JOIN_ROWS"
#endif

#if !defined(STREAM_K)
#define STREAM_K 0
#endif

#define THREADS 128
#define BQ TILE_ROWS
#define ASYNC 0

#if STREAM_K
#include "latent_attention/stream_keys.hip"
typedef SliceJoin<JOIN_ROWS, UNITS, THREADS, 32, 4> RowJoin;
#else
#include "latent_attention/rows.hip"
typedef SliceJoin<JOIN_ROWS, SPLIT, THREADS, 32> RowJoin;
#endif

GRETA_KERNEL(THREADS) KERNEL_NAME(TREE_PARAMETER ATTENTION_PARAMETERS) {
  begin_launch();
  GRETA_SHARED(float, shared, RowJoin::shared_floats);
  Arguments args = ATTENTION_ARGUMENTS;
  constexpr u32 groups = BQ / JOIN_ROWS;  // of a tile
  const u32 number = block_index<THREADS>(), first = number % groups * JOIN_ROWS;
  const Part part = pick_part(args, number / groups, 0);
  if (first >= part.own) return;
#if STREAM_K
  const u32 sequence = part.tile.sequence;
  Stream stream(args);
  stream.count_before(args, sequence);
  const u32 group = stream.group_of(stream.before);
  const u32 used = stream.group_of(stream.before + Stream::steps_of(args, sequence) - 1) - group + 1;
  const StreamSums slices{args, stream, group, part.reader % args.tiles, first};
#else
  const u32 used = part.slice.used;
  const Slices<BQ, SPLIT> slices = Slices<BQ, SPLIT>(args, part.reader, part.readers).from(first);
#endif
  if (used == 1) return;
  const Outputs outputs{args, part.tile};
  RowJoin::join(slices, used, smaller(part.own - first, JOIN_ROWS), 0, 1, shared,
                [&](u32 row, u32 d, const float(&values)[4], RowSum sum) {
                  outputs(first + row, d, values, sum);
                });
}
