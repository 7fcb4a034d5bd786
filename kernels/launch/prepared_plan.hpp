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

/// A launch plan ready to run on a device: compiled kernels, operands and a workspace.
class PreparedPlan {
 public:
  using Compile = std::function<Result<std::unique_ptr<Kernel>>(const KernelSource&)>;

  static Result<PreparedPlan> create(Device& device, const LaunchPlan& plan,
                                     const Operands& operands, const Compile& compile);

  /// Returns a plan with the same compiled kernels and the launches, operands and workspace of
  /// `plan`, whose kernels must be the same (same_kernels()).
  Result<PreparedPlan> with_launches(Device& device, const LaunchPlan& plan,
                                     const Operands& operands) const;

  Result<void> record(Stream& stream) const;
  bool has_workspace() const { return workspace_.has_value(); }
  /// Records a fill of the workspace with a pattern, by default NaN, so that kernels that rely on
  /// its contents fail. Skips the part that is specified to be zero.
  Result<void> poison_workspace(Stream& stream, std::uint32_t pattern = nan_pattern) const;
  /// Returns whether the launches left the zeroed part of the workspace zero.
  Result<bool> zeroed_part_is_zero(Device& device) const;
  /// Returns which guard zone of the workspace was written and where first, or std::nullopt if
  /// there is no workspace or its zones are intact.
  Result<std::optional<std::string>> broken_guard(Device& device) const;
  /// See CompiledPlan.
  std::string content_keys() const { return plan_.content_keys(); }
  std::vector<KernelStatistics> statistics() const { return plan_.statistics(); }

 private:
  explicit PreparedPlan(CompiledPlan plan) : plan_(std::move(plan)) {}
  static Result<PreparedPlan> create(Device& device, Result<CompiledPlan> compiled,
                                     const Operands& operands);
  Result<void> make_workspace(Device& device);

  CompiledPlan plan_;
  std::vector<std::uint64_t> addresses_;    // of the operands
  std::optional<GuardedBuffer> workspace_;  // empty if the plan needs none
};

}  // namespace greta::kernels
