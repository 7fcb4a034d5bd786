#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/model/kernel_template.hpp"
#include "runtime/device/device.hpp"
#include "tuner/evaluate/operands.hpp"

namespace greta {

/// A configuration ready to run: compiled kernels, workspace and packed arguments.
class Candidate {
 public:
  using Compile = std::function<Result<std::unique_ptr<Kernel>>(const KernelSource&)>;

  static Result<Candidate> create(Device& device, const LaunchPlan& plan, const Operands& operands,
                                  const Compile& compile);

  /// Records the launches.
  Result<void> record(Stream& stream) const;
  /// Records filling the workspace with NaN, so that a kernel that relies on its contents fails.
  Result<void> poison_workspace(Stream& stream) const;
  /// Content keys of the kernels, comma-separated.
  std::string content_keys() const;

 private:
  std::vector<Launch> launches_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::vector<std::byte>> arguments_;  // of each launch
  std::unique_ptr<Buffer> workspace_;              // null where none is needed
};

/// Packs launch arguments in order, each at its natural alignment.
std::vector<std::byte> pack_arguments(const std::vector<Argument>& arguments,
                                      const Operands& operands, std::uint64_t workspace_address);

}  // namespace greta
