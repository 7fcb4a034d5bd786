// What the blocks of a cluster tell each other about the parts of a row that they have.
#pragma once

#include "common/cluster.hip"
#include "common/reduce.hip"

static_assert(THREADS > wave_size, "a block's barrier lies between two exchanges");

// Numbers are exchanged through two inboxes in turn. When a block sends the next ones but one, it
// has got the next ones of all blocks, each of which sent them behind a barrier of its own, after
// all of its threads had read what came before.
struct RowCluster {
  u64* arrived;    // of each inbox, in shared memory, at the same place in each block
  float* letters;  // 4 numbers of each block, of each inbox
  u32 exchange;    // their number so far

  static constexpr u32 expected = (CLUSTER - 1) * 16;  // bytes

  GRETA_DEVICE Inbox inbox(u32 which) const { return {arrived + which}; }

  // All threads; the others may send then.
  GRETA_DEVICE void open() const {
    inbox(0).open(expected);
    inbox(1).open(expected);
    inbox(0).let_others_send();
  }
  // All threads, behind open() and before all().
  GRETA_DEVICE void await_others() const { inbox(0).await_others(); }

  // The blocks' values, merged: the same in each thread of each block. All threads, each of which
  // has its block's value.
  template <typename T, typename Merge>
  GRETA_DEVICE T all(const T& own, Merge merge) {
    const u32 which = exchange % 2, me = block_z();
    float* const received = letters + which * (CLUSTER * 4);
    const u32 to = thread_index();
    if (to < CLUSTER && to != me) {
      float words[4] = {};
      u32 count = 0;
      each_word(own, [&](float word) {
        words[count++] = word;
        return word;
      });
      inbox(which).send(to, received + me * 4, words);
    }
    inbox(which).receive(exchange / 2 % 2);
    if (thread_index() == 0) inbox(which).expect(expected);
    ++exchange;
    T part[CLUSTER];
    GRETA_UNROLL
    for (u32 b = 0; b < CLUSTER; ++b) {
      const float* next = received + b * 4;
      part[b] = each_word(own, [&](float word) {
        const float got = *next++;
        return b == me ? word : got;
      });
    }
    GRETA_UNROLL
    for (u32 step = 1; step < CLUSTER; step *= 2) {
      GRETA_UNROLL
      for (u32 b = 0; b < CLUSTER; b += 2 * step) part[b] = merge(part[b], part[b + step]);
    }
    return part[0];
  }
};
