// Scales and zero points of a lane's two lines (tma_groups.hip), of the groups of a step at once. Those of a line
// follow each other, so that one load has them where addresses allow it and k is of whole steps. Elsewhere whole words
// are loaded, which are shifted when they are used, and single ones where a line ends.
#pragma once

constexpr u32 groups_of_step = step / GROUP;

// `count` neighbours of type T, in as few registers as possible.
template <typename T, u32 count>
struct Neighbours {
  u32 word[(count * sizeof(T) + 3) / 4];

  GRETA_DEVICE u32 bits(u32 i) const {
    const u32 part = word[i * sizeof(T) / 4] >> i * sizeof(T) % 4 * 8;
    return part & (sizeof(T) == 1 ? 0xffU : 0xffffU);
  }
};

GRETA_DEVICE u32 load_word_now(const void* from) {
#if defined(GRETA_NVIDIA)
  u32 word;
  asm volatile("ld.global.b32 %0, [%1];" : "=r"(word) : "l"(from));
  return word;
#else
  return load_words<4>(from).word[0];
#endif
}

// Neighbours on their way: whole words of memory, in the first of which they begin anywhere. Nothing here depends
// on what is loaded, so that nobody waits for it before take().
template <typename T, u32 count>
struct LoadedNeighbours {
  static constexpr u32 bytes = count * sizeof(T), words = (bytes + 3) / 4;
  u32 word[words + 1];

  // From an address that is a multiple of their bytes.
  GRETA_DEVICE void load(const T* from) {
    word[words] = 0;
    if constexpr (bytes == 1) {
      word[0] = load_byte_now(reinterpret_cast<const u8*>(from));
    } else {
#if defined(GRETA_NVIDIA)
      if constexpr (bytes == 2) {
        u16 both;
        asm volatile("ld.global.b16 %0, [%1];" : "=h"(both) : "l"(from));
        word[0] = both;
      } else if constexpr (bytes == 4) {
        word[0] = load_word_now(from);
      } else {
        asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(word[0]), "=r"(word[1]) : "l"(from));
      }
#else
      const Words<int(bytes)> loaded = load_words<int(bytes)>(from);
      GRETA_UNROLL
      for (u32 i = 0; i < words; ++i) word[i] = loaded.word[i];
#endif
    }
  }

  // From any address; the words of memory there are loaded whole.
  GRETA_DEVICE void load_anywhere(const T* from) {
    const u8* const first = reinterpret_cast<const u8*>(from) - u64(from) % 4;
    GRETA_UNROLL
    for (u32 i = 0; i < words; ++i) word[i] = load_word_now(first + i * 4);
    word[words] = load_word_now(first + (u64(from) % 4 + bytes > words * 4 ? words * 4 : 0));
  }

  // One by one; those past the first `left` are 0.
  GRETA_DEVICE void load_single(const T* from, u32 left) {
    Neighbours<T, count> all = {};
    GRETA_UNROLL
    for (u32 i = 0; i < count; ++i) {
      LoadedNeighbours<T, 1> one;
      one.load(from + smaller(i, left - 1));
      if (i < left) all.word[i * sizeof(T) / 4] |= one.word[0] << i * sizeof(T) % 4 * 8;
    }
    const u32 shift = u64(from) % 4 * 8;
    word[0] = all.word[0] << shift;
    GRETA_UNROLL
    for (u32 i = 1; i <= words; ++i) {
      const u64 high = i < words ? all.word[i] : 0;
      word[i] = u32((high << 32 | all.word[i - 1]) << shift >> 32);
    }
  }

  // `from`: where they lie, or with `whole` a multiple of their bytes.
  GRETA_DEVICE Neighbours<T, count> take(const T* from, bool whole) const {
    Neighbours<T, count> taken;
    if constexpr (count == 1) {
      taken.word[0] = word[0];
    } else {
      const u32 shift = whole ? 0 : u64(from) % 4 * 8;
      GRETA_UNROLL
      for (u32 i = 0; i < words; ++i) taken.word[i] = u32((u64(word[i + 1]) << 32 | word[i]) >> shift);
    }
    return taken;
  }
};

struct StepScales {
  Neighbours<Scale, groups_of_step> scales[products][2];
  Neighbours<u8, groups_of_step> zeros[products][2];  // with ZEROS

  GRETA_DEVICE Scale scale(u32 product, u32 group, u32 line) const {
    const u32 bits = scales[product][line].bits(group);
#if FORMAT == 6
    return Scale(bits);
#else
    return {u16(bits)};
#endif
  }
  GRETA_DEVICE u32 zero(u32 product, u32 group, u32 line) const {
    return ZEROS ? zeros[product][line].bits(group) : 0;
  }
};

// Those of a step on their way.
struct LoadedScales {
  LoadedNeighbours<Scale, groups_of_step> scales[products][2];
  LoadedNeighbours<u8, groups_of_step> zeros[products][2];  // with ZEROS
};

// Goes through the steps of a tile, whose scales it loads.
struct ScaleCursor {
  const Scale* scales[products][2];
  const u8* zeros[products][2];
  u32 left;       // groups of a line from the next step on
  bool together;  // a step's are loaded at once
  bool in_words;  // or by whole words, if at least three more groups of the line follow

  // Groups past the last one have the scale 0, of mxfp4 the least one: zeros are copied in place of their weights.
  GRETA_DEVICE void go_to(const Arguments& args, Tile tile, u32 step_index) {
    const u32 groups = args.k / GROUP, first = step_index * groups_of_step;
    left = groups - first;
    together = groups_of_step == 1 ||
               (args.k % step == 0 && u64(args.weights.scales) % (groups_of_step * sizeof(Scale)) == 0 &&
                (!ZEROS || u64(args.weights.zeros) % groups_of_step == 0));
    in_words = (u64(args.weights.scales) | (ZEROS ? u64(args.weights.zeros) : 0)) % 4 == 0;
    GRETA_UNROLL
    for (u32 i = 0; i < products * 2; ++i) {
      const u64 at = u64(row_of_weights(args, tile, i / 2, i % 2)) * groups + first;
      scales[i / 2][i % 2] = args.weights.scales + at;
      if (ZEROS) zeros[i / 2][i % 2] = args.weights.zeros + at;
    }
  }

  GRETA_DEVICE void skip(u32 steps) {
    GRETA_UNROLL
    for (u32 i = 0; i < products * 2; ++i) {
      scales[i / 2][i % 2] += steps * groups_of_step;
      if (ZEROS) zeros[i / 2][i % 2] += steps * groups_of_step;
    }
    left -= steps * groups_of_step;
  }

  // Those of the next step.
  GRETA_DEVICE LoadedScales load() {
    LoadedScales loaded;
    GRETA_UNROLL
    for (u32 i = 0; i < products * 2; ++i) {
      auto& scale = loaded.scales[i / 2][i % 2];
      auto& zero = loaded.zeros[i / 2][i % 2];
      const Scale*& from = scales[i / 2][i % 2];
      const u8*& zeros_from = zeros[i / 2][i % 2];
      if (together) {
        scale.load(from);
        if (ZEROS) zero.load(zeros_from);
      } else if (groups_of_step > 1) {
        if (in_words && left >= groups_of_step + 3) {
          scale.load_anywhere(from);
          if (ZEROS) zero.load_anywhere(zeros_from);
        } else {
          scale.load_single(from, left);
          if (ZEROS) zero.load_single(zeros_from, left);
        }
      }
      from += groups_of_step;
      if (ZEROS) zeros_from += groups_of_step;
    }
    left -= groups_of_step;
    return loaded;
  }

  // Those that load() has returned last.
  GRETA_DEVICE StepScales take(const LoadedScales& loaded) const {
    StepScales taken;
    GRETA_UNROLL
    for (u32 i = 0; i < products * 2; ++i) {
      const u32 product = i / 2, line = i % 2;
      taken.scales[product][line] =
          loaded.scales[product][line].take(scales[product][line] - groups_of_step, together);
      if (ZEROS) {
        taken.zeros[product][line] =
            loaded.zeros[product][line].take(zeros[product][line] - groups_of_step, together);
      }
    }
    return taken;
  }
};

// What is loaded of a tile before its turn: the scales of its first step.
struct Ahead {
  ScaleCursor cursor;
  LoadedScales loaded;

  GRETA_DEVICE StepScales take() const { return cursor.take(loaded); }
  GRETA_DEVICE void load() { loaded = cursor.load(); }
};

// `first`: of a tile's steps, of which there are some.
GRETA_DEVICE Ahead load_ahead(const Arguments& args, Tile tile, u32 first) {
  Ahead ahead;
  ahead.cursor.go_to(args, tile, first);
  ahead.load();
  return ahead;
}
