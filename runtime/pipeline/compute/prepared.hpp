#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "db/lookup/answer.hpp"
#include "kernels/catalog.hpp"
#include "kernels/launch/compiled_plan.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/device.hpp"
#include "runtime/pipeline/compute/tensor.hpp"

namespace greta::runtime {

/// What telemetry counts of an operation.
struct OperationCounts {
  std::uint64_t runs = 0;        ///< launched one by one, or within replays
  std::uint64_t timed_runs = 0;  ///< of these, with device time
  double device_us = 0;          ///< of the timed ones together

  /// Of a timed run; 0 where none was.
  double mean_us() const {
    return timed_runs == 0 ? 0 : device_us / static_cast<double>(timed_runs);
  }
};

/// "what: why"
Failure refused(std::string_view what, std::string_view why);

/// The operation of a problem that it can take. Fails with one line that says why not.
Result<const Operation*> operation_of(const Catalog& catalog, const Problem& problem);

/// Whether tensors can be a problem's operands: see why_not(), and none that is written overlaps
/// another. A failure names the problem and the operand.
Result<void> check_operands(const Problem& problem, std::span<const TensorSpec> operands,
                            std::span<const Tensor> tensors);

/// A problem that is ready to run on operands of its shapes: which configuration, why, and its
/// compiled kernels. Made once for each problem by Runtime::prepare.
struct PreparedOperation {
  Problem problem;
  std::string key;  ///< of the problem
  std::vector<TensorSpec> operands;
  Answer answer;         ///< what runs; a fallback where what was looked up did not compile
  std::string replaced;  ///< why what was looked up does not run here; empty where it does
  CompiledPlan plan;
  mutable OperationCounts counts{};  ///< only while telemetry is on

  /// As check_operands().
  Result<void> check(std::span<const Tensor> tensors) const {
    return check_operands(problem, operands, tensors);
  }
};

/// Compiled kernels, each once for what reaches its binary and its launches. Thread-safe.
class KernelStore {
 public:
  explicit KernelStore(Device& device) : device_(device) {}

  Result<std::shared_ptr<const Kernel>> compile(const KernelSource& source);
  /// Compiles with up to `jobs` threads what is not here yet. A failure is what the next compile()
  /// of that source tells, which does not try again; the one after that does.
  void warm(std::span<const KernelSource> sources, unsigned jobs);
  std::size_t size() const;
  /// Of all kernels here, how many the disk cache had.
  std::size_t from_cache() const;

 private:
  Device& device_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Kernel>> kernels_;
  std::unordered_map<std::string, Failure> failures_;  ///< of warm(), not told yet
};

}  // namespace greta::runtime
