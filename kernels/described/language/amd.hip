// The parts of HIP's language that clang has no words for without headers, for AMD GPUs: users'
// kernels need neither hiprtc nor ROCm. hiprtc has all of it, and more, built in. What is missing:
// the functions of ROCm's device libraries beyond those below, such as powf, erff, and exp of
// double.

#if defined(__HIP__) && defined(__AMDGCN__) && !defined(__HIPCC_RTC__)

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...) GRETA_LAUNCH_BOUNDS(__VA_ARGS__, )
#define GRETA_LAUNCH_BOUNDS(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define GRETA_HIP static inline __attribute__((device, always_inline))

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;

// ---- The thread and its block

#define GRETA_COORDINATES(name, call_x, call_y, call_z)                               \
  struct name {                                                                       \
    __declspec(property(get = get_x)) unsigned x;                                     \
    __declspec(property(get = get_y)) unsigned y;                                     \
    __declspec(property(get = get_z)) unsigned z;                                     \
    static __attribute__((device, always_inline)) unsigned get_x() { return call_x; } \
    static __attribute__((device, always_inline)) unsigned get_y() { return call_y; } \
    static __attribute__((device, always_inline)) unsigned get_z() { return call_z; } \
  };
GRETA_COORDINATES(greta_thread_index, __builtin_amdgcn_workitem_id_x(),
                  __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z())
GRETA_COORDINATES(greta_block_index, __builtin_amdgcn_workgroup_id_x(),
                  __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z())
GRETA_COORDINATES(greta_block_size, __builtin_amdgcn_workgroup_size_x(),
                  __builtin_amdgcn_workgroup_size_y(), __builtin_amdgcn_workgroup_size_z())
GRETA_COORDINATES(greta_grid_size,
                  __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
                  __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
                  __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z())
#undef GRETA_COORDINATES
#define threadIdx (greta_thread_index())
#define blockIdx (greta_block_index())
#define blockDim (greta_block_size())
#define gridDim (greta_grid_size())

#if defined(__GFX9__)
constexpr int warpSize = 64;
#else
constexpr int warpSize = 32;
#endif

GRETA_HIP void __threadfence_block() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
}
GRETA_HIP void __threadfence() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}
GRETA_HIP void __threadfence_system() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
}
GRETA_HIP void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
GRETA_HIP void __syncwarp(unsigned long long = ~0ULL) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

// ---- Operations of a wave

GRETA_HIP unsigned __lane_id() {
  const unsigned low = __builtin_amdgcn_mbcnt_lo(~0U, 0);
  return warpSize == 64 ? __builtin_amdgcn_mbcnt_hi(~0U, low) : low;
}
template <typename T>
GRETA_HIP T greta_of_lane(T value, int lane) {
  constexpr unsigned words = (sizeof(T) + 3) / 4;
  int parts[words] = {};
  __builtin_memcpy(parts, &value, sizeof value);
  for (unsigned i = 0; i < words; ++i) parts[i] = __builtin_amdgcn_ds_bpermute(4 * lane, parts[i]);
  __builtin_memcpy(&value, parts, sizeof value);
  return value;
}
/// The lane itself where `lane` is outside of its group of `width`.
template <typename T>
GRETA_HIP T greta_in_group(T value, int lane, int width) {
  const int self = int(__lane_id()), first = self & ~(width - 1);
  return greta_of_lane(value, lane < first || lane >= first + width ? self : lane);
}
template <typename T>
GRETA_HIP T __shfl(T value, int from, int width = warpSize) {
  return greta_of_lane(value, (int(__lane_id()) & ~(width - 1)) + (from & (width - 1)));
}
template <typename T>
GRETA_HIP T __shfl_up(T value, unsigned by, int width = warpSize) {
  return greta_in_group(value, int(__lane_id()) - int(by), width);
}
template <typename T>
GRETA_HIP T __shfl_down(T value, unsigned by, int width = warpSize) {
  return greta_in_group(value, int(__lane_id()) + int(by), width);
}
template <typename T>
GRETA_HIP T __shfl_xor(T value, int mask, int width = warpSize) {
  return greta_in_group(value, int(__lane_id()) ^ mask, width);
}
#if defined(__GFX9__)
GRETA_HIP unsigned long long __ballot(int predicate) {
  return __builtin_amdgcn_ballot_w64(predicate != 0);
}
#else
GRETA_HIP unsigned long long __ballot(int predicate) {
  return __builtin_amdgcn_ballot_w32(predicate != 0);
}
#endif
GRETA_HIP int __any(int predicate) {
  return __ballot(predicate) != 0;
}
GRETA_HIP int __all(int predicate) {
  return __ballot(!predicate) == 0;
}
GRETA_HIP unsigned long long __activemask() {
  return __ballot(1);
}

// CUDA's forms; all active lanes take part.
template <typename T>
GRETA_HIP T __shfl_sync(unsigned long long, T value, int from, int width = warpSize) {
  return __shfl(value, from, width);
}
template <typename T>
GRETA_HIP T __shfl_up_sync(unsigned long long, T value, unsigned by, int width = warpSize) {
  return __shfl_up(value, by, width);
}
template <typename T>
GRETA_HIP T __shfl_down_sync(unsigned long long, T value, unsigned by, int width = warpSize) {
  return __shfl_down(value, by, width);
}
template <typename T>
GRETA_HIP T __shfl_xor_sync(unsigned long long, T value, int mask, int width = warpSize) {
  return __shfl_xor(value, mask, width);
}
GRETA_HIP unsigned long long __ballot_sync(unsigned long long, int predicate) {
  return __ballot(predicate);
}
GRETA_HIP int __any_sync(unsigned long long, int predicate) {
  return __any(predicate);
}
GRETA_HIP int __all_sync(unsigned long long, int predicate) {
  return __all(predicate);
}

// ---- Atomic operations; each returns the old value

#define GRETA_ATOMIC(name, builtin)                                        \
  template <typename T>                                                    \
  GRETA_HIP T name(T* at, T value) {                                       \
    return builtin(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); \
  }
GRETA_ATOMIC(atomicAdd, __hip_atomic_fetch_add)
GRETA_ATOMIC(atomicAnd, __hip_atomic_fetch_and)
GRETA_ATOMIC(atomicOr, __hip_atomic_fetch_or)
GRETA_ATOMIC(atomicXor, __hip_atomic_fetch_xor)
GRETA_ATOMIC(atomicMin, __hip_atomic_fetch_min)
GRETA_ATOMIC(atomicMax, __hip_atomic_fetch_max)
GRETA_ATOMIC(atomicExch, __hip_atomic_exchange)
#undef GRETA_ATOMIC
template <typename T>
GRETA_HIP T atomicSub(T* at, T value) {
  return atomicAdd(at, static_cast<T>(-value));
}
template <typename T>
GRETA_HIP T atomicCAS(T* at, T expected, T value) {
  __hip_atomic_compare_exchange_strong(at, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}

// ---- Vectors

#define GRETA_VECTORS(name, type, bytes)                                     \
  struct __attribute__((aligned(2 * bytes))) name##2 {                       \
    type x, y;                                                               \
  };                                                                         \
  struct name##3 {                                                           \
    type x, y, z;                                                            \
  };                                                                         \
  struct __attribute__((aligned(4 * bytes > 16 ? 16 : 4 * bytes))) name##4 { \
    type x, y, z, w;                                                         \
  };                                                                         \
  GRETA_HIP name##2 make_##name##2(type x, type y) {                         \
    return {x, y};                                                           \
  }                                                                          \
  GRETA_HIP name##3 make_##name##3(type x, type y, type z) {                 \
    return {x, y, z};                                                        \
  }                                                                          \
  GRETA_HIP name##4 make_##name##4(type x, type y, type z, type w) {         \
    return {x, y, z, w};                                                     \
  }
GRETA_VECTORS(char, signed char, 1)
GRETA_VECTORS(uchar, unsigned char, 1)
GRETA_VECTORS(short, short, 2)
GRETA_VECTORS(ushort, unsigned short, 2)
GRETA_VECTORS(int, int, 4)
GRETA_VECTORS(uint, unsigned, 4)
GRETA_VECTORS(longlong, long long, 8)
GRETA_VECTORS(ulonglong, unsigned long long, 8)
GRETA_VECTORS(float, float, 4)
GRETA_VECTORS(double, double, 8)
#undef GRETA_VECTORS

// ---- Arithmetic: what the compiler translates without the device libraries

#define GRETA_UNARY(name)            \
  GRETA_HIP float name##f(float x) { \
    return __builtin_##name##f(x);   \
  }                                  \
  GRETA_HIP double name(double x) {  \
    return __builtin_##name(x);      \
  }
GRETA_UNARY(ceil)
GRETA_UNARY(fabs)
GRETA_UNARY(floor)
GRETA_UNARY(nearbyint)
GRETA_UNARY(rint)
GRETA_UNARY(round)
GRETA_UNARY(sqrt)
GRETA_UNARY(trunc)
#undef GRETA_UNARY
#define GRETA_BINARY(name)                    \
  GRETA_HIP float name##f(float x, float y) { \
    return __builtin_##name##f(x, y);         \
  }                                           \
  GRETA_HIP double name(double x, double y) { \
    return __builtin_##name(x, y);            \
  }
GRETA_BINARY(copysign)
GRETA_BINARY(fmax)
GRETA_BINARY(fmin)
#undef GRETA_BINARY
#define GRETA_FLOAT(name)         \
  GRETA_HIP float name(float x) { \
    return __builtin_##name(x);   \
  }
GRETA_FLOAT(expf)
GRETA_FLOAT(exp2f)
GRETA_FLOAT(logf)
GRETA_FLOAT(log2f)
GRETA_FLOAT(log10f)
#undef GRETA_FLOAT
GRETA_HIP float fmaf(float x, float y, float z) {
  return __builtin_fmaf(x, y, z);
}
GRETA_HIP double fma(double x, double y, double z) {
  return __builtin_fma(x, y, z);
}
GRETA_HIP float ldexpf(float x, int by) {
  return __builtin_amdgcn_ldexpf(x, by);
}
GRETA_HIP double ldexp(double x, int by) {
  return __builtin_amdgcn_ldexp(x, by);
}
GRETA_HIP float rsqrtf(float x) {
  return 1 / sqrtf(x);
}
GRETA_HIP double rsqrt(double x) {
  return 1 / sqrt(x);
}
// Coefficients of tanhf, sinf and cosf: Cephes' single precision.
GRETA_HIP float tanhf(float x) {
  const float z = x * x, e = expf(-2 * fabsf(x));
  float p = -5.70498872745e-3f;
  p = fmaf(p, z, 2.06390887954e-2f);
  p = fmaf(p, z, -5.37397155531e-2f);
  p = fmaf(p, z, 1.33314422036e-1f);
  p = fmaf(p, z, -3.33332819422e-1f);
  return fabsf(x) < 0.625f ? fmaf(p * z, x, x) : copysignf((1 - e) / (1 + e), x);
}
/// The sine of x + quarters pi/2, accurate up to |x| of about 1e5.
GRETA_HIP float greta_sine(float x, int quarters) {
  const float k = rintf(x * 0.636619772f);
  float r = fmaf(k, -1.57079601e+00f, x);
  r = fmaf(k, -3.13916473e-07f, r);
  r = fmaf(k, -5.39030253e-15f, r);
  const float z = r * r;
  const float sine =
      fmaf(fmaf(fmaf(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f) * z, r, r);
  const float cosine =
      fmaf(fmaf(fmaf(2.443315711809948e-5f, z, -1.388731625493765e-3f), z, 4.166664568298827e-2f),
           z * z, fmaf(-0.5f, z, 1.0f));
  const int quadrant = int(k) + quarters;
  const float value = quadrant % 2 == 0 ? sine : cosine;
  return (quadrant & 2) == 0 ? value : -value;
}
GRETA_HIP float sinf(float x) {
  return greta_sine(x, 0);
}
GRETA_HIP float cosf(float x) {
  return greta_sine(x, 1);
}
GRETA_HIP float __expf(float x) {
  return expf(x);
}
GRETA_HIP float __exp10f(float x) {
  return exp2f(x * 3.32192809f);
}
GRETA_HIP float __logf(float x) {
  return logf(x);
}
GRETA_HIP float __log2f(float x) {
  return log2f(x);
}
GRETA_HIP float __log10f(float x) {
  return log10f(x);
}
GRETA_HIP float __sinf(float x) {
  return __builtin_sinf(x);
}
GRETA_HIP float __cosf(float x) {
  return __builtin_cosf(x);
}
GRETA_HIP float __powf(float x, float y) {
  return exp2f(y * log2f(x));
}
GRETA_HIP float __fdividef(float x, float y) {
  return x / y;
}
GRETA_HIP float __frcp_rn(float x) {
  return 1 / x;
}
GRETA_HIP float __fsqrt_rn(float x) {
  return sqrtf(x);
}
GRETA_HIP float __fmaf_rn(float x, float y, float z) {
  return fmaf(x, y, z);
}
GRETA_HIP float __saturatef(float x) {
  return fminf(fmaxf(x, 0.0f), 1.0f);
}
GRETA_HIP float __uint_as_float(unsigned bits) {
  return __builtin_bit_cast(float, bits);
}
GRETA_HIP float __int_as_float(int bits) {
  return __builtin_bit_cast(float, bits);
}
GRETA_HIP unsigned __float_as_uint(float value) {
  return __builtin_bit_cast(unsigned, value);
}
GRETA_HIP int __float_as_int(float value) {
  return __builtin_bit_cast(int, value);
}
GRETA_HIP int __popc(unsigned x) {
  return __builtin_popcount(x);
}
GRETA_HIP int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
GRETA_HIP int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(unsigned(x));
}
GRETA_HIP int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
GRETA_HIP int __ffs(int x) {
  return x == 0 ? 0 : __builtin_ctz(unsigned(x)) + 1;
}
GRETA_HIP int __ffsll(long long x) {
  return x == 0 ? 0 : __builtin_ctzll(static_cast<unsigned long long>(x)) + 1;
}
GRETA_HIP unsigned __brev(unsigned x) {
  return __builtin_bitreverse32(x);
}
GRETA_HIP unsigned __umulhi(unsigned x, unsigned y) {
  return unsigned(static_cast<unsigned long long>(x) * y >> 32);
}
GRETA_HIP int __mulhi(int x, int y) {
  return int(static_cast<long long>(x) * y >> 32);
}
GRETA_HIP int abs(int x) {
  return x < 0 ? -x : x;
}

#define GRETA_MIN_MAX(type)                      \
  GRETA_HIP constexpr type min(type a, type b) { \
    return b < a ? b : a;                        \
  }                                              \
  GRETA_HIP constexpr type max(type a, type b) { \
    return a < b ? b : a;                        \
  }
GRETA_MIN_MAX(int)
GRETA_MIN_MAX(unsigned)
GRETA_MIN_MAX(long)
GRETA_MIN_MAX(unsigned long)
GRETA_MIN_MAX(long long)
GRETA_MIN_MAX(unsigned long long)
#undef GRETA_MIN_MAX
GRETA_HIP float min(float a, float b) {
  return fminf(a, b);
}
GRETA_HIP float max(float a, float b) {
  return fmaxf(a, b);
}
GRETA_HIP double min(double a, double b) {
  return fmin(a, b);
}
GRETA_HIP double max(double a, double b) {
  return fmax(a, b);
}
template <typename T>
GRETA_HIP T __ldg(const T* at) {
  return *at;
}

#endif
