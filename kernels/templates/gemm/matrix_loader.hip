// Brings one operand's part of a K step into a SharedTile, whose lines lie along k unless the
// matrix cores turn them (matrix_load_turns). A thread moves `units` of:
//
//   `vec` elements of a line in memory, which go to shared memory as they are, through registers or
//   by asynchronous copies; neighbouring threads write neighbouring places
//   TURNED: a chunk's k x `vec` elements, where memory has lines across k but the tile along it;
//   they are turned in registers, and `vec` chunks are written
//
// `span` is a multiple of 16, BK a power of two.
#pragma once

#include "common/matrix.hip"

template <typename T, bool along_k, u32 span, u32 vec>
struct OperandLoader {
  static constexpr u32 chunk = chunk_elements<T>;
  static constexpr bool turned = !along_k && !matrix_load_turns;
  static constexpr bool tile_along_k = along_k || turned;
  typedef SharedTile<tile_along_k ? span : BK, (tile_along_k ? BK : span) / chunk, PAD, turned> Tile;

  static constexpr u32 length = along_k ? BK : span;  // elements of a line in memory
  static constexpr u32 pieces = turned ? chunk : 1;   // lines of a unit
  static constexpr u32 count = BK * span / vec / pieces;
  static constexpr u32 units = (count + THREADS - 1) / THREADS;
  static constexpr u32 across = length / vec;  // units side by side along a line
  typedef Words<vec * u32(sizeof(T))> Piece;

  // Lines from a thread's unit to its next one, and whether these have the same places and chunks.
  static constexpr u32 unit_lines = THREADS / across;
  static constexpr bool units_alike =
      !turned && THREADS % across == 0 && unit_lines % Tile::bank_row == 0;
  // Whether what unit i adds to a thread's first unit is the same for all threads.
  static constexpr bool regular = THREADS % across == 0 || across % THREADS == 0;

  const u8* base;   // of the K step to be loaded next; the same for all threads
  u64 step_bytes;   // from one K step to the next
  u32 line_bytes;   // from one line to the next
  u32 span_left;    // rows or columns of the tile that can be loaded
  Piece piece[units][pieces];

  // `first`: the tile's first row or column, of `extent`; `stride`: elements of a line.
  GRETA_DEVICE void start(const void* operand, u32 first, u32 extent, u32 stride, u32 k) {
    const u64 lines = along_k ? first : k, elements = along_k ? k : first;
    base = static_cast<const u8*>(operand) + (lines * stride + elements) * sizeof(T);
    line_bytes = stride * u32(sizeof(T));
    step_bytes = along_k ? BK * sizeof(T) : u64(BK) * line_bytes;
    span_left = smaller((along_k ? extent : (extent + vec - 1) / vec * vec) - first, span);
  }

  // Unit i of this thread in memory: line, and element of it.
  static GRETA_DEVICE u32 line(u32 i) {
    const u32 tid = thread_index();
    return (regular ? tid / across + i * THREADS / across : (tid + i * THREADS) / across) * pieces;
  }
  // Neighbouring threads have neighbouring places in shared memory; which chunks of the line belong
  // there is the tile's to say.
  static GRETA_DEVICE u32 place(u32 i) {
    const u32 tid = thread_index();
    return (regular ? tid % across + i * THREADS % across : (tid + i * THREADS) % across) * vec;
  }
  static GRETA_DEVICE u32 element(u32 i) {
    if constexpr (turned) {
      return place(i);
    } else {
      return Tile::chunk_at(line(i), place(i) / chunk) * chunk + place(i) % chunk;
    }
  }
  // Whether unit i is this thread's.
  static GRETA_DEVICE bool active(u32 i) {
    return count % THREADS == 0 || thread_index() + i * THREADS < count;
  }
  // Bytes from the base.
  GRETA_DEVICE u32 offset(u32 line, u32 element) const {
    return line * line_bytes + element * u32(sizeof(T));
  }
  // Of line p of unit i, or where its row or column is outside, of the last one that is inside: no
  // sum that is stored depends on it.
  GRETA_DEVICE u32 safe_offset(u32 i, u32 p) const {
    return along_k ? offset(smaller(line(i), span_left - 1), element(i))
                   : offset(line(i) + p, smaller(element(i), span_left - vec));
  }

  // The k of line p of unit i, from the K step's first on.
  static GRETA_DEVICE u32 k_of(u32 i, u32 p) { return along_k ? element(i) : line(i) + p; }

  // Starts loading all units into registers. Past the end of K they get anything that is there.
  GRETA_DEVICE void fetch(u32 k_left) {
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      if (!active(i)) continue;
      GRETA_UNROLL
      for (u32 p = 0; p < pieces; ++p) {
        const u32 safe = k_of(i, p) < k_left ? safe_offset(i, p) : 0;
        piece[i][p] = load_words<int(sizeof(Piece))>(base + safe);
      }
    }
  }

  // Zeros what was loaded past the end of K.
  GRETA_DEVICE void clear_tail(u32 k_left) {
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      GRETA_UNROLL
      for (u32 p = 0; p < pieces; ++p) {
        if (k_of(i, p) >= k_left) piece[i][p] = {};
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
  // Starts copying unit i into the tile at `start`; zeros past the end of K.
  GRETA_DEVICE void copy(u32 i, SharedMemory shared, u32 start, u32 k_left) const {
    constexpr u32 bytes = sizeof(Piece);
    if (!active(i)) return;
    const u32 first = (wave_index() * wave_size + i * THREADS) * bytes;  // of the wave's
#if defined(GRETA_AMD)
    static_assert(count % THREADS == 0, "every wave has the same number of copies");
    // A predicate would take scalar registers for each unit.
    copy_async<bytes>(shared, start + first, base, safe_offset(i, 0),
                      k_of(i, 0) < k_left);
#else
    const bool inside = (along_k ? line(i) : element(i)) < span_left && k_of(i, 0) < k_left;
    if constexpr (units_alike) {  // one offset for all; what is added is the same for all lanes
      const u64 further = u64(i * unit_lines) * line_bytes;
      copy_async<bytes>(shared, start + first, base + further, offset(line(0), element(0)), inside);
    } else {
      copy_async<bytes>(shared, start + first, base, offset(line(i), element(i)), inside);
    }
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
