#pragma once

// Copies from global to shared memory that run beside the threads. Shared memory is written only
// when the thread waits, so that a missing or too weak wait is seen. Both addresses are checked
// when a copy is issued. Barriers by which some threads of a block hand such copies to others.

#include "runtime/device/hip/host/language/wave.hpp"

namespace greta_host {

/// Stages bytes of global memory for shared memory; `valid` of them are read, zeros follow.
inline void stage(void* shared, const void* global, unsigned bytes, unsigned valid, Site site) {
  const auto to = reinterpret_cast<uintptr_t>(shared), from = reinterpret_cast<uintptr_t>(global);
  if (!is_shared(shared)) fail(site, "the target is not in shared memory");
  if (to % bytes != 0) fail(site, "the target is not aligned to the copy's size");
  if (valid != 0 && from % bytes != 0) fail(site, "the source is not aligned to the copy's size");
#if !defined(GRETA_HOST_RACES)
  // AddressSanitizer sees that there is such shared memory.
  auto* const first = static_cast<volatile unsigned char*>(shared);
  static_cast<void>(first[0]);
  static_cast<void>(first[bytes - 1]);
#endif
  unsigned char* const staged = current->calls->stage_copy(*current, shared, bytes);
  for (unsigned i = 0; i < bytes; ++i) {
    staged[i] = i < valid ? static_cast<const unsigned char*>(global)[i] : 0;
  }
}

#if GRETA_HOST == 80

/// PTX cp.async: 4, 8 or 16 bytes, aligned likewise on both sides. Reads `valid` bytes of `global`
/// and writes zeros after them.
inline void copy_async(void* shared, const void* global, unsigned bytes, unsigned valid,
                       Site site = here("copy_async")) {
  if (bytes != 4 && bytes != 8 && bytes != 16) fail(site, "copies 4, 8 or 16 bytes");
  if (valid > bytes) fail(site, "reads more than it writes");
  stage(shared, global, bytes, valid, site);
}
inline void copy_async(void* shared, const void* global, unsigned bytes,
                       Site site = here("copy_async")) {
  copy_async(shared, global, bytes, bytes, site);
}
/// PTX cp.async.commit_group: the thread's copies since the last commit are a group.
inline void copy_commit() {
  current->calls->commit_copies(*current);
}
/// PTX cp.async.wait_group: all of the thread's groups are done but the `pending` latest. Other
/// threads see them after the next barrier.
inline void copy_wait(unsigned pending) {
  current->calls->finish_copies(*current, pending);
}
/// PTX barrier.sync id, count: waits until `count` threads, a multiple of a wave's, have arrived at
/// this barrier, which may be used again then.
inline void barrier_sync(unsigned id, unsigned count, Site site = here("barrier_sync")) {
  current->calls->meet_some(*current, id, count, true, site);
}
/// PTX barrier.arrive id, count: arrives there and goes on.
inline void barrier_arrive(unsigned id, unsigned count, Site site = here("barrier_arrive")) {
  current->calls->meet_some(*current, id, count, false, site);
}
/// PTX mbarrier, in shared memory: init with a number of arrivals, arrive, arrive.expect_tx with a
/// number of bytes, and test_wait.parity until it returns true.
inline void counted_open(uint64_t* barrier, unsigned arrivals, Site site = here("counted_open")) {
  current->calls->meet_counted(*current, barrier, CountedStep::open, arrivals, site);
}
inline void counted_arrive(uint64_t* barrier, Site site = here("counted_arrive")) {
  current->calls->meet_counted(*current, barrier, CountedStep::arrive, 0, site);
}
/// PTX cp.async.mbarrier.arrive.noinc: the same, once the copies that the thread has started are
/// done. Unlike those of PTX, they end with this phase alone: neither copy_wait() nor a later
/// arrival waits for them.
inline void counted_arrive_copied(uint64_t* barrier, Site site = here("counted_arrive_copied")) {
  current->calls->meet_counted(*current, barrier, CountedStep::arrive_copied, 0, site);
}
inline void counted_expect(uint64_t* barrier, unsigned bytes, Site site = here("counted_expect")) {
  current->calls->meet_counted(*current, barrier, CountedStep::expect, bytes, site);
}
inline void counted_wait(uint64_t* barrier, unsigned parity, Site site = here("counted_wait")) {
  current->calls->meet_counted(*current, barrier, CountedStep::wait, parity, site);
}
/// PTX cp.async.bulk.tensor.2d, or 3d for a map of rows in pairs, with .multicast::cluster: copies
/// the box that starts at this column and row to byte `start` of `shared`, a multiple of 128, and
/// adds its bytes to the barrier's, in each block of the cluster whose bit of `blocks` is set. It
/// is seen when the barrier's phase has ended. Which chunks of a line trade places is told by where
/// the line is: `shared` is aligned to 1024 bytes.
inline void copy_box_to(unsigned blocks, unsigned char* shared, unsigned start,
                        const TensorMap& map, unsigned column, unsigned row, uint64_t* barrier,
                        Site site = here("copy_box_to")) {
  const unsigned plain = map.plain_bytes;
  if (start % 128 != 0) fail(site, "the target is not aligned to 128 bytes");
  const bool pairs = map.pair_bytes != 0;
  if (pairs && row % 2 != 0) fail(site, "a box of rows in pairs starts at an odd row");
  const unsigned size = map.element_bytes;
  // An illegal instruction on an H200.
  if (uint64_t(column) * size % 16 != 0) fail(site, "the box starts at no multiple of 16 bytes");
  for (unsigned r = 0; r < map.box_rows; ++r) {
    for (unsigned chunk = 0; chunk < (plain != 0 ? plain / 16 : 8); ++chunk) {
      unsigned char* const to =
          shared + start +
          (plain != 0 ? r * plain + chunk * 16 : r * 128 + (chunk ^ (start / 128 + r) % 8) * 16);
      if (!is_shared(to) || !is_shared(to + 15)) fail(site, "the target is not in shared memory");
      unsigned char staged[16];
      for (unsigned i = 0; i < 16; ++i) {
        const uint64_t at = column + (chunk * 16 + i) / size, line = uint64_t(row) + r;
        const bool inside = at < map.columns && line < map.rows;
        const uint64_t place =
            pairs ? line / 2 * map.row_bytes + line % 2 * map.pair_bytes : line * map.row_bytes;
        staged[i] = inside ? map.matrix[place + at * size + i % size] : 0;
      }
      for (unsigned rank = 0; blocks >> rank != 0; ++rank) {
        if ((blocks >> rank & 1) == 0) continue;
        current->calls->stage_counted(*current, rank, barrier, to, staged, site);
      }
    }
  }
}
/// The same to this block alone.
inline void copy_box(unsigned char* shared, unsigned start, const TensorMap& map, unsigned column,
                     unsigned row, uint64_t* barrier, Site site = here("copy_box")) {
  copy_box_to(1U << current->rank, shared, start, map, column, row, barrier, site);
}
/// PTX cp.async.wait_all: committed or not.
inline void copy_wait_all() {
  copy_commit();
  copy_wait(0);
}

#elif GRETA_HOST == 942

/// AMD's loads to LDS (dword, on gfx950 also dwordx4): the lane's `bytes`, 4 or 16, land at
/// `shared` + `bytes` * lane. All live lanes of the wave take part, with the same `shared`; a lane
/// that loads nothing, which the hardware's execution mask would leave out, gives a null `global`.
inline void load_to_shared(const void* global, void* shared, unsigned bytes,
                           Site site = here("load_to_shared")) {
  if (bytes != 4 && bytes != 16) fail(site, "loads 4 or 16 bytes for each lane");
  const auto all = exchange(shared, site);
  for (unsigned lane = 0; lane < unsigned(warpSize); ++lane) {
    if (all.has(lane) && all[lane] != shared) fail(site, "lanes of a wave have different targets");
  }
  auto* const mine = static_cast<unsigned char*>(shared) + bytes * current->lane;
  if (global != nullptr) stage(mine, global, bytes, bytes, site);
  current->calls->commit_copies(*current);
}
/// AMD s_waitcnt vmcnt(pending): all of the thread's loads to shared memory are done but the
/// `pending` latest. Other threads see them after the next barrier.
inline void load_wait(unsigned pending) {
  current->calls->finish_copies(*current, pending);
}

#endif

#if GRETA_HOST != 80
/// AMD s_barrier: waits until every wave of the block has arrived at one, not necessarily this one.
inline void s_barrier(Site site = here("s_barrier")) {
  current->calls->meet_some(*current, 0, blockDim.x * blockDim.y * blockDim.z, true, site);
}
#endif

}  // namespace greta_host
