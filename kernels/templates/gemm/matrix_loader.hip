// Brings one operand's part of a K step into a SharedTile, whose lines lie along k unless the
// matrix cores turn them (matrix_load_turns). A thread moves `units` of:
//
//   `vec` elements of a line in memory, which go to shared memory as they are, through registers or
//   by asynchronous copies; neighbouring threads write neighbouring places
//   TURNED: a chunk's k x `vec` elements, where memory has lines across k but the tile along it;
//   they are turned in registers, and `vec` chunks are written
//
// All extents are powers of two.
#pragma once

#include "common/matrix.hip"

template <typename T, bool along_k, u32 span, u32 vec>
struct OperandLoader {
  static constexpr u32 chunk = chunk_elements<T>;
  static constexpr bool turned = !along_k && !matrix_load_turns;
  static constexpr bool tile_along_k = along_k || turned;
  typedef SharedTile<tile_along_k ? span : BK, (tile_along_k ? BK : span) / chunk, PAD / chunk,
                     turned>
      Tile;

  static constexpr u32 length = along_k ? BK : span;  // elements of a line in memory
  static constexpr u32 pieces = turned ? chunk : 1;   // lines of a unit
  static constexpr u32 count = BK * span / vec / pieces;
  static constexpr u32 units = count > THREADS ? count / THREADS : 1;
  typedef Words<vec * u32(sizeof(T))> Piece;

  const u8* base;   // of the K step to be loaded next; the same for all threads
  u64 step_bytes;   // from one K step to the next
  u32 line_bytes;   // from one line to the next
  u32 span_left;    // lines or elements of the tile that are inside
  Piece piece[units][pieces];

  // `first`: the tile's first row or column, of `extent`; `stride`: elements of a line.
  GRETA_DEVICE void start(const void* operand, u32 first, u32 extent, u32 stride, u32 k) {
    const u64 lines = along_k ? first : k, elements = along_k ? k : first;
    base = static_cast<const u8*>(operand) + (lines * stride + elements) * sizeof(T);
    line_bytes = stride * u32(sizeof(T));
    step_bytes = along_k ? BK * sizeof(T) : u64(BK) * line_bytes;
    span_left = smaller(extent - first, span);
  }

  GRETA_DEVICE void advance() { base += step_bytes; }

  // Unit i of this thread in memory: line, and element of it.
  static GRETA_DEVICE u32 line(u32 i) {
    const u32 tid = thread_index();
    if constexpr (turned) {
      return (tid / (span / vec) + i * THREADS / (span / vec)) * chunk;
    } else {
      return tid * vec / length + i * THREADS * vec / length;
    }
  }
  // Neighbouring threads have neighbouring places in shared memory; which chunks of the line belong
  // there is the tile's to say.
  static GRETA_DEVICE u32 place(u32 i) {
    return thread_index() * vec % length + i * THREADS * vec % length;
  }
  static GRETA_DEVICE u32 element(u32 i) {
    if constexpr (turned) {
      return (thread_index() % (span / vec) + i * THREADS % (span / vec)) * vec;
    } else {
      return Tile::chunk_at(line(i), place(i) / chunk) * chunk + place(i) % chunk;
    }
  }
  // Whether unit i is this thread's.
  static GRETA_DEVICE bool active(u32 i) {
    return count % THREADS == 0 || thread_index() + i * THREADS < count;
  }
  GRETA_DEVICE bool inside(u32 line, u32 element, u32 k_left) const {
    return along_k ? line < span_left && element < k_left : line < k_left && element < span_left;
  }
  GRETA_DEVICE const u8* address(u32 line, u32 element) const {
    return base + (line * line_bytes + element * u32(sizeof(T)));
  }

  // Starts loading unit i into registers. `whole`: all of the K step is inside.
  template <bool whole>
  GRETA_DEVICE void fetch(u32 i, u32 k_left) {
    GRETA_UNROLL
    for (u32 p = 0; p < pieces; ++p) {
      piece[i][p] = {};
      if (active(i) && (whole || inside(line(i) + p, element(i), k_left))) {
        piece[i][p] = load_words<int(sizeof(Piece))>(address(line(i) + p, element(i)));
      }
    }
  }

  // Registers into shared memory.
  GRETA_DEVICE void put(u8* shared) const {
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      if (!active(i)) continue;
      if constexpr (turned) {
        GRETA_UNROLL
        for (u32 e = 0; e < vec; ++e) {
          store_words(shared + Tile::offset(element(i) + e, line(i) / chunk), turned_chunk(i, e));
        }
      } else {
        store_words(shared + place_offset(i), piece[i][0]);
      }
    }
  }

#if GRETA_ASYNC_COPY
  template <bool whole>
  GRETA_DEVICE void copy(u32 i, SharedMemory shared, u32 start, u32 k_left) const {
    static_assert(GRETA_ASYNC_ZEROS || count % THREADS == 0, "every lane of a wave has a copy");
    if (!active(i)) return;
#if GRETA_ASYNC_ZEROS
    copy_async<int(sizeof(Piece))>(shared, start + place_offset(i), address(line(i), element(i)),
                                   whole || inside(line(i), element(i), k_left));
#else
    // What lies past the edge is never stored: the last line will do.
    const u32 safe = whole ? line(i) : smaller(line(i), span_left - 1);
    copy_async<int(sizeof(Piece))>(shared, start + place_offset(i), address(safe, element(i)),
                                   true);
#endif
  }
#endif

 private:
  static GRETA_DEVICE u32 place_offset(u32 i) {
    return Tile::place_offset(line(i), place(i) / chunk) + place(i) % chunk * u32(sizeof(T));
  }

  // Element e of all lines of unit i.
  GRETA_DEVICE Chunk turned_chunk(u32 i, u32 e) const {
    Chunk c;
    GRETA_UNROLL
    for (u32 w = 0; w < 4; ++w) {
      if constexpr (sizeof(T) == 4) {
        c.word[w] = piece[i][w].word[e];
      } else {
        c.word[w] = half(piece[i][2 * w], e) | half(piece[i][2 * w + 1], e) << 16;
      }
    }
    return c;
  }
  static GRETA_DEVICE u32 half(const Piece& p, u32 e) {
    if constexpr (vec == 1) {
      return p.word[0];
    } else {
      return e % 2 == 0 ? p.word[e / 2] & 0xffffU : p.word[e / 2] >> 16;
    }
  }
};
