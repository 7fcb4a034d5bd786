// Brings one operand's part of a K step into a SharedTile, whose lines lie along k unless the
// matrix cores turn them (matrix_load_turns). A thread moves `units` of:
//
//   `vec` elements of a line in memory, which go to shared memory as they are, through registers or
//   by asynchronous copies; neighbouring threads write neighbouring places
//   where memory has lines across k but the tile along it, `turned`: a chunk's k x `vec` elements;
//   they are turned in registers, and `vec` chunks are written
//
//   the same with TURN=2, `turned_by_loads`: a chunk's number of elements; loads turn those of eight
//   threads, which are neighbours along k, and each writes the chunk that it gets
//
// The lines of an operand in `panels` of 16 (operands.hip) lie so in shared memory, too: in a
// FragmentTile. Units follow each other there and in a panel.
//
// `span` is a multiple of 16, BK a power of two.
//
// Between go_whole() and stop_whole(), K steps are whole: nothing is asked about the end of K, and
// what does not change from one step to the next stays in registers.
#pragma once

#include "common/main_loop.hip"
#include "common/matrix.hip"
#if TURN == 2
#include "common/turning_load.hip"
#endif

//
// `pairs`: lines alternate between gates and ups (operands.hip).
template <bool panels, u32 lines, u32 chunks, bool far>
struct TileOf {
  typedef SharedTile<lines, chunks, PAD, far> Type;
};
template <u32 lines, u32 chunks, bool far>
struct TileOf<true, lines, chunks, far> {
  typedef FragmentTile<lines, chunks> Type;
};

template <typename T, bool along_k, u32 span, u32 vec, bool pairs = false, bool panels = false>
struct OperandLoader {
  static_assert(!panels || (along_k && sizeof(T) == 2), "lines of panels lie along k");
  static constexpr u32 chunk = chunk_elements<T>;
  static constexpr bool tile_along_k = along_k || !matrix_load_turns<T>;
  static constexpr bool turned_by_loads = !along_k && TURN == 2;
  static constexpr bool turned = !along_k && tile_along_k && !turned_by_loads;
  static_assert(!turned_by_loads || vec == chunk, "loads turn as many lines as they have elements");
  typedef typename TileOf<panels, tile_along_k ? span : BK, (tile_along_k ? BK : span) / chunk,
                          turned>::Type Tile;

  static constexpr u32 length = along_k ? BK : span;  // elements of a line in memory
  static constexpr u32 pieces = turned ? chunk : 1;   // lines of a unit
  static constexpr u32 count = BK * span / vec / pieces;
  static constexpr u32 units = (count + THREADS - 1) / THREADS;
  static constexpr u32 across = length / vec;  // units side by side along a line
  // Instructions of fetch_whole() and of put_whole().
  static constexpr u32 loads = units * pieces, puts = turned ? units * vec : units;
  typedef Words<vec * u32(sizeof(T))> Piece;
  static constexpr u32 unit_bytes = vec * u32(sizeof(T));

  // Whether a wave's units follow each other in shared memory. AMD's copies then share the register
  // that says where in shared memory they go, and differ in their instructions' offsets.
#if defined(GRETA_MATRIX_MFMA)
  static constexpr bool wave_by_wave = ASYNC;
#else
  static constexpr bool wave_by_wave = false;
#endif

  // Lines from a thread's unit to its next one, and whether these have the same places and chunks.
  static constexpr u32 unit_lines = THREADS / across;
  static constexpr bool units_alike =
      !turned && !turned_by_loads && !wave_by_wave && !panels && THREADS % across == 0 &&
      unit_lines % Tile::bank_row == 0 && (!pairs || unit_lines % 2 == 0);
  // Whether what unit i adds to a thread's first unit is the same for all threads.
  static constexpr bool regular = THREADS % across == 0 || across % THREADS == 0;

  // Where units are put: those of regular ones are a number of bytes apart that all threads know.
  static constexpr bool puts_alike =
      !turned && !turned_by_loads && (panels || THREADS % across == 0) && count % THREADS == 0;
  static constexpr u32 put_places = turned || puts_alike ? 1 : units;

  const u8* base;  // of the K step to be loaded next; the same for all threads
  u64 step_bytes;  // from one K step to the next
  u32 line_bytes;  // from one line to the next, or from one pair of lines
  u32 pair_bytes;  // and from a gate's line to that of its up
  u32 span_left;   // rows or columns of the tile that can be loaded
  Piece piece[units][pieces];
  u32 from[units];     // while steps are whole: of unit i's first line, bytes from the base
  u32 to[put_places];  // and where it goes in shared memory
  u32 wave_to;         // and where the wave's first unit goes
  u32 k_bytes;         // from the base to the step to be copied next, if lines lie along k

  // `first`: the tile's first row or column, of `extent`; `stride`: elements of a line.
  GRETA_DEVICE void start(const void* operand, u32 first, u32 extent, u32 stride, u32 k,
                          u64 pair_distance = 0) {
    static_assert(!pairs || along_k, "gates and ups are lines of the operand");
    pair_bytes = u32(pair_distance * sizeof(T));
    const u64 lines = along_k ? (pairs ? first / 2 : first) : k, elements = along_k ? k : first;
    base = static_cast<const u8*>(operand) +
           (lines * stride + elements * (panels ? panel_lines : 1)) * sizeof(T);
    line_bytes = stride * u32(sizeof(T));
    step_bytes = panels    ? BK * panel_lines * sizeof(T)
                 : along_k ? BK * sizeof(T)
                           : u64(BK) * line_bytes;
    span_left = smaller((along_k ? extent : (extent + vec - 1) / vec * vec) - first, span);
  }

  // Unit i of this thread in memory: line, and element of it.
  static GRETA_DEVICE u32 line(u32 i) {
    const u32 tid = thread_index();
    if constexpr (panels) {
      return unit_place(i) / panel_bytes * panel_lines + unit_place(i) % 256 / 16;
    }
    if constexpr (turned_by_loads) return eight(i) / across * 8 + tid % 8;
    if constexpr (wave_by_wave) return wave_unit(i) / across * pieces;
    return (regular ? tid / across + i * THREADS / across : (tid + i * THREADS) / across) * pieces;
  }
  // Neighbouring threads have neighbouring places in shared memory; which chunks of the line belong
  // there is the tile's to say.
  static GRETA_DEVICE u32 place(u32 i) {
    const u32 tid = thread_index();
    if constexpr (turned_by_loads) return eight(i) % across * vec;
    if constexpr (wave_by_wave) return wave_unit(i) % across * vec;
    return (regular ? tid % across + i * THREADS % across : (tid + i * THREADS) % across) * vec;
  }
  static GRETA_DEVICE u32 element(u32 i) {
    if constexpr (panels) {
      return unit_place(i) % panel_bytes / 256 * chunk + unit_place(i) % 16 / u32(sizeof(T));
    } else if constexpr (turned || turned_by_loads) {
      return place(i);
    } else {
      return Tile::chunk_at(line(i), place(i) / chunk) * chunk + place(i) % chunk;
    }
  }
  // Eight threads whose units a load turns: which of the tile's.
  static GRETA_DEVICE u32 eight(u32 i) { return (thread_index() + i * THREADS) / 8; }
  static GRETA_DEVICE u32 wave_unit(u32 i) {
    return (wave_index() * units + i) * wave_size + lane_index();
  }
  // Of panels: where unit i lies in the tile, and what they consist of.
  static constexpr u32 panel_lines = 16, panel_bytes = BK * panel_lines * u32(sizeof(T));
  static GRETA_DEVICE u32 unit_place(u32 i) {
    return (wave_by_wave ? wave_unit(i) : thread_index() + i * THREADS) * unit_bytes;
  }
  // Whether unit i is this thread's.
  static GRETA_DEVICE bool active(u32 i) {
    return count % THREADS == 0 || thread_index() + i * THREADS < count;
  }
  // Bytes from the base.
  GRETA_DEVICE u32 offset(u32 line, u32 element) const {
    if constexpr (panels) {
      const u32 own = pairs ? line / 2 : line;
      return own / panel_lines * (panel_lines * line_bytes) + own % panel_lines * 16 +
             element / chunk * 256 + element % chunk * u32(sizeof(T)) +
             (pairs ? line % 2 * pair_bytes : 0);
    }
    const u32 lines =
        pairs ? line / 2 * line_bytes + line % 2 * pair_bytes : line * line_bytes;
    return lines + element * u32(sizeof(T));
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
        piece[i][p] = load(base + safe);
      }
    }
  }

  GRETA_DEVICE void go_whole() {
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
#if defined(GRETA_AMD) && GRETA_ASYNC_COPY
      constexpr u32 less = ASYNC ? 1 : 0;
      from[i] = kept(safe_offset(i, 0) + less * together_bytes<int(unit_bytes)>(i % together));
#else
      from[i] = kept(safe_offset(i, 0));
#endif
    }
    wave_to = kept_by_all(first_place(0));
    k_bytes = 0;
    GRETA_UNROLL
    for (u32 i = 0; i < put_places && !turned; ++i) to[i] = kept(place_offset(i));
  }

  // The next step to be loaded. Copies have an offset that is the same for all lanes.
  GRETA_DEVICE void next_whole() {
    if (ASYNC && along_k) {
      k_bytes += u32(step_bytes);
    } else {
      base = kept_by_all(base + step_bytes);
    }
  }
  GRETA_DEVICE void stop_whole() { base += k_bytes; }

  // As fetch() and put(), of a whole step.
  GRETA_DEVICE void fetch_whole() {
    const u8* lines = base;
    GRETA_UNROLL
    for (u32 p = 0; p < pieces; ++p) {
      GRETA_UNROLL
      for (u32 i = 0; i < units; ++i) {
        if (!active(i)) continue;
        from[i] = kept(from[i]);  // else the compiler adds 64 bits of it to the base
        piece[i][p] = load(lines + from[i]);
      }
      if (p + 1 < pieces) lines = kept_by_all(lines + line_bytes);
    }
  }
  GRETA_DEVICE void put_whole(u8* shared) const {
    if constexpr (turned) {
      put(shared);
    } else {
      GRETA_UNROLL
      for (u32 i = 0; i < units; ++i) {
        if (!active(i)) continue;
        constexpr u32 apart =
            panels ? THREADS * unit_bytes : Tile::place_offset(THREADS / across, 0);
        store_words(shared + (puts_alike ? to[0] + i * apart : to[i]), piece[i][0]);
      }
    }
  }

  // Zeros what was loaded past the end of K.
  GRETA_DEVICE void clear_tail(u32 k_left) {
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      if constexpr (turned_by_loads) {
        clear_chunk(piece[i][0], eight(i) / across * 8, k_left);
        continue;
      }
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
    const u32 first = first_place(i);
#if defined(GRETA_AMD)
    static_assert(count % THREADS == 0, "every wave has the same number of copies");
    // A predicate would take scalar registers for each unit.
    copy_async<bytes>(shared, start + first, base, safe_offset(i, 0),
                      k_of(i, 0) < k_left);
#else
    const bool inside = (along_k ? line(i) : element(i)) < span_left && k_of(i, 0) < k_left;
    if constexpr (units_alike) {  // one offset for all; what is added is the same for all lanes
      const u64 further = u64(i * unit_lines / (pairs ? 2 : 1)) * line_bytes;
      copy_async<bytes>(shared, start + first, base + further, offset(line(0), element(0)), inside);
    } else {
      copy_async<bytes>(shared, start + first, base, offset(line(i), element(i)), inside);
    }
#endif
  }
#endif

#if GRETA_ASYNC_COPY
  // Starts copying units 4 g to 4 g + 3 of a whole step.
  static constexpr u32 together = 4, groups = (units + together - 1) / together;
  GRETA_DEVICE void copy_whole(u32 g, SharedMemory shared, u32 start) const {
    const u32 first = g * together, rest = units - first;
    const u32 to_first = start + wave_to + first * (unit_bytes * wave_size);
#if defined(GRETA_AMD)
    copy_together<int(unit_bytes)>(shared, to_first, base, &from[first], smaller(rest, together),
                                   k_bytes);
#else
    GRETA_UNROLL
    for (u32 i = 0; i < together && i < rest; ++i) {
      copy_async<int(unit_bytes)>(shared, start + first_place(first + i), base + k_bytes,
                                  from[first + i], true);
    }
#endif
  }
#endif

 private:
  static GRETA_DEVICE Piece load(const u8* address) {
#if TURN == 2
    if constexpr (turned_by_loads) return load_turning(address);
#endif
    return load_words<int(sizeof(Piece))>(address);
  }
  // Of a chunk whose k begin at `k`.
  static GRETA_DEVICE void clear_chunk(Piece& chunk, u32 k, u32 k_left) {
    GRETA_UNROLL
    for (u32 w = 0; w < sizeof(Piece) / 4; ++w) {
      const u32 left = k_left - smaller(k_left, k + 2 * w);
      chunk.word[w] = left == 0 ? 0 : left == 1 ? chunk.word[w] & 0xffffU : chunk.word[w];
    }
  }
  // Where unit i of the wave's first lane goes.
  static GRETA_DEVICE u32 first_place(u32 i) {
    return unit_bytes * wave_size *
           (wave_by_wave ? wave_index() * units + i : wave_index() + i * (THREADS / wave_size));
  }
  static GRETA_DEVICE u32 place_offset(u32 i) {
    if constexpr (panels) return unit_place(i);
    if constexpr (turned_by_loads) {
      return Tile::offset(element(i) + thread_index() % 8, eight(i) / across);
    }
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
        c.word[w] = halves(piece[i][2 * w], piece[i][2 * w + 1], e);
      }
    }
    return c;
  }
  // Element e of both.
  static GRETA_DEVICE u32 halves(const Piece& first, const Piece& second, u32 e) {
    if constexpr (vec == 1) {
      return first.word[0] | u32(second.word[0]) << 16;
    } else {
      const u32 x = first.word[e / 2], y = second.word[e / 2];
#if defined(GRETA_AMD)  // the compiler would take two instructions
      return __builtin_amdgcn_perm(y, x, e % 2 == 0 ? 0x05040100U : 0x07060302U);
#else
      return e % 2 == 0 ? (x & 0xffffU) | y << 16 : x >> 16 | (y & 0xffff0000U);
#endif
    }
  }
};
