// Joins what slices of tiles of TILE_ROWS rows leave: a workgroup for each row, so that all of the device
// reads, not only the workgroups that were the last ones of a tile.
#if !defined(TILE_ROWS) || !defined(KERNEL_NAME)
#error "TILE_ROWS and KERNEL_NAME must be defined"
#endif

#define THREADS 128
#define BQ TILE_ROWS
#define ASYNC 0

#include "latent_attention/rows.hip"

typedef SliceJoin<1, SPLIT, THREADS, 32> RowJoin;

// The sums of one row.
struct SumsOfRow {
  const Slices<BQ, SPLIT>& slices;
  u32 row;

  GRETA_DEVICE const float* values(u32 slice, u32) const { return slices.values(slice, row); }
  GRETA_DEVICE const float* scores(u32 slice, u32) const { return slices.scores(slice, row); }
};

GRETA_KERNEL(THREADS) KERNEL_NAME(TREE_PARAMETER ATTENTION_PARAMETERS) {
  begin_launch();
  GRETA_SHARED(float, shared, RowJoin::shared_floats);
  Arguments args = ATTENTION_ARGUMENTS;
  const u32 number = block_index<THREADS>(), row = number % BQ;
  const Part part = pick_part(args, number / BQ, 0);
  if (row >= part.own || part.slice.used == 1) return;
  const Slices<BQ, SPLIT> slices(args, part.reader, part.readers);
  const Outputs outputs{args, part.tile};
  RowJoin::join(SumsOfRow{slices, row}, part.slice.used, 1, 0, 1, shared,
                [&](u32, u32 d, const float(&values)[4], RowSum sum) { outputs(row, d, values, sum); });
}
