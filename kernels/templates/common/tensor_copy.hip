// Boxes of matrices that one thread copies from device memory to shared memory (TMA of sm_90), and
// the barriers by which threads wait for them.
//
//   TensorMap                     a kernel's parameter: a matrix and its boxes (tensor_map.hpp)
//   TENSOR_MAP_PARAMETER          in front of it
//   CountedBarrier                in shared memory: ends a phase when all arrivals and bytes are there
//     open(arrivals)              one thread, before the others use it
//     arrive()                    one of the arrivals; arrive_at(block) in another block of the cluster
//     arrive_copied()             the same, once the copies that this thread has started are done; a thread that
//                                 waits shows them to products of warpgroups itself
//     expect(bytes)               the same, and so many bytes are to be copied in this phase
//     wait(parity)                returns when the phase has ended: the first one has parity 0
//     ended(parity)               whether it has; may be false though it has
//   show_barriers()               behind open(), in front of the barrier that others wait at
//   expect_map(map)               copies with this map are about to start
//   elected()                     one lane of a whole wave: the compiler knows that it is one
//   copy_box(…)                   starts copying the box that starts at this column and row
//   copy_box_to(…)                the same, to that place in several blocks of the cluster:
//     blocks_of_row(…), blocks_of_column(…)
//   copy_pairs(…), copy_pairs_to(…)  the same of a map of rows in pairs, from an even row on
//
// Source: PTX ISA, mbarrier, cp.async.mbarrier.arrive, cp.async.bulk.tensor, and fence.mbarrier_init.
#pragma once

#include "common/async_copy.hip"

// Of a cluster of `rows` x `columns` blocks, whose rows are neighbours first: the blocks of a row, and
// those of a column, a bit for each.
template <u32 rows, u32 columns>
GRETA_DEVICE u32 blocks_of_row(u32 row) {
  u32 blocks = 0;
  GRETA_UNROLL
  for (u32 column = 0; column < columns; ++column) blocks |= 1U << column * rows;
  return blocks << row;
}
template <u32 rows>
GRETA_DEVICE u32 blocks_of_column(u32 column) {
  return ((1U << rows) - 1) << column * rows;
}

#if defined(GRETA_HOST)

typedef greta_host::TensorMap TensorMap;
#define TENSOR_MAP_PARAMETER const TensorMap

struct CountedBarrier {
  u64* state;

  void open(u32 arrivals) const { greta_host::counted_open(reinterpret_cast<uint64_t*>(state), arrivals); }
  void arrive() const { greta_host::counted_arrive(reinterpret_cast<uint64_t*>(state)); }
  void arrive_copied() const {
    greta_host::counted_arrive_copied(reinterpret_cast<uint64_t*>(state));
  }
  void arrive_at(u32 block) const {
    greta_host::counted_arrive_at(block, reinterpret_cast<uint64_t*>(state));
  }
  void expect(u32 bytes) const { greta_host::counted_expect(reinterpret_cast<uint64_t*>(state), bytes); }
  void wait(u32 parity) const { greta_host::counted_wait(reinterpret_cast<uint64_t*>(state), parity); }
  bool ended(u32) const { return false; }
};

// The i-th of several barriers in shared memory.
GRETA_DEVICE CountedBarrier barrier_at(u8* first, u32 i) { return {reinterpret_cast<u64*>(first) + i}; }
GRETA_DEVICE void show_barriers() { greta_host::show_barriers(); }
GRETA_DEVICE void expect_map(const TensorMap&) {}
GRETA_DEVICE bool elected() { return lane_index() == 0; }

GRETA_DEVICE void copy_box(SharedMemory shared, u32 to, const TensorMap& map, u32 column, u32 row,
                           CountedBarrier barrier) {
  greta_host::copy_box(shared.bytes, to, map, column, row, reinterpret_cast<uint64_t*>(barrier.state));
}
GRETA_DEVICE void copy_pairs(SharedMemory shared, u32 to, const TensorMap& map, u32 column, u32 row,
                             CountedBarrier barrier) {
  copy_box(shared, to, map, column, row, barrier);
}
GRETA_DEVICE void copy_box_to(u32 blocks, SharedMemory shared, u32 to, const TensorMap& map,
                              u32 column, u32 row, CountedBarrier barrier) {
  greta_host::copy_box_to(blocks, shared.bytes, to, map, column, row,
                          reinterpret_cast<uint64_t*>(barrier.state));
}
GRETA_DEVICE void copy_pairs_to(u32 blocks, SharedMemory shared, u32 to, const TensorMap& map,
                                u32 column, u32 row, CountedBarrier barrier) {
  copy_box_to(blocks, shared, to, map, column, row, barrier);
}

#else

struct alignas(64) TensorMap {
  u64 opaque[16];
};
#define TENSOR_MAP_PARAMETER const __grid_constant__ TensorMap

struct CountedBarrier {
  u32 address;  // in shared memory

  GRETA_DEVICE void open(u32 arrivals) const {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(arrivals) : "memory");
  }
  GRETA_DEVICE void arrive() const {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address) : "memory");
  }
  GRETA_DEVICE void arrive_copied() const {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address) : "memory");
  }
  GRETA_DEVICE void arrive_at(u32 block) const {
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
        "}" ::"r"(address),
        "r"(block)
        : "memory");
  }
  GRETA_DEVICE void expect(u32 bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes)
                 : "memory");
  }
  GRETA_DEVICE bool ended(u32 parity) const {
    u32 result;
    asm volatile(
        "{\n"
        ".reg .pred ended;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
        "selp.u32 %0, 1, 0, ended;\n"
        "}"
        : "=r"(result)
        : "r"(address), "r"(parity)
        : "memory");
    return result != 0;
  }
  GRETA_DEVICE void wait(u32 parity) const {
    asm volatile(
        "{\n"
        ".reg .pred ended;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
        "@ended bra done;\n"
        "bra again;\n"
        "done:\n"
        "}" ::"r"(address),
        "r"(parity)
        : "memory");
  }
};

// The i-th of several barriers in shared memory.
GRETA_DEVICE CountedBarrier barrier_at(u8* first, u32 i) {
  return {u32(__cvta_generic_to_shared(first)) + i * 8};
}

GRETA_DEVICE void show_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

GRETA_DEVICE bool elected() {
  u32 is_this;
  asm volatile(
      "{\n"
      ".reg .pred elected;\n"
      "elect.sync _|elected, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, elected;\n"
      "}" : "=r"(is_this));
  return is_this != 0;
}

GRETA_DEVICE void expect_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

GRETA_DEVICE void copy_box(SharedMemory shared, u32 to, const TensorMap& map, u32 column, u32 row,
                           CountedBarrier barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];" ::"r"(shared.address + to),
      "l"(&map), "r"(column), "r"(row), "r"(barrier.address)
      : "memory");
}

// `blocks`: a bit for each block of the cluster.
GRETA_DEVICE void copy_box_to(u32 blocks, SharedMemory shared, u32 to, const TensorMap& map,
                              u32 column, u32 row, CountedBarrier barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared.address + to),
      "l"(&map), "r"(column), "r"(row), "r"(barrier.address), "h"((unsigned short)(blocks))
      : "memory");
}

GRETA_DEVICE void copy_pairs(SharedMemory shared, u32 to, const TensorMap& map, u32 column, u32 row,
                             CountedBarrier barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared.address + to),
      "l"(&map), "r"(column), "r"(0), "r"(row / 2), "r"(barrier.address)
      : "memory");
}

GRETA_DEVICE void copy_pairs_to(u32 blocks, SharedMemory shared, u32 to, const TensorMap& map,
                                u32 column, u32 row, CountedBarrier barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared.address + to),
      "l"(&map), "r"(column), "r"(0), "r"(row / 2), "r"(barrier.address),
      "h"((unsigned short)(blocks))
      : "memory");
}

#endif
