#version 460
// A workgroup has BQ rows of queries (packing.glsl), each of its WAVES subgroups WQ of them, and walks
// through their keys, or one of SPLIT slices of them (slices.glsl), in tiles of BK, in products of
// INSTR_M x INSTR_N x INSTR_K. A subgroup holds its outputs
// as matrices. Scores go through shared memory, where lanes have whole rows or parts of them: they
// come back as weights, an operand of the second product. A row's outputs are divided by a number of
// its own as matrices are, element by element: by a matrix that has it in every column. That happens
// for every tile, as a branch around it makes NVIDIA's compiler copy all outputs, which costs as much.
// Keys and values have a tile each in shared memory, and the next one waits in registers. With QREG
// queries stay in registers, else they are read from shared memory for each tile.

#if !defined(BK) || !defined(WQ) || !defined(WAVES) || !defined(QREG) || !defined(PACK) || \
    !defined(GROUP) || !defined(SPLIT) || !defined(TOGETHER) || !defined(SUBGROUP)
#error "BK WQ WAVES QREG PACK GROUP SPLIT TOGETHER and SUBGROUP must be defined"
#endif

#define BQ (WAVES * WQ)
#define THREADS (WAVES * SUBGROUP)

// Lines in shared memory, in chunks of 16 bytes: of queries, keys and values; of scores, and of the
// weights that take their place; of a row's factors.
#define LINE (DIM / 8 + 1)
#define VALUE_LINE (V_DIM / 8 + 1)
#define SCORE_LINE (BK / 4 + 1)
#define WEIGHT_LINE (BK / 8 + 1)
#define FACTOR_LINE (INSTR_N / 4)

#define SCORE_CHUNKS (WQ * SCORE_LINE)  // of a subgroup
#define FACTOR_CHUNKS (WQ * FACTOR_LINE)
#define KEY_CHUNKS (BK * LINE)
#define VALUE_CHUNKS (BK * VALUE_LINE)
#define QUERY_CHUNKS (BQ * LINE)

// Queries that stay in registers leave their place to the others.
#if QREG
#define HELD_MATRICES (WQ / INSTR_M * (DIM / INSTR_K))
#define KEYS_PLACE 0
#else
#define KEYS_PLACE QUERY_CHUNKS
#endif
#define VALUES_PLACE (KEYS_PLACE + KEY_CHUNKS)
#define SCORES_PLACE (VALUES_PLACE + VALUE_CHUNKS)
#define FACTORS_PLACE (SCORES_PLACE + WAVES * SCORE_CHUNKS)
#define END_PLACE (FACTORS_PLACE + WAVES * FACTOR_CHUNKS)
#if END_PLACE > QUERY_CHUNKS
#define WALK_CHUNKS END_PLACE
#else
#define WALK_CHUNKS QUERY_CHUNKS
#endif
// And in the end, to slices that are joined: numbers of BQ rows.
#if SPLIT > 1 && 3 * SPLIT * BQ > 4 * WALK_CHUNKS
#define MATRIX_CHUNKS (3 * SPLIT * BQ / 4)
#else
#define MATRIX_CHUNKS WALK_CHUNKS
#endif

#include "common/cooperative_matrix.glsl"
#extension GL_KHR_shader_subgroup_shuffle : require
#include "common/in_out.glsl"
#include "attention/operands.glsl"
#include "attention/packing.glsl"
#if SPLIT > 1
#define SLICE_ROWS BQ
#include "attention/slices.glsl"
#endif

#if WQ % INSTR_M != 0 || BK % INSTR_N != 0 || BK % INSTR_K != 0 || DIM % INSTR_K != 0 || \
    V_DIM % INSTR_N != 0 || INSTR_N % 8 != 0
#error "products divide WQ, BK, DIM and V_DIM, and their columns fill chunks"
#endif

// Lanes that share a row of scores, or rows that a lane has.
#if SUBGROUP > WQ
#define ROW_LANES (SUBGROUP / WQ)
#define LANE_ROWS 1
#else
#define ROW_LANES 1
#define LANE_ROWS (WQ / SUBGROUP)
#endif
#define LANE_KEYS (BK / ROW_LANES)
#if LANE_KEYS % 8 != 0 || ROW_LANES * WQ != SUBGROUP * LANE_ROWS
#error "a lane has chunks of weights, and lanes have the same number of rows"
#endif
#if TOGETHER < 1 || WAVES < 1 || SPLIT < 1
#error "TOGETHER, WAVES and SPLIT are at least 1"
#endif

layout(local_size_x = THREADS) in;

#define ROW_BLOCKS (WQ / INSTR_M)
#define KEY_BLOCKS (BK / INSTR_N)
#define DIM_BLOCKS (V_DIM / INSTR_N)
#define DEPTHS (DIM / INSTR_K)
#if DIM > V_DIM
#define UNITS ((BK * DIM / 8 + THREADS - 1) / THREADS)
#else
#define UNITS ((BK * V_DIM / 8 + THREADS - 1) / THREADS)
#endif

uint tid;
uint slices;  // that have keys of the tile; at least 1
uvec4 fetched[UNITS];
MatrixC outputs[ROW_BLOCKS * DIM_BLOCKS];
#if QREG
MatrixA queries[ROW_BLOCKS * DEPTHS];
#endif
float base[LANE_ROWS];                      // what is subtracted from a row's scores
float sum[LANE_ROWS];                       // of this lane's keys
uint hidden[LANE_ROWS], seen[LANE_ROWS];    // the row sees keys from `hidden` to `seen`

uint scores_place() { return SCORES_PLACE + gl_SubgroupID * SCORE_CHUNKS; }
uint factors_place() { return FACTORS_PLACE + gl_SubgroupID * FACTOR_CHUNKS; }

// The subgroup's line that is row i of this lane.
uint line_of(uint i) { return i * SUBGROUP + gl_SubgroupInvocationID / ROW_LANES; }

// Start loading BK lines of keys or values from key `first` on; zeros from line `lines` on.
void fetch_keys(uint first, uint lines) {
  [[unroll]] for (uint i = 0; i < UNITS; ++i) {
    const uint at = tid + i * THREADS;
    fetched[i] = uvec4(0);
    if (at < min(lines, BK) * (DIM / 8))
      fetched[i] = U32x4(args.k + key_offset(first, at * 8) * 2).v;
  }
}
void fetch_values(uint first, uint lines) {
  [[unroll]] for (uint i = 0; i < UNITS; ++i) {
    const uint at = tid + i * THREADS;
    fetched[i] = uvec4(0);
    if (at < min(lines, BK) * (V_DIM / 8))
      fetched[i] = U32x4(args.v + value_offset(first, at * 8) * 2).v;
  }
}

// Puts lines of so many chunks into shared memory.
void put_tile(uint place, const uint chunks) {
  [[unroll]] for (uint i = 0; i < UNITS; ++i) {
    const uint at = tid + i * THREADS;
    if (UNITS * THREADS == BK * chunks || at < BK * chunks)
      matrix_memory[place + at / chunks * (chunks + 1) + at % chunks] = fetched[i];
  }
}

void bring_queries() {
  [[dont_unroll]] for (uint at = tid; at < BQ * (DIM / 8); at += THREADS) {
    const uint row = at / (DIM / 8), chunk = at % (DIM / 8);
    uvec4 c = uvec4(0);
    if (tile_first + row < tile_rows())
      c = U32x4(args.q + (query_row(tile_first + row) + chunk * 8) * 2).v;
    matrix_memory[row * LINE + chunk] = c;
  }
}

uint query_place(uint i, uint d) {
  return (gl_SubgroupID * WQ + i * INSTR_M) * LINE + d * (INSTR_K / 8);
}

// Scores of a tile, into the subgroup's part of shared memory.
void add_scores() {
  MatrixC scores[ROW_BLOCKS * KEY_BLOCKS];
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS * KEY_BLOCKS; ++i) scores[i] = zero_matrix();
  [[unroll]] for (uint d = 0; d < DEPTHS; ++d) {
#if !QREG
    MatrixA q[ROW_BLOCKS];
    [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i)
      load_matrix(q[i], query_place(i, d), LINE, ROW_MAJOR);
#endif
    [[unroll]] for (uint j = 0; j < KEY_BLOCKS; ++j) {
      MatrixB k;
      load_matrix(k, KEYS_PLACE + j * INSTR_N * LINE + d * (INSTR_K / 8), LINE, COLUMN_MAJOR);
      [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
        const uint to = i * KEY_BLOCKS + j;
#if QREG
        scores[to] = multiply_add(queries[i * DEPTHS + d], k, scores[to]);
#else
        scores[to] = multiply_add(q[i], k, scores[to]);
#endif
      }
    }
  }
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
    [[unroll]] for (uint j = 0; j < KEY_BLOCKS; ++j)
      store_matrix(scores[i * KEY_BLOCKS + j],
                   scores_place() + i * INSTR_M * SCORE_LINE + j * (INSTR_N / 4), SCORE_LINE);
  }
  subgroupBarrier();
}

uint weight_pair(float low, float high) {
#if IN_BF16
  const uvec4 bits = bf16_from_float(vec4(low, high, 0.0, 0.0));
  return bits.x | bits.y << 16;
#else
  return packHalf2x16(vec2(low, high));
#endif
}

// Turns scores into weights, which take their place, and puts what outputs are to be divided by into
// shared memory. `key`: the tile's first.
void weigh(uint key) {
  const uint part = gl_SubgroupInvocationID % ROW_LANES;
  [[unroll]] for (uint i = 0; i < LANE_ROWS; ++i) {
    const uint own = key + part * LANE_KEYS;  // this lane's first key
    const uint skipped = hidden[i] - min(hidden[i], own), left = seen[i] - min(seen[i], own);
    float score[LANE_KEYS];
    [[unroll]] for (uint j = 0; j < LANE_KEYS; j += 4) {
      const uint place =
          scores_place() + line_of(i) * SCORE_LINE + part * (LANE_KEYS / 4) + j / 4;
      const vec4 four = args.scale * uintBitsToFloat(matrix_memory[place]);
      [[unroll]] for (uint e = 0; e < 4; ++e) score[j + e] = capped(four[e]);
    }
    float most = LOWEST_SCORE;
    [[unroll]] for (uint j = 0; j < LANE_KEYS; ++j) {
      if (j < left && (WINDOW == 0 || j >= skipped)) most = max(most, score[j]);
    }
    [[unroll]] for (uint step = ROW_LANES / 2; step > 0; step /= 2)
      most = max(most, subgroupShuffleXor(most, step));
    most = max(most, base[i]);
    const float divisor = exp2(most - base[i]);  // infinite where nothing was added
    base[i] = most;
    sum[i] /= divisor;
    subgroupBarrier();  // the scores of these rows were read
    [[unroll]] for (uint j = 0; j < LANE_KEYS; j += 8) {
      float w[8];
      [[unroll]] for (uint e = 0; e < 8; ++e) {
        const bool sees = j + e < left && (WINDOW == 0 || j + e >= skipped);
        w[e] = sees ? exp2(score[j + e] - base[i]) : 0.0;
        sum[i] += w[e];
      }
      const uint place =
          scores_place() + line_of(i) * WEIGHT_LINE + part * (LANE_KEYS / 8) + j / 8;
      matrix_memory[place] = uvec4(weight_pair(w[0], w[1]), weight_pair(w[2], w[3]),
                                   weight_pair(w[4], w[5]), weight_pair(w[6], w[7]));
    }
    [[unroll]] for (uint c = 0; c < FACTOR_LINE; c += ROW_LANES) {
      if (c + part < FACTOR_LINE)
        matrix_memory[factors_place() + line_of(i) * FACTOR_LINE + c + part] =
            uvec4(floatBitsToUint(divisor));
    }
  }
  subgroupBarrier();
}

void divide_outputs() {
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
    MatrixC factors;
    load_sums(factors, factors_place() + i * INSTR_M * FACTOR_LINE, FACTOR_LINE);
    [[unroll]] for (uint c = 0; c < DIM_BLOCKS; ++c)
      outputs[i * DIM_BLOCKS + c] = divide(outputs[i * DIM_BLOCKS + c], factors);
  }
}

void add_values() {
  [[unroll]] for (uint j = 0; j < BK / INSTR_K; ++j) {
    MatrixA weights[ROW_BLOCKS];
    [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i)
      load_matrix(weights[i],
                  scores_place() + i * INSTR_M * WEIGHT_LINE + j * (INSTR_K / 8), WEIGHT_LINE,
                  ROW_MAJOR);
    [[unroll]] for (uint c = 0; c < DIM_BLOCKS; ++c) {
      MatrixB v;
      load_matrix(v, VALUES_PLACE + j * INSTR_K * VALUE_LINE + c * (INSTR_N / 8), VALUE_LINE,
                  ROW_MAJOR);
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
void put_joined(uint row, uint d, float x, float greatest, float sum) {
  const uint64_t at = result_row(tile_first + row);
  const float kept = add_sink(head_of(tile_first + row), greatest, sum);
  store_out(args.result + (at + d) * OUT_BYTES, sum == 0.0 ? 0.0 : x * kept / sum);  // 0: no key
  if (d == 0) put_lse(at, greatest, sum);
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

// INSTR_M rows of BK dimensions, from d on.
void put_piece(uint block, uint d) {
  [[unroll]] for (uint e = 0; e < INSTR_M * (BK / 4); e += SUBGROUP) {
    const uint at = e + gl_SubgroupInvocationID, row = at / (BK / 4), four = at % (BK / 4);
    const uint line = block * INSTR_M + row, own = gl_SubgroupID * WQ + line;
    if (tile_first + own >= tile_rows() || d + four * 4 >= V_DIM || row >= INSTR_M) continue;
    const float factor = uintBitsToFloat(matrix_memory[factors_place() + line * FACTOR_LINE].x);
    const vec4 x = uintBitsToFloat(matrix_memory[scores_place() + row * SCORE_LINE + four]);
    put_four(own, d + four * 4, x * factor);
  }
}

// Outputs leave in pieces, so that neighbouring lanes write neighbouring ones. All loops that name
// matrices have constant bounds: else NVIDIA's compiler keeps them in memory.
void put_outputs() {
  subgroupBarrier();  // weights and factors were read
  [[unroll]] for (uint i = 0; i < LANE_ROWS; ++i) {
    [[unroll]] for (uint step = ROW_LANES / 2; step > 0; step /= 2)
      sum[i] += subgroupShuffleXor(sum[i], step);
    const uint row = tile_first + gl_SubgroupID * WQ + line_of(i);
    float greatest = base[i], total = sum[i];
    const float kept = add_sink(head_of(row), greatest, total);
    // Without a key, nothing is attended to.
    float factor = total == 0.0 ? 0.0 : kept / total;
    const bool first_lane = gl_SubgroupInvocationID % ROW_LANES == 0;
    if (LSE != 0 && slices == 1 && first_lane && row < tile_rows())
      put_lse(result_row(row), greatest, total);
#if SPLIT > 1
    if (slices > 1) {
      factor = 1.0;
      const uint64_t to = slice_sums(workgroup(), gl_WorkGroupID.z, gl_SubgroupID * WQ + line_of(i));
      if (first_lane) Partial2(to + V_DIM * 4).v = vec2(base[i], sum[i]);
    }
#endif
    matrix_memory[factors_place() + line_of(i) * FACTOR_LINE].x = floatBitsToUint(factor);
  }
  subgroupBarrier();
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
    [[unroll]] for (uint d = 0; d < DIM_BLOCKS; d += KEY_BLOCKS) {
      [[unroll]] for (uint c = 0; c < KEY_BLOCKS; ++c) {
        if (d + c < DIM_BLOCKS)
          store_matrix(outputs[i * DIM_BLOCKS + d + c], scores_place() + c * (INSTR_N / 4),
                       SCORE_LINE);
      }
      subgroupBarrier();
      put_piece(i, d * INSTR_N);
      subgroupBarrier();
    }
  }
}

void main() {
  const uint readers = tile_sets() * tile_heads() * args.tiles;
  if (workgroup() >= readers) return;
  tid = gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID;
  pick_tile(tile_heads(), workgroup(), GROUP);
  if (PACKED != 0 && tile_first >= tile_rows()) return;
  find_lines(sequence, kv_head());
  const uint count = key_count(sequence);
  uint begin = tile_begin(count), end = tile_end(count);
  slices = 1;
#if SPLIT > 1
  // Each slice has as many whole tiles.
  const uint all = end - begin, keys = (all + SPLIT * BK - 1) / (SPLIT * BK) * BK;
  if (keys > 0) slices = (all + keys - 1) / keys;
  if (gl_WorkGroupID.z >= slices) return;
  begin += gl_WorkGroupID.z * keys;
  end = min(begin + keys, end);
#endif
  const uint own = tile_first + gl_SubgroupID * WQ;  // the subgroup's first row
  [[unroll]] for (uint i = 0; i < LANE_ROWS; ++i) {
    base[i] = LOWEST_SCORE;
    sum[i] = 0.0;
    hidden[i] = hidden_keys(count, query_of(own + line_of(i)));
    seen[i] = visible_keys(count, query_of(own + line_of(i)));
  }
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS * DIM_BLOCKS; ++i) outputs[i] = zero_matrix();

  fetch_keys(begin, end - begin);
  bring_queries();
#if QREG
  barrier();
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
    [[unroll]] for (uint d = 0; d < DEPTHS; ++d)
      hold_matrix(queries[i * DEPTHS + d], i * DEPTHS + d, query_place(i, d), LINE);
  }
  barrier();
#endif
  [[dont_unroll]] for (uint key = begin; key < end; key += BK) {
    put_tile(KEYS_PLACE, DIM / 8);
    barrier();
    fetch_values(key, end - key);
    add_scores();
    weigh(key);
    put_tile(VALUES_PLACE, V_DIM / 8);
    barrier();
    fetch_keys(key + BK, end - min(end, key + BK));
    divide_outputs();
    add_values();
  }
  put_outputs();
#if SPLIT > 1
  if (slices == 1) return;
  if (!last_to_arrive(args.counters + uint64_t(workgroup()) * 4, slices)) return;
  join_slices(tid, workgroup(), slices, min(BQ, tile_rows() - tile_first));
#endif
}
