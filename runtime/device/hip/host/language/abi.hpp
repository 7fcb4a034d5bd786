#pragma once

// What a kernel that was built for the CPU and the executor that runs it know of each other. Plain
// C++17 without the standard library: kernels are compiled with it.

namespace greta_host {

struct Index {
  unsigned x, y, z;
};

/// Where in a kernel's text a thread waits, or does something wrong.
struct Site {
  const char* what;  ///< "__syncthreads", "__shfl_xor"
  const char* file;
  int line;
};

/// The place that calls the function whose default argument this is.
constexpr Site here(const char* what, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  return {what, file, line};
}

/// Bytes that a lane can hand to the others of its wave at a time.
constexpr unsigned slot_bytes = 128;

struct alignas(slot_bytes) Slot {
  unsigned char bytes[slot_bytes];
};

/// The threads of a block that run in step.
struct Wave {
  Slot* slots[2];          ///< one for each lane; a meeting uses one half, the next the other
  unsigned long long met;  ///< lanes that took part in the last meeting
};

struct Entry;
struct Thread;

/// What a kernel that is built to find races does to memory.
enum class Access : unsigned char { read, write, atomic_read, atomic_write };

/// A matrix of 16-bit elements from which boxes are copied to shared memory
/// (runtime/device/tensor_map.hpp), as hip-host passes it to kernels.
struct alignas(64) TensorMap {
  const unsigned char* matrix;
  unsigned long long columns, rows, row_bytes, pair_bytes;
  unsigned box_rows, element_bytes, plain_bytes;
  unsigned char rest[128 - 5 * 8 - 3 * 4];
};

/// What a thread does at a barrier in shared memory that counts threads and bytes.
enum class CountedStep : unsigned char {
  open,           ///< makes it a barrier of `value` arrivals
  arrive,         ///< arrives
  arrive_copied,  ///< arrives, and the phase ends after the copies that the thread has started
  expect,         ///< arrives, and `value` more bytes must be copied before the phase ends
  wait,           ///< waits until the phase of parity `value` has ended
};

/// What a thread does at the barrier of its cluster.
enum class ClusterStep : unsigned char {
  arrive,          ///< arrives; those that wait see what the thread has written before
  arrive_relaxed,  ///< arrives, and orders nothing
  wait,            ///< waits until all threads of the cluster that have not ended have arrived
};

/// What kernels call.
struct Calls {
  /// All live lanes of the wave arrive before any goes on.
  void (*meet_wave)(Thread& thread, Site site);
  /// All threads of the block arrive before any goes on.
  void (*meet_block)(Thread& thread, Site site);
  /// `count` threads of the block arrive at barrier `id` before those of them that wait go on.
  void (*meet_some)(Thread& thread, unsigned id, unsigned count, bool waits, Site site);
  /// Memory for the bytes (16 at most) that will be written to `to` when the copy is waited for.
  unsigned char* (*stage_copy)(Thread& thread, void* to, unsigned bytes);
  /// Makes the thread's staged copies since the last commit a group.
  void (*commit_copies)(Thread& thread);
  /// Writes all groups but the `pending` latest.
  void (*finish_copies)(Thread& thread, unsigned pending);
  /// Takes a step at a counted barrier.
  void (*meet_counted)(Thread& thread, const void* barrier, CountedStep step, unsigned value,
                       Site site);
  /// Writes 16 bytes to `to` when the barrier's phase ends, both in the shared memory of the block
  /// of the cluster that has this rank.
  void (*stage_counted)(Thread& thread, unsigned rank, const void* barrier, void* to,
                        const unsigned char* from, Site site);
  /// Waits for the launch ahead of this one, where that has not run yet.
  void (*await_launches)(Thread& thread);
  /// Ends the block, and the launch with a failure. Does not return.
  void (*fail)(Thread& thread, Site site, const char* why);
  // Of kernels that are built to find races; `code` is the address that the call returns to.
  void (*access)(Thread& thread, const void* at, unsigned bytes, Access access, const void* code);
  void (*fence)(Thread& thread);
  /// A function is called from `code`; null: the thread returns from it.
  void (*call)(Thread& thread, const void* code);
  /// Lets the block's other waves, and the other blocks of its cluster, run as far as they can
  /// before the thread goes on.
  void (*let_others_run)(Thread& thread);
  /// Takes a step at the barrier of the cluster.
  void (*meet_cluster)(Thread& thread, ClusterStep step, Site site);
  /// Returns where a thread reads what is at `own` in the shared memory of the block of that rank.
  const void* (*place_in_block)(Thread& thread, unsigned rank, const void* own, Site site);
  /// The same as stage_counted, by a store of this thread and not by a copy.
  void (*send)(Thread& thread, unsigned rank, const void* barrier, void* to,
               const unsigned char* from, Site site);
  /// Arrives at a counted barrier of the block of that rank.
  void (*arrive_in_block)(Thread& thread, unsigned rank, const void* barrier, Site site);
  /// Shows the block's counted barriers to the others of its cluster.
  void (*show_barriers)(Thread& thread);
};

/// Barriers that a block has for some of its threads.
constexpr unsigned partial_barriers = 16;

/// What all threads of a launch see.
struct Launch {
  Index grid;
  Index block;
};

/// A thread of the GPU.
struct Thread {
  Index index;
  Index block;
  unsigned rank;       ///< of the block in its cluster
  unsigned lane;       ///< within its wave
  unsigned exchanges;  ///< meetings of the wave that it has been to
  Wave* wave;
  const Launch* launch;
  const Entry* entry;
  const Calls* calls;
};

/// What a kernel's library exports as greta_host_entry.
struct Entry {
  const char* name;
  int imitates;                                 ///< GRETA_HOST of the kernel
  void (*run)(const unsigned char* arguments);  ///< the kernel, as the current thread
  unsigned argument_bytes;
  Thread** current;        ///< the thread that runs; the executor sets it
  unsigned char* dynamic;  ///< dynamic shared memory
  unsigned dynamic_bytes;  ///< there is room for
  unsigned char* shared;   ///< all shared memory of the library, the dynamic one included
  unsigned char* shared_end;
  bool finds_races;  ///< built with GRETA_HOST_RACES
  Index cluster;     ///< blocks of a cluster along each dimension of the grid
};

}  // namespace greta_host
