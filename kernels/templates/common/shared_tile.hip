// Tiles of matrices in shared memory, whose chunks of 16 bytes lie so that lanes hit different
// banks.
#pragma once

#include "common/device.hip"

// Banks of shared memory, of 4 bytes each.
#if defined(__gfx950__)
constexpr u32 shared_banks = 64;
#else
constexpr u32 shared_banks = 32;
#endif

// Chunks of shared memory in lines. Lanes that are served together should hit different banks; a
// `bank_row` of neighbouring chunks has each bank once. Behind each line are `pad` chunks; where
// that is 0, chunks trade places within a bank row, so that lanes hit different banks when they
//   read fragments: one chunk of neighbouring lines, or what CDNA serves together
//   write one chunk of eight lines: neighbours, or with `far` also lines 2, 4 or 8 apart
template <u32 lines, u32 line_chunks, u32 pad, bool far, u32 banks = shared_banks>
struct SharedTile {
  static constexpr u32 bytes = lines * (line_chunks + pad) * 16;
  static constexpr u32 bank_row = banks / 4;
  static constexpr bool padded = pad > 0, lines_alike = !far;
  static constexpr u32 width = line_chunks;
  static constexpr u32 chunk_step = 16;  // bytes from one place of a line to the next
  // Lines so far apart trade chunks alike, unless `far`.
  static constexpr u32 period = pad > 0 ? 1 : bank_row;

  // Bytes from the tile's start to a chunk.
  static GRETA_DEVICE constexpr u32 offset(u32 line, u32 chunk) {
    if (!far || line_chunks >= bank_row) return place_offset(line, chunk ^ turn(line));
    return ((line * (line_chunks + pad) + chunk) ^ turn(line)) * 16;
  }
  // Bytes to a place of a line, and the chunk that belongs there.
  static GRETA_DEVICE constexpr u32 place_offset(u32 line, u32 place) {
    return (line * (line_chunks + pad) + place) * 16;
  }
  static GRETA_DEVICE constexpr u32 chunk_at(u32 line, u32 place) {
    static_assert(!far, "chunks trade places across lines");
    return place ^ turn(line);
  }
  // From the offset of a chunk to that of one `more_lines` further, a multiple of 16, and
  // `more_chunks`, a multiple of a power of two that the chunk's number is less than. The offset
  // may count from where a tile of this kind could start.
  static GRETA_DEVICE constexpr u32 beyond(u32 offset, u32 more_lines, u32 more_chunks) {
    static_assert(!far, "chunks trade places across lines");
    const u32 traded = pad > 0 ? 0 : more_chunks % bank_row;  // the others lie in further bank rows
    return (offset ^ traded * 16) + place_offset(more_lines, more_chunks - traded);
  }

  // How chunks of a line trade places differently from those of a line so much before it, where the
  // bits of both numbers differ.
  static GRETA_DEVICE constexpr u32 turned_by(u32 more_lines) { return turn(more_lines); }

 private:
  // Turns the line's chunks by the number of bank rows before it, which makes no other difference
  // to their banks. With 16 chunks in a bank row, a chunk of lines 0-3 and 12-15 is served together
  // with the next one of lines 4-11; the shifted bits keep these apart.
  static GRETA_DEVICE constexpr u32 turn(u32 line) {
    if (pad > 0) return 0;
    // Chunks trade places within groups of a power of two, which lines consist of.
    constexpr u32 whole = line_chunks & (~line_chunks + 1);
    constexpr u32 places = whole < bank_row ? whole : bank_row;
    const u32 before = line * places / bank_row;
    const u32 turned = bank_row == 8 ? before : before ^ before << 1;
    return far ? (turned ^ before / bank_row) % bank_row : turned % places;
  }
};

// The same in panels of 16 lines, as B_PANELS has them in device memory: the chunks of all lines at
// one k follow each other, so that lanes that read one chunk of neighbouring lines hit different
// banks.
template <u32 lines, u32 line_chunks>
struct FragmentTile {
  static_assert(lines % 16 == 0, "panels are whole");
  static constexpr u32 bytes = lines * line_chunks * 16;
  static constexpr u32 bank_row = shared_banks / 4;
  static constexpr bool padded = true, lines_alike = true;  // no chunks trade places
  static constexpr u32 width = line_chunks;
  static constexpr u32 chunk_step = 256;

  static GRETA_DEVICE constexpr u32 offset(u32 line, u32 chunk) {
    return (line / 16 * line_chunks + chunk) * chunk_step + line % 16 * 16;
  }
  static GRETA_DEVICE constexpr u32 place_offset(u32 line, u32 place) { return offset(line, place); }
};
