// Brings BK keys or values into shared memory. Lines past the last one become zeros. Dimensions are
// padded to a multiple of `granule`: what lies behind a line's elements is not written.
#pragma once

#include "attention/layout.hip"
#if ASYNC && !GRETA_LANE_COPY
#include "common/window_copy.hip"
#endif

// A line of `dim` elements in shared memory.
template <u32 dim>
struct PaddedLine {
  static constexpr u32 elements = (dim + granule - 1) / granule * granule, chunks = elements / 8;
  // Lines of other lengths than powers of two do not trade chunks; an odd pitch spreads them.
  static constexpr u32 pad = (chunks & (chunks - 1)) == 0 ? 0 : 1;
};

constexpr u32 padded = PaddedLine<DIM>::elements, padded_values = PaddedLine<V_DIM>::elements;
constexpr u32 line_chunks = DIM / 8, padded_chunks = padded / 8;  // of queries and keys

template <u32 lines, u32 dim>
struct LinesTile : SharedTile<lines, PaddedLine<dim>::chunks, PaddedLine<dim>::pad, false> {};

// Lines of `dim` elements as they are.
template <u32 dim, typename LoadedTile = LinesTile<BK, dim>>
struct LineLoader {
  typedef LoadedTile Tile;
  static constexpr u32 line_chunks = dim / 8;
#if ASYNC && !GRETA_LANE_COPY
  static constexpr u32 chunks = Tile::bytes / 16;  // every place of the tile is written
#else
  static constexpr u32 chunks = BK * line_chunks;
#endif
  static constexpr u32 units = (chunks + THREADS - 1) / THREADS;

  static GRETA_DEVICE u32 number(u32 i) { return thread_index() + i * THREADS; }
  static GRETA_DEVICE bool active(u32 i) { return chunks % THREADS == 0 || number(i) < chunks; }
  // Where whole periods of lines lie between a lane's units, only the first place is computed.
  static GRETA_DEVICE u32 place(u32 i) {
    if constexpr (THREADS % (line_chunks * Tile::period) == 0) {
      const u32 first = Tile::offset(number(0) / line_chunks, number(0) % line_chunks);
      return first + i * Tile::place_offset(THREADS / line_chunks, 0);
    }
    return Tile::offset(number(i) / line_chunks, number(i) % line_chunks);
  }

#if ASYNC && !GRETA_LANE_COPY
  // Threads behind the tile's last place write zeros behind it.
  static constexpr u32 buffer_bytes = units * THREADS * 16;

  static GRETA_DEVICE void copy(SharedMemory shared, u32 start, const Lines<dim>& lines, u32 count) {
    constexpr u32 places = Tile::bytes / 16 / BK;  // of a line
    const u32 pitch = lines.distance() * u32(sizeof(In));
    const ReadWindow window{reinterpret_cast<const u8*>(lines.start), smaller(count, BK) * pitch};
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      const u32 line = number(i) / places, chunk = Tile::chunk_at(line, number(i) % places);
      const u32 from = chunk < line_chunks ? line * pitch + chunk * 16 : ReadWindow::outside;
      copy_window_async(shared, start + (wave_index() * wave_size + i * THREADS) * 16, window, from);
    }
  }
#elif ASYNC
  static constexpr u32 buffer_bytes = Tile::bytes;

  static GRETA_DEVICE void copy(SharedMemory shared, u32 start, const Lines<dim>& lines, u32 count) {
    const int left = int(smaller(count, BK) * line_chunks) - int(number(0));
    const In* const from = lines.element(PAGE && left <= 0 ? 0 : number(0) * 8);
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      if (!active(i)) continue;
      const bool inside = left > int(i * THREADS);
      copy_lane_async<16>(shared, start + place(i),
                          PAGE && !inside ? from : lines.later(from, number(0) * 8, i * THREADS * 8),
                          inside);
    }
  }
#else
  Chunk chunk[units];

  // A tile of fewer than BK lines asks for each chunk whether it is there.
  GRETA_DEVICE void fetch(const Lines<dim>& lines, u32 left) {
    if (left >= BK) {
      fetch_chunks<true>(lines, left);
    } else {
      fetch_chunks<false>(lines, left);
    }
  }
  template <bool whole>
  GRETA_DEVICE void fetch_chunks(const Lines<dim>& lines, u32 left) {
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      if (!whole) chunk[i] = {};
      if (whole ? active(i) : number(i) < left * line_chunks) {
        chunk[i] = load_words<16>(lines.element(number(i) * 8));
      }
    }
  }

  GRETA_DEVICE void put(u8* tile) const {
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      if (active(i)) store_words(tile + place(i), chunk[i]);
    }
  }
#endif
};

typedef LineLoader<DIM> KeyLoader;
#if defined(GRETA_MATRIX_MMA)
typedef LineLoader<V_DIM> ValueLoader;  // reads for the matrix cores turn them
typedef Reader<Operand::b, !matrix_load_turns<In>, ValueLoader::Tile> ValueReader;
#elif TURN
typedef LineLoader<V_DIM, TurnedTile<BK, padded_values / 8>> ValueLoader;
typedef TurningReader<ValueLoader::Tile> ValueReader;
#else

// Halves of two words side by side. AMD's GPUs pick bytes in one instruction.
GRETA_DEVICE u32 low_halves(u32 low, u32 high) {
#if defined(GRETA_AMD)
  return __builtin_amdgcn_perm(high, low, 0x05040100U);
#else
  return (low & 0xffffU) | high << 16;
#endif
}
GRETA_DEVICE u32 high_halves(u32 low, u32 high) {
#if defined(GRETA_AMD)
  return __builtin_amdgcn_perm(high, low, 0x07060302U);
#else
  return low >> 16 | (high & 0xffff0000U);
#endif
}

// Values are turned on their way: in shared memory, a line is a dimension of BK keys. A unit are
// the eight keys of a chunk times `width` dimensions.
struct ValueLoader {
  typedef SharedTile<padded_values, BK / 8, 0, true> Tile;

  // As wide as leaves no thread idle.
  static constexpr u32 width = BK * V_DIM / 64 >= THREADS ? 8 : BK * V_DIM / 32 >= THREADS ? 4 : 2;
  static constexpr u32 count = BK / 8 * (V_DIM / width), units = (count + THREADS - 1) / THREADS;
  static constexpr u32 depth_chunks = depth / 8;
  typedef Words<width * 2> Piece;

  Piece piece[units][8];

  static GRETA_DEVICE u32 number(u32 i) { return thread_index() + i * THREADS; }
  static GRETA_DEVICE bool active(u32 i) { return count % THREADS == 0 || number(i) < count; }
  static GRETA_DEVICE u32 chunk(u32 i) { return number(i) / (V_DIM / width); }
  static GRETA_DEVICE u32 dimension(u32 i) { return number(i) % (V_DIM / width) * width; }

  GRETA_DEVICE void fetch(const ValueLines& lines, u32 left) {
    if (left >= BK) {
      fetch_pieces<true>(lines, left);
    } else {
      fetch_pieces<false>(lines, left);
    }
  }
  template <bool whole>
  GRETA_DEVICE void fetch_pieces(const ValueLines& lines, u32 left) {
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      if (whole && !active(i)) continue;
      const u32 from = chunk(i) / depth_chunks * depth;
      GRETA_UNROLL
      for (u32 e = 0; e < 8; ++e) {
        const u32 key = from + key_in_depth(chunk(i) % depth_chunks, e);
        if (!whole) piece[i][e] = {};
        if (whole || (active(i) && key < left)) {
          piece[i][e] = load_words<int(sizeof(Piece))>(lines.element(key * V_DIM + dimension(i)));
        }
      }
    }
  }

  GRETA_DEVICE void put(u8* tile) const {
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      if (!active(i)) continue;
      GRETA_UNROLL
      for (u32 d = 0; d < width; ++d) {
        Chunk turned;
        GRETA_UNROLL
        for (u32 w = 0; w < 4; ++w) {
          const u32 low = piece[i][2 * w].word[d / 2], high = piece[i][2 * w + 1].word[d / 2];
          turned.word[w] = d % 2 == 0 ? low_halves(low, high) : high_halves(low, high);
        }
        store_words(tile + Tile::offset(dimension(i) + d, chunk(i)), turned);
      }
    }
  }
};

typedef Reader<Operand::b, true, ValueLoader::Tile> ValueReader;
#endif
