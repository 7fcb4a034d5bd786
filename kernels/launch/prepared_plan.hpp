#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/launch/compiled_plan.hpp"
#include "kernels/launch/guarded_buffer.hpp"
#include "kernels/launch/operands.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/device.hpp"

namespace greta::kernels {

/// A launch plan ready to run on a device: compiled kernels, operands, and a workspace of its own.
class PreparedPlan {
 public:
  using Compile = std::function<Result<std::unique_ptr<Kernel>>(const KernelSource&)>;

  static Result<PreparedPlan> create(Device& device, const LaunchPlan& plan,
                                     const Operands& operands, const Compile& compile);

  /// The same compiled kernels with the launches, operands and workspace of another plan, whose
  /// kernels are the same (same_kernels()).
  Result<PreparedPlan> with_launches(Device& device, const LaunchPlan& plan,
                                     const Operands& operands) const;

  /// Records the launches.
  Result<void> record(Stream& stream) const;
  /// Records filling the workspace with NaN, so that a kernel that relies on its contents fails;
  /// the part that plans may rely on to be zero is left alone.
  Result<void> poison_workspace(Stream& stream) const;
  /// Whether the launches left the zeroed part of the workspace as they found it.
  Result<bool> zeroed_part_is_zero(Device& device) const;
  /// Which guard zone of the workspace was written, and where first; nothing when it has none or
  /// they are intact.
  Result<std::optional<std::string>> broken_guard(Device& device) const;
  /// As CompiledPlan's.
  std::string content_keys() const { return plan_.content_keys(); }
  std::vector<KernelStatistics> statistics() const { return plan_.statistics(); }

 private:
  explicit PreparedPlan(CompiledPlan plan) : plan_(std::move(plan)) {}
  static Result<PreparedPlan> create(Device& device, Result<CompiledPlan> compiled,
                                     const Operands& operands);
  Result<void> make_workspace(Device& device);

  CompiledPlan plan_;
  std::vector<std::uint64_t> addresses_;    // of the operands
  std::optional<GuardedBuffer> workspace_;  // none where none is needed
};

}  // namespace greta::kernels
