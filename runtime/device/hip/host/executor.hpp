#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/device/hip/host/block_runner.hpp"
#include "runtime/device/hip/host/library.hpp"

namespace greta::device::hip::host {

/// A kernel launch, whose blocks run in parallel and in any order.
struct Job {
  std::shared_ptr<Library> library;
  BlockRunner::Launch launch;
  std::vector<unsigned char> arguments;
};

/// OS threads that run blocks, one for each processor that this process may use (2 to 64).
/// Thread-safe.
class Executor {
 public:
  /// Returns the process's executor, which is never destroyed.
  static Executor& instance();

  unsigned workers() const { return static_cast<unsigned>(workers_.size()); }
  /// Runs a job to completion. Once `cancelled` is set, it ends soon, whatever the kernel does.
  std::optional<Fault> run(const Job& job, const std::atomic<bool>& cancelled);

 private:
  struct Run;
  struct Worker {
    pthread_t thread{};
    const Run* run = nullptr;  ///< the run it works on
  };

  Executor();
  void work(unsigned number);
  void run_blocks(Run& run, BlockRunner& runner, unsigned number);

  std::mutex mutex_;
  std::condition_variable more_, done_;
  std::deque<Run*> runs_;  ///< runs with unassigned blocks
  std::vector<Worker> workers_;
};

}  // namespace greta::device::hip::host
