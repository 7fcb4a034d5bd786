#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/launch/guarded_buffer.hpp"
#include "kernels/launch/operands.hpp"
#include "kernels/model/kernel_template.hpp"
#include "runtime/device/device.hpp"

namespace greta {

/// A launch plan ready to run on a device: compiled kernels, workspace and packed arguments.
class PreparedPlan {
 public:
  using Compile = std::function<Result<std::unique_ptr<Kernel>>(const KernelSource&)>;

  static Result<PreparedPlan> create(Device& device, const LaunchPlan& plan,
                                     const Operands& operands, const Compile& compile);

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
  /// Content keys of the kernels, comma-separated.
  std::string content_keys() const;
  /// Of the kernels, in the order of the plan's sources.
  std::vector<KernelStatistics> statistics() const;

 private:
  Result<std::uint64_t> make_workspace(Device& device, const LaunchPlan& plan);

  std::vector<Launch> launches_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::vector<std::byte>> arguments_;  // of each launch
  std::optional<GuardedBuffer> workspace_;         // none where none is needed
  std::uint64_t zeroed_bytes_ = 0;                 // its first part
};

/// Packs launch arguments in order, each at its natural alignment.
std::vector<std::byte> pack_arguments(const std::vector<Argument>& arguments,
                                      const Operands& operands, std::uint64_t workspace_address);

}  // namespace greta
