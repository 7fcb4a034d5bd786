#pragma once

#include <csignal>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/hip/host/fiber.hpp"
#include "runtime/device/hip/host/language/abi.hpp"
#include "runtime/device/hip/host/race_detector.hpp"

namespace greta::device::hip::host {

/// The reason why a block did not finish.
struct Fault {
  bool illegal_access = false;  ///< the processor stopped it; otherwise it broke a rule
  std::string message;
};

/// Runs the threads of one block at a time on the calling OS thread. A thread runs until it must
/// wait for others; only then does it need a fiber of its own. The runner checks the points where
/// threads wait for each other: all live lanes of a wave must meet in the same operation, all
/// threads of the block at the same barrier, and those at a partial barrier must name one number of
/// threads. Waves run in the order of their numbers, and backward in every other block, so that the
/// order hides fewer missing waits.
class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  struct Launch : greta_host::Launch {
    unsigned wave_size = 32;
    unsigned dynamic_bytes = 0;
    const unsigned char* arguments = nullptr;
    const ElfSummary* summary = nullptr;  ///< of the library
  };

  /// Sets the launch for the following calls of run(). `earlier` runs the launch ahead of it, if
  /// that has not run; it is null or empty where there is none. All must outlive these calls.
  void set_launch(const greta_host::Entry& entry, const Launch& launch,
                  const std::function<void()>* earlier);
  std::optional<Fault> run(greta_host::Index block);

  /// Ends the running block. Call it only in a signal handler, on the OS thread of this runner.
  /// Returns false if no kernel code was running. Otherwise it does not return, and run() returns a
  /// fault.
  bool interrupt(int signal, const void* address);
  /// Writes the running thread, if any, to standard error. Call it only in a signal handler.
  void report() const;

 private:
  struct Copy;
  struct Thread;
  struct Wave;
  struct PartialBarrier;
  struct CountedBarrier;
  enum class State : unsigned char { unstarted, running, in_wave, at_barrier, ended };

  class Outside;

  static Thread& self(greta_host::Thread& thread);
  static void meet_wave(greta_host::Thread& thread, greta_host::Site site);
  static void meet_block(greta_host::Thread& thread, greta_host::Site site);
  static void meet_some(greta_host::Thread& thread, unsigned id, unsigned count, bool waits,
                        greta_host::Site site);
  static unsigned char* stage_copy(greta_host::Thread& thread, void* to, unsigned bytes);
  static void commit_copies(greta_host::Thread& thread);
  static void finish_copies(greta_host::Thread& thread, unsigned pending);
  static void let_others_run(greta_host::Thread& thread);
  static void meet_counted(greta_host::Thread& thread, const void* barrier,
                           greta_host::CountedStep step, unsigned value, greta_host::Site site);
  static void stage_counted(greta_host::Thread& thread, const void* barrier, void* to,
                            const unsigned char* from, greta_host::Site site);
  static void await_launches(greta_host::Thread& thread);
  static void fail(greta_host::Thread& thread, greta_host::Site site, const char* why);
  static void access(greta_host::Thread& thread, const void* at, unsigned bytes,
                     greta_host::Access access, const void* code);
  static void fence(greta_host::Thread& thread);
  static void call(greta_host::Thread& thread, const void* code);
  static const greta_host::Calls calls_;

  static void fiber_body(void* runner);
  void run_threads();
  void reset(greta_host::Index block);
  void clear_shared_memory();
  /// Marks a thread as waiting, and runs others until it can continue.
  void wait(Thread& thread, State state, greta_host::Site site);
  void end_thread(Thread& thread);
  unsigned number(const Thread& thread) const;
  /// Reports a race, if there is one, and ends the process as AddressSanitizer does.
  void check(const std::optional<Race>& race);
  void release_wave(Wave& wave);
  void release_block();
  void release(const Thread& thread);
  /// Returns the barrier at a place of shared memory. Ends the block if there is none.
  CountedBarrier& counted(greta_host::Thread& thread, const void* barrier, greta_host::Site site);
  /// Ends a phase for which all have arrived and all bytes were copied.
  void end_phase(CountedBarrier& barrier);
  /// Returns the thread that runs after `after`, or nullptr if none can run.
  Thread* next(const Thread& after);
  /// Returns the wave of these that runs after wave `number`.
  unsigned wave_after(std::uint64_t waves, unsigned number) const;
  void switch_to(Thread& from, Thread& to);
  Fiber& take_fiber();
  [[noreturn]] void stop(Fault fault);
  void check_same(const Thread& thread, const char* group, const greta_host::Site& theirs,
                  const greta_host::Site& mine);
  Fault stuck() const;
  std::string describe(State state) const;
  Fault interruption() const;

  const greta_host::Entry* entry_ = nullptr;
  const Launch* launch_ = nullptr;
  const std::function<void()>* earlier_ = nullptr;
  unsigned count_ = 0;  ///< threads per block
  std::vector<Thread> threads_;
  std::vector<Wave> waves_;
  std::uint64_t ready_waves_ = 0;  ///< waves with lanes that can run
  bool backward_ = false;          ///< waves run from the last one to the first
  unsigned arrived_ = 0, ended_ = 0;
  greta_host::Site barrier_{};
  std::vector<PartialBarrier> partial_barriers_;
  std::map<const void*, CountedBarrier> counted_barriers_;
  std::unique_ptr<RaceDetector> races_;  ///< null unless the kernel is built to find races

  Fiber main_;
  std::deque<Fiber> fibers_;
  std::vector<Fiber*> idle_;
  Thread* current_ = nullptr;
  std::optional<Fault> fault_;
  volatile std::sig_atomic_t in_kernel_ = 0;
  int signal_ = 0;  ///< signal that ended the block
  const void* signal_address_ = nullptr;
};

}  // namespace greta::device::hip::host
