#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "runtime/pipeline/compute/operations.hpp"
#include "runtime/pipeline/compute/runtime.hpp"
#include "runtime/pipeline/compute/timing.hpp"
#include "runtime/pipeline/compute/workspace.hpp"

namespace greta::runtime {

class PipelineGraph;

/// Runs operations on a stream of its own, in order. Work is handed to the device every
/// `submit_after` operations, and by submit() and synchronize(). Keeps memory that work in flight
/// uses until synchronize().
class Queue final : public Operations {
 public:
  static constexpr int submit_after = 16;

  /// By Runtime::queue().
  Queue(Runtime& runtime, std::unique_ptr<Stream> stream);
  ~Queue() override;

  Result<void> copy(const Tensor& to, const Tensor& from) override;
  Result<void> run(const Problem& problem, std::span<const Tensor> operands) override;
  const Catalog& catalog() const override;
  /// A pipeline's work, here. With Telemetry::Options::device_time operation by operation, not as
  /// one graph, because only so they can be timed.
  Result<void> replay(const PipelineGraph& graph);

  /// Hands everything to the device and returns at once.
  Result<void> submit();
  /// Waits until everything is done, or `timeout`.
  Result<void> synchronize(Deadline deadline);
  /// The same, with the deadline that the runtime was opened with.
  Result<void> synchronize() { return synchronize(runtime_.patience()); }

  Runtime& runtime() { return runtime_; }
  /// For work that is not GRETA's operations. Its order is the queue's.
  Stream& stream() { return *stream_; }

 private:
  void keep(const std::shared_ptr<Storage>& storage);
  /// Counts an operation, null for a copy, and times it where telemetry asks for that.
  template <typename Record>
  Result<void> timed(const PreparedOperation* operation, const Record& record) {
    const Telemetry& telemetry = runtime_.telemetry();
    if (!telemetry.counts()) return record();
    if (operation != nullptr) ++operation->counts.runs;
    if (!telemetry.times()) return record();
    if (auto started = timer_.start(runtime_.device(), *stream_); !started) return started;
    if (auto done = record(); !done) return done;
    return timer_.stop(runtime_.device(), *stream_, operation);
  }
  Result<void> launched();

  Runtime& runtime_;
  std::unique_ptr<Stream> stream_;
  Workspace workspace_;
  OperationTimer timer_;
  std::vector<std::shared_ptr<const void>> kept_;  ///< what work in flight uses
  std::uint64_t batch_;                            ///< of work since the last synchronize()
  int since_submit_ = 0;
};

}  // namespace greta::runtime
