// Operands that one thread copies in boxes (tensor_copy.hip): how their tiles lie in shared memory,
// and where they start in a map.
#pragma once

#include "common/tensor_copy.hip"
#include "common/warpgroup_matrix.hip"
#include "gemm/groups.hip"
#include "gemm/operands.hip"
#if CLUSTER > 1
#include "common/cluster.hip"
#endif

// One operand's part of a K step, in panels of 128 bytes. `parts` workgroups copy it, each a share
// of the lines. `pairs`: the map's rows are pairs of a gate and its up.
template <bool along_k, u32 span, u32 parts = 1, bool pairs = false>
struct MappedTile {
  static constexpr u32 lines = along_k ? span : BK;
  static constexpr u32 columns = 128 / sizeof(In);  // of a panel
  static constexpr u32 panels = ((along_k ? BK : span) + columns - 1) / columns;
  typedef PanelTile<lines, panels * 8> Tile;
  static constexpr u32 share = lines / parts;
  static_assert(lines % parts == 0, "shares are whole lines");
  static_assert(!pairs || (along_k && share % 2 == 0), "gates and ups are lines of the operand");

  // `first`: the tile's first row or column; `part`: this workgroup's share, for those in `blocks`.
  static GRETA_DEVICE void copy(SharedMemory shared, u32 to, const TensorMap& map, u32 first, u32 k,
                                u32 part, u32 blocks, CountedBarrier barrier) {
    GRETA_UNROLL
    for (u32 panel = 0; panel < panels; ++panel) {
      const u32 at = to + panel * Tile::panel_bytes + part * share * Tile::line_bytes;
      const u32 column = (along_k ? k : first) + panel * columns;
      const u32 line = (along_k ? first : k) + part * share;
#if CLUSTER > 1
      if constexpr (parts > 1) {
        if constexpr (pairs) {
          copy_pairs_to(blocks, shared, at, map, column, line, barrier);
        } else {
          copy_box_to(blocks, shared, at, map, column, line, barrier);
        }
        continue;
      }
#endif
      if constexpr (pairs) {
        copy_pairs(shared, at, map, column, line, barrier);
      } else {
        copy_box(shared, at, map, column, line, barrier);
      }
    }
  }
  static GRETA_DEVICE void copy(SharedMemory shared, u32 to, const TensorMap& map, u32 first, u32 k,
                                CountedBarrier barrier) {
    copy(shared, to, map, first, k, 0, 1, barrier);
  }
};

// The tile of an operand in panels of 16 lines (operands.hip): chunks of all lines at one k follow
// each other. Of eight lines these are what instructions read without a swizzle.
template <u32 lines>
struct ChunkTile {
  static constexpr u32 width = 1;  // no chunks trade places
  static constexpr u32 bytes = lines * BK * sizeof(In);
  static constexpr u32 chunk_bytes = lines * 16, group_bytes = 8 * 16;
  template <bool along_k>
  static constexpr u32 leading_bytes = chunk_bytes;

  template <bool along_k>
  static GRETA_DEVICE constexpr u32 part(u32 line, u32 k) {
    static_assert(along_k, "lines of panels lie along k");
    return k / 8 * chunk_bytes + line * 16;
  }
};

// As MappedTile. A line of the map is a panel, of which a box has a chunk of all lines.
template <u32 span, u32 parts = 1>
struct MappedPanels {
  typedef ChunkTile<span> Tile;
  static constexpr u32 share = span / parts;
  static_assert(span % (16 * parts) == 0, "shares are whole panels");

  static GRETA_DEVICE void copy(SharedMemory shared, u32 to, const TensorMap& map, u32 first, u32 k,
                                u32 part, u32 blocks, CountedBarrier barrier) {
    GRETA_UNROLL
    for (u32 chunk = 0; chunk < BK / 8; ++chunk) {
      const u32 at = to + chunk * Tile::chunk_bytes + part * share * 16;
      const u32 column = (k / 8 + chunk) * 128, panel = (first + part * share) / 16;
#if CLUSTER > 1
      if constexpr (parts > 1) {
        copy_box_to(blocks, shared, at, map, column, panel, barrier);
        continue;
      }
#endif
      copy_box(shared, at, map, column, panel, barrier);
    }
  }
};

// K steps of a slice: at least one, of zeros if it starts past the end.
GRETA_DEVICE u32 steps_of(const Arguments& args, u32 k_begin) {
  if (k_begin + BK >= args.k) return 1;
  return (smaller(args.slice, args.k - k_begin) + BK - 1) / BK;
}

// The lines of a map before those of a product: a batch's matrices are whole lines apart, and those
// of groups lie one after the other.
GRETA_DEVICE u32 first_line_a(const Arguments& args, const Group& group) {
#if GROUPED == 3
  return group.index * u32(args.a_batch / stride_a(args));
#else
  return group.first;
#endif
}

GRETA_DEVICE u32 first_line_b(const Arguments& args, const Group& group) {
#if GROUPED == 3
  return group.index * u32(args.b_batch / stride_b(args));
#else
  if (!GROUPED) return 0;
  // Rows of pairs alternate, so that those of a group's first gate are as far as twice its lines.
  return group.index * (B_ALONG_K ? (GATED ? 2 : 1) * product_cols(args) : args.k);
#endif
}
