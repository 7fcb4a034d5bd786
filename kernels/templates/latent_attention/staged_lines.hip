// Outputs, or what a slice leaves of them, on their way through shared memory. Lanes of matrix
// cores have pieces of eight rows: if they stored these, each instruction would write to eight
// lines of memory.
#pragma once

#include "latent_attention/rows.hip"

// Elements from one row in shared memory to the next: rows that lanes write to at once are in other
// banks.
constexpr u32 line_pitch = V_DIM + 8, staged_bytes = BQ * line_pitch * 4;
static_assert(V_DIM % 8 == 0, "rows are whole chunks");

// The place of element 0 of a row of T.
template <typename T>
GRETA_DEVICE T* staged_line(u8* memory, u32 row) {
  return reinterpret_cast<T*>(memory) + row * line_pitch;
}

// Copies `own` staged rows of T to where line(row) is.
template <typename T, typename Line>
GRETA_DEVICE void store_lines(u8* memory, u32 own, Line line) {
  constexpr u32 chunks = V_DIM * sizeof(T) / 16, chunk = 16 / sizeof(T);
  joiners_barrier();
  for (u32 number = thread_index(); number < own * chunks; number += JOINERS) {
    const u32 row = number / chunks, at = number % chunks * chunk;
    const u8* const from = reinterpret_cast<const u8*>(staged_line<T>(memory, row) + at);
    store_words(reinterpret_cast<u8*>(line(row) + at), load_words<16>(from));
  }
}

// Stores what Rows have: outputs or, with several slices, what this one leaves. With `staged` they
// go through `memory`, which nobody reads any more.
template <bool staged, typename Rows>
GRETA_DEVICE void store_rows(const Arguments& args, const Part& part, Rows& rows, u8* memory) {
  if (part.slice.used == 1) {
    rows.finish(args, part, memory);
    if (!staged) return;
    store_lines<Out>(memory, part.own, [&](u32 row) {
      return args.out + output_row(args, part.tile, part.tile.first + row);
    });
    return;
  }
  const Slices<BQ, SPLIT> slices(args, part.reader, part.readers);
  const OwnSums sums{slices, block_z()};
  rows.leave(sums, part.own, args.scale, memory);
  if (staged) store_lines<float>(memory, part.own, [&](u32 row) { return sums.values(row); });
}
