// Matrix cores: D += A B for matrices that the lanes of a wave hold in registers.
//
// MatrixCore<T, span> is such an operation on f32, f16 or bf16 (T) with sums in f32: A has `span`
// rows, B `span` columns, and the dot products are `depth` long. On f32, AMD's are exact, and NVIDIA's
// are three products of TF32.
//
//   Fragment                   A, or B: `span` lines (rows of A, columns of B) of `depth` elements
//   load<operand, along_k>(…)  a Fragment of that operand from a SharedTile
//   Sums                       D, spread over the wave's registers
//   multiply(sums, a, b)       sums += a b
//   multiply_anywhere(…)       the same on AMD, moved by the compiler as it likes, up to
//   keep_here(sums)            this
//   store(sums, to, pitch)     Sums as `span` rows of f32 in shared memory, `pitch` floats apart
//   pitch(width)               the pitch for so many columns that spreads them over the banks
//
// Lanes load chunks: 16 bytes of one line, whose k are consecutive. Which k a lane holds does not
// matter as long as A and B agree. Layouts: CDNA3, RDNA3 and RDNA4 instruction set manuals; PTX
// manual, "Warp-level matrix instructions".
#pragma once

#include "common/async_copy.hip"
#include "common/shared_tile.hip"
#include "common/tf32.hip"

#if (defined(GRETA_NVIDIA) && __CUDA_ARCH__ >= 800) || (defined(GRETA_HOST) && GRETA_HOST == 80)
#define GRETA_MATRIX_MMA
#elif defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) || \
    defined(__gfx950__) || (defined(GRETA_HOST) && GRETA_HOST == 942)
#define GRETA_MATRIX_MFMA
#elif defined(__GFX11__) || (defined(GRETA_HOST) && GRETA_HOST == 1100)
#define GRETA_MATRIX_WMMA11
#elif defined(__GFX12__) || (defined(GRETA_HOST) && GRETA_HOST == 1201)
#define GRETA_MATRIX_WMMA12
#else
#error "no matrix cores that this file knows"
#endif

// Which wave of the block this is.
GRETA_DEVICE u32 wave_index() {
#if defined(GRETA_AMD)  // the compiler is told that it is the same for all lanes
  return u32(__builtin_amdgcn_readfirstlane(int(thread_index() / wave_size)));
#else
  return thread_index() / wave_size;
#endif
}

// The lanes of a wave see what each other wrote to shared memory.
GRETA_DEVICE void wave_barrier() {
#if defined(GRETA_AMD)
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
#else
  __syncwarp();
#endif
}

// The compiler moves no instruction across: what was written side by side stays side by side.
GRETA_DEVICE void keep_order() {
#if defined(GRETA_AMD)
  __builtin_amdgcn_sched_barrier(0);
#endif
}

typedef Words<16> Chunk;

enum class Operand { a, b };

template <typename T>
constexpr u32 chunk_elements = 16 / sizeof(T);

// Whether load() can turn tiles of T whose lines lie across k. On CDNA that is TURN's to say: 1. If
// it is 2, loads from device memory turn them (turning_load.hip).
#if !defined(TURN)
#define TURN 0
#endif
template <typename T>
#if defined(GRETA_MATRIX_MMA)
constexpr bool matrix_load_turns = sizeof(T) == 2;
#else
constexpr bool matrix_load_turns = TURN == 1;
#endif

#if defined(GRETA_MATRIX_MMA)

template <u32 element_bytes>
struct FragmentOf {
  typedef Chunk Type;
};
template <>
struct FragmentOf<4> {
  typedef SplitChunk Type;
};

template <typename T, u32 span>
struct MatrixCore {
  static_assert(span == 16, "two mma.m16n8 make a product of 16 x 16");
  static constexpr u32 depth = 2 * chunk_elements<T>;
  // Word i is 8 lines of the warp by a chunk. Of A: lines 8 (i % 2) + …, chunk i / 2; of B: lines
  // 8 (i / 2) + …, chunk i % 2. So what an instruction takes lies in neighbouring registers.
  typedef typename FragmentOf<sizeof(T)>::Type Fragment;
  struct Sums {
    float column[2][4];  // columns 0-7 and 8-15
  };

  // Of lines from `line` and k from `k` on, multiples of 8 and of a chunk.
  template <Operand operand, bool along_k, typename Tile>
  static GRETA_DEVICE Fragment load(SharedMemory shared, u32 start, u32 line, u32 k) {
    return load_at<along_k>(shared, start + place<operand, along_k, Tile>(line, k));
  }

  // Bytes to the chunk that this lane names.
  template <Operand operand, bool along_k, typename Tile>
  static GRETA_DEVICE u32 place(u32 line, u32 k) {
    const u32 lane = lane_index(), even = lane / 8 % 2, half = lane / 16;
    const u32 more_lines = operand == Operand::a ? even : half;
    const u32 more_k = operand == Operand::a ? half : even;
    if constexpr (along_k) {
      return Tile::offset(line + more_lines * 8 + lane % 8, k / chunk_elements<T> + more_k);
    } else {
      return Tile::offset(k + more_k * 8 + lane % 8, line / 8 + more_lines);
    }
  }

  template <bool along_k>
  static GRETA_DEVICE Fragment load_at(SharedMemory shared, u32 offset) {
    static_assert(along_k || matrix_load_turns<T>, "these elements are not turned");
    if constexpr (sizeof(T) == 4) {
      return split_chunk(load_chunks<along_k>(shared, offset));
    } else {
      return load_chunks<along_k>(shared, offset);
    }
  }

  template <bool along_k>
  static GRETA_DEVICE Chunk load_chunks(SharedMemory shared, u32 offset) {
    Chunk f;
    u32(&w)[4] = f.word;
#if defined(GRETA_HOST)
    if constexpr (along_k) {
      greta_host::ldmatrix(w, shared.bytes + offset);
    } else {
      greta_host::ldmatrix_trans(w, shared.bytes + offset);
    }
#else
    if constexpr (along_k) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                   : "r"(shared.address + offset));
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                   : "r"(shared.address + offset));
    }
#endif
    return f;
  }

  static GRETA_DEVICE void multiply(Sums& sums, const Fragment& a, const Fragment& b) {
    if constexpr (sizeof(T) == 4) {
      // Instructions truncate sums, which over thousands of products is an error of one sign: the
      // threads add each one's sums, with rounding.
      Sums part = {};
      multiply_chunks(part, a.low, b.high);
      multiply_chunks(part, a.high, b.low);
      multiply_chunks(part, a.high, b.high);
      GRETA_UNROLL
      for (int i = 0; i < 8; ++i) sums.column[i / 4][i % 4] += part.column[i / 4][i % 4];
    } else {
      multiply_chunks(sums, a, b);
    }
  }

  static GRETA_DEVICE void multiply_chunks(Sums& sums, const Chunk& a, const Chunk& b) {
    GRETA_UNROLL
    for (int i = 0; i < 2; ++i) {
      float(&d)[4] = sums.column[i];
#if defined(GRETA_HOST)
      const u32 columns[2] = {b.word[2 * i], b.word[2 * i + 1]};
      if constexpr (sizeof(T) == 4) {
        greta_host::mma_m16n8k8_tf32(d, a.word, columns, d);
      } else if constexpr (same_type<T, f16>) {
        greta_host::mma_m16n8k16_f16(d, a.word, columns, d);
      } else {
        greta_host::mma_m16n8k16_bf16(d, a.word, columns, d);
      }
#else
#define GRETA_MMA(depth, type)                                                   \
  asm volatile("mma.sync.aligned.m16n8" depth ".row.col.f32." type "." type      \
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                  \
               : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), \
                 "r"(b.word[2 * i]), "r"(b.word[2 * i + 1]))
      if constexpr (sizeof(T) == 4) {
        GRETA_MMA("k8", "tf32");
      } else if constexpr (same_type<T, f16>) {
        GRETA_MMA("k16", "f16");
      } else {
        GRETA_MMA("k16", "bf16");
      }
#undef GRETA_MMA
#endif
    }
  }

  static GRETA_DEVICE void store(const Sums& sums, float* to, u32 pitch) {
    const u32 lane = lane_index();
    GRETA_UNROLL
    for (int i = 0; i < 4; ++i) {
      float* const at = to + (lane / 4 + i % 2 * 8) * pitch + i / 2 * 8 + lane % 4 * 2;
      const float* const pair = sums.column[i / 2] + i % 2 * 2;
      store_words<8>(at, {{bits_of(pair[0]), bits_of(pair[1])}});
    }
  }
  static GRETA_DEVICE constexpr u32 pitch(u32 width) { return width + 8; }
};

#else  // AMD

typedef float Sums4 __attribute__((vector_size(16)));
typedef float Sums8 __attribute__((vector_size(32)));
typedef float Sums16 __attribute__((vector_size(64)));

// The vector of so many sums of a lane, by its own name: g++ takes no size that depends on a template.
template <u32 count>
struct SumsOf;
template <>
struct SumsOf<4> {
  typedef Sums4 Type;
};
template <>
struct SumsOf<8> {
  typedef Sums8 Type;
};
template <>
struct SumsOf<16> {
  typedef Sums16 Type;
};

// matrix_step(T(), d, a, b): one instruction, d += a b, for `bytes` of A and of B in each lane.
#if defined(GRETA_HOST)
#define GRETA_MATRIX_STEP(T, Sums, bytes, Operand, host, builtin)                            \
  GRETA_DEVICE void matrix_step(T, Sums& d, const Words<bytes>& a, const Words<bytes>& b) {  \
    auto& sums = reinterpret_cast<float(&)[sizeof(Sums) / 4]>(d);                            \
    greta_host::host(sums, a.word, b.word, sums);                                            \
  }
#else
#define GRETA_MATRIX_STEP(T, Sums, bytes, Operand, host, builtin)                            \
  GRETA_DEVICE void matrix_step(T, Sums& d, const Words<bytes>& a, const Words<bytes>& b) {  \
    typedef Operand V __attribute__((ext_vector_type(bytes / sizeof(Operand))));             \
    d = builtin(__builtin_bit_cast(V, a), __builtin_bit_cast(V, b), d GRETA_MATRIX_MODES);   \
  }
#endif

#if defined(GRETA_MATRIX_MFMA)

#define GRETA_MATRIX_MODES , 0, 0, 0
GRETA_DEVICE void matrix_step(float, Sums4& d, const Words<4>& a, const Words<4>& b) {
  const float x = float_from_bits(a.word[0]), y = float_from_bits(b.word[0]);
#if defined(GRETA_HOST)
  auto& sums = reinterpret_cast<float(&)[4]>(d);
  greta_host::mfma_f32_16x16x4_f32(sums, x, y, sums);
#else
  d = __builtin_amdgcn_mfma_f32_16x16x4f32(x, y, d, 0, 0, 0);
#endif
}
#if defined(__gfx950__)
GRETA_MATRIX_STEP(f16, Sums4, 16, _Float16, , __builtin_amdgcn_mfma_f32_16x16x32_f16)
GRETA_MATRIX_STEP(f16, Sums16, 16, _Float16, , __builtin_amdgcn_mfma_f32_32x32x16_f16)
GRETA_MATRIX_STEP(bf16, Sums4, 16, __bf16, , __builtin_amdgcn_mfma_f32_16x16x32_bf16)
GRETA_MATRIX_STEP(bf16, Sums16, 16, __bf16, , __builtin_amdgcn_mfma_f32_32x32x16_bf16)
#else
GRETA_MATRIX_STEP(f16, Sums4, 8, _Float16, mfma_f32_16x16x16_f16,
                  __builtin_amdgcn_mfma_f32_16x16x16f16)
GRETA_MATRIX_STEP(f16, Sums16, 8, _Float16, mfma_f32_32x32x8_f16,
                  __builtin_amdgcn_mfma_f32_32x32x8f16)
#if !defined(__gfx908__)
GRETA_MATRIX_STEP(bf16, Sums4, 8, short, mfma_f32_16x16x16_bf16,
                  __builtin_amdgcn_mfma_f32_16x16x16bf16_1k)
GRETA_MATRIX_STEP(bf16, Sums16, 8, short, mfma_f32_32x32x8_bf16,
                  __builtin_amdgcn_mfma_f32_32x32x8bf16_1k)
#endif
#endif

#elif defined(GRETA_MATRIX_WMMA11)

#define GRETA_MATRIX_MODES
GRETA_MATRIX_STEP(f16, Sums8, 32, _Float16, wmma_f32_16x16x16_f16,
                  __builtin_amdgcn_wmma_f32_16x16x16_f16_w32)
GRETA_MATRIX_STEP(bf16, Sums8, 32, short, wmma_f32_16x16x16_bf16,
                  __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32)

#elif defined(GRETA_MATRIX_WMMA12)

#define GRETA_MATRIX_MODES
GRETA_MATRIX_STEP(f16, Sums8, 16, _Float16, wmma_f32_16x16x16_f16,
                  __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12)
GRETA_MATRIX_STEP(bf16, Sums8, 16, short, wmma_f32_16x16x16_bf16,
                  __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12)

#endif

#undef GRETA_MATRIX_STEP
#undef GRETA_MATRIX_MODES

// Lane l has chunks of line l % span. Groups of `span` lanes have neighbouring chunks, except on
// gfx11, where lanes 16-31 repeat lanes 0-15.
template <typename T, u32 span>
struct MatrixCore {
#if defined(GRETA_MATRIX_MFMA)
  static_assert(span == 16 || (span == 32 && sizeof(T) == 2), "16 x 16, or 32 x 32 of 16 bits");
  static constexpr u32 lane_chunks = 1, groups = 64 / span;
#if defined(__gfx950__)
  static constexpr u32 step_bytes = sizeof(T) == 2 ? 16 : 4;
#else
  static constexpr u32 step_bytes = sizeof(T) == 2 ? 8 : 4;
#endif
#else
  static_assert(span == 16 && sizeof(T) == 2, "16 x 16 of 16 bits");
#if defined(GRETA_MATRIX_WMMA11)
  static constexpr u32 lane_chunks = 2, groups = 1, step_bytes = 32;
#else
  static constexpr u32 lane_chunks = 1, groups = 2, step_bytes = 16;
#endif
#endif
  static constexpr u32 depth = groups * lane_chunks * chunk_elements<T>;
  static constexpr u32 steps = lane_chunks * 16 / step_bytes;  // instructions of a product
  struct Fragment {
    Chunk chunk[lane_chunks];
  };
  typedef typename SumsOf<span * span / wave_size>::Type Sums;

  // Of lines from `line` and k from `k` on.
  template <Operand, bool along_k, typename Tile>
  static GRETA_DEVICE Fragment load(SharedMemory shared, u32 start, u32 line, u32 k) {
    Fragment f;
    if constexpr (!along_k) {
      GRETA_UNROLL
      for (u32 half = 0; half < 2; ++half) {
        const u32 offset = half_place<Tile>(line, k + half * 4);
        load_turned(f, half, shared.bytes + start + offset);
      }
      return f;
    }
    const u32 lane = lane_index(), group = groups == 1 ? 0 : lane / span;
    GRETA_UNROLL
    for (u32 i = 0; i < lane_chunks; ++i) {
      const u32 offset = Tile::offset(line + lane % span, k / chunk_elements<T> + group + i);
      f.chunk[i] = load_words<16>(shared.bytes + start + offset);
    }
    return f;
  }

  // A tile whose lines lie across k is read four lines at a time: a group of 16 lanes reads 16
  // elements of each, and each lane gets one element of the four. This is the place that a lane
  // names.
  template <typename Tile>
  static GRETA_DEVICE u32 half_place(u32 line, u32 k) {
    const u32 lane = lane_index();
    return Tile::offset(k + lane / span * 8 + lane % 16 / 4,
                        line / 8 + lane % span / 16 * 2 + lane % 4 / 2) +
           lane % 2 * 8;
  }
  static GRETA_DEVICE void load_turned(Fragment& f, u32 half, const u8* at) {
#if TURN == 1 && defined(__gfx950__)
    typedef short Elements __attribute__((ext_vector_type(4)));
    typedef __attribute__((address_space(3))) Elements Shared;
    const auto four = __builtin_amdgcn_ds_read_tr16_b64_v4i16((Shared*)at);
    __builtin_memcpy(f.chunk[0].word + half * 2, &four, 8);
#elif TURN == 1 && defined(GRETA_HOST)
    greta_host::read_transposed(reinterpret_cast<u32(&)[2]>(f.chunk[0].word[half * 2]), at);
#elif TURN == 1
#error "TURN=1 needs reads of shared memory that transpose"
#endif
  }

  static GRETA_DEVICE void multiply(Sums& sums, const Fragment& a, const Fragment& b) {
    multiply_anywhere(sums, a, b);
    keep_here(sums);
  }

  static GRETA_DEVICE void multiply_anywhere(Sums& sums, const Fragment& a, const Fragment& b) {
    struct Steps {
      Words<step_bytes> step[steps];
    };
    const Steps x = __builtin_bit_cast(Steps, a), y = __builtin_bit_cast(Steps, b);
    GRETA_UNROLL
    for (u32 i = 0; i < steps; ++i) {
      matrix_step(T(), sums, x.step[i], y.step[i]);
    }
  }

  // Else the compiler would move products behind the next barrier, and keep all their fragments
  // until then.
  static GRETA_DEVICE void keep_here(Sums& sums) {
#if defined(__GFX11__) || defined(__GFX12__)
    asm volatile("" : "+v"(sums));
#else
    (void)sums;
#endif
  }

  static GRETA_DEVICE void store(const Sums& sums, float* to, u32 pitch) {
    const u32 lane = lane_index();
    GRETA_UNROLL
    for (u32 i = 0; i < sizeof(Sums) / 4; ++i) {
      to[row(i, lane / span) * pitch + lane % span] = sums[i];
    }
  }
  static GRETA_DEVICE constexpr u32 pitch(u32 width) {
#if defined(GRETA_MATRIX_WMMA11)
    return width % 32 == 0 ? width + 16 : width;
#else
    return width + 4;
#endif
  }

 private:
  static GRETA_DEVICE u32 row(u32 i, u32 group) {
#if defined(GRETA_MATRIX_MFMA)
    return i / 4 * 8 + group * 4 + i % 4;
#elif defined(GRETA_MATRIX_WMMA11)
    return i * 2 + group;
#else
    return group * 8 + i;
#endif
  }
};

#endif
