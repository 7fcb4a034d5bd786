// Compiled by NVRTC 13.0 into two_kernels.sm_80.cubin and two_kernels.sm_90.cubin beside it:
// greta-compile-helper nvrtc --gpu-architecture=sm_80 <two_kernels.cu >two_kernels.sm_80.cubin
extern "C" __global__ void small(float* p) { p[threadIdx.x] = 1; }

// An array of 400 bytes that no registers hold, 1 KiB of shared memory, three matrix instructions.
extern "C" __global__ void large(float* p, int n, const unsigned* f) {
  __shared__ float shared[256];
  float array[100];
#pragma unroll 1
  for (int i = 0; i < 100; ++i) array[i] = p[i * 64 + threadIdx.x];
  shared[threadIdx.x] = array[n];
  __syncthreads();
  float d[4] = {array[n + 1], 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "r"(f[4]), "r"(f[5]));
  }
  p[threadIdx.x] = shared[255 - threadIdx.x] + d[0] + d[1] + d[2] + d[3];
}
