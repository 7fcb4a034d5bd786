// Loads fragments of B from its panels in device memory to the registers that products read
// (DIRECT), a K step ahead. Lanes load 16 bytes each, which follow each other: a panel has the
// chunks of 16 lines one after the other, as a product of 16 lines reads them.
#pragma once

#include "common/main_loop.hip"
#include "common/matrix.hip"

// In place of the loader of an operand that does not pass shared memory.
struct NoLoader {
  struct Tile {
    static constexpr u32 bytes = 0;
  };
  static constexpr u32 units = 0, loads = 0, puts = 0, groups = 0;
  static constexpr bool turned = false, tile_along_k = true;
  static constexpr u64 step_bytes = 0;
  const u8* base = nullptr;

  GRETA_DEVICE void fetch(u32) {}
  GRETA_DEVICE void put(u8*) const {}
  GRETA_DEVICE void clear_tail(u32) {}
  GRETA_DEVICE void copy(u32, SharedMemory, u32, u32) const {}
  GRETA_DEVICE void go_whole() {}
  GRETA_DEVICE void next_whole() {}
  GRETA_DEVICE void stop_whole() {}
  GRETA_DEVICE void fetch_whole() {}
  GRETA_DEVICE void put_whole(u8*) const {}
  GRETA_DEVICE void copy_whole(u32, SharedMemory, u32) const {}
};

// And of the places of its fragments.
struct NoPlaces {
  static constexpr u32 reads = 0;
  GRETA_DEVICE void set(u32, u32) {}
};

// `columns` products of `span` lines. `pairs`: lines alternate between gates and ups.
template <typename T, u32 span, u32 columns, bool pairs>
struct FragmentLoader {
  typedef MatrixCore<T, span> Core;
  typedef typename Core::Fragment Fragments[BK / Core::depth][columns];
  static constexpr u32 depths = BK / Core::depth, chunks = Core::lane_chunks;
  // Instructions of load_whole().
  static constexpr u32 loads = depths * columns * chunks;
  static constexpr u32 panel_lines = 16, chunk_bytes = panel_lines * 16;
  static constexpr u32 step_bytes = BK / 8 * chunk_bytes;

  const u8* base;     // of the K step to be loaded next; the same for all threads
  u32 from[columns];  // the lane's first chunk of each product, bytes from the base
  u32 k_left;         // from the step to be loaded next to the end

  // The wave's lines begin at `line` of the tile, which begins at `first` of `extent` lines.
  GRETA_DEVICE void start(const void* operand, u32 first, u32 line, u32 extent, u32 k, u32 k_begin,
                          u32 k_length, u64 pair_distance) {
    base = static_cast<const u8*>(operand) + u64(k_begin) / 8 * chunk_bytes;
    k_left = k_length;
    const u32 lane = lane_index(), panel_bytes = k * (panel_lines * u32(sizeof(T)));
    const u32 tile_panel = first / (pairs ? 2 : 1) / panel_lines;
    base += u64(tile_panel) * panel_bytes;
    GRETA_UNROLL
    for (u32 j = 0; j < columns; ++j) {
      const u32 own = smaller(line + j * span + lane % span, extent - first - 1);
      const u32 stored = pairs ? own / 2 : own;
      from[j] = stored / panel_lines * panel_bytes + stored % panel_lines * 16 +
                group() * chunk_bytes;
      if (pairs) from[j] += own % 2 * u32(pair_distance * sizeof(T));
    }
  }

  // Zeros past the end of K; nothing after the last step.
  GRETA_DEVICE void load(Fragments& to) {
    if (k_left == 0) return;
    each([&](u32 depth, u32 j, u32 i) {
      const bool inside = (place(depth, i) + group()) * 8 < k_left;
      const u32 safe = inside ? from[j] + place(depth, i) * chunk_bytes : 0;
      to[depth][j].chunk[i] = load_words<16>(base + safe);
      if (!inside) to[depth][j].chunk[i] = {};
    });
    base += step_bytes;
    k_left -= smaller(k_left, BK);
  }

  // Of a whole step, and between go_whole() and stop_whole(), which says how many were loaded.
  GRETA_DEVICE void go_whole() {
    GRETA_UNROLL
    for (u32 j = 0; j < columns; ++j) from[j] = kept(from[j]);
  }
  GRETA_DEVICE void load_whole(Fragments& to) {
    GRETA_UNROLL
    for (u32 j = 0; j < columns; ++j) from[j] = kept(from[j]);
    each([&](u32 depth, u32 j, u32 i) {
      to[depth][j].chunk[i] = load_words<16>(base + from[j] + place(depth, i) * chunk_bytes);
    });
    base = kept_by_all(base + step_bytes);
  }
  GRETA_DEVICE void stop_whole(u32 steps) { k_left -= steps * BK; }

  // Calls use(depth, product, chunk) for all chunks of a K step that a lane loads.
  template <typename Use>
  static GRETA_DEVICE void each(Use use) {
    GRETA_UNROLL
    for (u32 j = 0; j < columns; ++j) {
      GRETA_UNROLL
      for (u32 depth = 0; depth < depths; ++depth) {
        GRETA_UNROLL
        for (u32 i = 0; i < chunks; ++i) use(depth, j, i);
      }
    }
  }

 private:
  static GRETA_DEVICE u32 group() { return Core::groups == 1 ? 0 : lane_index() / span; }
  // Chunks from those of the step's first k on, but for the lane's group.
  static GRETA_DEVICE constexpr u32 place(u32 depth, u32 i) {
    return depth * (Core::groups * chunks) + i;
  }
};
