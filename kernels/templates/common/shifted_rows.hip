// Rows of elements that a wave puts into shared memory and stores in a matrix whose rows do not all begin at
// multiples of 16 bytes. In shared memory, a row lies as many elements after a multiple of 16 bytes as it does in
// device memory. So lanes load and store 16 bytes each, except at the two ends of a row, which have one unit of
// 16 bytes together. There, each lane stores an element.
#pragma once

#include "common/types.hip"

// The number of elements from a multiple of 16 bytes to the element at `place` of device memory.
template <typename T>
GRETA_DEVICE u32 shift_of(const T* place) {
  return u32(reinterpret_cast<u64>(place)) % 16 / u32(sizeof(T));
}

// Stores 16 rows of `columns` elements, which lie `pitch` elements apart in shared memory, by the lanes of a wave.
template <typename T, u32 columns, u32 pitch>
struct ShiftedRows {
  static constexpr u32 rows = 16, unit = 16 / sizeof(T);
  static constexpr u32 units_of_row = columns / unit - 1;  // without the ends
  static constexpr u32 units = (rows * units_of_row + wave_size - 1) / wave_size;  // of a lane
  static constexpr u32 ends = rows * unit / wave_size;                             // elements of a lane
  static_assert(columns % unit == 0 && pitch % unit == 0 && pitch >= columns + unit - 1,
                "rows have room to be shifted");

  // A unit or an element: its row, its first column there, and where it is in shared memory.
  struct Place {
    u32 row, col, in_memory;
  };

  // `shift_of_row`: of a row's number.
  template <typename Shift>
  static GRETA_DEVICE Place unit_place(u32 e, const Shift& shift_of_row) {
    constexpr u32 of_row = units_of_row > 0 ? units_of_row : 1;
    const u32 index = e * wave_size + lane_index(), row = index / of_row;
    const u32 at = (index % of_row + 1) * unit;
    return {row, at - shift_of_row(row), row * pitch + at};
  }
  template <typename Shift>
  static GRETA_DEVICE Place end_place(u32 e, const Shift& shift_of_row) {
    const u32 index = e * wave_size + lane_index(), row = index / unit, i = index % unit;
    const u32 shift = shift_of_row(row), col = i < unit - shift ? i : columns - unit + i;
    return {row, col, row * pitch + shift + col};
  }

  // Stores the first `live` rows, of which the first `cols` columns are in the matrix. `line`: where the row of a
  // number begins in device memory.
  template <typename Line>
  static GRETA_DEVICE void store(const T* buffer, u32 live, u32 cols, const Line& line) {
    const auto shift_of_row = [&](u32 row) { return shift_of(line(row)); };
    if (cols < columns) {
      GRETA_NO_UNROLL
      for (u32 index = lane_index(); index < rows * columns; index += wave_size) {
        const u32 row = index / columns, col = index % columns;
        if (row < live && col < cols) line(row)[col] = buffer[row * pitch + shift_of_row(row) + col];
      }
      return;
    }
    GRETA_UNROLL
    for (u32 e = 0; e < units; ++e) {
      const Place at = unit_place(e, shift_of_row);
      if (at.row < smaller(live, rows)) {
        store_pack(line(at.row) + at.col, load_pack<unit>(buffer + at.in_memory));
      }
    }
    GRETA_UNROLL
    for (u32 e = 0; e < ends; ++e) {
      const Place at = end_place(e, shift_of_row);
      if (at.row < live) line(at.row)[at.col] = buffer[at.in_memory];
    }
  }
};
