#pragma once

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

#include "runtime/device/kernel_source.hpp"
#include "runtime/device/tensor_map.hpp"

namespace greta::kernels {

/// A launch argument is an operand, a part of the workspace, a scalar, or a tensor map.
struct OperandArgument {
  std::size_t tensor = 0;  ///< index into the operation's tensors

  bool operator==(const OperandArgument&) const = default;
};
struct WorkspaceArgument {
  std::uint64_t offset = 0;  ///< in bytes, from the start of the workspace

  bool operator==(const WorkspaceArgument&) const = default;
};
/// A tensor map of a matrix that starts at an operand or in the workspace.
struct TensorMapArgument {
  std::variant<OperandArgument, WorkspaceArgument> matrix;
  TensorMap map;

  bool operator==(const TensorMapArgument&) const = default;
};
using Argument = std::variant<OperandArgument, WorkspaceArgument, std::uint32_t, float,
                              std::uint64_t, TensorMapArgument>;

/// An operand that is copied to a variable in constant memory before a launch.
struct ConstantOperand {
  std::size_t tensor = 0;  ///< index into the operation's tensors
  std::size_t bytes = 0;
};

/// One kernel launch. Arguments are packed in order at their natural alignment: 8 for addresses,
/// tensor_map_alignment for tensor maps.
struct Launch {
  std::size_t source = 0;  ///< index into LaunchPlan::sources
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::vector<Argument> arguments;
  std::vector<ConstantOperand> constants{};  ///< of the source's constants, in the same order
  /// Indices of the operands that the kernel may read before it waits for earlier launches
  /// (KernelSource::awaits_launches): weights, which are loaded while the launch before it ends.
  std::vector<std::size_t> early_operands{};
};

/// The kernels that a configuration compiles and the launches that it runs, in order.
struct LaunchPlan {
  std::vector<KernelSource> sources;
  std::vector<Launch> launches;
  std::uint64_t workspace_bytes = 0;
  /// Size of the prefix of the workspace that is zero before the first launch. Every run must leave
  /// it zero. It holds counters. The rest of the workspace is uninitialised.
  std::uint64_t zeroed_bytes = 0;
};

}  // namespace greta::kernels
