// Rows that share keys, by plain multiplications. As rows_vector.hip.

#if !defined(BQ) || !defined(BK) || !defined(TQ) || !defined(LANES) || !defined(VEC) || \
    !defined(IN_PACK) || !defined(IN_RAW)
#error "BQ BK TQ LANES VEC IN_PACK and IN_RAW must be defined"
#endif

#define THREADS (BQ / TQ * LANES)

#if BQ % TQ != 0 || BK % LANES != 0 || BK % 4 != 0 || DIM % VEC != 0 || V_DIM % (VEC * LANES) != 0
#error "TQ divides BQ, 4 and LANES divide BK, VEC DIM, and VEC LANES V_DIM"
#endif

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : enable
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : enable

#include "common/in_out.glsl"
#include "attention/operands.glsl"
#include "latent_attention/rows.glsl"
#if SPLIT > 1
#define SLICE_ROWS BQ
#include "attention/slices.glsl"
#endif

layout(local_size_x = THREADS) in;

// Lines in shared memory, in packs of VEC elements; spread over the banks.
#define PACKS (DIM / VEC)
#define VALUE_PACKS (V_DIM / VEC)
#define PITCH (PACKS + 1)
#if SHARED
#define VALUE_PITCH PITCH
#define VALUE_TILE 0
#else
#define VALUE_PITCH (VALUE_PACKS + 1)
#define VALUE_TILE (BK * PITCH)  // where values begin, behind the keys
#endif
#if SHARED
#define TILE_PACKS (BK * PITCH)
#else
#define TILE_PACKS (BK * (PITCH + VALUE_PITCH))
#endif
#define WEIGHT_PITCH (BK / 4 + 1)
#define KEYS (BK / LANES)                // of a thread
#define PIECES (V_DIM / (VEC * LANES))
#define UNITS ((BK * PACKS + THREADS - 1) / THREADS)
#define VALUE_UNITS ((BK * VALUE_PACKS + THREADS - 1) / THREADS)

shared IN_RAW query_tile[BQ * PITCH];
shared IN_RAW key_tile[TILE_PACKS];
shared vec4 weight_tile[BQ * WEIGHT_PITCH];
#if SPLIT > 1
shared float joined[SLICE_FLOATS];
float join_float(uint i) { return joined[i]; }
void set_join_float(uint i, float x) { joined[i] = x; }
#endif

uint tid;  // threads of a subgroup are neighbours
uint line, lane;
IN_RAW fetched[UNITS];
#if !SHARED
IN_RAW fetched_values[VALUE_UNITS];
#endif
float score[TQ * KEYS];
float greatest[TQ], sum[TQ];
float value[TQ * PIECES * VEC];
uint end[TQ];  // the thread's rows see no key from here on

// Start loading lines from key `first` on; zeros behind the last one.
void fetch(uint first) {
  if (first >= slice_end) return;
  const uint lines = min(slice_end - first, BK);
  [[unroll]] for (uint i = 0; i < UNITS; ++i) {
    const uint at = (tid + i * THREADS) * VEC;
    fetched[i] = IN_RAW(0);
    if (at < lines * DIM) fetched[i] = IN_RAW(IN_PACK(args.k + key_offset(first, at) * IN_BYTES).v);
  }
#if !SHARED
  [[unroll]] for (uint i = 0; i < VALUE_UNITS; ++i) {
    const uint at = (tid + i * THREADS) * VEC;
    fetched_values[i] = IN_RAW(0);
    if (at < lines * V_DIM)
      fetched_values[i] = IN_RAW(IN_PACK(args.v + value_offset(first, at) * IN_BYTES).v);
  }
#endif
}

void put_tile() {
  [[unroll]] for (uint i = 0; i < UNITS; ++i) {
    const uint at = tid + i * THREADS;
    if (at < BK * PACKS) key_tile[at / PACKS * PITCH + at % PACKS] = fetched[i];
  }
#if !SHARED
  [[unroll]] for (uint i = 0; i < VALUE_UNITS; ++i) {
    const uint at = tid + i * THREADS;
    if (at < BK * VALUE_PACKS)
      key_tile[VALUE_TILE + at / VALUE_PACKS * VALUE_PITCH + at % VALUE_PACKS] = fetched_values[i];
  }
#endif
}

void load_queries() {
  [[dont_unroll]] for (uint at = tid; at < BQ * PACKS; at += THREADS) {
    const uint row = at / PACKS;
    IN_RAW raw = IN_RAW(0);
    if (row < rows_own)
      raw = IN_RAW(IN_PACK(args.q + (query_row(tile_first + row) + at % PACKS * VEC) * IN_BYTES).v);
    query_tile[row * PITCH + at % PACKS] = raw;
  }
}

void add_scores() {
  [[unroll]] for (uint e = 0; e < TQ * KEYS; ++e) score[e] = 0.0;
  [[dont_unroll]] for (uint d = 0; d < PACKS; ++d) {
    float q[TQ * VEC];
    [[unroll]] for (uint i = 0; i < TQ; ++i) {
      float e[VEC];
      unpack(query_tile[(line + i) * PITCH + d], e);
      [[unroll]] for (uint x = 0; x < VEC; ++x) q[i * VEC + x] = e[x];
    }
    [[unroll]] for (uint j = 0; j < KEYS; ++j) {
      float k[VEC];
      unpack(key_tile[(lane + j * LANES) * PITCH + d], k);
      [[unroll]] for (uint i = 0; i < TQ; ++i) {
        [[unroll]] for (uint x = 0; x < VEC; ++x)
          score[i * KEYS + j] = fma(q[i * VEC + x], k[x], score[i * KEYS + j]);
      }
    }
  }
}

// Turns scores into weights, which go to shared memory. `key` is the tile's first.
void weigh(uint key) {
  [[unroll]] for (uint i = 0; i < TQ; ++i) {
    bool seen[KEYS];
    float most = LOWEST_SCORE;
    [[unroll]] for (uint j = 0; j < KEYS; ++j) {
      seen[j] = sees(tile_first + line + i, end[i], key + lane + j * LANES);
      score[i * KEYS + j] *= args.scale;
      if (seen[j]) most = max(most, score[i * KEYS + j]);
    }
    [[unroll]] for (uint step = LANES / 2; step > 0; step /= 2)
      most = max(most, subgroupShuffleXor(most, step));
    most = max(most, greatest[i]);
    const float kept = exp2(greatest[i] - most);
    greatest[i] = most;
    float added = 0.0;
    [[unroll]] for (uint j = 0; j < KEYS; ++j) {
      const uint at = lane + j * LANES;
      const float weight = seen[j] ? exp2(score[i * KEYS + j] - most) : 0.0;
      added += weight;
      weight_tile[(line + i) * WEIGHT_PITCH + at / 4][at % 4] = weight;
    }
    [[unroll]] for (uint step = LANES / 2; step > 0; step /= 2)
      added += subgroupShuffleXor(added, step);
    sum[i] = fma(sum[i], kept, added);
    [[unroll]] for (uint e = 0; e < PIECES * VEC; ++e) value[i * PIECES * VEC + e] *= kept;
  }
}

void add_values() {
  [[dont_unroll]] for (uint j = 0; j < BK / 4; ++j) {
    vec4 w[TQ];
    [[unroll]] for (uint i = 0; i < TQ; ++i) w[i] = weight_tile[(line + i) * WEIGHT_PITCH + j];
    [[unroll]] for (uint l = 0; l < 4; ++l) {
      [[unroll]] for (uint p = 0; p < PIECES; ++p) {
        float v[VEC];
        unpack(key_tile[VALUE_TILE + (j * 4 + l) * VALUE_PITCH + p * LANES + lane], v);
        [[unroll]] for (uint i = 0; i < TQ; ++i) {
          [[unroll]] for (uint e = 0; e < VEC; ++e) {
            const uint to = (i * PIECES + p) * VEC + e;
            value[to] = fma(w[i][l], v[e], value[to]);
          }
        }
      }
    }
  }
}

#if SPLIT > 1
void put_joined(uint row, uint d, float x, float greatest_of, float total) {
  const uint64_t at = result_row(tile_first + row);
  store_out(args.result + (at + d) * OUT_BYTES, total == 0.0 ? 0.0 : x / total);  // 0: no key
  if (d == 0) put_lse(at, greatest_of, total);
}
#endif

// The dimension of element e of a thread's values.
uint dimension_of(uint e) { return (e / VEC * LANES + lane) * VEC + e % VEC; }

void main() {
  if (!pick_part()) return;
  tid = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  line = tid / LANES * TQ;
  lane = tid % LANES;
  [[unroll]] for (uint i = 0; i < TQ; ++i) {
    greatest[i] = LOWEST_SCORE;
    sum[i] = 0.0;
    end[i] = visible_keys(rows_count, own_query(tile_first + line + i));
    [[unroll]] for (uint e = 0; e < PIECES * VEC; ++e) value[i * PIECES * VEC + e] = 0.0;
  }
  fetch(slice_begin);
  load_queries();
  [[dont_unroll]] for (uint key = slice_begin; key < slice_end; key += BK) {
    barrier();  // the values before were read
    put_tile();
    barrier();
    fetch(key + BK);
    add_scores();
    weigh(key);
    barrier();
    add_values();
  }

  [[unroll]] for (uint i = 0; i < TQ; ++i) {
    if (line + i >= rows_own) continue;
#if SPLIT > 1
    if (slices > 1) {
      const uint64_t to = slice_sums(workgroup(), gl_WorkGroupID.z, line + i);
      [[unroll]] for (uint e = 0; e < PIECES * VEC; ++e)
        Partial(to + dimension_of(e) * 4).v = value[i * PIECES * VEC + e];
      if (lane == 0) Partial2(to + V_DIM * 4).v = vec2(greatest[i], sum[i]);
      continue;
    }
#endif
    // Without a key, nothing is attended to.
    const float factor = sum[i] == 0.0 ? 0.0 : 1.0 / sum[i];
    const uint64_t offset = result_row(tile_first + line + i);
    if (lane == 0) put_lse(offset, greatest[i], sum[i]);
    const uint64_t at = args.result + offset * OUT_BYTES;
#if VEC >= 4
    [[unroll]] for (uint e = 0; e < PIECES * VEC; e += 4) {
      const uint from = i * PIECES * VEC + e;
      const vec4 four = vec4(value[from], value[from + 1], value[from + 2], value[from + 3]);
      store_out4(at + dimension_of(e) * OUT_BYTES, four * factor);
    }
#else
    [[unroll]] for (uint e = 0; e < PIECES * VEC; ++e)
      store_out(at + dimension_of(e) * OUT_BYTES, value[i * PIECES * VEC + e] * factor);
#endif
  }
#if SPLIT > 1
  if (slices == 1) return;
  if (!last_to_arrive(args.counters + uint64_t(workgroup()) * 4, slices)) return;
  join_slices(tid, workgroup(), slices, rows_own);
#endif
}
