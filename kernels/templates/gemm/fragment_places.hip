// Where a lane's fragments of one operand lie in shared memory, for loops that name all stages,
// rows and depths: as few registers as possible, from which the offsets of instructions reach the
// rest.
#pragma once

#include "common/main_loop.hip"
#include "common/matrix.hip"

// Stages that the offset of an instruction reaches from one register.
template <u32 stride>
constexpr u32 reached_stages = stride > 65535 ? 1 : 65536 / stride;

// `rows` products' fragments in each of `stages` tiles, which start `stride` bytes apart.
template <bool along_k, typename T, u32 span, typename Tile, u32 rows, u32 stages, u32 stride>
struct FragmentPlaces {
  typedef MatrixCore<T, span> Core;
  // Chunks that a lane reads, and those of them that lie in one bank row: these trade places with
  // others, so each needs a register. Those of other bank rows are further by the same bytes.
  static constexpr u32 apart = Core::lane_chunks == 1 ? Core::groups : 1;
  static constexpr u32 line_chunks = BK / chunk_elements<T>;
  static constexpr u32 in_row =
      Tile::padded ? 1 : (line_chunks < Tile::bank_row ? line_chunks : Tile::bank_row) / apart;
  static constexpr u32 reached = reached_stages<stride>;
  static constexpr u32 registers = (stages + reached - 1) / reached;
  static constexpr u32 kinds = Tile::lines_alike ? 1 : rows;  // of products' lines
  static constexpr u32 reads = Core::lane_chunks;             // of a fragment

  u32 place[registers][kinds][in_row];

  // The tiles start at `start`, the lines of the wave's products at `line`.
  GRETA_DEVICE void set(u32 start, u32 line) {
    const u32 lane = lane_index(), group = Core::groups == 1 ? 0 : lane / span;
    GRETA_UNROLL
    for (u32 r = 0; r < registers; ++r) {
      GRETA_UNROLL
      for (u32 kind = 0; kind < kinds; ++kind) {
        GRETA_UNROLL
        for (u32 c = 0; c < in_row; ++c) {
          const u32 offset = Tile::offset(line + lane % span + kind * span, group + c * apart);
          place[r][kind][c] = kept(start + r * reached * stride + offset);
        }
      }
    }
  }

  // The fragment of product `row` at this depth.
  GRETA_DEVICE typename Core::Fragment load(SharedMemory shared, u32 stage, u32 row,
                                            u32 depth) const {
    typename Core::Fragment f;
    GRETA_UNROLL
    for (u32 i = 0; i < Core::lane_chunks; ++i) {
      const u32 chunk = depth * Core::groups * Core::lane_chunks + i;
      const u32 traded = Tile::padded ? 0 : chunk / apart % in_row;
      const u32 further = (chunk - traded * apart) * Tile::chunk_step +
                          stage % reached * stride +
                          (Tile::lines_alike ? Tile::place_offset(row * span, 0) : 0);
      const u32 from = place[stage / reached][Tile::lines_alike ? 0 : row][traded];
      f.chunk[i] = load_words<16>(shared.bytes + from + further);
    }
    return f;
  }
};

// The same for tiles whose lines lie across k, which reads transpose. The products' lines are those
// of a power of two, so what is added to a chunk's number are bits that it lacks.
template <typename T, u32 span, typename Tile, u32 rows, u32 stages, u32 stride>
struct FragmentPlaces<false, T, span, Tile, rows, stages, stride> {
  typedef MatrixCore<T, span> Core;
  static constexpr u32 apart = span / 8;  // chunks from one product to the next
  static constexpr u32 whole = Tile::width & (~Tile::width + 1);
  static constexpr u32 row = whole < Tile::bank_row ? whole : Tile::bank_row;
  // The second half of a fragment lies four lines further.
  static constexpr u32 further_half = Tile::turned_by(4);
  static constexpr u32 step = further_half % apart == 0 ? apart : further_half % 2 == 0 ? 2 : 1;
  static constexpr u32 in_row = Tile::padded || row < 2 * step ? 1 : row / step;
  static constexpr u32 reached = reached_stages<stride>;
  static constexpr u32 registers = (stages + reached - 1) / reached;
  static constexpr u32 reads = 2;  // of a fragment
  static_assert((rows & (rows - 1)) == 0, "TURN needs products' lines of a power of two");

  u32 place[registers][in_row];

  GRETA_DEVICE void set(u32 start, u32 line) {
    const u32 first = Core::template half_place<Tile>(line, 0);
    GRETA_UNROLL
    for (u32 r = 0; r < registers; ++r) {
      GRETA_UNROLL
      for (u32 c = 0; c < in_row; ++c) {
        place[r][c] = kept(start + r * reached * stride + (first ^ c * step * 16));
      }
    }
  }

  GRETA_DEVICE typename Core::Fragment load(SharedMemory shared, u32 stage, u32 i,
                                            u32 depth) const {
    typename Core::Fragment f;
    GRETA_UNROLL
    for (u32 half = 0; half < 2; ++half) {
      const u32 chunk = i * apart, traded = in_row == 1 ? 0 : chunk % row;
      const u32 kind = traded ^ (in_row == 1 ? 0 : half * further_half);
      const u32 further = (chunk - traded) * 16 + stage % reached * stride +
                          Tile::place_offset(depth * Core::depth + half * 4, 0);
      Core::load_turned(f, half, shared.bytes + place[stage / reached][kind / step] + further);
    }
    return f;
  }
};
