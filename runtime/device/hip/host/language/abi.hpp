#pragma once

// What a kernel that was built for the CPU and the executor that runs it know of each other. Plain
// C++17 without the standard library: kernels are compiled with it.

namespace greta_host {

struct Index {
  unsigned x, y, z;
};

/// Where in a kernel's text a thread waits, or what it did wrong there.
struct Site {
  const char* what;  ///< "__syncthreads", "__shfl_xor"
  const char* file;
  int line;
};

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

struct Thread;

/// What kernels call. Functions that fail do not return: the block ends, and the launch with it.
struct Calls {
  void (*meet_wave)(Thread& thread, Site site);
  void (*meet_block)(Thread& thread, Site site);
  void (*fail)(Thread& thread, Site site, const char* why);
};

/// What all threads of a launch see.
struct Launch {
  Index grid;
  Index block;
  unsigned dynamic_shared_bytes;
};

/// A thread of the GPU: a fiber of the CPU.
struct Thread {
  Index index;
  Index block;
  unsigned lane;       ///< within its wave
  unsigned exchanges;  ///< meetings of the wave that it has been to
  Wave* wave;
  const Launch* launch;
  const Calls* calls;
  void* copies;  ///< asynchronous copies under way, of a type that only the kernel knows
};

/// What a kernel's library exports as greta_host_entry_NAME.
struct Entry {
  void (*run)(const unsigned char* arguments);  ///< the kernel, for the current thread
  unsigned argument_bytes;
  Thread** current;        ///< the thread that runs; set by the executor
  unsigned char* dynamic;  ///< dynamic shared memory; null where the kernel uses none
  unsigned dynamic_limit;  ///< bytes there
  unsigned char* shared;   ///< all shared memory of the library, the dynamic one included
  unsigned char* shared_end;
};

}  // namespace greta_host
