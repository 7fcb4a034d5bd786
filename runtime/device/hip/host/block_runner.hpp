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
/// threads. Waves run in the order of their numbers, and backward in every other block. Some are
/// late: they run only while no other can. So the order hides fewer missing waits. ClusterRunner
/// runs blocks.
class BlockRunner {
 public:
  struct Cluster;
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

  /// Sets the launch for the following blocks, which are those of this rank in their clusters.
  /// `earlier` runs the launch ahead of it, if that has not run; it is null or empty where there is
  /// none. All must outlive the blocks.
  void set_launch(const greta_host::Entry& entry, const Launch& launch,
                  const std::function<void()>* earlier, Cluster& cluster, unsigned rank);
  /// Makes the block ready to run, once those before it have ended or were abandoned.
  void start(greta_host::Index block);
  /// Runs a block that is ready() until no thread of it can go on, or lets other blocks run.
  std::optional<Fault> resume();
  /// Whether a thread can go on.
  bool ready() const { return ready_waves_ != 0; }
  bool ended() const { return ended_ == count_; }
  /// Returns what the threads of a block wait for that has not ended and is not ready().
  Fault stuck() const;
  /// Takes the shared memory of a block that has ended away from the others of its cluster.
  std::optional<Fault> close();
  /// Forgets a block that will not be run to its end.
  void abandon();
  /// Frees stacks of threads beyond this number, and returns how many there are. No block may be
  /// running.
  std::size_t release_stacks(std::size_t most);

  /// Ends the running block. Call it only in a signal handler, on the OS thread of this runner.
  /// Returns false if no kernel code was running. Otherwise it does not return, and resume()
  /// returns a fault.
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
  static void stage_counted(greta_host::Thread& thread, unsigned rank, const void* barrier,
                            void* to, const unsigned char* from, greta_host::Site site);
  static void meet_cluster(greta_host::Thread& thread, greta_host::ClusterStep step,
                           greta_host::Site site);
  static const void* place_in_block(greta_host::Thread& thread, unsigned rank, const void* own,
                                    greta_host::Site site);
  static void send(greta_host::Thread& thread, unsigned rank, const void* barrier, void* to,
                   const unsigned char* from, greta_host::Site site);
  static void arrive_in_block(greta_host::Thread& thread, unsigned rank, const void* barrier,
                              greta_host::Site site);
  static void show_barriers(greta_host::Thread& thread);
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
  /// Calls use(from, to) with the parts of shared memory that the kernel may use.
  template <typename Use>
  void each_part(Use use) const;
  /// Marks a thread as waiting, and runs others until it can continue.
  void wait(Thread& thread, State state, greta_host::Site site);
  void end_thread(Thread& thread);
  unsigned number(const Thread& thread) const;
  /// Reports a race, if there is one, and ends the process as AddressSanitizer does.
  void check(const std::optional<Race>& race);
  void release_wave(Wave& wave);
  void release_block();
  void release(const Thread& thread);
  /// Ends a copy of the thread.
  void finish(const Thread& thread, const Copy& copy);
  /// Returns the barrier at a place of shared memory. Ends the block of the thread if there is
  /// none, or if the thread is of another block to which it was not shown.
  CountedBarrier& counted(greta_host::Thread& thread, const void* barrier, greta_host::Site site);
  /// Counts an arrival of a thread of this block or of another one, which expects so many bytes.
  void arrive(greta_host::Thread& thread, CountedBarrier& at, unsigned bytes,
              greta_host::Site site);
  struct StagedChunk;
  void stage(greta_host::Thread& thread, CountedBarrier& at, const StagedChunk& chunk,
             greta_host::Site site);
  /// Ends a phase for which all have arrived and all bytes were copied. The thread did the last of
  /// that; its block ends if a thread that the end of the phase before released has not run since:
  /// on a device it polls, and would miss that end.
  void end_phase(greta_host::Thread& thread, CountedBarrier& barrier, greta_host::Site site);
  /// Returns the block of the thread's cluster that has this rank. Ends the thread's block if there
  /// is none, or if it has ended.
  static BlockRunner& block_of(greta_host::Thread& thread, unsigned rank, greta_host::Site site);
  /// Returns the place that `own` of the thread's block is in this block.
  unsigned char* place_of(const greta_host::Thread& thread, const void* own) const;
  /// Returns what the others of the cluster see at a place of shared memory; null for a block that
  /// is alone.
  unsigned char* shown_at(const unsigned char* place);
  /// Counts a thread that arrives at the cluster's barrier in this phase, or that ends before.
  void count_arrival();
  /// Shows the others of the cluster, if there are any, memory that nobody has written.
  void hide_memory();
  /// Shows them what the threads have written, and the barriers.
  void show_memory();
  void show_own_barriers();
  /// Returns the thread that runs after `after`, or nullptr if none can run.
  Thread* next(const Thread& after);
  /// Returns the wave of these that runs after wave `number`.
  unsigned wave_after(std::uint64_t waves, unsigned number) const;
  /// Returns the wave that runs after wave `number`. At least one must be ready.
  unsigned next_wave(unsigned number) const;
  void switch_to(Thread& from, Thread& to);
  /// Makes resume() return. The thread of `from`, if it can go on, does so after the next call.
  void leave(Fiber& from);
  unsigned wave_number(const Thread& thread) const;
  Fiber& take_fiber();
  [[noreturn]] void stop(Fault fault);
  void check_same(const Thread& thread, const char* group, const greta_host::Site& theirs,
                  const greta_host::Site& mine);
  std::string describe(State state) const;
  Fault interruption() const;

  const greta_host::Entry* entry_ = nullptr;
  const Launch* launch_ = nullptr;
  const std::function<void()>* earlier_ = nullptr;
  unsigned count_ = 0;  ///< threads per block
  std::vector<Thread> threads_;
  std::vector<Wave> waves_;
  std::uint64_t ready_waves_ = 0;  ///< waves with lanes that can run
  std::uint64_t late_waves_ = 0;   ///< those that run only while no other can
  bool backward_ = false;          ///< waves run from the last one to the first
  unsigned arrived_ = 0, ended_ = 0;
  greta_host::Site barrier_{};
  std::vector<PartialBarrier> partial_barriers_;
  std::map<const void*, CountedBarrier> counted_barriers_;
  std::unique_ptr<RaceDetector> races_;  ///< null unless the kernel is built to find races

  Cluster* cluster_ = nullptr;
  unsigned rank_ = 0;
  unsigned missing_ = 0;   ///< threads that the cluster's barrier waits for in this phase
  bool released_ = false;  ///< an arrival in this phase was not relaxed
  std::vector<Thread*> at_cluster_barrier_;
  unsigned cluster_barrier_ = 0;  ///< number of the cluster's barrier, of the race detector
  /// Shared memory as the others of the cluster see it: what was written before the last arrivals
  /// at the cluster's barrier that were not relaxed, and what others have sent. Empty for a block
  /// that is alone.
  std::vector<unsigned char> shown_;
  std::size_t shown_start_ = 0;  ///< place of the first byte, which is aligned as in shared memory

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
