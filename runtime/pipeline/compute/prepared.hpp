#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "db/carried_binary.hpp"
#include "db/lookup/answer.hpp"
#include "kernels/catalog.hpp"
#include "kernels/launch/compiled_plan.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/device.hpp"
#include "runtime/pipeline/compute/tensor.hpp"

namespace greta::runtime {

/// What telemetry counts per operation.
struct OperationCounts {
  std::uint64_t runs = 0;        ///< launched individually, or within replays
  std::uint64_t timed_runs = 0;  ///< runs whose device time was measured
  double device_us = 0;          ///< total of the timed runs

  /// Returns the mean time of the timed runs, or 0 if there are none.
  double mean_us() const {
    return timed_runs == 0 ? 0 : device_us / static_cast<double>(timed_runs);
  }
};

/// Returns an `invalid_argument` failure "what: why".
Failure refused(std::string_view what, std::string_view why);

/// Returns the operation of a valid problem. Fails with a one-line reason.
Result<const Operation*> operation_of(const Catalog& catalog, const Problem& problem);

/// Checks whether tensors can be a problem's operands: why_not() is empty for each, and no tensor
/// that is written overlaps another. A failure names the problem and the operand.
Result<void> check_operands(const Problem& problem, std::span<const TensorSpec> operands,
                            std::span<const Tensor> tensors);

/// Checks whether there is an operand at each address: none is null, each has its alignment, and
/// none that is written overlaps another. Extents of pools (TensorSpec::pool) are unknown.
Result<void> check_addresses(const Problem& problem, std::span<const TensorSpec> operands,
                             std::span<const std::uint64_t> addresses);

/// A problem that is ready to run on operands of its shapes: its configuration, the origin of that,
/// and its compiled kernels. Runtime::prepare creates it once per problem.
struct PreparedOperation {
  Problem problem;
  std::string key;  ///< of the problem
  std::vector<TensorSpec> operands;
  Answer answer;         ///< what runs; a fallback if the looked-up configuration did not compile
  std::string replaced;  ///< why the looked-up configuration can't run here; empty if it can
  CompiledPlan plan;
  mutable OperationCounts counts{};  ///< only counted while telemetry is on

  /// See check_operands().
  Result<void> check(std::span<const Tensor> tensors) const {
    return check_operands(problem, operands, tensors);
  }
  /// See check_addresses().
  Result<void> check(std::span<const std::uint64_t> addresses) const {
    return check_addresses(problem, operands, addresses);
  }
};

/// A thread-safe store of compiled kernels, identified by everything that affects the binary or the
/// launches.
class KernelStore {
 public:
  explicit KernelStore(Device& device) : device_(device) {}

  /// Returns a kernel that was compiled elsewhere, or nothing. Called by several threads.
  using Binaries = std::function<std::optional<CarriedBinary>(const KernelSource&)>;

  /// Returns the kernel. The first time, loads its binary, or compiles it if there is none or the
  /// driver refuses it, of which a warning is logged.
  Result<std::shared_ptr<const Kernel>> compile(const KernelSource& source,
                                                const Binaries& binaries = {});
  /// Compiles missing kernels with up to `jobs` threads. If a kernel fails to compile, the next
  /// compile() of its source returns that failure without another attempt; later calls try again.
  void warm(std::span<const KernelSource> sources, unsigned jobs, const Binaries& binaries = {});
  std::size_t size() const;
  /// Returns how many of these kernels came from the disk cache.
  std::size_t from_cache() const;
  /// Returns how many of these kernels were loaded from binaries of databases.
  std::size_t from_databases() const;
  /// Returns how many were compiled in this process.
  std::size_t compiled() const { return size() - from_cache() - from_databases(); }

 private:
  Result<std::unique_ptr<Kernel>> make(const KernelSource& source, const Binaries& binaries);

  Device& device_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Kernel>> kernels_;
  /// Failures of warm() that compile() has not returned yet.
  std::unordered_map<std::string, Failure> failures_;
  std::atomic<std::size_t> from_databases_{0};
};

}  // namespace greta::runtime
