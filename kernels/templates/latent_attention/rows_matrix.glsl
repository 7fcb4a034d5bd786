// Rows that share keys (rows.glsl), by cooperative matrices. WAVES groups of VWAVES subgroups have WQ
// rows each. Of a tile of BK keys, the subgroups of a group divide the keys of the scores, and the
// dimensions of the outputs: sums of 512 dimensions are too many for the registers of one. With SHARED
// a tile serves both products. Scores and weights pass between them through shared memory, where
// eight keys of a row are one lane's. A row's outputs are divided by a number of its own as matrices
// are, as in attention/matrix.comp. The next tile waits in registers.

#if !defined(BK) || !defined(WQ) || !defined(WAVES) || !defined(VWAVES) || !defined(SUBGROUP)
#error "BK WQ WAVES VWAVES and SUBGROUP must be defined"
#endif

#define BQ (WAVES * WQ)
#define GROUP_THREADS (VWAVES * SUBGROUP)
#define THREADS (WAVES * GROUP_THREADS)

// Lines in shared memory, in chunks of 16 bytes: of queries, keys and values; of scores; of weights;
// of a row's factors; of a piece of outputs.
#define LINE (DIM / 8 + 1)
#define SCORE_LINE (BK / 4 + 1)
#define WEIGHT_LINE (BK / 8 + 1)
#define FACTOR_LINE (INSTR_N / 4)
#define PIECE_BLOCKS 2
#define PIECE_LINE (PIECE_BLOCKS * INSTR_N / 4 + 1)

// Factors stay when outputs are written, the others leave their place to pieces of outputs.
#define FACTORS_PLACE 0
#define QUERIES_PLACE (BQ * FACTOR_LINE)
#define KEYS_PLACE (QUERIES_PLACE + BQ * LINE)
#if SHARED
#define VALUE_LINE LINE
#define VALUES_PLACE KEYS_PLACE
#define SCORES_PLACE (KEYS_PLACE + BK * LINE)
#else
#define VALUE_LINE (V_DIM / 8 + 1)
#define VALUES_PLACE (KEYS_PLACE + BK * LINE)
#define SCORES_PLACE (VALUES_PLACE + BK * VALUE_LINE)
#endif
#define WEIGHTS_PLACE (SCORES_PLACE + BQ * SCORE_LINE)
#define WALK_CHUNKS (WEIGHTS_PLACE + BQ * WEIGHT_LINE)
#define PIECES_PLACE QUERIES_PLACE
#define PIECES_END (PIECES_PLACE + WAVES * VWAVES * INSTR_M * PIECE_LINE)
#if PIECES_END > WALK_CHUNKS
#define WORK_CHUNKS PIECES_END
#else
#define WORK_CHUNKS WALK_CHUNKS
#endif
// And in the end, to slices that are joined: numbers of BQ rows.
#if SPLIT > 1 && 3 * SPLIT * BQ > 4 * WORK_CHUNKS
#define MATRIX_CHUNKS (3 * SPLIT * BQ / 4)
#else
#define MATRIX_CHUNKS WORK_CHUNKS
#endif

#include "common/cooperative_matrix.glsl"
#extension GL_KHR_shader_subgroup_shuffle : require
#include "common/in_out.glsl"
#include "attention/operands.glsl"
#include "latent_attention/rows.glsl"
#if SPLIT > 1
#define SLICE_ROWS BQ
#include "attention/slices.glsl"
#endif

#if WQ % INSTR_M != 0 || BK % INSTR_N != 0 || BK % INSTR_K != 0 || DIM % INSTR_K != 0 || \
    V_DIM % (VWAVES * INSTR_N) != 0 || INSTR_N % 8 != 0
#error "products divide WQ, BK, DIM and a subgroup's part of V_DIM, and their columns fill chunks"
#endif

// Subgroups of a group that have scores, and their products.
#define ALL_KEY_BLOCKS (BK / INSTR_N)
#if ALL_KEY_BLOCKS < VWAVES
#define SCORE_WAVES ALL_KEY_BLOCKS
#else
#define SCORE_WAVES VWAVES
#endif
#define ROW_BLOCKS (WQ / INSTR_M)
#define KEY_BLOCKS (ALL_KEY_BLOCKS / SCORE_WAVES)
#define DIM_BLOCKS (V_DIM / INSTR_N / VWAVES)
#define DEPTHS (DIM / INSTR_K)
#if ALL_KEY_BLOCKS % SCORE_WAVES != 0
#error "subgroups have the same number of keys"
#endif

// Lanes that share a row of scores, and rows that a lane has.
#define ROW_LANES (BK / 8)
#if ROW_LANES > SUBGROUP
#error "the lanes of a row are in one subgroup"
#endif
#if WQ * ROW_LANES > GROUP_THREADS
#define LANE_ROWS (WQ * ROW_LANES / GROUP_THREADS)
#else
#define LANE_ROWS 1
#endif

layout(local_size_x = THREADS) in;

#define KEY_UNITS ((BK * DIM / 8 + THREADS - 1) / THREADS)
#define VALUE_UNITS ((BK * V_DIM / 8 + THREADS - 1) / THREADS)

uint tid;           // threads of a subgroup are neighbours
uint group, place;  // of the subgroup: its group, and its place in it
uvec4 fetched[KEY_UNITS];
#if !SHARED
uvec4 fetched_values[VALUE_UNITS];
#endif
MatrixC outputs[ROW_BLOCKS * DIM_BLOCKS];
float base[LANE_ROWS];  // what is subtracted from a row's scores
float sum[LANE_ROWS];   // of this lane's keys
uint end[LANE_ROWS];    // the row sees no key from here on

// The group's line that is row i of this lane. Lanes without a row have one from WQ on.
uint line_of(uint i) { return (i * GROUP_THREADS + tid % GROUP_THREADS) / ROW_LANES; }
// Its row in the tile.
uint row_of(uint i) { return group * WQ + min(line_of(i), WQ - 1); }

// Start loading BK lines from key `first` on; zeros after the last one.
void fetch(uint first) {
  if (first >= slice_end) return;
  const uint lines = min(slice_end - first, BK);
  [[unroll]] for (uint i = 0; i < KEY_UNITS; ++i) {
    const uint at = tid + i * THREADS;
    fetched[i] = uvec4(0);
    if (at < lines * (DIM / 8)) fetched[i] = U32x4(args.k + key_offset(first, at * 8) * 2).v;
  }
#if !SHARED
  [[unroll]] for (uint i = 0; i < VALUE_UNITS; ++i) {
    const uint at = tid + i * THREADS;
    fetched_values[i] = uvec4(0);
    if (at < lines * (V_DIM / 8))
      fetched_values[i] = U32x4(args.v + value_offset(first, at * 8) * 2).v;
  }
#endif
}

void put_tile() {
  [[unroll]] for (uint i = 0; i < KEY_UNITS; ++i) {
    const uint at = tid + i * THREADS;
    if (at < BK * (DIM / 8))
      matrix_memory[KEYS_PLACE + at / (DIM / 8) * LINE + at % (DIM / 8)] = fetched[i];
  }
#if !SHARED
  [[unroll]] for (uint i = 0; i < VALUE_UNITS; ++i) {
    const uint at = tid + i * THREADS;
    if (at < BK * (V_DIM / 8))
      matrix_memory[VALUES_PLACE + at / (V_DIM / 8) * VALUE_LINE + at % (V_DIM / 8)] =
          fetched_values[i];
  }
#endif
}

void bring_queries() {
  [[dont_unroll]] for (uint at = tid; at < BQ * (DIM / 8); at += THREADS) {
    const uint row = at / (DIM / 8), chunk = at % (DIM / 8);
    uvec4 c = uvec4(0);
    if (row < rows_own) c = U32x4(args.q + (query_row(tile_first + row) + chunk * 8) * 2).v;
    matrix_memory[QUERIES_PLACE + row * LINE + chunk] = c;
  }
}

// Scores of the subgroup's keys of the tile.
void add_scores() {
  MatrixC scores[ROW_BLOCKS * KEY_BLOCKS];
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS * KEY_BLOCKS; ++i) scores[i] = zero_matrix();
  const uint first = place * KEY_BLOCKS * INSTR_N;
  [[unroll]] for (uint d = 0; d < DEPTHS; ++d) {
    MatrixA q[ROW_BLOCKS];
    [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i)
      load_matrix(q[i], QUERIES_PLACE + (group * WQ + i * INSTR_M) * LINE + d * (INSTR_K / 8), LINE,
                  ROW_MAJOR);
    [[unroll]] for (uint j = 0; j < KEY_BLOCKS; ++j) {
      MatrixB k;
      load_matrix(k, KEYS_PLACE + (first + j * INSTR_N) * LINE + d * (INSTR_K / 8), LINE,
                  COLUMN_MAJOR);
      [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
        const uint to = i * KEY_BLOCKS + j;
        scores[to] = multiply_add(q[i], k, scores[to]);
      }
    }
  }
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
    [[unroll]] for (uint j = 0; j < KEY_BLOCKS; ++j)
      store_matrix(scores[i * KEY_BLOCKS + j],
                   SCORES_PLACE + (group * WQ + i * INSTR_M) * SCORE_LINE +
                       (first + j * INSTR_N) / 4,
                   SCORE_LINE);
  }
}

uint weight_pair(float low, float high) {
#if IN_BF16
  const uvec4 bits = bf16_from_float(vec4(low, high, 0.0, 0.0));
  return bits.x | bits.y << 16;
#else
  return packHalf2x16(vec2(low, high));
#endif
}

// Turns scores into weights, and puts what outputs are to be divided by into shared memory. `key`: the
// tile's first.
void weigh(uint key) {
  const uint part = tid % ROW_LANES;
  [[unroll]] for (uint i = 0; i < LANE_ROWS; ++i) {
    const uint row = row_of(i);
    float score[8];
    bool seen[8];
    float most = LOWEST_SCORE;
    [[unroll]] for (uint j = 0; j < 8; ++j) {
      const uint at = SCORES_PLACE + row * SCORE_LINE + part * 2 + j / 4;
      score[j] = args.scale * uintBitsToFloat(matrix_memory[at][j % 4]);
      seen[j] = sees(tile_first + row, end[i], key + part * 8 + j);
      if (seen[j]) most = max(most, score[j]);
    }
    [[unroll]] for (uint step = ROW_LANES / 2; step > 0; step /= 2)
      most = max(most, subgroupShuffleXor(most, step));
    most = max(most, base[i]);
    const float divisor = exp2(most - base[i]);  // infinite where nothing was added
    base[i] = most;
    sum[i] /= divisor;
    float w[8];
    [[unroll]] for (uint j = 0; j < 8; ++j) {
      w[j] = seen[j] ? exp2(score[j] - most) : 0.0;
      sum[i] += w[j];
    }
    if (line_of(i) >= WQ) continue;
    matrix_memory[WEIGHTS_PLACE + row * WEIGHT_LINE + part] =
        uvec4(weight_pair(w[0], w[1]), weight_pair(w[2], w[3]), weight_pair(w[4], w[5]),
              weight_pair(w[6], w[7]));
    [[unroll]] for (uint c = 0; c < FACTOR_LINE; c += ROW_LANES) {
      if (c + part < FACTOR_LINE)
        matrix_memory[FACTORS_PLACE + row * FACTOR_LINE + c + part] = uvec4(floatBitsToUint(divisor));
    }
  }
}

void divide_outputs() {
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
    MatrixC factors;
    load_sums(factors, FACTORS_PLACE + (group * WQ + i * INSTR_M) * FACTOR_LINE, FACTOR_LINE);
    [[unroll]] for (uint c = 0; c < DIM_BLOCKS; ++c)
      outputs[i * DIM_BLOCKS + c] = divide(outputs[i * DIM_BLOCKS + c], factors);
  }
}

// Adds the subgroup's dimensions of the values, times the weights.
void add_values() {
  [[unroll]] for (uint j = 0; j < BK / INSTR_K; ++j) {
    MatrixA weights[ROW_BLOCKS];
    [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i)
      load_matrix(weights[i],
                  WEIGHTS_PLACE + (group * WQ + i * INSTR_M) * WEIGHT_LINE + j * (INSTR_K / 8),
                  WEIGHT_LINE, ROW_MAJOR);
    [[unroll]] for (uint c = 0; c < DIM_BLOCKS; ++c) {
      MatrixB v;
      load_matrix(v,
                  VALUES_PLACE + j * INSTR_K * VALUE_LINE +
                      (place * DIM_BLOCKS + c) * (INSTR_N / 8),
                  VALUE_LINE, ROW_MAJOR);
      [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
        const uint to = i * DIM_BLOCKS + c;
        outputs[to] = multiply_add(weights[i], v, outputs[to]);
      }
    }
  }
}

#if SPLIT > 1
float join_float(uint i) { return uintBitsToFloat(matrix_memory[i / 4][i % 4]); }
void set_join_float(uint i, float x) { matrix_memory[i / 4][i % 4] = floatBitsToUint(x); }
void put_joined(uint row, uint d, float x, float greatest, float total) {
  const uint64_t at = result_row(tile_first + row);
  store_out(args.result + (at + d) * OUT_BYTES, total == 0.0 ? 0.0 : x / total);  // 0: no key
  if (d == 0) put_lse(at, greatest, total);
}
#endif

// Four neighbouring results of a row of the tile, or of this slice's sums.
void put_four(uint row, uint d, vec4 x) {
#if SPLIT > 1
  if (slices > 1) {
    const uint64_t to = slice_sums(workgroup(), gl_WorkGroupID.z, row) + d * 4;
    Partial2(to).v = x.xy;
    Partial2(to + 8).v = x.zw;
    return;
  }
#endif
  store_out4(args.result + (result_row(tile_first + row) + d) * OUT_BYTES, x);
}

// What the rows' outputs are multiplied by in the end, into shared memory.
void finish_rows() {
  [[unroll]] for (uint i = 0; i < LANE_ROWS; ++i) {
    [[unroll]] for (uint step = ROW_LANES / 2; step > 0; step /= 2)
      sum[i] += subgroupShuffleXor(sum[i], step);
    const uint row = row_of(i);
    if (tid % ROW_LANES != 0 || line_of(i) >= WQ || row >= rows_own) continue;
    // Without a key, nothing is attended to.
    float factor = sum[i] == 0.0 ? 0.0 : 1.0 / sum[i];
#if SPLIT > 1
    if (slices > 1) {
      factor = 1.0;
      const uint64_t to = slice_sums(workgroup(), gl_WorkGroupID.z, row);
      Partial2(to + V_DIM * 4).v = vec2(base[i], sum[i]);
    }
#endif
    if (slices == 1) put_lse(result_row(tile_first + row), base[i], sum[i]);
    matrix_memory[FACTORS_PLACE + row * FACTOR_LINE].x = floatBitsToUint(factor);
  }
}

// INSTR_M rows of the blocks from `block` on, which lie in the subgroup's piece of shared memory.
void put_piece(uint first_row, uint block, uint piece) {
  const uint fours = PIECE_BLOCKS * INSTR_N / 4;
  [[dont_unroll]] for (uint at = gl_SubgroupInvocationID; at < INSTR_M * fours; at += SUBGROUP) {
    const uint row = first_row + at / fours, four = at % fours;
    if (row >= rows_own || block * INSTR_N + four * 4 >= DIM_BLOCKS * INSTR_N) continue;
    const float factor = uintBitsToFloat(matrix_memory[FACTORS_PLACE + row * FACTOR_LINE].x);
    const vec4 x = uintBitsToFloat(matrix_memory[piece + at / fours * PIECE_LINE + four]);
    put_four(row, (place * DIM_BLOCKS + block) * INSTR_N + four * 4, x * factor);
  }
}

// All loops that name matrices have constant bounds: else NVIDIA's compiler keeps them in memory.
void put_outputs() {
  barrier();  // factors, weights and values were read
  finish_rows();
  barrier();
  const uint piece = PIECES_PLACE + gl_SubgroupID * INSTR_M * PIECE_LINE;
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
    [[unroll]] for (uint d = 0; d < DIM_BLOCKS; d += PIECE_BLOCKS) {
      [[unroll]] for (uint c = 0; c < PIECE_BLOCKS; ++c) {
        if (d + c < DIM_BLOCKS)
          store_matrix(outputs[i * DIM_BLOCKS + d + c], piece + c * (INSTR_N / 4), PIECE_LINE);
      }
      subgroupBarrier();
      put_piece(group * WQ + i * INSTR_M, d, piece);
      subgroupBarrier();
    }
  }
}

void main() {
  if (!pick_part()) return;
  tid = gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID;
  group = gl_SubgroupID / VWAVES;
  place = gl_SubgroupID % VWAVES;
  [[unroll]] for (uint i = 0; i < LANE_ROWS; ++i) {
    base[i] = LOWEST_SCORE;
    sum[i] = 0.0;
    end[i] = visible_keys(rows_count, own_query(tile_first + row_of(i)));
  }
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS * DIM_BLOCKS; ++i) outputs[i] = zero_matrix();

  fetch(slice_begin);
  bring_queries();
  [[dont_unroll]] for (uint key = slice_begin; key < slice_end; key += BK) {
    barrier();  // the values before were read
    put_tile();
    barrier();
    fetch(key + BK);
    if (place < SCORE_WAVES) add_scores();
    barrier();
    weigh(key);
    barrier();
    divide_outputs();
    add_values();
  }
  put_outputs();
#if SPLIT > 1
  if (slices == 1) return;
  if (!last_to_arrive(args.counters + uint64_t(workgroup()) * 4, slices)) return;
  join_slices(tid, workgroup(), slices, rows_own);
#endif
}
