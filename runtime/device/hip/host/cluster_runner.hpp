#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/device/hip/host/block_runner.hpp"

namespace greta::device::hip::host {

/// Runs the blocks of a cluster on the calling OS thread: one block until all of its threads wait,
/// then the next one that can go on. A block without a cluster is one of a single block. The blocks
/// run in the order of their ranks or backward, from any one on, as the launch and the cluster's
/// place in it draw.
class ClusterRunner {
 public:
  using Launch = BlockRunner::Launch;

  ClusterRunner();
  ~ClusterRunner();
  ClusterRunner(const ClusterRunner&) = delete;
  ClusterRunner& operator=(const ClusterRunner&) = delete;

  /// Sets the launch for the following calls of run(), with a copy of the library for each block of
  /// a cluster. `earlier` is as for BlockRunner. All must outlive these calls.
  void set_launch(const std::vector<const greta_host::Entry*>& copies, const Launch& launch,
                  const std::function<void()>* earlier);
  /// Runs the cluster whose first block this is.
  std::optional<Fault> run(greta_host::Index first);
  /// Frees all stacks of threads but this number.
  void release_stacks(std::size_t most);

  /// As those of BlockRunner.
  bool interrupt(int signal, const void* address);
  void report() const;

 private:
  std::optional<Fault> run_blocks(unsigned draw);
  Fault stuck() const;

  std::vector<std::unique_ptr<BlockRunner>> runners_;  ///< as many as the largest cluster needed
  std::unique_ptr<BlockRunner::Cluster> cluster_;
  greta_host::Index size_{};
  const Launch* launch_ = nullptr;
  BlockRunner* volatile running_ = nullptr;
};

}  // namespace greta::device::hip::host
