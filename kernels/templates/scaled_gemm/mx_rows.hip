// What matrix_rows.hip loads and multiplies of microscaling formats. The four lanes that share a line have eight
// neighbours each of every 32 k, so that the k of two products, which follow each other, have one scale. Numbers are
// multiplied as f16, which has all of them, and threads add the sums of 32 k, times both scales.
#pragma once

#if !defined(GRETA_MATRIX_MMA) || !AS_F16
#error "scales mx are those of NVIDIA GPUs here, whose lanes multiply f16"
#endif

constexpr u32 blocks = unit / scale_block;  // of a unit, each with a scale

// A lane's part of a line of a unit.
template <u32 format>
struct MxLine {
  static constexpr u32 number_format = format, words = 2 / of_byte<format>;  // of a block
  u32 word[blocks][words];

  // Four numbers of a product of a block as f16.
  GRETA_DEVICE void halves_of(u32 block, u32 product, u32 (&pair)[2]) const {
    const u32 from = words == 2 ? word[block][product % words] : word[block][0] >> 16 * product;
    halves_of_word<format>(from, pair);
  }
};
typedef MxLine<FORMAT> LineA;
typedef MxLine<FORMAT_B> LineB;

// The lane's part of a line, from k on. What lies past the end of k is zero. `shared`: whether
// other waves load the same.
template <bool shared, typename Line>
GRETA_DEVICE Line load_line(const u8* line, u32 k, u32 end) {
  Line loaded;
  GRETA_UNROLL
  for (u32 i = 0; i < blocks; ++i) {
    const u32 place = k + i * scale_block + part_of_lane() * 8;
    const bool inside = place < end;
    const auto part =
        load_ahead<shared, Line::words>(line + (inside ? place : 0) / of_byte<Line::number_format>);
    GRETA_UNROLL
    for (u32 w = 0; w < Line::words; ++w) loaded.word[i][w] = inside ? part.word[w] : 0;
  }
  return loaded;
}

// The scales of a unit's blocks, of which a row has `of_row`. Those past the end are of zeros: the row's last ones
// stand for them.
GRETA_DEVICE u32 load_scales(const Scale* scales, u32 row, u32 block, u32 of_row) {
  const Scale* const own = scales + u64(row) * of_row;
  if (of_row % blocks == 0) return load_words<blocks>(own + smaller(block, of_row - blocks)).word[0];
  u32 word = 0;
  GRETA_UNROLL
  for (u32 i = 0; i < blocks; ++i) word |= u32(own[smaller(block + i, of_row - 1)]) << 8 * i;
  return word;
}
GRETA_DEVICE float scale_of_block(u32 word, u32 block) { return value_of_scale(u8(word >> 8 * block)); }

// Adds the products of a block.
GRETA_DEVICE void add_block(Sums& sums, const LineB (&b)[lines_b], const LineA (&a)[lines_a], u32 block) {
  GRETA_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    u32 first[2], second[2];
    b[0].halves_of(block, i, first);
    b[1].halves_of(block, i, second);
    const u32 left[4] = {first[0], second[0], first[1], second[1]};
    GRETA_UNROLL
    for (u32 half = 0; half < halves; ++half) {
      u32 right[2];
      a[half].halves_of(block, i, right);
      multiply(sums.eight[half], left, right);
    }
  }
}
