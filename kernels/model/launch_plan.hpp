#pragma once

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

#include "runtime/device/kernel_source.hpp"

namespace greta::kernels {

/// One launch argument: an operand, the workspace, or a scalar.
struct OperandArgument {
  std::size_t tensor = 0;  ///< position among the operation's tensors

  bool operator==(const OperandArgument&) const = default;
};
struct WorkspaceArgument {
  std::uint64_t offset = 0;  ///< bytes from the workspace's start

  bool operator==(const WorkspaceArgument&) const = default;
};
using Argument =
    std::variant<OperandArgument, WorkspaceArgument, std::uint32_t, float, std::uint64_t>;

/// One kernel launch. Arguments are packed in order at their natural alignment (addresses: 8).
struct Launch {
  std::size_t source = 0;  ///< position in LaunchPlan::sources
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::vector<Argument> arguments;
};

/// A configuration made concrete: kernels to compile and launches to run in order.
struct LaunchPlan {
  std::vector<KernelSource> sources;
  std::vector<Launch> launches;
  std::uint64_t workspace_bytes = 0;
  /// This many of the workspace's first bytes are zero before the first launch, and every run
  /// leaves them zero: room for counters. The rest holds anything.
  std::uint64_t zeroed_bytes = 0;
};

}  // namespace greta::kernels
