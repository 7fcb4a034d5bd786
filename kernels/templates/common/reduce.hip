// Reductions over the lanes of a wave and the threads of a block. Who is merged with whom depends on
// nothing but the threads' numbers, so that equal inputs give equal results.
//
// What is merged is a float, a u32, or a struct with a function
//   template <typename F> GRETA_DEVICE T each_word(T value, F f)   // f of each of its words
// and merge(a, b) is associative but for rounding; all threads get the result, where merge is not
// commutative to the last bit each with its own rounding.
#pragma once

#include "common/device.hip"

// `value` of the lane whose number differs in one bit, `mask`; every lane of the wave takes part.
template <u32 mask>
GRETA_DEVICE u32 across(u32 value) {
  static_assert(mask < wave_size && (mask & (mask - 1)) == 0, "one bit of a lane's number");
#if defined(GRETA_AMD)
  const int bits = int(value);
  if constexpr (mask == 1) {
    return u32(__builtin_amdgcn_update_dpp(0, bits, 0xb1, 0xf, 0xf, true));  // quad_perm 1 0 3 2
  } else if constexpr (mask == 2) {
    return u32(__builtin_amdgcn_update_dpp(0, bits, 0x4e, 0xf, 0xf, true));  // quad_perm 2 3 0 1
  } else if constexpr (mask == 8) {
    return u32(__builtin_amdgcn_update_dpp(0, bits, 0x128, 0xf, 0xf, true));  // row_ror 8
  } else if constexpr (mask < 32) {
    return u32(__builtin_amdgcn_ds_swizzle(bits, int(mask << 10 | 0x1f)));
  } else {
    return shuffle(value, lane_index() ^ mask);
  }
#elif defined(GRETA_NVIDIA)
  return __shfl_xor_sync(0xffffffffU, value, int(mask));
#else
  return __shfl_xor(value, int(mask));
#endif
}

template <u32 mask>
struct Across {
  GRETA_DEVICE u32 operator()(u32 value) const { return across<mask>(value); }
  GRETA_DEVICE float operator()(float value) const {
    return float_from_bits(across<mask>(bits_of(value)));
  }
};

template <typename F>
GRETA_DEVICE float each_word(float value, F f) {
  return f(value);
}
template <typename F>
GRETA_DEVICE u32 each_word(u32 value, F f) {
  return f(value);
}

// Over so many lanes of a wave, neighbours or `step` apart; both are powers of two.
template <u32 lanes, u32 step = 1, typename T, typename Merge>
GRETA_DEVICE T reduce_lanes(T value, Merge merge) {
  static_assert(lanes * step <= wave_size && (lanes & (lanes - 1)) == 0,
                "a power of two within a wave");
  if constexpr (lanes > 1) {
    value = reduce_lanes<lanes / 2, step>(value, merge);
    value = merge(value, each_word(value, Across<lanes / 2 * step>{}));
  }
  return value;
}

// Over each run of so many threads of the block, a power of two. `shared`: one T for each wave of the
// block, where more than a wave is reduced; it may be written again after the block's next barrier.
template <u32 threads, typename T, typename Merge>
GRETA_DEVICE T reduce_threads(T value, Merge merge, T* shared) {
  if constexpr (threads <= wave_size) {
    return reduce_lanes<threads>(value, merge);
  } else {
    constexpr u32 waves = threads / wave_size;
    value = reduce_lanes<wave_size>(value, merge);
    if (lane_index() == 0) shared[thread_index() / wave_size] = value;
    block_barrier();
    const u32 first = thread_index() / threads * waves;
    return reduce_lanes<waves>(shared[first + lane_index() % waves], merge);
  }
}

struct Add {
  template <typename T>
  GRETA_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};

// The larger one; NaN only where both are.
GRETA_DEVICE float larger(float a, float b) {
#if defined(GRETA_NVIDIA)
  return fmaxf(a, b);
#else
  return __builtin_fmaxf(a, b);
#endif
}

struct Larger {
  GRETA_DEVICE float operator()(float a, float b) const { return larger(a, b); }
};

// The sum, or the like, of numbers in registers: eight running ones, then these.
template <typename Merge, int rows, int cols>
GRETA_DEVICE float reduce_values(const float (&x)[rows][cols], Merge merge) {
  constexpr int count = rows * cols, running = count < 8 ? count : 8;
  float part[running];
  GRETA_UNROLL
  for (int i = 0; i < running; ++i) part[i] = x[i / cols][i % cols];
  GRETA_UNROLL
  for (int i = running; i < count; ++i) {
    part[i % running] = merge(part[i % running], x[i / cols][i % cols]);
  }
  GRETA_UNROLL
  for (int half = 4; half > 0; half /= 2) {
    GRETA_UNROLL
    for (int i = 0; i < half; ++i) {
      if (i + half < running) part[i] = merge(part[i], part[i + half]);
    }
  }
  return part[0];
}
