// Units of k of GGUF's blocks, which have one scale, and how a lane makes operands of its two lines' units
// (tma_blocks.hip). A lane loads the halves of words that it needs.
//
// The units of q4_0 and q8_0 are their blocks. In q4_k, each 32 k are two units: with the integers, and with
// ones, whose sums are those of A. A weight s q - m is s (q - c) + (s c - m) there, where c is the integer
// nearest to m / s, so that neither part is larger than about the weight: products of s q and of m by
// themselves would cancel each other. Those of q6_k are 16 k.
#pragma once

constexpr u32 units_of_step = FORMAT >= 4 ? 8 : 4;
constexpr u32 unit_fragments = FORMAT == 5 ? 1 : 2;
static_assert(products == 1, "warpgroups have 64 columns each");

struct Unit {
  Fragment fragment[unit_fragments];
  float scale[2];  // of the lane's lines
#if FORMAT == 4
  float rest[2];  // what is added to each weight of the line
#endif
};

// The first of a step's k that a unit has.
GRETA_DEVICE constexpr u32 k_of_unit(u32 unit) {
  return FORMAT == 5 ? unit * 16 : FORMAT == 4 ? unit / 2 * 32 : unit * 32;
}

// Where the lane's lines begin, in device memory or in a box.
struct BlockLines {
  const u8* line[2];
  u32 steps;   // of a line
  u32 blocks;  // of 32 weights
};

#if LINE_STAGES
// `step_index`: the first one of the box, which has zeros past the last block of a row.
GRETA_DEVICE BlockLines lines_of_box(const u8* shared, u32 box, u32 step_index) {
  const u8* const line = shared + lines_start + box * line_box + line_of_lane(0) * LINE_BYTES +
                         bytes_before_block(step_index * step);
  return {{line, line + next_line * LINE_BYTES}, 2, 8};
}

GRETA_DEVICE u32 load_half(const u8* from) { return *reinterpret_cast<const u16*>(from); }
#else
// Lines past the last one repeat it.
GRETA_DEVICE BlockLines lines_of(const Arguments& args, Tile tile) {
  BlockLines lines;
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    const u32 line = row_of_weights(args, tile, 0, i);
    lines.line[i] = args.weights.integers + u64(line) * (args.k / block_weights) * block_bytes;
  }
  lines.steps = (args.k + step - 1) / step;
  lines.blocks = args.k / 32;
  return lines;
}

GRETA_DEVICE u32 load_half(const u8* from) {
  return load_now(reinterpret_cast<const Scale*>(from)).bits;
}
#endif
GRETA_DEVICE float f16_of(u32 bits) { return to_float(f16{u16(bits)}); }

// The bytes of half a word, in bytes 0 and 2.
GRETA_DEVICE u32 apart(u32 half) { return spread_bytes(half, 0, 0x4140U); }

#if FORMAT < 4
constexpr u32 halves = FORMAT == 2 ? 2 : 4;  // of words that a lane has of a block
struct Raw {
  u32 integers[4][2][halves], scale[4][2];
};

GRETA_DEVICE void load_block(Raw& raw, const BlockLines& lines, u32 block, u32 step_index) {
  const u32 index = step_index * 4 + block;
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    const u8* const from = lines.line[i] + u64(smaller(index, lines.blocks - 1)) * block_bytes;
    raw.scale[block][i] = load_half(from);
    if (index >= lines.blocks) raw.scale[block][i] = 0;
    GRETA_UNROLL
    for (u32 h = 0; h < halves; ++h) {
      raw.integers[block][i][h] = load_half(from + 2 + lane_index() % 4 * 2 + h * 8);
    }
  }
}

// Loads what a unit has that those before it in its step don't.
GRETA_DEVICE void load_unit(Raw& raw, const BlockLines& lines, u32 unit, u32 step_index) {
  load_block(raw, lines, unit, step_index);
}

GRETA_DEVICE void make_unit(Raw& raw, u32 block, u32, Unit& unit) {
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    unit.scale[i] = f16_of(raw.scale[block][i]);
    GRETA_UNROLL
    for (u32 e = 0; e < 4; ++e) {  // eights of k
      u32& pair = unit.fragment[e / 2][e % 2 * 2 + i];
#if FORMAT == 2
      const u32 bytes = apart(raw.integers[block][i][e % 2]);
      pair = elements_of<true>(bytes >> e / 2 * 4 & 0x000f000fU, 8);
#else
      pair = signed_elements(apart(raw.integers[block][i][e]));
#endif
    }
  }
}

#if !LINE_STAGES
// The unit of this step has been made: what the next step has there is loaded.
GRETA_DEVICE void refill(Raw& raw, const BlockLines& lines, u32 unit, u32 step_index) {
  load_block(raw, lines, unit, smaller(step_index + 1, lines.steps - 1));
}
#endif

#elif FORMAT == 4
// Rows of blocks are multiples of 16 bytes: they are copied in boxes. Scales are those of half a block,
// which a step is.
static_assert(LINE_STAGES > 0, "as tma.cpp has it");
struct Raw {
  u32 integers[2][2][4];  // of 64 k each
  Words<16> head[2];
};

GRETA_DEVICE void load_integers(Raw& raw, const BlockLines& lines, u32 pair, u32 step_index) {
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    const u8* const from = lines.line[i] + 16 + step_index * 64 + pair * 32;
    GRETA_UNROLL
    for (u32 e = 0; e < 4; ++e) {
      raw.integers[pair][i][e] = load_half(from + lane_index() % 4 * 2 + e * 8);
    }
  }
}

// `step_index`: of the box.
GRETA_DEVICE void load_unit(Raw& raw, const BlockLines& lines, u32 unit, u32 step_index) {
  GRETA_UNROLL
  for (u32 i = 0; unit == 0 && i < 2; ++i) raw.head[i] = load_words<16>(lines.line[i]);
  if (unit % 4 == 0) load_integers(raw, lines, unit / 4, step_index);
}

GRETA_DEVICE void make_unit(Raw& raw, u32 u, u32 step_index, Unit& unit) {
  const u32 part = u / 2;
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    // Six bits each of a scale and a minimum, as load_chunk() in weights.hip finds them.
    const u32(&word)[4] = raw.head[i].word;
    const u32 first = word[1] >> 8 * part & 255U, second = word[2] >> 8 * part & 255U;
    const u32 third = word[3] >> 8 * part & 255U;
    const bool lower = step_index % 2 == 0;
    const u32 scale = lower ? first & 63U : (third & 15U) | first >> 6 << 4;
    const u32 minimum = lower ? second & 63U : third >> 4 | second >> 6 << 4;
    const Centred weights = centred(f16_of(word[0] & 0xffffU) * float(scale),
                                    f16_of(word[0] >> 16) * float(minimum));
    unit.scale[i] = u % 2 == 0 ? weights.scale : weights.rest;
    unit.rest[i] = weights.rest;
    GRETA_UNROLL
    for (u32 e = 0; e < 4; ++e) {
      const u32 bytes = apart(raw.integers[part / 2][i][e]) >> part % 2 * 4 & 0x000f000fU;
      unit.fragment[e / 2][e % 2 * 2 + i] = u % 2 != 0 ? (IN_F16 ? 0x3c003c00U : 0x3f803f80U)
                                                       : elements_of<true>(bytes, weights.centre);
    }
  }
}

#else
// A step is half a block. Quarters 0 and 2 of its k, and 1 and 3, share bytes of four lower bits, and all
// share those of two upper bits. `later`: of the next step.
struct HalfBlock {
  u32 upper[2][4], scales[2][4], scale[2];
};
struct Raw {
  u32 lower[2][2][4];
  HalfBlock now, later;
};

GRETA_DEVICE const u8* block_of(const BlockLines& lines, u32 line, u32 step_index) {
  return lines.line[line] + u64(step_index / 2) * 210;
}

GRETA_DEVICE void load_later(Raw& raw, const BlockLines& lines, u32 step_index) {
  const u32 half = step_index % 2;
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    const u8* const block = block_of(lines, i, step_index);
    GRETA_UNROLL
    for (u32 e = 0; e < 4; ++e) {
      raw.later.upper[i][e] = load_half(block + 128 + half * 32 + lane_index() % 4 * 2 + e * 8);
      raw.later.scales[i][e] = load_half(block + 192 + half * 8 + e * 2);
    }
    raw.later.scale[i] = load_half(block + 208);
  }
}

GRETA_DEVICE void load_lower(Raw& raw, const BlockLines& lines, u32 quarter, u32 step_index) {
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    const u8* const from = block_of(lines, i, step_index) + step_index % 2 * 64 + quarter * 32;
    GRETA_UNROLL
    for (u32 e = 0; e < 4; ++e) {
      raw.lower[quarter][i][e] = load_half(from + lane_index() % 4 * 2 + e * 8);
    }
  }
}

GRETA_DEVICE void load_unit(Raw& raw, const BlockLines& lines, u32 unit, u32 step_index) {
  if (unit == 0) load_later(raw, lines, step_index);
  if (unit == 0 || unit == 2) load_lower(raw, lines, unit / 2, step_index);
}

GRETA_DEVICE void make_unit(Raw& raw, u32 u, u32, Unit& unit) {
  const u32 quarter = u / 2;
  if (u == 0) raw.now = raw.later;
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    const u32 scale = raw.now.scales[i][quarter] >> u % 2 * 8 & 255U;
    unit.scale[i] = f16_of(raw.now.scale[i]) * float(static_cast<signed char>(scale));
    GRETA_UNROLL
    for (u32 eight = 0; eight < 2; ++eight) {
      const u32 e = u % 2 * 2 + eight;
      const u32 lower = apart(raw.lower[quarter % 2][i][e]) >> quarter / 2 * 4 & 0x000f000fU;
      const u32 upper = apart(raw.now.upper[i][e]) >> quarter * 2 & 0x00030003U;
      unit.fragment[0][eight * 2 + i] = elements_of<true>(lower | upper << 4, 32);
    }
  }
}

#if !LINE_STAGES
GRETA_DEVICE void refill(Raw& raw, const BlockLines& lines, u32 unit, u32 step_index) {
  const u32 next = smaller(step_index + 1, lines.steps - 1);
  if (unit == 0) load_later(raw, lines, next);
  if (unit == 5 || unit == 7) load_lower(raw, lines, unit / 2 - 2, next);
}
#endif
#endif
