// Copies one operand's part of a K step into a PanelTile, 16 bytes at a time and asynchronously.
// Neighbouring threads write neighbouring places; a panel's lines are read one behind the other.
// Where lines do not fill their last panel, the rest of it stays as it is: no product reads it.
#pragma once

#include "common/warpgroup_matrix.hip"

// `pairs`: lines alternate between gates and ups (operands.hip).
template <typename T, bool along_k, u32 span, bool pairs = false>
struct PanelLoader {
  static constexpr u32 vec = chunk_elements<T>;
  static constexpr u32 lines = along_k ? span : BK;
  static constexpr u32 chunks = (along_k ? BK : span) / vec;  // of a line
  // The same with those that fill its last panel: panels are 128 bytes wide, if lines are as long.
  static constexpr u32 places = chunks > 4 ? (chunks + 7) / 8 * 8 : chunks > 2 ? 4 : 2;
  typedef PanelTile<lines, places> Tile;

  // From a thread's copy to its next one, counting the lines of all panels, or where these do not
  // divide each other, those of one panel. The line within a group of eight stays the same.
  static constexpr u32 unit_lines = THREADS / Tile::width;
  static constexpr u32 panels = places / Tile::width;
  static constexpr bool together = lines % unit_lines == 0 || unit_lines % lines == 0;
  static constexpr u32 runs = together ? 1 : panels, run_lines = lines * panels / runs;
  static constexpr u32 run_units = (run_lines + unit_lines - 1) / unit_lines;
  static constexpr u32 units = runs * run_units;  // copies of a thread
  static_assert(unit_lines % 8 == 0, "whole groups of lines");

  const u8* base;  // of the K step to be loaded next; the same for all threads
  u64 step_bytes;  // from one K step to the next
  u32 line_bytes;  // from one line to the next, or from one pair of lines
  u32 pair_bytes;  // and from a gate's line to that of its up
  u32 span_left;   // rows or columns of the tile that can be loaded

  // `first`: the tile's first row or column, of `extent`; `stride`: elements of a line.
  GRETA_DEVICE void start(const void* operand, u32 first, u32 extent, u32 stride, u32 k,
                          u64 pair_distance = 0) {
    static_assert(!pairs || along_k, "gates and ups are lines of the operand");
    pair_bytes = u32(pair_distance * sizeof(T));
    const u64 lines = along_k ? (pairs ? first / 2 : first) : k, elements = along_k ? k : first;
    base = static_cast<const u8*>(operand) + (lines * stride + elements) * sizeof(T);
    line_bytes = stride * u32(sizeof(T));
    step_bytes = along_k ? BK * sizeof(T) : u64(BK) * line_bytes;
    span_left = smaller((along_k ? extent : (extent + vec - 1) / vec * vec) - first, span);
  }

  // Starts copy i into the tile at `start`; zeros outside of the operand and past the end of K.
  GRETA_DEVICE void copy(u32 i, SharedMemory shared, u32 start, u32 k_left) const {
    const u32 run = i / run_units, more = i % run_units * unit_lines;
    if (run_lines % unit_lines != 0 && thread_index() / Tile::width + more >= run_lines) return;
    // Of the first copy, which differ between threads; and what the others add, which does not.
    const u32 first_line = thread_index() / Tile::width % lines;
    const u32 first_element = (thread_index() / Tile::width / lines * Tile::width +
                               Tile::chunk_at(first_line, thread_index() % Tile::width)) *
                              vec;
    const u32 more_lines = more % lines;
    const u32 more_elements = (run + more / lines) * Tile::width * vec;
    const u32 line = first_line + more_lines, element = first_element + more_elements;
    if (places != chunks && element >= span) return;
    const bool inside = line < (along_k ? span_left : k_left) &&
                        element < (along_k ? k_left : span_left);
    const u8* const further = base + (u64(more_lines / (pairs ? 2 : 1)) * line_bytes +
                                      more_elements * sizeof(T));  // more_lines are even
    const u32 to_line = pairs ? first_line / 2 * line_bytes + first_line % 2 * pair_bytes
                              : first_line * line_bytes;
    const u32 offset = to_line + first_element * u32(sizeof(T));
    const u32 place = thread_index() + run * run_lines * Tile::width + more * Tile::width;
    copy_lane_async<16>(shared, start + place * 16, further + offset, inside);
  }

  GRETA_DEVICE void next_step() { base += step_bytes; }
};
