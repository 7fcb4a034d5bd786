// How lanes copy pairs of units of panels of 16 rows to stages (ring.hip), and where they read them there.
//
// Sixteen lanes copy a unit of 16 bytes of each line of a tile: 256 bytes of memory, or with gates 128 of gates and as
// many of ups. In a stage, these are 256 bytes as well. Lines among them are exchanged by the part of a lane that reads
// the unit, so that the lanes that read two lines at once find them in different banks.
#pragma once

static_assert(TN == 1 || !GATED || TN % 2 == 0, "the gates of a workgroup begin with a panel, or are half of one");

constexpr u32 unit_chunks = sizeof(Integers) / 16;  // of a part

GRETA_DEVICE u32 copied_line() {
  const u32 lane = lane_index() % 16;
  return GATED ? lane % 8 * 2 + lane / 8 : lane;
}

// Where a lane copies a pair of the lines from `first` on.
GRETA_DEVICE const u8* start_of_copies(const u8* integers, u32 first, u32 pair, u32 n, u32 k) {
  return integers + place_of_weights(line_of_column(first + copied_line(), n), k) +
         place_in_row(pair * line_bytes) + lane_index() / 16 * sixteen_stride;
}

// Starts copying a pair of `lines` lines, whole tiles of 16, to a stage; zeros for others of the tile.
GRETA_DEVICE void copy_lines(SharedMemory shared, u32 stage, const u8* from, u32 lines, u32 k) {
  constexpr u32 at_once = wave_size / 16, copies = line_chunks / at_once;
  GRETA_UNROLL
  for (u32 i = 0; i < TN * copies; ++i) {
    const u32 t = i / copies, chunk = i % copies * at_once, own = chunk + lane_index() / 16;
    const u32 line = copied_line() ^ own / unit_chunks % parts * 2;
    const u32 row = t * 16 / lines_of_column;  // from the first one on
    copy_lane_async<16>(shared, stage + t * 16 * line_bytes + own * 256 + line * 16,
                        from + place_of_weights(row, k) + chunk * sixteen_stride, t * 16 < lines);
  }
}

// Where a lane reads its lines of a stage.
struct LaneLines {
  const u8* first;

  GRETA_DEVICE explicit LaneLines(const u8* stage)
      : first(stage + part_of_lane() * unit_chunks * 256 + (line_of_lane() ^ part_of_lane() * 2) * 16) {}
  // The 16 bytes j of unit u of line i.
  GRETA_DEVICE const u8* at(u32 i, u32 u, u32 j) const {
    return first + i / 2 * 16 * line_bytes + i % 2 * 128 + (u * parts * unit_chunks + j) * 256;
  }
};
