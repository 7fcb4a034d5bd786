// Asynchronous copies of lines into panels, the operands of warpgroups' products. COPIERS threads make them.
#pragma once

#include "attention/operands.hip"
#include "common/warpgroup_matrix.hip"

// Keys or values.
template <u32 dim>
struct CachedLines {
  Lines<dim> lines;

  GRETA_DEVICE const In* line(u32 number) const { return lines.line(number); }
  // `more` lines after line `number`, whose element `at` is at `from`.
  GRETA_DEVICE const In* later(const In* from, u32 number, u32 more, u32 at, bool inside) const {
#if PACKED
    return from + more * lines.pitch;
#elif PAGE
    return inside ? lines.line(number + more) + at : from;
#else
    return from + more * dim;
#endif
  }
};

// Starts copying `panels` panels, from number `first` on, of lines of `dim` elements; zeros for those from `count`
// on, and behind the elements. A thread copies the same chunk of each panel, of lines a multiple of eight apart, so
// that addresses differ by constants.
template <typename CopiedTile, u32 lines, u32 dim, u32 panels, typename Source>
GRETA_DEVICE void copy_panels(SharedMemory shared, u32 start, const Source& source, u32 count,
                              u32 first) {
  constexpr u32 width = CopiedTile::width, step = COPIERS / width;
  constexpr u32 chunks = (dim + 15) / 16 * 2;  // of a line in shared memory
  static_assert(step % 8 == 0, "chunks trade places in the same way in all lines of a thread");
  const u32 number = thread_index() % COPIERS;
  const u32 line = number / width, place = number % width;
  const u32 chunk = CopiedTile::chunk_at(line, place);
  const In* const from = source.line(PAGE && line >= count ? 0 : line) + chunk * 8;
  const u32 to = start + line * CopiedTile::line_bytes + place * 16;
  GRETA_UNROLL
  for (u32 more = 0; more < lines; more += step) {
    if (lines % step != 0 && line + more >= lines) break;
    GRETA_UNROLL
    for (u32 i = 0; i < panels; ++i) {
      const u32 panel = first + i, further = panel * width;
      const bool inside = line + more < count && (chunks * 8 == dim || chunk + further < dim / 8);
      const In* const later = source.later(from, line, more, chunk * 8, inside);
      copy_lane_async<16>(
          shared, to + more * CopiedTile::line_bytes + panel * CopiedTile::panel_bytes,
          later + further * 8, inside);
    }
  }
}

// The same for all panels.
template <typename CopiedTile, u32 lines, u32 dim, typename Source>
GRETA_DEVICE void copy_lines(SharedMemory shared, u32 start, const Source& source, u32 count) {
  constexpr u32 panels = (dim + 15) / 16 * 2 / CopiedTile::width;
  copy_panels<CopiedTile, lines, dim, panels>(shared, start, source, count, 0);
}
