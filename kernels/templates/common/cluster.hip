// Blocks that run together and see each other's shared memory: NVIDIA's clusters, from sm_90 on.
// Source: PTX ISA, barrier.cluster, mapa and ld.shared::cluster.
#pragma once

#if !defined(GRETA_NVIDIA)
#error "only NVIDIA's GPUs have clusters"
#endif

// In place of GRETA_KERNEL: `blocks` neighbours along the grid's z are a cluster.
#define GRETA_CLUSTER_KERNEL(threads, blocks) \
  extern "C" __global__ void __cluster_dims__(1, 1, blocks) __launch_bounds__(threads)

// All threads of the cluster arrive; what they wrote before is seen by all behind it.
GRETA_DEVICE void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Four neighbours in the shared memory of a block of the cluster, at the place that they have in
// this block's own.
GRETA_DEVICE void load_from_block(u32 block, const float* own, float (&x)[4]) {
  u32 remote;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(remote)
      : "r"(u32(__cvta_generic_to_shared(own))), "r"(block));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
               : "r"(remote)
               : "memory");
}
