// Steps of BK keys of all sequences, divided evenly among groups of workgroups. A group has a workgroup for each
// tile of a sequence's rows, so that these read the same keys at the same time. It walks through its steps, and
// with them through one or more sequences: of the first and the last one it may have a part, and what it leaves of
// these is joined by rows_join.hip. Source of the division: stream-K (Osama et al., 2023), here along keys.
#pragma once

#include "latent_attention/rows.hip"

#if !defined(UNITS)
#error "UNITS, the number of workgroups that run at once, must be defined"
#endif

struct Stream {
  u32 groups;
  u32 least, more;  // steps of a group; the first `more` groups have one more
  u32 before;       // steps of the sequences before the one that was asked for

 private:
  u32 of_lane;       // sequences: each lane of a wave counts the steps of some neighbours
  u32 before_lane;   // steps of the sequences before these
  u32 before_next;   // and before those of the next lane

 public:
  // At least one: outputs of a sequence without keys must be written.
  static GRETA_DEVICE u32 steps_of(const Arguments& args, u32 sequence) {
    const u32 count = key_count(args, sequence);
    return count == 0 ? 1 : (count + BK - 1) / BK;
  }

  // All lanes of a wave count together.
  GRETA_DEVICE Stream(const Arguments& args) {
    of_lane = (args.batch + wave_size - 1) / wave_size;
    const u32 first = lane_index() * of_lane;
    u32 mine = 0;
    constexpr u32 ahead = 8;  // loads
    for (u32 i = 0; i < of_lane; i += ahead) {
      GRETA_UNROLL
      for (u32 more_ahead = 0; more_ahead < ahead; ++more_ahead) {
        const u32 number = i + more_ahead;
        if (number < of_lane && first + number < args.batch) mine += steps_of(args, first + number);
      }
    }
    before_next = mine;
    GRETA_UNROLL
    for (u32 step = 1; step < wave_size; step *= 2) {
      const u32 lower = shuffle(before_next, lane_index() - smaller(step, lane_index()));
      if (lane_index() >= step) before_next += lower;
    }
    before_lane = before_next - mine;
    const u32 all = shuffle(before_next, wave_size - 1);
    groups = UNITS > args.tiles ? UNITS / args.tiles : 1;
    least = all / groups;
    more = all % groups;
  }

  // Counts the steps before a sequence.
  GRETA_DEVICE void count_before(const Arguments& args, u32 sequence) {
    const u32 lane = sequence / of_lane;
    before = shuffle(before_lane, lane);
    for (u32 i = lane * of_lane; i < sequence; ++i) before += steps_of(args, i);
  }

  // The first step of a group, and the group that has a step.
  GRETA_DEVICE u32 begin_of(u32 group) const { return group * least + smaller(group, more); }
  GRETA_DEVICE u32 group_of(u32 step) const {
    const u32 longer = more * (least + 1);
    return step < longer ? step / (least + 1) : more + (step - longer) / least;
  }

  // Returns the sequence that has a step, and counts those before it.
  GRETA_DEVICE u32 find(const Arguments& args, u32 step) {
    u32 lane = 0;
    while (step >= shuffle(before_next, lane)) ++lane;
    before = shuffle(before_lane, lane);
    u32 sequence = lane * of_lane;
    for (u32 steps = steps_of(args, sequence); step >= before + steps; steps = steps_of(args, sequence)) {
      before += steps;
      ++sequence;
    }
    return sequence;
  }

  // Where a group leaves what it has of a sequence that other groups have too, among those of all: that of the
  // sequence with which it begins, or that with which it ends.
  GRETA_DEVICE u32 place_of(const Arguments& args, u32 group, bool ends, u32 tile) const {
    return (group * 2 + u32(ends)) * args.tiles + tile;
  }
  GRETA_DEVICE u32 places(const Arguments& args) const { return groups * 2 * args.tiles; }
};

// Gives run(part) the parts of this workgroup, one after the other.
template <typename Run>
GRETA_DEVICE void each_part(Arguments& args, Run run) {
  Stream stream(args);
  const u32 group = block_index<THREADS>() / args.tiles, tile = block_index<THREADS>() % args.tiles;
  const u32 end = stream.begin_of(group + 1);
  u32 step = stream.begin_of(group);
  if (group >= stream.groups || step == end) return;
  u32 sequence = stream.find(args, step);
  GRETA_NO_UNROLL
  for (; step < end; ++sequence) {
    const u32 steps = Stream::steps_of(args, sequence), from = step - stream.before;
    const u32 to = smaller(steps, end - stream.before);
    Part part = pick_part(args, sequence * args.tiles + tile, 0);
    part.reader = stream.place_of(args, group, from == 0, tile);
    part.readers = stream.places(args);
    part.slice = {smaller(from * BK, part.slice.end), smaller(to * BK, part.slice.end),
                  to - from == steps ? 1U : 2U};
    run(part);
    step = stream.before + to;
    stream.before += steps;
  }
}

// What groups leave of the rows of a sequence's tile, from `row` on. The first of these groups ends with the
// sequence, the others begin with it.
struct StreamSums {
  const Arguments& args;
  const Stream& stream;
  u32 first_group, tile, row;

  GRETA_DEVICE Slices<BQ, 1> of(u32 slice) const {
    const u32 place = stream.place_of(args, first_group + slice, slice == 0, tile);
    return Slices<BQ, 1>(args, place, stream.places(args)).from(row);
  }
  GRETA_DEVICE const float* values(u32 slice, u32 r) const { return of(slice).values(0, r); }
  GRETA_DEVICE const float* scores(u32 slice, u32 r) const { return of(slice).scores(0, r); }
};
