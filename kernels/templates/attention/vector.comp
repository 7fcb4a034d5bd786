#version 460
// A workgroup has BQ queries of one head and walks through their keys in tiles of BK, by plain
// multiplications. LANES threads share TQ queries: of a tile's scores, each has every LANES-th key;
// of the outputs, every LANES-th four dimensions. Keys and values take turns in the same shared
// memory, and wait in registers before. Greatest scores and sums of exponentials run along (Milakov
// and Gimelshein, "Online normalizer calculation for softmax", 2018).

#if !defined(BQ) || !defined(BK) || !defined(TQ) || !defined(LANES) || !defined(VEC) || \
    !defined(TOGETHER) || !defined(IN_PACK) || !defined(IN_RAW)
#error "BQ BK TQ LANES VEC TOGETHER IN_PACK and IN_RAW must be defined"
#endif

#define THREADS (BQ / TQ * LANES)

#if BQ % TQ != 0 || BK % LANES != 0 || BK % 4 != 0 || V_DIM % (4 * LANES) != 0 || \
    DIM % VEC != 0 || V_DIM % VEC != 0
#error "TQ divides BQ, 4 and LANES divide BK, 4 LANES divide V_DIM, and VEC DIM and V_DIM"
#endif
#if TOGETHER < 1
#error "TOGETHER is at least 1"
#endif

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#include "common/in_out.glsl"
#include "attention/operands.glsl"
#include "attention/order.glsl"

layout(local_size_x = THREADS) in;

// In fours of floats; spread over the banks.
#define PITCH (DIM / 4 + 1)
#define VALUE_PITCH (V_DIM / 4 + 1)
#define WEIGHT_PITCH (BK / 4 + 1)
#define KEYS (BK / LANES)  // of a thread
#define FOURS (V_DIM / (4 * LANES))

// Of keys or values, whichever are longer.
#if DIM > V_DIM
#define TILE_PITCH PITCH
#define PACKS (BK * DIM / VEC)
#else
#define TILE_PITCH VALUE_PITCH
#define PACKS (BK * V_DIM / VEC)
#endif
#define UNITS ((PACKS + THREADS - 1) / THREADS)

shared vec4 query_tile[BQ * PITCH];
shared vec4 key_tile[BK * TILE_PITCH];  // or values
shared vec4 weight_tile[BQ * WEIGHT_PITCH];

uint tid;  // threads of a subgroup are neighbours
uint line, lane;
IN_RAW fetched[UNITS];
float score[TQ * KEYS];
float greatest[TQ], sum[TQ];
vec4 value[TQ * FOURS];
uint skipped[TQ], left[TQ];  // the thread's queries see keys of the tile from `skipped` to `left`

// Start loading lines of keys or values from key `first` on; zeros from line `lines` on.
void fetch_keys(uint first, uint lines) {
  [[unroll]] for (uint i = 0; i < UNITS; ++i) {
    const uint at = (tid + i * THREADS) * VEC;
    fetched[i] = IN_RAW(0);
    if (at >= min(lines, BK) * DIM) continue;
    fetched[i] = IN_RAW(IN_PACK(args.k + key_offset(first, at) * IN_BYTES).v);
  }
}
void fetch_values(uint first, uint lines) {
  [[unroll]] for (uint i = 0; i < UNITS; ++i) {
    const uint at = (tid + i * THREADS) * VEC;
    fetched[i] = IN_RAW(0);
    if (at >= min(lines, BK) * V_DIM) continue;
    fetched[i] = IN_RAW(IN_PACK(args.v + value_offset(first, at) * IN_BYTES).v);
  }
}

// Puts lines of `dim` elements into shared memory.
void put_tile(const uint dim) {
  [[unroll]] for (uint i = 0; i < UNITS; ++i) {
    const uint at = (tid + i * THREADS) * VEC;
    float e[VEC];
    unpack(fetched[i], e);
    if (at >= BK * dim) continue;
    [[unroll]] for (uint j = 0; j < VEC; ++j) {
      const uint d = at % dim + j;
      key_tile[at / dim * (dim / 4 + 1) + d / 4][d % 4] = e[j];
    }
  }
}

void load_queries() {
  [[dont_unroll]] for (uint at = tid * VEC; at < BQ * DIM; at += THREADS * VEC) {
    const uint query = tile_first + at / DIM;
    IN_RAW raw = IN_RAW(0);
    if (query < query_count()) {
      const uint64_t from = query_offset(sequence, query, head) + at % DIM;
      raw = IN_RAW(IN_PACK(args.q + from * IN_BYTES).v);
    }
    float e[VEC];
    unpack(raw, e);
    [[unroll]] for (uint j = 0; j < VEC; ++j) {
      const uint d = at % DIM + j;
      query_tile[at / DIM * PITCH + d / 4][d % 4] = args.scale * e[j];
    }
  }
}

void add_scores() {
  [[unroll]] for (uint e = 0; e < TQ * KEYS; ++e) score[e] = 0.0;
  [[dont_unroll]] for (uint d = 0; d < DIM / 4; ++d) {
    vec4 q[TQ];
    [[unroll]] for (uint i = 0; i < TQ; ++i) q[i] = query_tile[(line + i) * PITCH + d];
    [[unroll]] for (uint j = 0; j < KEYS; ++j) {
      const vec4 k = key_tile[(lane + j * LANES) * PITCH + d];
      [[unroll]] for (uint i = 0; i < TQ; ++i) {
        float s = score[i * KEYS + j];
        s = fma(q[i].x, k.x, s);
        s = fma(q[i].y, k.y, s);
        s = fma(q[i].z, k.z, s);
        score[i * KEYS + j] = fma(q[i].w, k.w, s);
      }
    }
  }
}

bool is_seen(uint i, uint key) { return key < left[i] && (WINDOW == 0 || key >= skipped[i]); }

// Turns scores into weights, which go to shared memory.
void weigh() {
  [[unroll]] for (uint i = 0; i < TQ; ++i) {
    float most = LOWEST_SCORE;
    [[unroll]] for (uint j = 0; j < KEYS; ++j) {
      score[i * KEYS + j] = capped(score[i * KEYS + j]);
      if (is_seen(i, lane + j * LANES)) most = max(most, score[i * KEYS + j]);
    }
    [[unroll]] for (uint step = LANES / 2; step > 0; step /= 2)
      most = max(most, subgroupShuffleXor(most, step));
    most = max(most, greatest[i]);
    const float kept = exp2(greatest[i] - most);
    greatest[i] = most;
    float added = 0.0;
    [[unroll]] for (uint j = 0; j < KEYS; ++j) {
      const uint key = lane + j * LANES;
      const float weight = is_seen(i, key) ? exp2(score[i * KEYS + j] - most) : 0.0;
      added += weight;
      weight_tile[(line + i) * WEIGHT_PITCH + key / 4][key % 4] = weight;
    }
    [[unroll]] for (uint step = LANES / 2; step > 0; step /= 2)
      added += subgroupShuffleXor(added, step);
    sum[i] = fma(sum[i], kept, added);
    [[unroll]] for (uint p = 0; p < FOURS; ++p) value[i * FOURS + p] *= kept;
  }
}

void add_values() {
  [[dont_unroll]] for (uint j = 0; j < BK / 4; ++j) {
    vec4 w[TQ];
    [[unroll]] for (uint i = 0; i < TQ; ++i) w[i] = weight_tile[(line + i) * WEIGHT_PITCH + j];
    [[unroll]] for (uint l = 0; l < 4; ++l) {
      [[unroll]] for (uint p = 0; p < FOURS; ++p) {
        const vec4 v = key_tile[(j * 4 + l) * VALUE_PITCH + p * LANES + lane];
        [[unroll]] for (uint i = 0; i < TQ; ++i)
          value[i * FOURS + p] = fma(vec4(w[i][l]), v, value[i * FOURS + p]);
      }
    }
  }
}

void main() {
  if (workgroup() >= tile_sets() * args.heads * args.tiles) return;
  tid = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  line = tid / LANES * TQ;
  lane = tid % LANES;
  pick_tile(args.heads, workgroup(), 1);
  if (PACKED != 0 && tile_first >= query_count()) return;
  find_lines(sequence, head / (args.heads / args.kv_heads));
  const uint count = key_count(sequence);
  const uint begin = hidden_keys(count, tile_first);
  const uint end = visible_keys(count, min(tile_first + BQ, query_count()) - 1) - begin;
  [[unroll]] for (uint i = 0; i < TQ; ++i) {
    greatest[i] = LOWEST_SCORE;
    sum[i] = 0.0;
    left[i] = visible_keys(count, tile_first + line + i) - begin;
    skipped[i] = hidden_keys(count, tile_first + line + i) - begin;
    [[unroll]] for (uint p = 0; p < FOURS; ++p) value[i * FOURS + p] = vec4(0.0);
  }

  fetch_keys(begin, end);
  load_queries();
  [[dont_unroll]] for (uint key = 0; key < end; key += BK) {
    barrier();  // the values before were read
    put_tile(DIM);
    barrier();
    fetch_values(begin + key, end - key);
    add_scores();
    weigh();
    barrier();
    put_tile(V_DIM);
    barrier();
    if (key + BK < end) fetch_keys(begin + key + BK, end - key - BK);
    add_values();
    [[unroll]] for (uint i = 0; i < TQ; ++i) {
      left[i] -= min(left[i], BK);
      skipped[i] -= min(skipped[i], BK);
    }
  }

  [[unroll]] for (uint i = 0; i < TQ; ++i) {
    const uint query = tile_first + line + i;
    if (query >= query_count()) continue;
    // Without a key, nothing is attended to.
    const float kept = add_sink(head, greatest[i], sum[i]);
    const float factor = sum[i] == 0.0 ? 0.0 : kept / sum[i];
    const uint64_t offset = result_offset(sequence, query, head);
    if (lane == 0) put_lse(offset, greatest[i], sum[i]);
    const uint64_t at = args.result + offset * OUT_BYTES;
    [[unroll]] for (uint p = 0; p < FOURS; ++p)
      store_out4(at + (p * LANES + lane) * 4 * OUT_BYTES, value[i * FOURS + p] * factor);
  }
}
