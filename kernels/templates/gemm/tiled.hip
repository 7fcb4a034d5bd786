// A workgroup computes a BM x BN tile of C. It walks K in steps of BK: both operands' parts go
// through shared memory, and each thread keeps TM x TN sums in registers. With SPLIT > 1 the
// workgroup's z picks a slice of K, and FOLD says how slices are added (tiled_sums.hip). With STAGES > 2,
// f32 operands are copied to shared memory asynchronously, STAGES steps ahead. TRANSPOSED_A or
// TRANSPOSED_B: that operand is a copy (transpose.hip).

#if !defined(BM) || !defined(BN) || !defined(BK) || !defined(TM) || !defined(TN) || \
    !defined(VA) || !defined(VB) || !defined(PAD) || !defined(STAGES) || !defined(UNROLL) || \
    !defined(LX) || !defined(SWIZZLE) || !defined(SPLIT) || !defined(FOLD) || !defined(ORDER)
#error "BM BN BK TM TN VA VB PAD STAGES UNROLL LX SWIZZLE SPLIT FOLD and ORDER must be defined"
#endif
#if !defined(A_ALONG_K) || !defined(B_ALONG_K) || !defined(TRANSPOSED_A) || !defined(TRANSPOSED_B)
#error "{A,B}_ALONG_K and TRANSPOSED_{A,B} must be defined"
#endif

#define TX (BN / TN)  // threads along n
#define TY (BM / TM)  // threads along m
#define THREADS (TX * TY)
#define LY (32 / LX)

#if TM % 4 != 0 || TN % 4 != 0 || BM % TM != 0 || BN % TN != 0 || PAD % 4 != 0
#error "threads' tiles are made of 4-wide pieces and divide the workgroup's tile"
#endif
#if TX % LX != 0 || TY % LY != 0
#error "bundles of LX x 32/LX threads must divide the workgroup"
#endif
#if BM * BK < VA * THREADS || BN * BK < VB * THREADS
#error "every thread must load at least one vector"
#endif
#if GROUPED && SPLIT != 1
#error "groups have no slices"
#endif
#if BK % UNROLL != 0 || STAGES < 1 || SPLIT < 1 || SWIZZLE < 1
#error "UNROLL divides BK; STAGES, SPLIT and SWIZZLE are at least 1"
#endif
#if FOLD && SPLIT == 1
#error "FOLD needs slices"
#endif

#include "gemm/aligned.hip"
#include "gemm/groups.hip"
#include "gemm/operands.hip"
#include "gemm/tile_loader.hip"
#include "gemm/tile_order.hip"
#include "gemm/tiled_sums.hip"

#if STAGES > 2 && !GRETA_LANE_COPY
#error "STAGES is 1 or 2 where threads cannot copy past their registers"
#endif

constexpr u32 a_pitch = BM + PAD, b_pitch = BN + PAD;

struct Loaders {
  TileLoader<A_ALONG_K, BM, VA, a_pitch> a;
  TileLoader<B_ALONG_K, BN, VB, b_pitch, GATED, B_PANELS> b;
  static constexpr u32 copies = decltype(a)::loads + decltype(b)::loads;

  // No element of the K step lies outside the matrices.
  GRETA_DEVICE bool whole(u32 k0, u32 k_end) const {
    return a.first + BM <= a.end && b.first + BN <= b.end && k0 + BK <= k_end;
  }
  GRETA_DEVICE void load(u32 k0, u32 k_end) {
    if (whole(k0, k_end)) {
      a.template load<true>(k0, k_end);
      b.template load<true>(k0, k_end);
    } else {
      a.template load<false>(k0, k_end);
      b.template load<false>(k0, k_end);
    }
  }
};

#if STAGES > 2
// Copies a K step to a stage of shared memory, in several parts.
struct Copies {
  static constexpr u32 of_a = decltype(Loaders::a)::loads, of_step = Loaders::copies;

  Loaders& loaders;
  SharedMemory shared;
  u32 stage, k0, k_end;
  u32 a_lines = loaders.a.lines_inside(k0, k_end), b_lines = loaders.b.lines_inside(k0, k_end);

  // Starts part `part` of `parts`.
  GRETA_DEVICE void start(u32 part, u32 parts) const {
    const u32 to_a = stage * BK * a_pitch * 4;
    const u32 to_b = (STAGES * a_pitch + stage * b_pitch) * BK * 4;
    GRETA_UNROLL
    for (u32 i = part * of_step / parts; i < (part + 1) * of_step / parts; ++i) {
      if (i < of_a) {
        loaders.a.copy(shared, to_a, i, k0, k_end, a_lines);
      } else {
        loaders.b.copy(shared, to_b, i - of_a, k0, k_end, b_lines);
      }
    }
  }
  GRETA_DEVICE void end() const {
    close_copies();
    loaders.a.next_step();
    loaders.b.next_step();
  }
};
#endif

// Four elements of line K of a tile of this Loader, as it `exchanged` them.
template <typename Loader>
GRETA_DEVICE Pack<float, 4> load_piece(const float* from, u32 k) {
  const Pack<float, 4> found = load_pack<4>(from);
  const u32 by = Loader::exchanged(k);
  float values[4];
  GRETA_UNROLL
  for (u32 e = 0; e < 4; ++e) values[e] = element(found, e ^ by);
  return narrow_pack<float>(values);
}

// What a thread reads of both tiles for one K.
struct Pieces {
  Pack<float, 4> a[TM / 4], b[TN / 4];

  GRETA_DEVICE void load(const float* a_tile, const float* b_tile, u32 k) {
    GRETA_UNROLL
    for (u32 i = 0; i < TM / 4; ++i) {
      a[i] = load_piece<decltype(Loaders::a)>(a_tile + k * a_pitch + i * TY * 4, k);
    }
    GRETA_UNROLL
    for (u32 j = 0; j < TN / 4; ++j) {
      b[j] = load_piece<decltype(Loaders::b)>(b_tile + k * b_pitch + j * TX * 4, k);
    }
  }
};

// Adds the product of row i and column j.
GRETA_DEVICE void add_product(const Pieces& of, u32 i, u32 j, Sums& sums) {
  const float a = element(of.a[i / 4], i % 4), b = element(of.b[j / 4], j % 4);
  sums[i][j / 2][j % 2] = multiply_add(a, b, sums[i][j / 2][j % 2]);
}

// ORDER is that of the products, by which NVIDIA's assembler assigns registers: an instruction that
// reads three registers of two banks takes longer, unless the one before it has read one of them.
GRETA_DEVICE void add_products(const Pieces& of, Sums& sums) {
#if ORDER == 0  // row by row
  GRETA_UNROLL
  for (u32 i = 0; i < TM; ++i) {
    GRETA_UNROLL
    for (u32 j = 0; j < TN / 2; ++j) {
      sums[i][j] = multiply_add(element(of.a[i / 4], i % 4), element_pair(of.b[j / 2], j % 2 * 2),
                                sums[i][j]);
    }
  }
#elif ORDER == 1  // every second row backwards
  GRETA_UNROLL
  for (u32 i = 0; i < TM; ++i) {
    GRETA_UNROLL
    for (u32 j = 0; j < TN; ++j) add_product(of, i, i % 2 == 0 ? j : TN - 1 - j, sums);
  }
#elif ORDER == 2  // column by column
  GRETA_UNROLL
  for (u32 j = 0; j < TN; ++j) {
    GRETA_UNROLL
    for (u32 i = 0; i < TM; ++i) add_product(of, i, j, sums);
  }
#else  // squares of two rows and columns
  GRETA_UNROLL
  for (u32 i = 0; i < TM; i += 2) {
    GRETA_UNROLL
    for (u32 j = 0; j < TN; j += 2) {
      GRETA_UNROLL
      for (u32 of_square = 0; of_square < 4; ++of_square) {
        add_product(of, i + of_square / 2, j + (of_square + 1) / 2 % 2, sums);
      }
    }
  }
#endif
}

#if STAGES > 2
// Walks all K steps. Each K is read while the one before it is multiplied, also a step's first one.
// A copy holds the registers of its address for a while, for which the next one waits. So threads with
// many sums, which have few others beside them, spread copies over the K of a step.
GRETA_DEVICE void multiply_all(Loaders& loaders, SharedMemory shared, const float* a_tile,
                               const float* b_tile, u32 k0, u32 k_end, Sums& sums) {
  constexpr u32 parts = UNROLL == BK && TM * TN > 64 ? 4 : 1, apart = BK / parts;
  const auto await_step = [] {
    wait_for_copies<STAGES - 2, Copies::of_step>();
    block_barrier();
  };
  GRETA_UNROLL
  for (u32 i = 0; i < STAGES - 1; ++i) {
    const Copies copies{loaders, shared, i, k0 + i * BK, k_end};
    copies.start(0, 1);
    copies.end();
  }
  await_step();
  u32 stage = 0, done = STAGES - 1;  // stages: what is multiplied, and what all have read
  Pieces next;
  next.load(a_tile, b_tile, 0);
  for (; k0 < k_end; k0 += BK) {
    const float* a = a_tile + stage * BK * a_pitch;
    const float* b = b_tile + stage * BK * b_pitch;
    const Copies copies{loaders, shared, done, k0 + (STAGES - 1) * BK, k_end};
    done = stage;
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    if (parts == 1) copies.start(0, 1);
    GRETA_NO_UNROLL
    for (u32 k = 0; k < BK; k += UNROLL) {
      GRETA_UNROLL
      for (u32 u = 0; u < UNROLL; ++u) {
        const Pieces now = next;
        if (parts > 1 && u % apart == 0) copies.start(u / apart, parts);
        if (u + 1 < UNROLL || k + UNROLL < BK) {
          next.load(a, b, k + u + 1);
        } else {
          copies.end();
          await_step();
          next.load(a_tile + stage * BK * a_pitch, b_tile + stage * BK * b_pitch, 0);
        }
        add_products(now, sums);
      }
    }
  }
}
#else
// `a` and `b`: this thread's first pieces of both tiles. Each K is read while the one before it is
// multiplied.
GRETA_DEVICE void multiply(const float* a, const float* b, Sums& sums) {
  Pieces next;
  next.load(a, b, 0);
  GRETA_NO_UNROLL
  for (u32 k = 0; k < BK; k += UNROLL) {
    GRETA_UNROLL
    for (u32 u = 0; u < UNROLL; ++u) {
      const Pieces now = next;
      next.load(a, b, k + u + 1 < BK ? k + u + 1 : k + u);
      add_products(now, sums);
      loads_stay_behind();
    }
  }
}
#endif

#if FOLD == 2
#define CLUSTER_OF_SLICES __cluster_dims__(1, 1, SPLIT)
#else
#define CLUSTER_OF_SLICES
#endif
#if (STAGES > 2 && defined(GRETA_NVIDIA)) || FOLD == 2
// Registers suffice for as many workgroups as their sums and 64 others would. A quarter of a
// multiprocessor has 512 for each lane.
#define FITTING (512 / (TM * TN + 64) * 4 / (THREADS / 32))
#define TILED_KERNEL                                      \
  extern "C" __global__ void CLUSTER_OF_SLICES __launch_bounds__( \
      THREADS, STAGES > 2 && FITTING > 0 ? FITTING : 1)
#else
#define TILED_KERNEL GRETA_KERNEL(THREADS)
#endif

// Of dynamic shared memory: an inbox, then the tiles, and when they are done, what others send.
GRETA_DEVICE constexpr u32 used_bytes() {
  constexpr u32 tiles = STAGES * BK * (a_pitch + b_pitch) * 4;
  return inbox_bytes + (tiles > received_later ? tiles : received_later);
}

TILED_KERNEL GEMM_ENTRY(tiled)(GEMM_PARAMETERS) {
  begin_launch();
  static_assert(used_bytes() == SHARED_BYTES, "as shared_bytes() of tiled_space.cpp has it");
  // K is the slow dimension of both, so that a thread's pieces are single 16-byte reads.
  GRETA_DYNAMIC_SHARED(float, shared);
  u8* const shared_bytes = reinterpret_cast<u8*>(shared);
  float* const a_tile = shared + inbox_bytes / 4;
  float* const b_tile = a_tile + STAGES * BK * a_pitch;
  const Arguments all = GEMM_ARGUMENTS;
  if (block_index<THREADS>() >= tiles_m * tiles_n) return;
#if FOLD == 2
  const Inbox inbox{reinterpret_cast<u64*>(shared)};
  inbox.open(received_by(block_z()));
  if (inbox_apart) inbox.let_others_send();
#endif
  Position tile = pick_tile(all);
  const Group group = find_group<BM>(all, tile.row / BM);
  if (GROUPED && group.row >= group.rows) return;
  const Arguments args = of_group(all, group);
  tile.row = group.row;
  const u32 k_begin = smaller(block_z() * slice, k);
  const u32 k_end = smaller(k_begin + slice, k);
  Loaders loaders;
  const u32 a_lines = TRANSPOSED_A ? aligned_stride(args.m) : stride_a(args);
  const u32 b_lines = TRANSPOSED_B ? aligned_stride(n) : stride_b(args);
  loaders.a.start(args.a, args.m, a_lines, tile.row, k_begin);
  loaders.b.start(args.b, product_cols(args), b_lines, tile.col, k_begin, pair_distance(args));
  // Bundles of 32 threads cover LX x LY pieces: neighbours read the same or adjacent 16 bytes.
  const u32 bundle = thread_index() / 32, lane = thread_index() % 32;
  const u32 tx = bundle % (TX / LX) * LX + lane % LX;
  const u32 ty = bundle / (TX / LX) * LY + lane / LX;
  Sums sums = {};

#if STAGES == 1
  for (u32 k0 = k_begin; k0 < k_end; k0 += BK) {
    loaders.load(k0, k_end);
    block_barrier();
    loaders.a.store(a_tile);
    loaders.b.store(b_tile);
    block_barrier();
    multiply(a_tile + ty * 4, b_tile + tx * 4, sums);
  }
#elif STAGES > 2
  multiply_all(loaders, shared_memory(reinterpret_cast<u8*>(a_tile)), a_tile + ty * 4,
               b_tile + tx * 4, k_begin, k_end, sums);
#else
  loaders.load(k_begin, k_end);
  loaders.a.store(a_tile);
  loaders.b.store(b_tile);
  block_barrier();
  u32 stage = 0;
  for (u32 k0 = k_begin; k0 < k_end; k0 += BK) {
    // The next step's loads are in flight while this one is multiplied; past the end, they are
    // zeros that nobody reads. No branch: compilers would move the products behind it.
    loaders.load(k0 + BK, k_end);
    multiply(a_tile + stage * BK * a_pitch + ty * 4, b_tile + stage * BK * b_pitch + tx * 4, sums);
    stage = 1 - stage;
    loaders.a.store(a_tile + stage * BK * a_pitch);
    loaders.b.store(b_tile + stage * BK * b_pitch);
    block_barrier();
  }
#endif

#if FOLD && STAGES > 2  // copies past the end of K write zeros to the tiles
  wait_for_copies<0, Loaders::copies>();
#endif
  put_tile(args, shared_bytes, tile, tile.row + ty * 4, tile.col + tx * 4, sums);
}
