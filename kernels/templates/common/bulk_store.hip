// Rows that a lane copies from shared memory to device memory, past the registers: bulk copies of sm_90,
// which run while the threads go on. Addresses and bytes are multiples of 16.
//
//   show_to_copies()        each lane that wrote what is copied, before the barrier that the others wait at
//   copy_row_out(…)         starts copying a row
//   close_rows_out()        the lane has started its rows
//   wait_for_rows_out()     this lane's rows have been read: their place may be written again
//
// Source: PTX ISA, cp.async.bulk and fence.proxy.async.
#pragma once

#include "common/async_copy.hip"

#if defined(GRETA_NVIDIA)

GRETA_DEVICE void show_to_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

GRETA_DEVICE void copy_row_out(void* to, SharedMemory shared, u32 from, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared.address + from), "r"(bytes)
               : "memory");
}

GRETA_DEVICE void close_rows_out() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

GRETA_DEVICE void wait_for_rows_out() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

#else

GRETA_DEVICE void show_to_copies() {}
GRETA_DEVICE void copy_row_out(void* to, SharedMemory shared, u32 from, u32 bytes) {
  __builtin_memcpy(to, shared.bytes + from, bytes);
}
GRETA_DEVICE void close_rows_out() {}
GRETA_DEVICE void wait_for_rows_out() {}

#endif
