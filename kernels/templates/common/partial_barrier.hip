// Barriers for some of a block's warps, of which NVIDIA's GPUs have 15 beside block_barrier(), and
// registers that warpgroups of sm_90 hand over to each other.
//
//   partial_sync<count>(id)    waits until `count` threads, of whole warps, have arrived; id: 1 to 15
//   partial_arrive<count>(id)  arrives and goes on
//   take_registers<n>()        this warpgroup's threads have n registers from here on: more ...
//   give_registers<n>()        ... or less than before
//   registers_at_launch<t>()   the most that a thread has at the start of a workgroup of t threads
//
// What a thread wrote before it arrived is seen by those that waited. Source: PTX ISA, "bar" and
// "setmaxnreg".
#pragma once

#include "common/device.hip"

template <u32 threads>
GRETA_DEVICE constexpr u32 registers_at_launch() {
  return 65536 / threads / 8 * 8;
}

#if defined(GRETA_HOST)

template <u32 count>
GRETA_DEVICE void partial_sync(u32 id) {
  greta_host::barrier_sync(id, count);
}
template <u32 count>
GRETA_DEVICE void partial_arrive(u32 id) {
  greta_host::barrier_arrive(id, count);
}
template <u32 registers>
GRETA_DEVICE void take_registers() {}
template <u32 registers>
GRETA_DEVICE void give_registers() {}

#else

template <u32 count>
GRETA_DEVICE void partial_sync(u32 id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(count) : "memory");
}
template <u32 count>
GRETA_DEVICE void partial_arrive(u32 id) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(count) : "memory");
}
template <u32 registers>
GRETA_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}
template <u32 registers>
GRETA_DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

#endif
