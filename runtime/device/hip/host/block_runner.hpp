#pragma once

#include <csignal>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/hip/host/fiber.hpp"
#include "runtime/device/hip/host/language/abi.hpp"

namespace greta::device::hip::host {

/// Why a block did not come to its end.
struct Fault {
  bool illegal_access = false;  ///< the processor stopped it; else it broke a rule
  std::string message;
};

/// Runs the threads of one block after the other on the calling OS thread. A thread runs until it
/// must wait for others; only then it needs a fiber of its own. What threads wait for each other
/// for is checked: all live lanes of a wave meet in the same operation, and all threads of the
/// block at the same barrier.
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
  };

  /// The launch and the library must outlive the calls of run().
  void set_launch(const greta_host::Entry& entry, const Launch& launch);
  std::optional<Fault> run(greta_host::Index block);

  /// In a signal handler, on the OS thread of this runner. False: no kernel's code was running.
  /// Otherwise run() returns a fault, and this does not.
  bool interrupt(int signal, const void* address);
  /// In a signal handler: tells standard error who runs, if anybody does.
  void report() const;

 private:
  struct Copy;
  struct Thread;
  struct Wave;
  enum class State : unsigned char { unstarted, running, in_wave, at_barrier, ended };

  class Outside;

  static Thread& self(greta_host::Thread& thread);
  static void meet_wave(greta_host::Thread& thread, greta_host::Site site);
  static void meet_block(greta_host::Thread& thread, greta_host::Site site);
  static unsigned char* stage_copy(greta_host::Thread& thread, void* to, unsigned bytes);
  static void commit_copies(greta_host::Thread& thread);
  static void finish_copies(greta_host::Thread& thread, unsigned pending);
  static void fail(greta_host::Thread& thread, greta_host::Site site, const char* why);
  static const greta_host::Calls calls_;

  static void fiber_body(void* runner);
  void run_threads();
  void reset(greta_host::Index block);
  void clear_shared_memory();
  /// Notes that a thread waits, and runs others until it may go on.
  void wait(Thread& thread, State state, greta_host::Site site);
  void end_thread(Thread& thread);
  void release_wave(Wave& wave);
  void release_block();
  /// Who runs when `after` does not; nullptr when nobody can.
  Thread* next(const Thread& after);
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
  unsigned dynamic_open_ = 0;  ///< bytes of the library's dynamic memory that are not poisoned
  unsigned count_ = 0;         ///< threads of a block
  std::vector<Thread> threads_;
  std::vector<Wave> waves_;
  std::uint64_t ready_waves_ = 0;  ///< with lanes that can run
  unsigned arrived_ = 0, ended_ = 0;
  greta_host::Site barrier_{};

  Fiber main_;
  std::deque<Fiber> fibers_;
  std::vector<Fiber*> idle_;
  Thread* current_ = nullptr;
  std::optional<Fault> fault_;
  volatile std::sig_atomic_t in_kernel_ = 0;
  int signal_ = 0;  ///< that ended the block
  const void* signal_address_ = nullptr;
};

}  // namespace greta::device::hip::host
