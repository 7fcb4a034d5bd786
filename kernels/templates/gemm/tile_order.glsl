// Which tile of C the workgroup computes.

uint row0, col0;  // where it starts

// Picks the tile of C. SWIZZLE rows of tiles are walked together, column by column, so that
// workgroups that run at the same time share their operands in the cache.
void pick_tile() {
  const uint group = SWIZZLE * args.tiles_n;
  const uint first = workgroup() / group * SWIZZLE;
  const uint rows = min(args.tiles_m - first, uint(SWIZZLE));
  const uint within = workgroup() % group;
  row0 = (first + within % rows) * BM;
  col0 = within / rows * BN;
}
