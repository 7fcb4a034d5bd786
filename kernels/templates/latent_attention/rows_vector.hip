// Rows that share keys (rows.hip), by plain multiplications. A workgroup has BQ rows and walks through
// their keys, or one of SPLIT slices of them, in tiles of BK. A tile lies in shared memory in the
// inputs' type and serves the scores and the outputs; with SHARED it is read once for both. LANES
// threads share TQ rows: of a tile's scores, each has every LANES-th key; of the outputs, every
// LANES-th piece of VEC dimensions. Greatest scores and sums of exponentials run along (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018).

#if !defined(BQ) || !defined(BK) || !defined(TQ) || !defined(LANES) || !defined(VEC) || \
    !defined(KERNEL_NAME)
#error "BQ BK TQ LANES VEC and KERNEL_NAME must be defined"
#endif

#define THREADS (BQ / TQ * LANES)
#define ASYNC 0

#if BQ % TQ != 0 || BK % LANES != 0 || BK % 4 != 0 || DIM % VEC != 0 || V_DIM % (VEC * LANES) != 0
#error "TQ divides BQ, 4 and LANES divide BK, VEC DIM, and VEC LANES V_DIM"
#endif

#include "latent_attention/rows.hip"

static_assert(LANES <= wave_size, "the threads of a row are in one wave");

// Of lines in shared memory, in elements; spread over the banks.
template <u32 dim>
constexpr u32 pitch_of = dim + 16 / u32(sizeof(In));
constexpr u32 pitch = pitch_of<DIM>, weight_pitch = BK + 4;
constexpr u32 value_pitch = SHARED ? pitch : pitch_of<V_DIM>;
constexpr u32 keys_of_thread = BK / LANES, pieces = V_DIM / (VEC * LANES);

constexpr u32 query_elements = BQ * pitch, key_elements = BK * pitch;
constexpr u32 value_elements = SHARED ? 0 : BK * value_pitch;

// Copies lines of `dim` elements to shared memory. Those from line `left` on are zeros.
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

  GRETA_DEVICE void put(In* shared) const {
    GRETA_UNROLL
    for (u32 i = 0; i < units; ++i) {
      const u32 at = (thread_index() + i * THREADS) * VEC;
      if (packs % THREADS != 0 && at >= BK * dim) continue;
      store_pack(shared + at / dim * pitch_of<dim> + at % dim, pack[i]);
    }
  }
};

GRETA_DEVICE void load_queries(const Arguments& args, const Part& part, In* shared) {
  GRETA_NO_UNROLL
  for (u32 at = thread_index() * VEC; at < BQ * DIM; at += THREADS * VEC) {
    const u32 row = at / DIM;
    Pack<In, VEC> pack = {};
    if (row < part.own) pack = load_pack<VEC>(query_row(args, part.tile, part.tile.first + row) + at % DIM);
    store_pack(shared + row * pitch + at % DIM, pack);
  }
}

// What a thread has of its rows.
struct Rows {
  float greatest[TQ], sum[TQ], value[TQ][pieces * VEC];

  GRETA_DEVICE void begin() {
    GRETA_UNROLL
    for (u32 i = 0; i < TQ; ++i) {
      greatest[i] = lowest_score;
      sum[i] = 0.0f;
      GRETA_UNROLL
      for (u32 e = 0; e < pieces * VEC; ++e) value[i][e] = 0.0f;
    }
  }

  // Scores of a tile of keys; `queries` are the thread's.
  static GRETA_DEVICE void score(const In* queries, const In* keys,
                                 float (&scores)[TQ][keys_of_thread]) {
    const u32 lane = thread_index() % LANES;
    GRETA_UNROLL
    for (u32 i = 0; i < TQ; ++i) {
      GRETA_UNROLL
      for (u32 j = 0; j < keys_of_thread; ++j) scores[i][j] = 0.0f;
    }
    GRETA_NO_UNROLL
    for (u32 d = 0; d < DIM; d += VEC) {
      Pack<In, VEC> q[TQ], k[keys_of_thread];
      GRETA_UNROLL
      for (u32 i = 0; i < TQ; ++i) q[i] = load_pack<VEC>(queries + i * pitch + d);
      GRETA_UNROLL
      for (u32 j = 0; j < keys_of_thread; ++j) {
        k[j] = load_pack<VEC>(keys + (lane + j * LANES) * pitch + d);
      }
      GRETA_UNROLL
      for (u32 i = 0; i < TQ; ++i) {
        GRETA_UNROLL
        for (u32 j = 0; j < keys_of_thread; ++j) {
          GRETA_UNROLL
          for (int e = 0; e < VEC; ++e) {
            scores[i][j] = multiply_add(element(q[i], e), element(k[j], e), scores[i][j]);
          }
        }
      }
    }
  }

  // Turns scores into weights, which go to shared memory. `key` is the tile's first.
  GRETA_DEVICE void weigh(float scale, float (&scores)[TQ][keys_of_thread],
                          const Sight (&sight)[TQ], u32 key, float* weights) {
    const u32 lane = thread_index() % LANES;
    GRETA_UNROLL
    for (u32 i = 0; i < TQ; ++i) {
      bool seen[keys_of_thread];
      const bool whole = sight[i].sees_all_before(key + BK);
      float most = lowest_score;
      GRETA_UNROLL
      for (u32 j = 0; j < keys_of_thread; ++j) {
        seen[j] = whole || sight[i].sees(key + lane + j * LANES);
        scores[i][j] *= scale;
        if (seen[j]) most = larger(most, scores[i][j]);
      }
      most = larger(reduce_lanes<LANES>(most, Larger{}), greatest[i]);
      const float kept = fast_exp2(greatest[i] - most);
      greatest[i] = most;
      float added = 0.0f;
      GRETA_UNROLL
      for (u32 j = 0; j < keys_of_thread; ++j) {
        const float weight = seen[j] ? fast_exp2(scores[i][j] - most) : 0.0f;
        added += weight;
        weights[i * weight_pitch + lane + j * LANES] = weight;
      }
      sum[i] = multiply_add(sum[i], kept, reduce_lanes<LANES>(added, Add{}));
      GRETA_UNROLL
      for (u32 e = 0; e < pieces * VEC; ++e) value[i][e] *= kept;
    }
  }

  // Dimensions of a thread's piece.
  static GRETA_DEVICE u32 dimension(u32 piece) {
    return (piece * LANES + thread_index() % LANES) * VEC;
  }

  GRETA_DEVICE void add_values(const float* weights, const In* values) {
    GRETA_NO_UNROLL
    for (u32 j = 0; j < BK; j += 4) {
      Pack<float, 4> w[TQ];
      GRETA_UNROLL
      for (u32 i = 0; i < TQ; ++i) w[i] = load_pack<4>(weights + i * weight_pitch + j);
      GRETA_UNROLL
      for (int l = 0; l < 4; ++l) {
        GRETA_UNROLL
        for (u32 p = 0; p < pieces; ++p) {
          const auto v = load_pack<VEC>(values + (j + u32(l)) * value_pitch + dimension(p));
          GRETA_UNROLL
          for (u32 i = 0; i < TQ; ++i) {
            GRETA_UNROLL
            for (u32 e = 0; e < VEC; ++e) {
              float& to = value[i][p * VEC + e];
              to = multiply_add(element(w[i], l), element(v, int(e)), to);
            }
          }
        }
      }
    }
  }

  template <typename T>
  GRETA_DEVICE void put(T* to, u32 i, float factor) const {
    constexpr u32 most = 16 / sizeof(T), width = VEC < most ? VEC : most;
    GRETA_UNROLL
    for (u32 e = 0; e < pieces * VEC; e += width) {
      float some[width];
      GRETA_UNROLL
      for (u32 x = 0; x < width; ++x) some[x] = value[i][e + x] * factor;
      store_pack(to + dimension(e / VEC) + e % VEC, narrow_pack<T>(some));
    }
  }

  // Row i of the thread's, which is row `row` of the tile.
  GRETA_DEVICE void finish(const Arguments& args, const Tile& tile, u32 i, u32 row) const {
    RowSum total{greatest[i], sum[i]};
    const u64 offset = output_row(args, tile, tile.first + row);
    const float factor = total.factor(args, head_of(tile, tile.first + row));
    if (thread_index() % LANES == 0) total.put_lse(args, offset);
    put(args.out + offset, i, factor);
  }
  GRETA_DEVICE void leave(const OwnSums& sums, u32 i, u32 row) const {
    put(sums.values(row), i, 1.0f);
    if (thread_index() % LANES == 0) store_pack(sums.scores(row), narrow_pack<float>({greatest[i], sum[i]}));
  }
};

GRETA_KERNEL(THREADS) KERNEL_NAME(TREE_PARAMETER ATTENTION_PARAMETERS) {
  begin_launch();
  GRETA_DYNAMIC_SHARED(u8, shared);
  Arguments args = ATTENTION_ARGUMENTS;
  const Part part = pick_part(args);
  if (!part.exists()) return;
  In* const query_tile = reinterpret_cast<In*>(shared);
  In* const key_tile = query_tile + query_elements;
  In* const value_tile = SHARED ? key_tile : key_tile + key_elements;
  float* const weight_tile = reinterpret_cast<float*>(key_tile + key_elements + value_elements);
  const u32 line = thread_index() / LANES * TQ;  // of the thread's first row
  const u32 kv_head = part.tile.head, end = part.slice.end;
  const KeyLines k_lines(args, args.k, part.tile.sequence, kv_head);
#if !SHARED
  const ValueLines v_lines(args, args.v, part.tile.sequence, kv_head);
  Loader<V_DIM> value_loader;
#endif

  Rows rows;
  rows.begin();
  Sight sight[TQ];
  GRETA_UNROLL
  for (u32 i = 0; i < TQ; ++i) {
    sight[i] = Sight(args, TREE_ARGUMENT, part.tile.sequence, part.count, part.tile.first + line + i);
  }
  Loader<DIM> key_loader;
  const auto fetch = [&](u32 key) {
    if (key >= end) return;
    key_loader.fetch(k_lines.from(key), end - key);
#if !SHARED
    value_loader.fetch(v_lines.from(key), end - key);
#endif
  };
  fetch(part.slice.begin);
  load_queries(args, part, query_tile);
  GRETA_NO_UNROLL
  for (u32 key = part.slice.begin; key < end; key += BK) {
    block_barrier();  // the values before were read
    key_loader.put(key_tile);
#if !SHARED
    value_loader.put(value_tile);
#endif
    block_barrier();
    fetch(key + BK);
    float scores[TQ][keys_of_thread];
    Rows::score(query_tile + line * pitch, key_tile, scores);
    rows.weigh(args.scale, scores, sight, key, weight_tile + line * weight_pitch);
    block_barrier();
    rows.add_values(weight_tile + line * weight_pitch, value_tile);
  }

  const Slices<BQ, SPLIT> slices(args, part.reader, part.readers);
  const OwnSums sums{slices, block_z()};
  GRETA_UNROLL
  for (u32 i = 0; i < TQ; ++i) {
    if (line + i >= part.own) continue;
    if (part.slice.used > 1) {
      rows.leave(sums, i, line + i);
    } else {
      rows.finish(args, part.tile, i, line + i);
    }
  }
  if (part.slice.used > 1) {
    const Outputs outputs{args, part.tile};
    join_slices(args, sums, part.slice.used, part.own, reinterpret_cast<float*>(shared), outputs);
  }
}
