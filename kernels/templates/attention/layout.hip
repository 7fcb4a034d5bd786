// How scores, weights and outputs lie in the lanes that hold them, in blocks of span x span.
//
// A lane has `lane_rows` queries of a block, and `lane_sums` elements: element e belongs to query
// row_of(e), which is line(r) of the block, and to column first_column() + column_step(e): a key of
// the scores, a dimension of the outputs. On NVIDIA, scores are Q K^T and outputs W V. AMD's sums
// come out across the way that operands go in, so there scores are K Q^T and outputs V^T W^T: what the
// lanes hold then are the operands of the second product, with keys in an order of their own,
// key_in_depth().
#pragma once

#include "attention/operands.hip"
#include "common/matrix.hip"

#if defined(INSTR)  // where there are products of several sizes
constexpr u32 span = INSTR;
#else
constexpr u32 span = 16;
#endif
#if !defined(TURN)  // where reads of shared memory can't turn tiles, or do so anyway
#define TURN 0
#endif
typedef MatrixCore<In, span> Core;
constexpr u32 depth = Core::depth;  // of a product
// Dimensions and keys are padded to multiples of both.
constexpr u32 granule = depth > span ? depth : span;

#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
#define GRETA_TWO_FLOATS
typedef float FloatPair __attribute__((ext_vector_type(2)));
#endif

// AMD's compiler computes what follows from `x` no earlier: not for tiles that need none of it.
GRETA_DEVICE void stay_here(int& x) {
#if defined(GRETA_AMD)
  asm volatile("" : "+v"(x));
#endif
}

// Whether it is so in some lane of the wave.
GRETA_DEVICE bool wave_any(bool yes) {
#if defined(GRETA_NVIDIA)
  return __any_sync(0xffffffffU, yes) != 0;
#elif !defined(GRETA_AMD)
  return __any(yes) != 0;
#elif !defined(__GFX9__)
  return __builtin_amdgcn_ballot_w32(yes) != 0;
#elif __has_builtin(__builtin_amdgcn_ballot_w64)
  return __builtin_amdgcn_ballot_w64(yes) != 0;
#else
  return __builtin_amdgcn_uicmp(u32(yes), 0U, 33) != 0;  // not equal; older compilers' name
#endif
}

#if !defined(GRETA_NVIDIA) && !defined(__gfx950__)
// A weight as bf16 in the upper half of a word; what is below is arbitrary. NaN becomes any number:
// the sum of the row's weights, by which outputs are divided, is NaN then.
GRETA_DEVICE u32 round_to_bf16(float x) {
  const u32 bits = bits_of(x);
  return bits + 0x7fffU + (bits >> 16 & 1U);
}
#endif

// Two neighbours in the operands' type.
GRETA_DEVICE u32 narrow_pair(float low, float high) {
#if defined(GRETA_NVIDIA)
  u32 pair;
  if constexpr (same_type<In, f16>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
#elif defined(__gfx950__)
  typedef __bf16 Bf16Pair __attribute__((ext_vector_type(2)));
  typedef _Float16 F16Pair __attribute__((ext_vector_type(2)));
  if constexpr (same_type<In, bf16>) {
    return __builtin_bit_cast(u32, __builtin_convertvector(FloatPair{low, high}, Bf16Pair));
  }
  return __builtin_bit_cast(u32, __builtin_convertvector(FloatPair{low, high}, F16Pair));
#else
  if constexpr (same_type<In, bf16>) {
#if defined(GRETA_AMD)
    return __builtin_amdgcn_perm(round_to_bf16(high), round_to_bf16(low), 0x07060302U);
#else
    return round_to_bf16(low) >> 16 | (round_to_bf16(high) & 0xffff0000U);
#endif
  }
  const float two[2] = {low, high};
  return narrow_pack<In>(two).raw.word[0];
#endif
}

// 2^(x scale - less) of two neighbours, and their addition to two sums. CDNA multiplies and adds two
// floats in one instruction.
GRETA_DEVICE void weigh_pair(float& x, float& y, float scale, float less, float (&sums)[2]) {
#if defined(GRETA_TWO_FLOATS)
  const FloatPair both = FloatPair{x, y} * FloatPair{scale, scale} - FloatPair{less, less};
  x = fast_exp2(both.x);
  y = fast_exp2(both.y);
  const FloatPair added = FloatPair{sums[0], sums[1]} + FloatPair{x, y};
  sums[0] = added.x;
  sums[1] = added.y;
#else
  x = fast_exp2(multiply_add(x, scale, -less));
  y = fast_exp2(multiply_add(y, scale, -less));
  sums[0] += x;
  sums[1] += y;
#endif
}

#if defined(GRETA_MATRIX_MMA)

constexpr u32 lane_rows = 2, lane_sums = 8;
constexpr u32 run = 2;  // elements whose columns are neighbours

GRETA_DEVICE constexpr u32 row_of(u32 e) { return e / 2 % 2; }
GRETA_DEVICE u32 line(u32 row) { return lane_index() / 4 + row * 8; }
GRETA_DEVICE u32 first_column() { return lane_index() % 4 * 2; }
GRETA_DEVICE constexpr u32 column_step(u32 e) { return e / 4 * 8 + e % 2; }
GRETA_DEVICE float& sum_of(Core::Sums& sums, u32 e) { return sums.column[e / 4][e % 4]; }

// Over all lanes that have parts of the same row.
GRETA_DEVICE float row_sum(float x) { return reduce_lanes<4>(x, Add{}); }
GRETA_DEVICE float row_largest(float x) { return reduce_lanes<4>(x, Larger{}); }

GRETA_DEVICE void add_scores(Core::Sums& scores, const Core::Fragment& q, const Core::Fragment& k) {
  Core::multiply(scores, q, k);
}
GRETA_DEVICE void add_values(Core::Sums& out, const Core::Fragment& weights,
                             const Core::Fragment& values) {
  Core::multiply(out, weights, values);
}

// Reads fragments of that operand from the tile at `start`, counted from a line and a k. The way to
// a lane's first chunk is computed once, and the others lie at distances that need few registers.
template <Operand operand, bool along_k, typename Tile>
struct Reader {
  SharedMemory shared;
  u32 first;

  GRETA_DEVICE Reader(SharedMemory memory, u32 start, u32 line = 0, u32 k = 0)
      : shared(memory), first(start + Core::place<operand, along_k, Tile>(line, k)) {}

  GRETA_DEVICE Core::Fragment read(u32 line, u32 k) const {
    return Core::load_at<along_k>(shared, along_k ? Tile::beyond(first, line, k / 8)
                                                  : Tile::beyond(first, k, line / 8));
  }
};

// Of `depth` keys, from product `step` on.
GRETA_DEVICE Core::Fragment weights_of(Core::Sums* scores, u32 step) {
  Core::Fragment f;
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    const float* const pair = scores[step].column[i / 2] + i % 2 * 2;
    f.word[i] = narrow_pair(pair[0], pair[1]);
  }
  return f;
}

#else

constexpr u32 lane_rows = 1, lane_sums = span * span / wave_size;

GRETA_DEVICE constexpr u32 row_of(u32) { return 0; }
GRETA_DEVICE u32 line(u32) { return lane_index() % span; }
GRETA_DEVICE float& sum_of(Core::Sums& sums, u32 e) {
  return reinterpret_cast<float(&)[lane_sums]>(sums)[e];
}

GRETA_DEVICE float row_sum(float x) { return reduce_lanes<wave_size / span, span>(x, Add{}); }
GRETA_DEVICE float row_largest(float x) {
  return reduce_lanes<wave_size / span, span>(x, Larger{});
}

GRETA_DEVICE void add_scores(Core::Sums& scores, const Core::Fragment& q, const Core::Fragment& k) {
  Core::multiply(scores, k, q);
}
GRETA_DEVICE void add_values(Core::Sums& out, const Core::Fragment& weights,
                             const Core::Fragment& values) {
  Core::multiply(out, values, weights);
}

// Reads fragments from the tile at `start`, counted from a line and a k.
template <Operand operand, bool along_k, typename Tile>
struct Reader {
  SharedMemory shared;
  u32 start, first_line, first_k;

  GRETA_DEVICE Reader(SharedMemory memory, u32 tile, u32 line = 0, u32 k = 0)
      : shared(memory), start(tile), first_line(line), first_k(k) {}

  GRETA_DEVICE Core::Fragment read(u32 line, u32 k) const {
    return Core::load<operand, along_k, Tile>(shared, start, first_line + line, first_k + k);
  }
};

#if defined(GRETA_MATRIX_MFMA)

constexpr u32 run = 4;
GRETA_DEVICE u32 first_column() { return lane_index() / span * 4; }
GRETA_DEVICE constexpr u32 column_step(u32 e) { return e / 4 * 8 + e % 4; }
// The key that is element e of chunk c in a fragment of values, from the fragment's first on.
GRETA_DEVICE u32 key_in_depth(u32 c, u32 e) { return e / 4 * (depth / 2) + c * 4 + e % 4; }

// Of `depth` keys, from product `step` on: 8 of this lane's, in half a block or in two.
GRETA_DEVICE Core::Fragment weights_of(Core::Sums* scores, u32 step) {
  Core::Fragment f;
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    const u32 e = step * 8 + i * 2;
    Core::Sums& sums = scores[e / lane_sums];
    f.chunk[0].word[i] =
        narrow_pair(sum_of(sums, e % lane_sums), sum_of(sums, e % lane_sums + 1));
  }
  return f;
}

#if TURN
// A tile whose lines are keys, from which TurningReader reads. Lanes of a half of the wave, which are
// served together, read `span` / 8 neighbouring chunks of as many lines as have all 64 banks then:
// groups of so many chunks trade places in lines that begin with the same bank.
template <u32 lines, u32 line_chunks>
struct TurnedTile {
  static constexpr u32 bytes = lines * line_chunks * 16;
  static constexpr u32 group = span / 8, period = 16 / group;
  static_assert(line_chunks % group == 0, "lines are whole groups");

  static GRETA_DEVICE constexpr u32 offset(u32 line, u32 chunk) {
    return place_offset(line, chunk ^ turn(line));
  }
  static GRETA_DEVICE constexpr u32 place_offset(u32 line, u32 place) {
    return (line * line_chunks + place) * 16;
  }
  static GRETA_DEVICE constexpr u32 chunk_at(u32 line, u32 place) { return place ^ turn(line); }

 private:
  // Chunks from whose multiples lines begin, of the 16 that have all banks.
  static constexpr u32 begins = line_chunks % 16 == 0 ? 16 : line_chunks % 8 == 0 ? 8 : 4;

  static GRETA_DEVICE constexpr u32 turn(u32 line) {
    return line * begins / 16 % (begins / group) * group;
  }
};

// Reads fragments of values from the tile at `start`, counted from a dimension and a key. A read
// gives each lane four keys of a dimension.
template <typename Tile>
struct TurningReader {
  SharedMemory shared;
  u32 start, first_dimension, first_key;

  GRETA_DEVICE TurningReader(SharedMemory memory, u32 tile, u32 dimension = 0, u32 key = 0)
      : shared(memory), start(tile), first_dimension(dimension), first_key(key) {}

  GRETA_DEVICE Core::Fragment read(u32 dimension, u32 key) const {
    const u32 lane = lane_index();
    const u32 chunk = (first_dimension + dimension) / 8 + lane % span / 16 * 2 + lane % 4 / 2;
    const u32 line = first_key + key + lane / span * 4 + lane % 16 / 4;
    Core::Fragment f;
    GRETA_UNROLL
    for (u32 half = 0; half < 2; ++half) {
      const u32 at = Tile::offset(line + half * (depth / 2), chunk) + lane % 2 * 8;
      read_turned(shared.bytes + start + at, f.chunk[0].word + half * 2);
    }
    return f;
  }

 private:
  static GRETA_DEVICE void read_turned(const u8* at, u32* words) {
#if defined(__gfx950__)
    typedef short Elements __attribute__((ext_vector_type(4)));
    typedef __attribute__((address_space(3))) Elements Shared;
    const auto four = __builtin_amdgcn_ds_read_tr16_b64_v4i16((Shared*)at);
    __builtin_memcpy(words, &four, 8);
#elif defined(GRETA_HOST)
    greta_host::read_transposed(reinterpret_cast<u32(&)[2]>(*words), at);
#else
#error "TURN needs reads of shared memory that turn tiles"
#endif
  }
};
#endif

#elif defined(GRETA_MATRIX_WMMA11)

constexpr u32 run = 1;
GRETA_DEVICE u32 first_column() { return lane_index() / 16; }
GRETA_DEVICE constexpr u32 column_step(u32 e) { return e * 2; }
GRETA_DEVICE u32 key_in_depth(u32 c, u32 e) { return e * 2 + c; }

// Both halves of the wave hold all keys: first the even ones, which are the lower half's.
GRETA_DEVICE Core::Fragment weights_of(Core::Sums* scores, u32 step) {
  const bool lower = lane_index() < 16;
  Core::Fragment f;
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    const u32 mine = narrow_pair(sum_of(scores[step], i * 2), sum_of(scores[step], i * 2 + 1));
    const u32 others = shuffle(mine, lane_index() ^ 16);
    f.chunk[0].word[i] = lower ? mine : others;
    f.chunk[1].word[i] = lower ? others : mine;
  }
  return f;
}

#else  // WMMA of gfx12

constexpr u32 run = 8;
GRETA_DEVICE u32 first_column() { return lane_index() / 16 * 8; }
GRETA_DEVICE constexpr u32 column_step(u32 e) { return e; }
GRETA_DEVICE u32 key_in_depth(u32 c, u32 e) { return c * 8 + e; }

GRETA_DEVICE Core::Fragment weights_of(Core::Sums* scores, u32 step) {
  Core::Fragment f;
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    f.chunk[0].word[i] = narrow_pair(sum_of(scores[step], i * 2), sum_of(scores[step], i * 2 + 1));
  }
  return f;
}

#endif
#endif
