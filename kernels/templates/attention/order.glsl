// Which queries a workgroup takes: tiles of BQ queries of one head. As order.hip.

uint sequence, head, first_query;

// Number `index` of the tiles. Those with most keys to see go first, and TOGETHER heads that lie
// side by side are walked together: they share keys, in the cache or in a KV head.
void pick_tile(uint index) {
  const uint all = args.batch * args.heads, block = TOGETHER * args.tiles;
  const uint first_head = index / block * TOGETHER, within = index % block;
  const uint width = min(TOGETHER, all - first_head);
  const uint picked = first_head + within % width;
  sequence = picked / args.heads;
  head = picked % args.heads;
  first_query = (args.tiles - 1 - within / width) * BQ;
}
