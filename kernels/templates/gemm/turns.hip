// Which tiles a workgroup computes, or a cluster of them, one after the other.
//
// With STREAM_K, tiles that would leave workgroups idle in the last round are divided by K steps: the
// tiles of the last two rounds, or all tiles where these are fewer than the workgroups, are one
// sequence of K steps, of which each workgroup multiplies an equal share. Their numbers come first, and
// the others, as many for each workgroup, follow.
// Source: Osama, Merrill, Cecka, Garland, Owens, "Stream-K: Work-centric Parallel Decomposition for
// Dense Matrix-Matrix Multiplication on the GPU" (2023), its hybrid schedules.
#pragma once

#include "common/device.hip"

#if !defined(DYNAMIC) || !defined(STREAM_K)
#error "DYNAMIC and STREAM_K must be defined"
#endif

// A tile and its K steps that are multiplied: `steps` from number `step` on.
struct Turn {
  u32 tile, step, steps;
};

struct Turns {
  u32 workgroups, own;  // clusters count as one
  u32 tiles, steps;     // of the launch; of a tile
#if STREAM_K
  u32 streamed;       // the number of tiles that are divided
  u32 share, longer;  // K steps of each workgroup; the first `longer` have one more
#endif

  GRETA_DEVICE Turns(u32 all, u32 steps_of_tile, u32 running, u32 index)
      : workgroups(running), own(index), tiles(all), steps(steps_of_tile) {
#if STREAM_K
    const u32 rest = all % running;
    streamed = rest == 0 ? 0 : all < running ? all : rest + running;
    share = streamed * steps / running;
    longer = streamed * steps % running;
#endif
  }

#if STREAM_K
  // The first of a workgroup's K steps, and the workgroup that has a step, of the streamed tiles.
  GRETA_DEVICE u32 first_step(u32 workgroup) const { return workgroup * share + smaller(workgroup, longer); }
  GRETA_DEVICE u32 workgroup_of(u32 step) const {
    const u32 of_longer = longer * (share + 1);
    return step < of_longer ? step / (share + 1) : longer + (step - of_longer) / share;
  }

  GRETA_DEVICE Turn turn_at(u32 step) const {
    const u32 end = first_step(own + 1);
    if (step >= end) return {streamed + own, 0, steps};
    const u32 tile = step / steps, within = step % steps;
    return {tile, within, smaller(steps - within, end - step)};
  }
  GRETA_DEVICE Turn first() const { return turn_at(first_step(own)); }
#else
  GRETA_DEVICE Turn first() const { return {own, 0, steps}; }
#endif

  GRETA_DEVICE void go_on(Turn& turn) const {
#if STREAM_K
    if (turn.tile < streamed) {
      turn = turn_at(turn.tile * steps + turn.step + turn.steps);
      return;
    }
#endif
    turn.tile += workgroups;
  }

  // The same of the thread that copies: with DYNAMIC it takes a tile of those that are not in work, at
  // least `tiles` if there is none. Each of the workgroups has begun with one, and asks until there is
  // none: the last question resets the counter.
  GRETA_DEVICE void go_on(Turn& turn, u32* counter) const {
    if (!DYNAMIC) {
      go_on(turn);
      return;
    }
    const u32 taken = atomic_add(counter, 1);
    if (taken == tiles - 1) *counter = 0;
    turn.tile = taken + workgroups;
  }
};
