// A workgroup has BQ queries of one head and walks through their keys in tiles of BK, by plain
// multiplications. LANES threads share TQ queries: of a tile's scores, each has every LANES-th key;
// of the outputs, every LANES-th four dimensions. Keys and values take turns in the same shared
// memory, and wait in registers before. Greatest scores and sums of exponentials run along (Milakov
// and Gimelshein, "Online normalizer calculation for softmax", 2018).

#if !defined(BQ) || !defined(BK) || !defined(TQ) || !defined(LANES) || !defined(VEC) || \
    !defined(TOGETHER)
#error "BQ BK TQ LANES VEC and TOGETHER must be defined"
#endif

#define THREADS (BQ / TQ * LANES)

#if BQ % TQ != 0 || BK % LANES != 0 || BK % 4 != 0 || V_DIM % (4 * LANES) != 0 || \
    DIM % VEC != 0 || V_DIM % VEC != 0
#error "TQ divides BQ, 4 and LANES divide BK, 4 LANES divide V_DIM, and VEC DIM and V_DIM"
#endif
#if TOGETHER < 1
#error "TOGETHER is at least 1"
#endif

#include "attention/operands.hip"
#include "attention/order.hip"

static_assert(LANES <= wave_size, "the threads of a query are in one wave");

// In floats; spread over the banks.
constexpr u32 pitch = DIM + 4, value_pitch = V_DIM + 4, weight_pitch = BK + 4;
constexpr u32 tile_floats = BK * (pitch > value_pitch ? pitch : value_pitch);  // keys or values
constexpr u32 keys_of_thread = BK / LANES, fours = V_DIM / (4 * LANES);

GRETA_DEVICE void put_pack(float* to, const Pack<In, VEC>& pack, float factor) {
  GRETA_UNROLL
  for (u32 e = 0; e < VEC; ++e) to[e] = factor * element(pack, int(e));
}

// Copies lines of `dim` elements to shared memory, as f32. Those from line `left` on are zeros.
template <u32 dim>
struct Loader {
  static constexpr u32 packs = BK * dim / VEC;
  static constexpr u32 units = (packs + THREADS - 1) / THREADS;
  Pack<In, VEC> pack[units];

  GRETA_DEVICE void fetch(const Lines<dim>& lines, u32 left) {
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      const u32 at = (thread_index() + i * THREADS) * VEC;
      pack[i] = {};
      if (at < smaller(left, BK) * dim) pack[i] = load_pack<VEC>(lines.element(at));
    }
  }

  GRETA_DEVICE void put(float* shared) const {
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      const u32 at = (thread_index() + i * THREADS) * VEC;
      if (packs % THREADS != 0 && at >= BK * dim) continue;
      put_pack(shared + at / dim * (dim + 4) + at % dim, pack[i], 1.0f);
    }
  }
};

GRETA_DEVICE void load_queries(const Arguments& args, const Tile& tile, float* shared) {
  GRETA_NO_UNROLL
  for (u32 at = thread_index() * VEC; at < BQ * DIM; at += THREADS * VEC) {
    const u32 line = at / DIM, query = tile.first + line;
    Pack<In, VEC> pack = {};
    if (query < args.queries) {
      pack = load_pack<VEC>(args.q + query_offset(args, tile.sequence, query, tile.head) + at % DIM);
    }
    put_pack(shared + line * pitch + at % DIM, pack, args.scale);
  }
}

// What a thread has of its queries.
struct Rows {
  float greatest[TQ], sum[TQ], value[TQ][fours * 4];

  // Scores of a tile of keys; `queries` are the thread's.
  static GRETA_DEVICE void score(const float* queries, const float* keys,
                                 float (&scores)[TQ][keys_of_thread]) {
    const u32 lane = thread_index() % LANES;
    GRETA_UNROLL
    for (u32 i = 0; i < TQ; ++i) {
      GRETA_UNROLL
      for (u32 j = 0; j < keys_of_thread; ++j) scores[i][j] = 0.0f;
    }
    GRETA_NO_UNROLL
    for (u32 d = 0; d < DIM; d += 4) {
      Pack<float, 4> q[TQ], k[keys_of_thread];
      GRETA_UNROLL
      for (u32 i = 0; i < TQ; ++i) q[i] = load_pack<4>(queries + i * pitch + d);
      GRETA_UNROLL
      for (u32 j = 0; j < keys_of_thread; ++j) {
        k[j] = load_pack<4>(keys + (lane + j * LANES) * pitch + d);
      }
      GRETA_UNROLL
      for (u32 i = 0; i < TQ; ++i) {
        GRETA_UNROLL
        for (u32 j = 0; j < keys_of_thread; ++j) {
          GRETA_UNROLL
          for (int e = 0; e < 4; ++e) {
            scores[i][j] = multiply_add(element(q[i], e), element(k[j], e), scores[i][j]);
          }
        }
      }
    }
  }

  // Turns scores into weights, which go to shared memory. Each of the thread's queries sees keys
  // from `skipped` to `left` of the tile.
  GRETA_DEVICE void weigh(const Arguments& args, float (&scores)[TQ][keys_of_thread],
                          const u32 (&skipped)[TQ], const u32 (&left)[TQ], float* weights) {
    const u32 lane = thread_index() % LANES;
    GRETA_UNROLL
    for (u32 i = 0; i < TQ; ++i) {
      float most = lowest_score;
      GRETA_UNROLL
      for (u32 j = 0; j < keys_of_thread; ++j) {
        scores[i][j] = capped(args, scores[i][j]);
        if (seen(lane + j * LANES, skipped[i], left[i])) most = larger(most, scores[i][j]);
      }
      most = larger(reduce_lanes<LANES>(most, Larger{}), greatest[i]);
      const float kept = fast_exp2(greatest[i] - most);
      greatest[i] = most;
      float added = 0.0f;
      GRETA_UNROLL
      for (u32 j = 0; j < keys_of_thread; ++j) {
        const float weight = seen(lane + j * LANES, skipped[i], left[i])
                                 ? fast_exp2(scores[i][j] - most)
                                 : 0.0f;
        added += weight;
        weights[i * weight_pitch + lane + j * LANES] = weight;
      }
      sum[i] = multiply_add(sum[i], kept, reduce_lanes<LANES>(added, Add{}));
      GRETA_UNROLL
      for (u32 e = 0; e < fours * 4; ++e) value[i][e] *= kept;
    }
  }

  GRETA_DEVICE void add_values(const float* weights, const float* values) {
    const u32 lane = thread_index() % LANES;
    GRETA_NO_UNROLL
    for (u32 j = 0; j < BK; j += 4) {
      Pack<float, 4> w[TQ];
      GRETA_UNROLL
      for (u32 i = 0; i < TQ; ++i) w[i] = load_pack<4>(weights + i * weight_pitch + j);
      GRETA_UNROLL
      for (int l = 0; l < 4; ++l) {
        GRETA_UNROLL
        for (u32 p = 0; p < fours; ++p) {
          const auto v = load_pack<4>(values + (j + u32(l)) * value_pitch + (p * LANES + lane) * 4);
          GRETA_UNROLL
          for (u32 i = 0; i < TQ; ++i) {
            GRETA_UNROLL
            for (u32 e = 0; e < 4; ++e) {
              float& to = value[i][p * 4 + e];
              to = multiply_add(element(w[i], l), element(v, int(e)), to);
            }
          }
        }
      }
    }
  }

  static GRETA_DEVICE bool seen(u32 key, u32 skipped, u32 left) {
    return key < left && (!WINDOW || key >= skipped);
  }

  // Row i of the thread's queries, whose output is at `offset`.
  GRETA_DEVICE void put(const Arguments& args, u64 offset, u32 head, u32 i) const {
    RowSum row{greatest[i], sum[i]};
    const float factor = row.factor(args, head);
    if (thread_index() % LANES == 0) row.put_lse(args, offset);
    Out* const to = args.out + offset;
    GRETA_UNROLL
    for (u32 p = 0; p < fours; ++p) {
      float four[4];
      GRETA_UNROLL
      for (u32 e = 0; e < 4; ++e) four[e] = value[i][p * 4 + e] * factor;
      store_pack(to + (p * LANES + thread_index() % LANES) * 4, narrow_pack<Out>(four));
    }
  }
};

GRETA_KERNEL(THREADS) attention_vector(ATTENTION_PARAMETERS) {
  begin_launch();
  GRETA_DYNAMIC_SHARED(float, shared);
  float* const query_tile = shared;
  float* const key_tile = query_tile + BQ * pitch;  // or values
  float* const weight_tile = key_tile + tile_floats;
  Arguments args = ATTENTION_ARGUMENTS;
  if (block_index<THREADS>() >= tile_sets(args) * heads * tiles) return;
  const Tile tile = pick_tile(args, block_index<THREADS>());
  if (PACKED && tile.first >= args.queries) return;
  const KeyRange range = tile_keys(args, tile);
  const u32 end = range.end - range.begin, count = key_count(args, tile.sequence);
  const u32 kv_head = tile.head / (heads / kv_heads);
  const KeyLines k_lines = KeyLines(args, args.k, tile.sequence, kv_head).from(range.begin);
  const ValueLines v_lines = ValueLines(args, args.v, tile.sequence, kv_head).from(range.begin);
  const u32 line = thread_index() / LANES * TQ;  // of the thread's first query

  Rows rows;
  u32 skipped[TQ], left[TQ];
  GRETA_UNROLL
  for (u32 i = 0; i < TQ; ++i) {
    rows.greatest[i] = lowest_score;
    rows.sum[i] = 0.0f;
    left[i] = visible_keys(count, args.queries, tile.first + line + i) - range.begin;
    skipped[i] = hidden_keys(args, count, tile.first + line + i) - range.begin;
    GRETA_UNROLL
    for (u32 e = 0; e < fours * 4; ++e) rows.value[i][e] = 0.0f;
  }

  Loader<DIM> key_loader;
  Loader<V_DIM> value_loader;
  key_loader.fetch(k_lines, end);
  load_queries(args, tile, query_tile);
  GRETA_NO_UNROLL
  for (u32 key = 0; key < end; key += BK) {
    block_barrier();  // the values before were read
    key_loader.put(key_tile);
    block_barrier();
    value_loader.fetch(v_lines.from(key), end - key);
    float scores[TQ][keys_of_thread];
    Rows::score(query_tile + line * pitch, key_tile, scores);
    rows.weigh(args, scores, skipped, left, weight_tile + line * weight_pitch);
    block_barrier();
    value_loader.put(key_tile);
    block_barrier();
    if (key + BK < end) key_loader.fetch(k_lines.from(key + BK), end - key - BK);
    rows.add_values(weight_tile + line * weight_pitch, key_tile);
    GRETA_UNROLL
    for (u32 i = 0; i < TQ; ++i) {
      left[i] -= smaller(left[i], BK);
      skipped[i] -= smaller(skipped[i], BK);
    }
  }

  GRETA_UNROLL
  for (u32 i = 0; i < TQ; ++i) {
    const u32 query = tile.first + line + i;
    if (query < args.queries) {
      rows.put(args, output_offset(args, tile.sequence, query, tile.head), tile.head, i);
    }
  }
}
