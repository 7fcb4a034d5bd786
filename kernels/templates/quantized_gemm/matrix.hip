// Products with quantised weights by matrix cores. A workgroup has TN x 16 columns and RT x 16 rows of
// C. Its WAVES divide K among themselves in units of 128 weights, which share a scale, each with UNROLL
// units in flight, and add their sums through shared memory in the end. Lanes multiply the integers of
// weights, which A's type represents exactly, and scale a unit's sums.
//
// Which k a lane holds does not matter as long as both operands agree: a lane has whole chunks of 32
// weights of its lines, and reads the same k of rows of A. On NVIDIA the weights are the left operand
// and on AMD the right one, so that what a lane scales has the scale of a line that it holds.

#if !defined(WAVES) || !defined(TN) || !defined(RT) || !defined(UNROLL)
#error "WAVES TN RT UNROLL must be defined"
#endif
#if !defined(FEW_ROWS)
#error "FEW_ROWS must be defined: whether C has at most eight rows"
#endif
#if WAVES < 1 || TN < 1 || RT < 1 || UNROLL < 1
#error "WAVES, TN, RT and UNROLL are at least 1"
#endif

#include "common/matrix.hip"
#include "quantized_gemm/weights.hip"

#if FORMAT > 1 || GROUP != 128
#error "units of 128 weights have one scale"
#endif

#define THREADS (WAVES * wave_size)

typedef MatrixCore<In, 16> Core;

// Lines of an operand that a lane holds, and the lanes that share a line.
#if defined(GRETA_MATRIX_MMA)
constexpr u32 lane_lines = 2, parts = 4;
#elif defined(GRETA_MATRIX_MFMA)
constexpr u32 lane_lines = 1, parts = 4;
#elif defined(GRETA_MATRIX_WMMA12)
constexpr u32 lane_lines = 1, parts = 2;
#else
constexpr u32 lane_lines = 1, parts = 1;
#endif
constexpr u32 unit_weights = 128, lane_chunks = 4 / parts;

GRETA_DEVICE u32 line_of_lane() {
#if defined(GRETA_MATRIX_MMA)
  return lane_index() / 4;
#else
  return lane_index() % 16;
#endif
}
// Lines of a tile that a lane holds are eight apart.
GRETA_DEVICE u32 part_of_lane() {
#if defined(GRETA_MATRIX_MMA)
  return lane_index() % 4;
#else
  return parts == 1 ? 0 : lane_index() / 16;
#endif
}

// Sixteen bytes of a line: eight elements.
struct Eight {
  u32 word[4];
};

GRETA_DEVICE Eight eight_weights(const WeightChunk& chunk, u32 e) {
  Eight eight;
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) eight.word[i] = weight_pair(chunk, e, i);
  return eight;
}

GRETA_DEVICE Eight eight_elements(const In* from) {
  const auto words = load_words<16>(from);
  return {{words.word[0], words.word[1], words.word[2], words.word[3]}};
}

// Adds the products of 32 k of a lane's lines.
#if defined(GRETA_MATRIX_MMA)
GRETA_DEVICE void add_products(Core::Sums& sums, const Eight (&weights)[lane_lines][4],
                               const Eight (&rows)[lane_lines][4]) {
  GRETA_UNROLL
  for (u32 step = 0; step < 8; ++step) {  // of four k of each lane
    const u32 e = step / 2, s = step % 2 * 2;
    Core::Fragment a, b;
    GRETA_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      a.word[i] = weights[i % 2][e].word[s + i / 2];
      b.word[i] = rows[i / 2][e].word[s + i % 2];
    }
    Core::multiply(sums, a, b);
  }
}

GRETA_DEVICE void add_scaled(Core::Sums& total, const Core::Sums& part,
                             const float (&scale)[lane_lines]) {
  GRETA_UNROLL
  for (u32 i = 0; i < 8; ++i) {
    float& to = total.column[i / 4][i % 4];
    to = multiply_add(scale[i % 4 / 2], part.column[i / 4][i % 4], to);
  }
}
#else
GRETA_DEVICE void add_products(Core::Sums& sums, const Eight (&weights)[lane_lines][4],
                               const Eight (&rows)[lane_lines][4]) {
  GRETA_UNROLL
  for (u32 e = 0; e < 4; e += Core::lane_chunks) {
    Core::Fragment a, b;
    GRETA_UNROLL
    for (u32 i = 0; i < 4 * Core::lane_chunks; ++i) {
      a.chunk[i / 4].word[i % 4] = rows[0][e + i / 4].word[i % 4];
      b.chunk[i / 4].word[i % 4] = weights[0][e + i / 4].word[i % 4];
    }
    Core::multiply(sums, a, b);
  }
}

GRETA_DEVICE void add_scaled(Core::Sums& total, const Core::Sums& part,
                             const float (&scale)[lane_lines]) {
  GRETA_UNROLL
  for (u32 i = 0; i < sizeof(Core::Sums) / 4; ++i) {
    total[i] = multiply_add(scale[0], part[i], total[i]);
  }
}
#endif

// The weights of a unit that a lane has of each tile's lines.
struct Unit {
  WeightChunk chunk[TN][lane_lines][lane_chunks];
};

// Adds the products of a unit with rows of A, which begin at `row` in the unit's first column.
GRETA_DEVICE void add_unit(const Unit& unit, const In* const (&row)[RT][lane_lines],
                           Core::Sums (&total)[RT][TN]) {
  Core::Sums part[RT][TN] = {};
  GRETA_UNROLL
  for (u32 c = 0; c < lane_chunks; ++c) {
    Eight weights[TN][lane_lines][4];
    GRETA_UNROLL
    for (u32 i = 0; i < TN * lane_lines * 4; ++i) {
      const u32 t = i / (lane_lines * 4), line = i / 4 % lane_lines;
      weights[t][line][i % 4] = eight_weights(unit.chunk[t][line][c], i % 4);
    }
    GRETA_UNROLL
    for (u32 r = 0; r < RT; ++r) {
      Eight rows[lane_lines][4];
      GRETA_UNROLL
      for (u32 i = 0; i < lane_lines * 4; ++i) {
        const u32 line = FEW_ROWS ? 0 : i / 4;  // with few rows the second half repeats the first
        rows[i / 4][i % 4] = eight_elements(row[r][line] + c * CHUNK_WEIGHTS + i % 4 * 8);
      }
      GRETA_UNROLL
      for (u32 t = 0; t < TN; ++t) add_products(part[r][t], weights[t], rows);
    }
  }
  GRETA_UNROLL
  for (u32 t = 0; t < TN; ++t) {
    float scale[lane_lines];
    GRETA_UNROLL
    for (u32 line = 0; line < lane_lines; ++line) scale[line] = scale_of(unit.chunk[t][line][0], 0);
    GRETA_UNROLL
    for (u32 r = 0; r < RT; ++r) add_scaled(total[r][t], part[r][t], scale);
  }
}

GRETA_KERNEL(THREADS)
quantized_gemm_matrix(const In* __restrict__ a, const u8* __restrict__ b,
                      const Scale* __restrict__ scales, const u8* __restrict__ zeros,
                      Out* __restrict__ c, u32 m, u32 n, u32 k, u32 tiles_n) {
  constexpr u32 pitch = Core::pitch(16);
  GRETA_SHARED(float, wave_sums, WAVES * 16 * pitch);
  const u32 block = block_index<THREADS>();
  const u32 first_row = block / tiles_n * (RT * 16), first_col = block % tiles_n * (TN * 16);
  if (first_row >= m) return;  // of the whole workgroup
  const Weights weights = {b, scales, zeros};
  const u32 line = line_of_lane(), first_chunk = part_of_lane() * lane_chunks, units = k / unit_weights;

  // Lanes past the last row or column repeat it.
  const In* row[RT][lane_lines];
  GRETA_UNROLL
  for (u32 i = 0; i < RT * lane_lines; ++i) {
    const u32 r = i / lane_lines, at = first_row + r * 16 + i % lane_lines * 8 + line;
    row[r][i % lane_lines] = a + u64(smaller(at, m - 1)) * k + first_chunk * CHUNK_WEIGHTS;
  }
  Core::Sums total[RT][TN] = {};
  for (u32 first = wave_index(); first < units; first += WAVES * UNROLL) {
    Unit unit[UNROLL];
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      const u32 index = smaller(first + u * WAVES, units - 1);
      GRETA_UNROLL
      for (u32 i = 0; i < TN * lane_lines * lane_chunks; ++i) {
        const u32 t = i / (lane_lines * lane_chunks), of_lane = i / lane_chunks % lane_lines;
        const u32 col = smaller(first_col + t * 16 + of_lane * 8 + line, n - 1);
        unit[u].chunk[t][of_lane][i % lane_chunks] =
            load_chunk(weights, col, index * 4 + first_chunk + i % lane_chunks, k);
      }
    }
    loads_go_ahead();
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      if (first + u * WAVES >= units) break;
      const In* at[RT][lane_lines];
      GRETA_UNROLL
      for (u32 i = 0; i < RT * lane_lines; ++i) {
        at[i / lane_lines][i % lane_lines] =
            row[i / lane_lines][i % lane_lines] + (first + u * WAVES) * unit_weights;
      }
      add_unit(unit[u], at, total);
    }
  }

  GRETA_UNROLL
  for (u32 i = 0; i < RT * TN; ++i) {
    const u32 r = i / TN, t = i % TN;
    if (i > 0) block_barrier();  // all have read the tile before
    Core::store(total[r][t], wave_sums + wave_index() * (16 * pitch), pitch);
    block_barrier();
    for (u32 e = thread_index(); e < 256; e += THREADS) {
      const u32 in_row = e / 16, in_col = e % 16;
#if defined(GRETA_MATRIX_MMA)
      const u32 place = in_col * pitch + in_row;  // sums have a row for each column of C
#else
      const u32 place = in_row * pitch + in_col;
#endif
      float sum = 0.0f;
      GRETA_UNROLL
      for (u32 w = 0; w < WAVES; ++w) sum += wave_sums[w * (16 * pitch) + place];
      const u32 to_row = first_row + r * 16 + in_row, to_col = first_col + t * 16 + in_col;
      if (to_row < m && to_col < n) c[u64(to_row) * n + to_col] = narrow<Out>(sum);
    }
  }
}
