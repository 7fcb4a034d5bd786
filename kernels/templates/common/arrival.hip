// Blocks that share a piece of work in one launch: the last of them to arrive finishes it.
#pragma once

#include "common/device.hip"

// Counts this block in; true for the last of `blocks`, which then sees what the others wrote. The
// barriers order what the block's threads wrote with its first thread, whose own fences order that
// thread's count between them and what it reads of the others'. `before`: shared by the block. The
// counter is 0 before the first of them arrives; the last one puts it back. `barrier`: where those of
// the block's threads meet that call this, its first one among them.
template <typename Barrier>
GRETA_DEVICE bool last_to_arrive(u32* counter, u32 blocks, u32* before, Barrier barrier) {
  release_to_device();
  barrier();
  if (thread_index() == 0) {
    release_to_device();
    *before = atomic_add(counter, 1);
    acquire_from_device();
    if (*before == blocks - 1) *counter = 0;
  }
  barrier();
  acquire_from_device();
  return *before == blocks - 1;
}
GRETA_DEVICE bool last_to_arrive(u32* counter, u32 blocks, u32* before) {
  return last_to_arrive(counter, blocks, before, [] { block_barrier(); });
}
