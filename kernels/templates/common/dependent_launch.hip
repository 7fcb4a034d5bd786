// Launches that overlap. In a graph on NVIDIA GPUs from sm_90 on, a kernel that includes this file may
// start while the one before it still runs, as soon as all its workgroups have let it. What a kernel
// does ahead of wait_for_launches() takes no time then, but it must not read or write operands: bringing
// them into the second-level cache is all it may do with them. Every workgroup waits, and first lets the
// next launch start. Elsewhere, and outside of graphs, launches follow each other.
//
// Source: PTX ISA, griddepcontrol and cp.async.bulk.prefetch.L2.
#pragma once

#include "common/device.hip"

#if defined(GRETA_NVIDIA) && __CUDA_ARCH__ >= 900
#define GRETA_DEPENDENT_LAUNCH 1
#else
#define GRETA_DEPENDENT_LAUNCH 0
#endif

GRETA_DEVICE void let_next_launch_start() {
#if GRETA_DEPENDENT_LAUNCH
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// What the launches before this one wrote is there afterwards.
GRETA_DEVICE void wait_for_launches() {
#if GRETA_DEPENDENT_LAUNCH
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// For kernels with nothing to prepare.
GRETA_DEVICE void begin_launch() {
  let_next_launch_start();
  wait_for_launches();
}

// Brings these bytes, or most of them, into the second-level cache. One lane suffices.
GRETA_DEVICE void prefetch_to_cache(const void* from, u64 bytes) {
#if GRETA_DEPENDENT_LAUNCH
  const u64 start = (reinterpret_cast<u64>(from) + 15) / 16 * 16;
  const u32 whole = u32((reinterpret_cast<u64>(from) + bytes - start) / 16 * 16);
  if (bytes >= 32) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(start), "r"(whole) : "memory");
  }
#endif
}
