// Sums of tiles that waves of a workgroup, or with SPLIT > 1 of a cluster of SPLIT workgroups, add up. Each
// workgroup has the same tiles, of 16 lines by eights of columns, and adds up some of them: `owned` one after
// the other. A wave sends what it has of a tile to the workgroup that adds it up, as the accumulators of
// mma.m16n8 and wgmma have it: of each eight, a lane has two neighbouring columns of the lines lane / 4 and
// lane / 4 + 8. Sums are added in the order of the senders, whatever the order in which they arrive.
#pragma once

#if !defined(SPLIT) || SPLIT < 1
#error "SPLIT must be defined and at least 1"
#endif

#include "common/types.hip"
#if SPLIT > 1
#include "common/cluster.hip"
#endif

template <u32 owned, u32 senders, u32 eights>
struct TileSums {
  u8* memory;  // in shared memory, at the same place in each workgroup

  static constexpr u32 part_floats = eights * wave_size * 4;  // of a sender
  static constexpr u32 letter_bytes = owned * senders * part_floats * 4;
  static constexpr u32 bytes = letter_bytes + (SPLIT > 1 ? 16 : 0);

  // Of a lane, from its part of eight number `eight` on.
  GRETA_DEVICE float* place(u32 tile, u32 sender, u32 eight) const {
    return reinterpret_cast<float*>(memory) + (tile * senders + sender) * part_floats +
           (eight * wave_size + lane_index()) * 4;
  }

#if SPLIT > 1
  GRETA_DEVICE Inbox inbox() const { return {reinterpret_cast<u64*>(memory + letter_bytes)}; }

  // All threads, before anything else.
  GRETA_DEVICE void open() const {
    inbox().open(letter_bytes);
    inbox().let_others_send();
  }
  // All threads, before they send.
  GRETA_DEVICE void await_others() const { inbox().await_others(); }
  // A wave; `tile`: of all tiles.
  GRETA_DEVICE void send(u32 tile, u32 sender, const float (&sums)[eights][4]) const {
    GRETA_UNROLL
    for (u32 e = 0; e < eights; ++e) {
      inbox().send(tile / owned, place(tile % owned, sender, e), sums[e]);
    }
  }
  // Returns when the parts of all tiles that this workgroup owns are there.
  GRETA_DEVICE void receive() const { inbox().receive(); }
  GRETA_DEVICE u32 first_tile() const { return block_z() * owned; }
#else
  GRETA_DEVICE void open() const {}
  GRETA_DEVICE void await_others() const {}
  GRETA_DEVICE void send(u32 tile, u32 sender, const float (&sums)[eights][4]) const {
    GRETA_UNROLL
    for (u32 e = 0; e < eights; ++e) {
      const float(&x)[4] = sums[e];
      store_words<16>(place(tile, sender, e), {{bits_of(x[0]), bits_of(x[1]), bits_of(x[2]), bits_of(x[3])}});
    }
  }
  GRETA_DEVICE void receive() const { block_barrier(); }
  GRETA_DEVICE u32 first_tile() const { return 0; }
#endif

  // Calls use(tile, eight, sums) in whole waves, of which there are `waves`; `tile`: of all tiles.
  template <typename Use>
  GRETA_DEVICE void add_up(u32 wave, u32 waves, Use use) const {
    for (u32 i = wave; i < owned * eights; i += waves) {
      const u32 tile = i / eights, eight = i % eights;
      float sum[4] = {};
      GRETA_UNROLL
      for (u32 s = 0; s < senders; ++s) {
        const Words<16> part = load_words<16>(place(tile, s, eight));
        GRETA_UNROLL
        for (u32 j = 0; j < 4; ++j) sum[j] += float_from_bits(part.word[j]);
      }
      use(first_tile() + tile, eight, sum);
    }
  }
};
