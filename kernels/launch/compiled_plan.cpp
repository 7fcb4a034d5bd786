#include "kernels/launch/compiled_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "kernels/launch/argument_block.hpp"

namespace greta::kernels {
namespace {

constexpr std::size_t most_argument_bytes = 1024;

}  // namespace

CompiledPlan::PackedLaunch CompiledPlan::pack(const Launch& launch, const Kernel& kernel) {
  PackedLaunch packed;
  packed.kernel = &kernel;
  packed.grid = launch.grid;
  packed.constants = launch.constants;
  packed.early_operands = launch.early_operands;
  ArgumentBlock block;
  const auto patch = [](std::size_t at, const auto& argument) {
    if (const auto* const operand = std::get_if<OperandArgument>(&argument)) {
      return Patch{at, operand->tensor, 0};
    }
    return Patch{at, workspace_operand, std::get<WorkspaceArgument>(argument).offset};
  };
  for (const Argument& argument : launch.arguments) {
    const std::size_t at = block.add(argument, [](const auto&) { return std::uint64_t{0}; });
    if (const auto* const mapped = std::get_if<TensorMapArgument>(&argument)) {
      packed.patches.push_back(patch(at, mapped->matrix));
      packed.patches.back().map = mapped->map;
    } else if (std::holds_alternative<OperandArgument>(argument) ||
               std::holds_alternative<WorkspaceArgument>(argument)) {
      packed.patches.push_back(patch(at, argument));
    }
  }
  packed.arguments = block.take();
  return packed;
}

LaunchOrder CompiledPlan::PackedLaunch::order(const std::vector<bool>& constant) const {
  const bool overlaps = std::all_of(early_operands.begin(), early_operands.end(),
                                    [&](std::size_t operand) { return constant[operand]; });
  return overlaps ? LaunchOrder::overlapping : LaunchOrder::in_turn;
}

Result<CompiledPlan> CompiledPlan::create(const LaunchPlan& plan, const Compile& compile) {
  CompiledPlan compiled;
  compiled.workspace_bytes_ = plan.workspace_bytes;
  compiled.zeroed_bytes_ = plan.zeroed_bytes;
  for (const KernelSource& source : plan.sources) {
    auto kernel = compile(source);
    if (!kernel) return kernel.failure();
    compiled.kernels_.push_back(*std::move(kernel));
  }
  for (const Launch& launch : plan.launches) {
    compiled.launches_.push_back(pack(launch, *compiled.kernels_[launch.source]));
    const std::size_t bytes = compiled.launches_.back().arguments.size();
    if (bytes > most_argument_bytes) {
      return Failure{Status::compile,
                     fmt::format("{}: {} bytes of arguments, a launch takes at most {}",
                                 plan.sources[launch.source].name, bytes, most_argument_bytes),
                     {}};
    }
  }
  return compiled;
}

Result<void> CompiledPlan::record(Stream& stream, std::span<const std::uint64_t> operands,
                                  std::uint64_t workspace, const std::vector<bool>& constant,
                                  LaunchOrder within) const {
  std::array<std::byte, most_argument_bytes> block;
  LaunchOrder order = LaunchOrder::in_turn;  // of the first one, if nothing is known of operands
  for (const PackedLaunch& launch : launches_) {
    if (!constant.empty()) order = launch.order(constant);
    std::memcpy(block.data(), launch.arguments.data(), launch.arguments.size());
    for (const Patch& patch : launch.patches) {
      const std::uint64_t base =
          patch.operand == workspace_operand ? workspace : operands[patch.operand];
      const std::uint64_t address = base + patch.offset;
      if (patch.map) {
        auto encoded = stream.encode(*patch.map, address, block.data() + patch.at);
        if (!encoded) return encoded;
        continue;
      }
      std::memcpy(block.data() + patch.at, &address, sizeof address);
    }
    for (std::size_t i = 0; i < launch.constants.size(); ++i) {
      const auto& [tensor, bytes] = launch.constants[i];
      auto written = stream.write_constant(*launch.kernel, i, operands[tensor], bytes);
      if (!written) return written;
    }
    auto launched =
        stream.launch(*launch.kernel, launch.grid, {block.data(), launch.arguments.size()}, order);
    if (!launched) return launched;
    order = within;
  }
  return {};
}

std::string CompiledPlan::content_keys() const {
  std::string keys;
  for (const auto& kernel : kernels_) keys += (keys.empty() ? "" : ",") + kernel->content_key();
  return keys;
}

std::vector<KernelStatistics> CompiledPlan::statistics() const {
  std::vector<KernelStatistics> all;
  for (const auto& kernel : kernels_) all.push_back(kernel->statistics());
  return all;
}

}  // namespace greta::kernels
