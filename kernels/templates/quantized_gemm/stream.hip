// Products of few rows with quantised weights by matrix cores, bound by reading the weights. Workgroups
// stay, BLOCKS of them, and compute tiles of TN x 16 columns and all rows of C in turn. Of a tile, the
// WAVES divide K among themselves in pairs of units. Each wave copies its pairs to shared memory by
// itself, STAGES - 1 of them ahead, across tiles too, so that memory is busy while waves multiply and
// while they add their sums.
//
// Lanes copy whole cache lines of weights. In shared memory, chunks of 16 bytes of odd lines are
// exchanged, so that the lanes that read two lines at once find them in different banks.

#if !defined(STAGES) || STAGES < 2
#error "STAGES must be defined and at least 2"
#endif
#if !defined(SHARED_BYTES)
#error "SHARED_BYTES must be defined: of all stages and sums, as the launch gives"
#endif

#include "quantized_gemm/products.hip"

#if !GRETA_LANE_COPY || !defined(GRETA_MATRIX_MMA)
#error "needs copies to shared memory by lanes"
#endif

constexpr u32 pair_units = 2;
constexpr u32 line_bytes = FORMAT == 0 ? 128 : 256, line_chunks = line_bytes / 16;
constexpr u32 tile_lines = TN * 16, flip = FORMAT == 0 ? 4 : 1;
// Of a stage: the weights of a pair of units of each line, then pairs of scales.
constexpr u32 weights_bytes = tile_lines * line_bytes, stage_bytes = weights_bytes + tile_lines * 4;
constexpr u32 ring_bytes = STAGES * stage_bytes;
static_assert(SHARED_BYTES == WAVES * (ring_bytes + 2 * floats_of_sums * 4), "what the plan computes");

// A wave's next pair of units.
struct Place {
  u32 tile, pair;
};

GRETA_DEVICE Place after(Place place, u32 pairs, u32 blocks) {
  const bool same = place.pair + WAVES < pairs;
  return {same ? place.tile : place.tile + blocks, same ? place.pair + WAVES : wave_index()};
}

// Starts copying a wave's pair to a stage.
GRETA_DEVICE void copy_pair(SharedMemory shared, u32 stage, const Weights& weights, Place place, u32 n,
                            u32 k) {
  const u32 lane = lane_index(), first = place.tile * tile_lines;
  constexpr u32 lines_at_once = wave_size / line_chunks;
  const u32 of_lane = lane / line_chunks, chunk = lane % line_chunks;
  const u8* const from = weights.integers + u64(first + of_lane) * bytes_of_weights(k) +
                         place.pair * line_bytes + chunk * 16;
  GRETA_UNROLL
  for (u32 i = 0; i < tile_lines / lines_at_once; ++i) {
    const u32 line = i * lines_at_once + of_lane;
    const u32 to = line * line_bytes + (chunk ^ line % 2 * flip) * 16;
    copy_lane_async<16>(shared, stage + to, from + u64(i * lines_at_once) * bytes_of_weights(k),
                        first + line < n);
  }
  const u32 groups = k / GROUP;
  GRETA_UNROLL
  for (u32 line = lane; line < tile_lines; line += wave_size) {
    const u64 group = u64(first + line) * groups + place.pair * pair_units;
    copy_lane_async<4>(shared, stage + weights_bytes + line * 4, weights.scales + group,
                       first + line < n);
  }
}

// The unit of a pair in a stage, but for its zero points.
GRETA_DEVICE void read_unit(const u8* stage, u32 u, Unit& unit) {
  GRETA_UNROLL
  for (u32 i = 0; i < TN * lane_lines; ++i) {
    const u32 t = i / lane_lines, of_lane = i % lane_lines;
    const u32 line = t * 16 + of_lane * 8 + line_of_lane();
    constexpr u32 words = sizeof(Integers) / 16;
    GRETA_UNROLL
    for (u32 j = 0; j < words; ++j) {
      const u32 chunk = (u * 4 + part_of_lane()) * words + j;
      const auto four = load_words<16>(stage + line * line_bytes + (chunk ^ line % 2 * flip) * 16);
      GRETA_UNROLL
      for (u32 w = 0; w < 4; ++w) unit.integers[t][of_lane][0].word[4 * j + w] = four.word[w];
    }
    unit.scale[t][of_lane].bits =
        load_words<2>(stage + weights_bytes + line * 4 + u * 2).word[0];
  }
}

// Zero points of the pair of units of a lane's lines, one in each byte.
struct Zeros {
  u32 both[TN][lane_lines];
};

GRETA_DEVICE Zeros load_zeros(const Weights& weights, Place place, u32 n, u32 k) {
  Zeros zeros = {};
  GRETA_UNROLL
  for (u32 i = 0; i < TN * lane_lines; ++i) {
    const u32 t = i / lane_lines, of_lane = i % lane_lines;
    const u64 col = smaller(place.tile * tile_lines + t * 16 + of_lane * 8 + line_of_lane(), n - 1);
    const u64 group = col * (k / GROUP) + place.pair * pair_units;
    if (ZEROS) zeros.both[t][of_lane] = load_words<2>(weights.zeros + group).word[0];
  }
  return zeros;
}

GRETA_KERNEL(THREADS)
quantized_gemm_stream(const In* __restrict__ a, const u8* __restrict__ b,
                      const Scale* __restrict__ scales, const u8* __restrict__ zeros,
                      Out* __restrict__ c, u32 m, u32 n, u32 k, u32 tiles_n, u32 blocks) {
  GRETA_DYNAMIC_SHARED(u8, memory);
  const u32 block = block_index<THREADS>();
  if (block >= blocks) return;  // of the whole workgroup
  u8* const ring = memory + wave_index() * ring_bytes;
  float* const sums = reinterpret_cast<float*>(memory + WAVES * ring_bytes);
  const SharedMemory shared = shared_memory(ring);
  const Weights weights = {b, scales, zeros};
  const u32 pairs = k / (pair_units * unit_weights);

  // Lanes past the last row repeat it.
  const In* row[RT][row_lines];
  GRETA_UNROLL
  for (u32 i = 0; i < RT * row_lines; ++i) {
    const u32 at = i / row_lines * 16 + i % row_lines * 8 + line_of_lane();
    row[i / row_lines][i % row_lines] =
        a + u64(smaller(at, m - 1)) * k + part_of_lane() * CHUNK_WEIGHTS;
  }

  Place ahead = {block, wave_index()};
  GRETA_UNROLL
  for (u32 s = 0; s + 1 < STAGES; ++s) {
    if (ahead.tile < tiles_n) copy_pair(shared, s * stage_bytes, weights, ahead, n, k);
    close_copies();
    ahead = after(ahead, pairs, blocks);
  }
  Zeros zero = load_zeros(weights, {block, wave_index()}, n, k);
  Rows rows = load_rows(row[0], wave_index() * pair_units * unit_weights);
  u32 stage = 0, free = (STAGES - 1) * stage_bytes, buffer = 0;
  for (u32 tile = block; tile < tiles_n; tile += blocks) {
    Sums total[RT][TN] = {};
    for (u32 pair = wave_index(); pair < pairs; pair += WAVES) {
      wait_for_copies<STAGES - 2, 0>();
      wave_barrier();  // all lanes' copies are there, and all have read the stage that is filled next
      if (ahead.tile < tiles_n) copy_pair(shared, free, weights, ahead, n, k);
      close_copies();
      ahead = after(ahead, pairs, blocks);
      const Place next = after({tile, pair}, pairs, blocks);
      Zeros later_zero = zero;
      if (ZEROS && next.tile < tiles_n) later_zero = load_zeros(weights, next, n, k);
      GRETA_UNROLL
      for (u32 u = 0; u < pair_units; ++u) {
        const u32 first = (pair * pair_units + u) * unit_weights;
        Unit unit;
        read_unit(ring + stage, u, unit);
        GRETA_UNROLL
        for (u32 i = 0; i < TN * lane_lines; ++i) {
          u32& of_line = unit.zero[i / lane_lines][i % lane_lines];
          of_line = ZEROS ? zero.both[i / lane_lines][i % lane_lines] >> 8 * u & 255U : implied_zero;
        }
        // A's part of the next unit is under way while this one is multiplied.
        const Rows later = load_rows(
            row[0], u + 1 < pair_units ? first + unit_weights : next.pair * pair_units * unit_weights);
        Sums part[RT][TN] = {};
        add_chunk(unit, 0, rows, row, first, part);
        add_unit(unit, part, total);
        rows = later;
      }
      zero = later_zero;
      free = stage;
      stage = stage + stage_bytes < ring_bytes ? stage + stage_bytes : 0;
    }
    GRETA_UNROLL
    for (u32 i = 0; i < RT * TN; ++i) {
      // Waves may still read the buffer before.
      float* const to = sums + buffer * (WAVES * floats_of_sums);
      store(total[i / TN][i % TN], to + wave_index() * floats_of_sums, sums_pitch);
      block_barrier();
      store_tile(to, c, i / TN * 16, tile * tile_lines + i % TN * 16, m, n);
      buffer ^= 1U;
    }
  }
}
