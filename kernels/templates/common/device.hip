// What every HIP kernel stands on: the same words for AMD (hiprtc, or clang without any header),
// NVIDIA (NVRTC) and the CPU (hip-host). Blocks have one dimension. C++17.
//
//   GRETA_AMD, GRETA_NVIDIA, GRETA_HOST  where the kernel runs; exactly one is defined
//   GRETA_KERNEL(threads) name(…)        a kernel for blocks of so many threads
//   GRETA_DEVICE                         a function that kernels call
//   GRETA_SHARED(type, name, count)      in a kernel's body: an array of the block, aligned to 16
//   GRETA_DYNAMIC_SHARED(type, name)     the same, of the size that the launch gives
//   GRETA_UNROLL, GRETA_NO_UNROLL        in front of a loop
//
// Every kernel starts with begin_launch(), since launches may overlap (LaunchOrder::overlapping). Or it
// starts with begin_launch_early(), loads operands that are constant (Launch::early_operands), and calls
// await_earlier_launches() before it loads or stores anything else. One that starts with begin_launch_alone()
// does so, too, but calls let_next_launch_begin() after its loop: many of its small blocks fit a processor, and
// those of the next launch would all go to the first processors that have room for them. One that starts with
// begin_launch_whole() waits, and lets the next launch begin when it ends: where blocks of the next launch find no
// room beside its own, all of them would go to the processors that it leaves free. A kernel whose own blocks
// would go there, and that gains nothing from loading early, calls none of these and is launched in turn.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#if defined(GRETA_HOST)
// hip-host declares HIP's names (__global__, threadIdx, __syncthreads, __shfl …) and its own ahead
// of the kernel's text. GRETA_HOST is the number of what it imitates.
#define GRETA_KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define GRETA_DEVICE inline
#define GRETA_SHARED(type, name, count) __shared__ __attribute__((aligned(16))) type name[count]
#define GRETA_DYNAMIC_SHARED(type, name) type* const name = greta_host::dynamic_shared<type>()
#define GRETA_UNROLL  // compiles faster
#define GRETA_NO_UNROLL

#elif defined(__AMDGCN__)
#define GRETA_AMD
#define GRETA_KERNEL(threads) \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads))) void
#define GRETA_DEVICE inline __attribute__((device, always_inline))
#define GRETA_SHARED(type, name, count) \
  static __attribute__((shared, aligned(16))) type name[count]
#define GRETA_DYNAMIC_SHARED(type, name) \
  extern __attribute__((shared, aligned(16))) type name[]
#define GRETA_UNROLL _Pragma("unroll")
#define GRETA_NO_UNROLL _Pragma("unroll 1")

#elif defined(__CUDA_ARCH__)
#define GRETA_NVIDIA
#define GRETA_KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define GRETA_DEVICE __device__ __forceinline__
#define GRETA_SHARED(type, name, count) __shared__ __attribute__((aligned(16))) type name[count]
#define GRETA_DYNAMIC_SHARED(type, name) extern __shared__ __attribute__((aligned(16))) type name[]
#define GRETA_UNROLL _Pragma("unroll")
#define GRETA_NO_UNROLL _Pragma("unroll 1")

#else
#error "compiled for none of AMD, NVIDIA and hip-host"
#endif

// __restrict__ for operands that a kernel reads. Not for NVIDIA: its compiler loads constant memory
// without an alias ahead of the wait of begin_launch() (LDG.CONSTANT before ACQBULK in sm_90's
// machine code), when an earlier launch may still write it. hip-host's compiler does so, too.
#if defined(GRETA_AMD)
#define GRETA_READ __restrict__
#else
#define GRETA_READ
#endif

// Threads that run in lockstep.
#if defined(__GFX9__) || (defined(GRETA_HOST) && GRETA_HOST == 942)
constexpr u32 wave_size = 64;
#else
constexpr u32 wave_size = 32;
#endif

GRETA_DEVICE u32 thread_index() {
#if defined(GRETA_AMD)
  return __builtin_amdgcn_workitem_id_x();
#else
  return threadIdx.x;
#endif
}

GRETA_DEVICE u32 lane_index() { return thread_index() % wave_size; }

#if defined(GRETA_AMD)
GRETA_DEVICE u32 block_x() { return __builtin_amdgcn_workgroup_id_x(); }
GRETA_DEVICE u32 block_y() { return __builtin_amdgcn_workgroup_id_y(); }
GRETA_DEVICE u32 block_z() { return __builtin_amdgcn_workgroup_id_z(); }
#else
GRETA_DEVICE u32 block_x() { return blockIdx.x; }
GRETA_DEVICE u32 block_y() { return blockIdx.y; }
GRETA_DEVICE u32 block_z() { return blockIdx.z; }
#endif

// Number of this block in a grid that is folded into two dimensions; `threads` are a block's.
template <u32 threads>
GRETA_DEVICE u32 block_index() {
#if defined(GRETA_AMD)
  return block_y() * (__builtin_amdgcn_grid_size_x() / threads) + block_x();
#else
  return block_y() * gridDim.x + block_x();
#endif
}

// All threads of the block arrive, and see what the others wrote.
#if defined(GRETA_HOST)
GRETA_DEVICE void block_barrier(greta_host::Site site = greta_host::here("block_barrier")) {
  __syncthreads(site);
}
#else
GRETA_DEVICE void block_barrier() {
#if defined(GRETA_AMD)
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#else
  __syncthreads();
#endif
}
#endif

// Loads that follow are not moved ahead of this place: AMD's compilers would else start all loads of
// straight code at once, for which there are not enough registers.
GRETA_DEVICE void loads_stay_behind() {
#if defined(GRETA_AMD)
  __builtin_amdgcn_sched_barrier(0);
#endif
}

// Loads in front of this are under way before anything behind it. NVIDIA's assembler would spread
// them among the arithmetic, to save registers, and wait for one after the other.
GRETA_DEVICE void loads_go_ahead() {
#if defined(GRETA_NVIDIA)
  __syncwarp(__activemask());
#endif
}

// Between blocks: what this thread wrote before is seen by whoever sees an atomic operation that
// follows; and after an atomic operation, what others wrote before theirs.
GRETA_DEVICE void release_to_device() {
#if defined(GRETA_AMD)
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
#elif defined(GRETA_NVIDIA)
  __threadfence();
#else
  __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

GRETA_DEVICE void acquire_from_device() {
#if defined(GRETA_AMD)
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
#elif defined(GRETA_NVIDIA)
  __threadfence();
#else
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

// Returns the old value; orders nothing else.
GRETA_DEVICE u32 atomic_add(u32* counter, u32 value) {
#if defined(GRETA_AMD)
  return __hip_atomic_fetch_add(counter, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
#elif defined(GRETA_NVIDIA)
  return atomicAdd(counter, value);
#else
  return __atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
#endif
}

GRETA_DEVICE float float_from_bits(u32 bits) {
#if defined(GRETA_NVIDIA)
  return __uint_as_float(bits);
#else
  return __builtin_bit_cast(float, bits);
#endif
}

GRETA_DEVICE u32 bits_of(float value) {
#if defined(GRETA_NVIDIA)
  return __float_as_uint(value);
#else
  return __builtin_bit_cast(u32, value);
#endif
}

// `value` of another lane of the wave; every lane takes part.
GRETA_DEVICE u32 shuffle(u32 value, u32 lane) {
#if defined(GRETA_AMD)
  return u32(__builtin_amdgcn_ds_bpermute(int(lane * 4), int(value)));
#elif defined(GRETA_NVIDIA)
  return __shfl_sync(0xffffffffU, value, int(lane));
#else
  return __shfl(value, int(lane));
#endif
}

GRETA_DEVICE float shuffle(float value, u32 lane) {
  return float_from_bits(shuffle(bits_of(value), lane));
}

// a b + c with one rounding.
GRETA_DEVICE float multiply_add(float a, float b, float c) {
#if defined(GRETA_NVIDIA)
  return fmaf(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

// Two sums: CDNA multiplies and adds them in one instruction.
#if defined(GRETA_NVIDIA)
struct f32x2 {
  float value[2];
  GRETA_DEVICE float& operator[](int i) { return value[i]; }
  GRETA_DEVICE float operator[](int i) const { return value[i]; }
};
#else
typedef float f32x2 __attribute__((vector_size(8)));
#endif

GRETA_DEVICE f32x2 multiply_add(f32x2 a, f32x2 b, f32x2 c) {
#if defined(GRETA_AMD)
  return a * b + c;  // contracted: HIP's default
#else
  return f32x2{multiply_add(a[0], b[0], c[0]), multiply_add(a[1], b[1], c[1])};
#endif
}

GRETA_DEVICE f32x2 multiply_add(float a, f32x2 b, f32x2 c) {
  return multiply_add(f32x2{a, a}, b, c);
}

// e^x, |x| <= 87, within 3 + 2 |x| units in the last place.
GRETA_DEVICE float fast_exp(float x) {
  constexpr float log2_e = 1.44269504088896340736f;
#if defined(GRETA_AMD)
  return __builtin_exp2f(x * log2_e);  // v_exp_f32
#elif defined(GRETA_NVIDIA)
  float result;
  asm("ex2.approx.f32 %0, %1;" : "=f"(result) : "f"(x * log2_e));
  return result;
#else
  return __builtin_exp2f(x * log2_e);
#endif
}

// The logarithm to base 2 of a normal number, within 2^-22 of its size or of 1.
GRETA_DEVICE float fast_log2(float x) {
#if defined(GRETA_NVIDIA)
  float result;
  asm("lg2.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return __builtin_log2f(x);  // on AMD v_log_f32
#endif
}

// 2^x, x <= 127, within 3 + 2 |x| units in the last place; maybe 0 where that is less than 2^-126.
GRETA_DEVICE float fast_exp2(float x) {
#if defined(GRETA_AMD)
#if __has_builtin(__builtin_amdgcn_exp2f)
  return __builtin_amdgcn_exp2f(x);  // v_exp_f32
#else
  return __builtin_exp2f(x);
#endif
#elif defined(GRETA_NVIDIA)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return __builtin_exp2f(x);
#endif
}

// Waits until earlier launches have ended, and sees what they wrote.
GRETA_DEVICE void await_earlier_launches() {
#if defined(GRETA_HOST)
  greta_host::await_launches();
#elif defined(GRETA_NVIDIA) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next launch begin once all blocks of this one have begun.
GRETA_DEVICE void let_next_launch_begin() {
#if defined(GRETA_NVIDIA) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

GRETA_DEVICE void begin_launch_early() { let_next_launch_begin(); }
GRETA_DEVICE void begin_launch_alone() {}

GRETA_DEVICE void begin_launch() {
  let_next_launch_begin();
  await_earlier_launches();
}

GRETA_DEVICE void begin_launch_whole() { await_earlier_launches(); }

GRETA_DEVICE constexpr u32 smaller(u32 a, u32 b) { return a < b ? a : b; }
