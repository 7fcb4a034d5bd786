#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/device/hip/host/elf_image.hpp"
#include "runtime/device/hip/host/language/abi.hpp"
#include "runtime/device/layers.hpp"

namespace greta::device::hip::host {

/// An access to shared memory.
struct SharedAccess {
  unsigned thread = 0;  ///< index in the block
  greta_host::Access access = greta_host::Access::read;
  bool staged = false;             ///< an asynchronous copy that has not been waited for
  std::vector<const void*> stack;  ///< return addresses, the innermost first
};

/// Two accesses to one byte of shared memory that nothing orders.
struct Race {
  const unsigned char* at = nullptr;  ///< the byte
  SharedAccess earlier, later;        ///< in the order in which hip-host ran them
};

/// Finds races in the shared memory of one block at a time. Two accesses of different threads race
/// if one of them writes, not both are atomic, and no synchronisation orders them: a barrier of the
/// block, an operation of the wave of both threads, a barrier for some threads, or atomic
/// operations on one address after a fence.
///
/// Threads run one at a time, so one clock stamps all accesses. It advances when threads
/// synchronise. What is ordered before a wave's next access is then a stamp for each thread of the
/// block: all accesses of the thread up to it. Of each byte, the last write is known, and of the
/// reads since then the last three of different threads that decide whether a write races.
class RaceDetector {
 public:
  void set_launch(const greta_host::Entry& entry, unsigned threads, unsigned wave_size);
  void start_block();

  /// All threads of the block have met.
  void met_block();
  /// All live lanes of a wave have met.
  void met_wave(unsigned wave);
  /// A thread comes to a barrier for some threads.
  void arrive(unsigned barrier, unsigned thread);
  /// A thread leaves such a barrier, at which all have arrived.
  void leave(unsigned barrier, unsigned thread) {
    join(known_[thread / wave_size_], met_[barrier]);
  }
  /// Adds a barrier in shared memory and returns its number.
  unsigned add_barrier();
  /// Ends a phase of such a barrier. Those that leave() it from now on are ordered after all that
  /// arrived.
  void end_phase(unsigned barrier) { join(met_[barrier], met_[barrier + 1]); }
  /// A thread arrives at such a barrier, or what it copies has arrived.
  void arrive_counted(unsigned barrier, unsigned thread) { arrive(barrier + 1, thread); }
  /// All have left the barrier, which may be used again.
  void reset(unsigned barrier) { met_[barrier].assign(threads_, 0); }
  void fence(unsigned thread) { fenced_[thread] = true; }
  /// A function is called from `code`; null: it returns.
  void call(unsigned thread, const void* code);

  /// Records an access to `bytes` of shared memory at `at` by the code before `code`.
  std::optional<Race> access(unsigned thread, const void* at, unsigned bytes,
                             greta_host::Access access, const void* code);
  /// Records the start of an asynchronous copy to shared memory. Nothing may access its target
  /// until the thread has waited for the copy.
  std::optional<Race> stage(unsigned thread, const void* at, unsigned bytes, const void* code);
  /// Records the end of such a copy.
  void finish(unsigned thread, const void* at, unsigned bytes);

 private:
  /// An access; 16 bytes, because there are four for each byte of shared memory.
  struct Touch {
    std::uint32_t time = 0;  ///< 0: none
    std::int32_t code = 0;   ///< return address, relative to shared memory
    std::uint32_t calls = 0;
    std::uint16_t thread = 0;
    greta_host::Access access = greta_host::Access::read;
    bool staged = false;

    bool writes() const {
      return access == greta_host::Access::write || access == greta_host::Access::atomic_write;
    }
    bool atomic() const { return access >= greta_host::Access::atomic_read; }
    bool same(const Touch& other) const {
      return time == other.time && thread == other.thread && access == other.access &&
             staged == other.staged;
    }
  };
  struct Cell {
    Touch write;
    Touch read;             ///< the last one
    Touch of_same_wave;     ///< the last one of another thread of its wave
    Touch of_another_wave;  ///< the last one of another wave
  };
  struct Freed {
    void operator()(void* memory) const { std::free(memory); }
  };
  /// For each thread of the block: its accesses up to this time.
  using Times = std::vector<std::uint32_t>;

  static void join(Times& times, const Times& others);
  std::optional<Race> record(const unsigned char* at, unsigned bytes, const Touch& touch);
  /// Returns what races with an access, or nullptr.
  const Touch* conflict(const Cell& cell, const Touch& touch) const;
  bool ordered(const Touch& earlier, unsigned thread) const;
  void add_read(Cell& cell, const Touch& touch) const;
  Touch touch(unsigned thread, greta_host::Access access, const void* code) const;
  SharedAccess described(const Touch& touch) const;

  const unsigned char* shared_ = nullptr;
  unsigned threads_ = 0, wave_size_ = 32;
  std::unique_ptr<Cell[], Freed> cells_;  ///< one for each byte of shared memory
  std::size_t cell_count_ = 0;
  std::uint32_t time_ = 1;
  std::uint32_t block_start_ = 0;    ///< accesses up to then are those of earlier blocks
  std::uint32_t block_barrier_ = 0;  ///< accesses up to then lie before the last barrier
  std::vector<Times> known_;         ///< what is ordered before the next access of each wave
  std::vector<Times> met_;           ///< the same of the threads at each barrier for some threads
  std::map<const void*, Times> released_;  ///< the same of the threads that changed an atomic
  std::vector<bool> fenced_;               ///< threads that have executed a fence
  std::vector<std::uint32_t> calls_;       ///< of each thread, its place in the tree of calls
  std::vector<std::pair<std::uint32_t, const void*>> tree_;  ///< caller and return address
  std::map<std::pair<std::uint32_t, const void*>, std::uint32_t> places_;  ///< in the tree
};

/// Returns a report in the form of AddressSanitizer's, of which sanitizer_summary() finds the
/// summary: both accesses with their stacks, the array, and what does not order them. `block` is
/// the size of the block in threads.
std::string race_report(const Race& race, greta_host::Index block, unsigned wave_size,
                        const greta_host::Entry& entry, const ElfSummary& summary);

}  // namespace greta::device::hip::host
