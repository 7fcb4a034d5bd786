// Which queries a workgroup takes: tiles of BQ queries of one head. As order.hip.
#pragma once

uint sequence, head, tile_first;

// Number `index` of the tiles of so many heads, whose queries have `rows` rows each. Those with most
// keys to see go first, and TOGETHER heads that lie side by side are walked together: they share keys,
// in the cache or in a KV head.
void pick_tile(uint heads, uint index, uint rows) {
  const uint all = tile_sets() * heads, block = TOGETHER * args.tiles;
  const uint first_head = index / block * TOGETHER, within = index % block;
  const uint width = min(TOGETHER, all - first_head);
  const uint picked = first_head + within % width;
  sequence = picked / heads;
  head = picked % heads;
  const uint number = args.tiles - 1 - within / width;
#if PACKED
  tile_first = enter_sequence(number, BQ, rows);
#else
  tile_first = number * BQ;
#endif
}
