#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "runtime/device/device.hpp"

namespace greta::kernels {

/// A launch plan with compiled kernels, ready to run on any operands of its problem's shapes.
class CompiledPlan {
 public:
  using Compile = std::function<Result<std::shared_ptr<const Kernel>>(const KernelSource&)>;

  static Result<CompiledPlan> create(const LaunchPlan& plan, const Compile& compile);

  /// Records the launches. `operands` are device addresses in the order of Operation::tensors.
  /// `workspace` is the address of workspace_bytes() bytes, 256-aligned; ignored if
  /// workspace_bytes() is 0. `constant` tells for each operand whether no work in flight writes it,
  /// and lets launches overlap the work before them. Where it is empty, the first launch is in turn
  /// and `within` is the order of the others, which then overlap launches of this plan alone.
  Result<void> record(Stream& stream, std::span<const std::uint64_t> operands,
                      std::uint64_t workspace, const std::vector<bool>& constant = {},
                      LaunchOrder within = LaunchOrder::overlapping) const;

  std::uint64_t workspace_bytes() const { return workspace_bytes_; }
  /// See LaunchPlan::zeroed_bytes.
  std::uint64_t zeroed_bytes() const { return zeroed_bytes_; }
  std::size_t launches() const { return launches_.size(); }
  /// Returns the kernels in the order of the plan's sources.
  const std::vector<std::shared_ptr<const Kernel>>& kernels() const { return kernels_; }
  /// Returns the content keys of the kernels, comma-separated.
  std::string content_keys() const;
  /// Returns the kernels' statistics in the order of the plan's sources.
  std::vector<KernelStatistics> statistics() const;

 private:
  /// An address in an argument block, filled in when recording.
  struct Patch {
    std::size_t at = 0;        ///< offset in the block in bytes
    std::size_t operand = 0;   ///< index of the operand, or `workspace_operand`
    std::uint64_t offset = 0;  ///< added to the address
    /// What is written instead of the address: the map of a matrix that starts there.
    std::optional<TensorMap> map{};
  };
  struct PackedLaunch {
    const Kernel* kernel = nullptr;
    Grid grid{1, 1, 1};
    std::vector<std::byte> arguments;  ///< addresses are placeholders
    std::vector<Patch> patches;
    std::vector<ConstantOperand> constants;
    std::vector<std::size_t> early_operands;

    LaunchOrder order(const std::vector<bool>& constant) const;
  };
  static constexpr std::size_t workspace_operand = SIZE_MAX;

  static PackedLaunch pack(const Launch& launch, const Kernel& kernel);

  std::vector<std::shared_ptr<const Kernel>> kernels_;
  std::vector<PackedLaunch> launches_;
  std::uint64_t workspace_bytes_ = 0, zeroed_bytes_ = 0;
};

}  // namespace greta::kernels
