#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/device/hip/host/cluster_runner.hpp"
#include "runtime/device/hip/host/library.hpp"

namespace greta::device::hip::host {

/// A kernel launch, whose clusters run in parallel and in any order, each on one OS thread.
struct Job {
  std::shared_ptr<Library> library;
  BlockRunner::Launch launch;
  std::vector<unsigned char> arguments;
};

/// OS threads that run blocks. Thread-safe.
class Executor {
 public:
  /// Returns the process's executor, with a thread for each processor that this process may use (2
  /// to 64). It is never destroyed.
  static Executor& instance();
  /// Returns another one, with one thread, for launches that threads of instance() wait for.
  static Executor& for_earlier();

  unsigned workers() const { return static_cast<unsigned>(workers_.size()); }
  /// Runs a job to completion. Once `cancelled` is set, it ends soon, whatever the kernel does.
  /// `earlier` runs the launch ahead of it; empty if that has run. The kernel calls it where it
  /// waits for that launch, from several threads.
  std::optional<Fault> run(const Job& job, const std::atomic<bool>& cancelled,
                           const std::function<void()>& earlier = {});

 private:
  struct Run;
  struct Worker {
    pthread_t thread{};
    const Run* run = nullptr;  ///< the run it works on
  };

  /// `first` is the number of the first worker among those of all executors.
  Executor(unsigned workers, unsigned first);
  void work(unsigned number);
  void run_clusters(Run& run, ClusterRunner& runner, unsigned number);

  const unsigned first_;
  std::mutex mutex_;
  std::condition_variable more_, done_;
  std::deque<Run*> runs_;  ///< runs with unassigned clusters
  std::vector<Worker> workers_;
};

}  // namespace greta::device::hip::host
