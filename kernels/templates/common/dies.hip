// GPUs of several dies, each with a cache of its own, to which workgroups are dealt in turn.
#pragma once

#include "common/device.hip"

// Of `all` tiles, the one of workgroup `index`, so that each of so many dies has neighbouring tiles.
template <u32 dies>
GRETA_DEVICE u32 tile_of_die(u32 index, u32 all) {
  if (dies == 1) return index;
  const u32 die = index % dies, least = all / dies;
  return die * least + smaller(die, all % dies) + index / dies;
}
