// Scales and zero points of a lane's two lines (tma_groups.hip), of the groups of a step at once. Those of a line
// follow each other. Where k is of whole steps, one load has them, if their address allows it. Elsewhere whole words
// are loaded, which are shifted when they are used, and single ones where a line ends.
#pragma once

#if !defined(WHOLE_STEPS) || (!WHOLE_STEPS && GROUP == 128)
#error "WHOLE_STEPS must be defined: whether k is of whole steps, as with groups of 128"
#endif

constexpr u32 groups_of_step = step / GROUP;

// `count` neighbours of type T, in as few registers as possible.
template <typename T, u32 count>
struct Neighbours {
  static constexpr u32 bytes = count * sizeof(T);
  u32 word[(bytes + 3) / 4];

  // From an address that is a multiple of their bytes.
  GRETA_DEVICE void load(const T* from) {
    if constexpr (bytes == 1) {
      word[0] = load_byte_now(reinterpret_cast<const u8*>(from));
    } else {
#if defined(GRETA_NVIDIA)
      if constexpr (bytes == 2) {
        u16 both;
        asm volatile("ld.global.b16 %0, [%1];" : "=h"(both) : "l"(from));
        word[0] = both;
      } else if constexpr (bytes == 4) {
        asm volatile("ld.global.b32 %0, [%1];" : "=r"(word[0]) : "l"(from));
      } else {
        asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(word[0]), "=r"(word[1]) : "l"(from));
      }
#else
      const Words<int(bytes)> words = load_words<int(bytes)>(from);
      GRETA_UNROLL
      for (u32 i = 0; i < (bytes + 3) / 4; ++i) word[i] = words.word[i];
#endif
    }
  }

  // One by one; those past the first `left` are 0.
  GRETA_DEVICE void load_single(const T* from, u32 left) {
    GRETA_UNROLL
    for (u32 i = 0; i < (bytes + 3) / 4; ++i) word[i] = 0;
    GRETA_UNROLL
    for (u32 i = 0; i < count; ++i) {
      Neighbours<T, 1> one;
      one.load(from + smaller(i, left - 1));
      if (i < left) word[i * sizeof(T) / 4] |= one.word[0] << i * sizeof(T) % 4 * 8;
    }
  }

  GRETA_DEVICE u32 bits(u32 i) const {
    const u32 part = word[i * sizeof(T) / 4] >> i * sizeof(T) % 4 * 8;
    return part & (sizeof(T) == 1 ? 0xffU : 0xffffU);
  }
};

#if !WHOLE_STEPS
// Neighbours on their way: whole words of memory, in the first of which they begin anywhere. Where words are loaded,
// nothing here depends on them, so that nobody waits for them before take().
template <typename T, u32 count>
struct WordsOfNeighbours {
  static constexpr u32 bytes = count * sizeof(T), words = (bytes + 3) / 4;
  u32 word[words + 1];

  // The words are loaded whole.
  GRETA_DEVICE void load(const T* from) {
    const u8* const first = reinterpret_cast<const u8*>(from) - u64(from) % 4;
    const u32 last = u64(from) % 4 + bytes > words * 4 ? words * 4 : 0;  // the first one again, if there is no other
    GRETA_UNROLL
    for (u32 i = 0; i <= words; ++i) {
      Neighbours<u32, 1> one;
      one.load(reinterpret_cast<const u32*>(first + (i < words ? i * 4 : last)));
      word[i] = one.word[0];
    }
  }

  GRETA_DEVICE void load_single(const T* from, u32 left) {
    Neighbours<T, count> all;
    all.load_single(from, left);
    const u32 shift = u64(from) % 4 * 8;
    word[0] = all.word[0] << shift;
    GRETA_UNROLL
    for (u32 i = 1; i <= words; ++i) {
      const u64 high = i < words ? all.word[i] : 0;
      word[i] = u32((high << 32 | all.word[i - 1]) << shift >> 32);
    }
  }

  // `from`: where they lie.
  GRETA_DEVICE Neighbours<T, count> take(const T* from) const {
    Neighbours<T, count> taken;
    const u32 shift = u64(from) % 4 * 8;
    GRETA_UNROLL
    for (u32 i = 0; i < words; ++i) taken.word[i] = u32((u64(word[i + 1]) << 32 | word[i]) >> shift);
    return taken;
  }
};
#endif

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
#if WHOLE_STEPS
typedef StepScales LoadedScales;
#else
struct LoadedScales {
  WordsOfNeighbours<Scale, groups_of_step> scales[products][2];
  WordsOfNeighbours<u8, groups_of_step> zeros[products][2];  // with ZEROS
};
#endif

// Goes through the steps of a tile, whose scales it loads.
struct ScaleCursor {
  const Scale* scales[products][2];
  const u8* zeros[products][2];
  u32 left;       // groups of a line from the next step on
  bool together;  // addresses allow to load a step's at once, or by whole words

  // Groups past the last one have the scale 0, of mxfp4 the least one: zeros are copied in place of their weights.
  GRETA_DEVICE void go_to(const Arguments& args, Tile tile, u32 step_index) {
    const u32 groups = args.k / GROUP, first = step_index * groups_of_step;
    left = groups - first;
    constexpr u32 scale_bytes = WHOLE_STEPS ? groups_of_step * sizeof(Scale) : 4;
    constexpr u32 zero_bytes = WHOLE_STEPS ? groups_of_step : 4;
    together = groups_of_step == 1 || (u64(args.weights.scales) % scale_bytes == 0 &&
                                       (!ZEROS || u64(args.weights.zeros) % zero_bytes == 0));
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

  // Those of the next step. Whole words may hold up to three elements after a step's.
  GRETA_DEVICE LoadedScales load() {
    LoadedScales loaded;
    const bool at_once = together && (WHOLE_STEPS || left >= groups_of_step + 3);
    GRETA_UNROLL
    for (u32 i = 0; i < products * 2; ++i) {
      const Scale*& from = scales[i / 2][i % 2];
      const u8*& zeros_from = zeros[i / 2][i % 2];
      if (at_once) {
        loaded.scales[i / 2][i % 2].load(from);
        if (ZEROS) loaded.zeros[i / 2][i % 2].load(zeros_from);
      } else {
        loaded.scales[i / 2][i % 2].load_single(from, left);
        if (ZEROS) loaded.zeros[i / 2][i % 2].load_single(zeros_from, left);
      }
      from += groups_of_step;
      if (ZEROS) zeros_from += groups_of_step;
    }
    left -= groups_of_step;
    return loaded;
  }

  // Those that load() has returned last.
  GRETA_DEVICE StepScales take(const LoadedScales& loaded) const {
#if WHOLE_STEPS
    return loaded;
#else
    StepScales taken;
    GRETA_UNROLL
    for (u32 i = 0; i < products * 2; ++i) {
      const u32 product = i / 2, line = i % 2;
      taken.scales[product][line] = loaded.scales[product][line].take(scales[product][line] - groups_of_step);
      if (ZEROS) {
        taken.zeros[product][line] = loaded.zeros[product][line].take(zeros[product][line] - groups_of_step);
      }
    }
    return taken;
#endif
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
