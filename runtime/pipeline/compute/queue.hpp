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

/// Runs operations in order on a stream. Work is submitted to the device after every `submit_after`
/// operations, and by submit() and synchronize(). Keeps the memory of work in flight alive until
/// synchronize(); on another library's stream, only GRETA's own memory.
class Queue final : public Operations {
 public:
  static constexpr int submit_after = 16;

  /// Called by Runtime::queue().
  Queue(Runtime& runtime, std::unique_ptr<Stream> stream, bool foreign = false);
  ~Queue() override;

  Result<void> copy(const Tensor& to, const Tensor& from) override;
  Result<void> run(const Problem& problem, std::span<const Tensor> operands) override;
  /// Runs a problem that this queue's runtime has prepared on the operands at these addresses,
  /// whose memory the caller keeps until the work is done.
  Result<void> run(const PreparedOperation& operation, std::span<const std::uint64_t> addresses);
  const Catalog& catalog() const override;
  /// Runs a pipeline's graph. With Telemetry::Options::device_time, launches its operations one by
  /// one, which is required to time them.
  Result<void> replay(const PipelineGraph& graph);

  /// Submits all work to the device and returns immediately.
  Result<void> submit();
  /// Waits until all work has finished. Fails with `timeout` after `deadline`.
  Result<void> synchronize(Deadline deadline);
  /// Waits with the deadline from RuntimeOptions::patience.
  Result<void> synchronize() { return synchronize(runtime_.patience()); }

  Runtime& runtime() { return runtime_; }
  /// Returns the stream, for work other than GRETA's operations. Its order is the queue's.
  Stream& stream() { return *stream_; }

 private:
  void keep(const std::shared_ptr<Storage>& storage);
  /// Counts an operation (null: a copy), and times it if telemetry requires that.
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
  Result<void> launch(const PreparedOperation& operation, std::span<const std::uint64_t> addresses);
  Result<void> launched();

  Runtime& runtime_;
  std::unique_ptr<Stream> stream_;
  Workspace workspace_;
  OperationTimer timer_;
  std::vector<std::shared_ptr<const void>> kept_;  ///< memory of work in flight
  const bool foreign_;  ///< whether the stream, and its order with other work, is another library's
  std::uint64_t batch_;  ///< number of the batch of work since the last synchronize()
  int since_submit_ = 0;
};

}  // namespace greta::runtime
