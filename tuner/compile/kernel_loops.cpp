#include "tuner/compile/kernel_loops.hpp"

#include <algorithm>

#include "kernels/launch/argument_block.hpp"
#include "runtime/device/compile/listing.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/hardware/occupancy.hpp"
#include "runtime/device/hip/code_object.hpp"
#include "runtime/device/hip/disassembler.hpp"

namespace greta::tuner {
namespace {

/// Returns the argument block of a launch. Operands and the workspace get addresses of their own,
/// far from each other.
std::vector<std::byte> argument_block(const Launch& launch) {
  constexpr unsigned apart = 40;
  struct AddressOf {
    std::uint64_t operator()(const OperandArgument& operand) const {
      return (std::uint64_t{operand.tensor} + 2) << apart;
    }
    std::uint64_t operator()(const WorkspaceArgument& workspace) const {
      return (std::uint64_t{1} << apart) + workspace.offset;
    }
  };
  ArgumentBlock block;
  for (const Argument& argument : launch.arguments) block.add(argument, AddressOf{});
  return block.take();
}

std::optional<IsaLaunch> launch_of(const CompiledChoice& compiled, std::size_t index) {
  const auto& launches = compiled.plan.launches;
  const auto launch = std::find_if(launches.begin(), launches.end(),
                                   [index](const Launch& one) { return one.source == index; });
  const KernelSource& source = compiled.plan.sources[index];
  const auto descriptor =
      device::hip::read_descriptor(compiled.kernels[index].code_object, source.entry);
  if (launch == launches.end() || !descriptor) return std::nullopt;
  return IsaLaunch{*descriptor, argument_block(*launch), source.block, launch->grid};
}

/// Examines the main loop of a kernel with a listing.
std::optional<LoopFigures> loop_of(const DeviceInfo& target, const CompiledKernel& kernel,
                                   const std::string& symbol, std::uint32_t threads,
                                   const std::optional<IsaLaunch>& launch) {
  const auto resident = occupancy(target, kernel.statistics, threads);
  const double waves = resident ? resident->waves : 0;
  return examine_main_loop(
      {*kernel.listing, symbol, kernel.statistics.code_bytes, target.architecture, waves}, launch);
}

}  // namespace

void examine_main_loops(const DeviceInfo& target, CompiledChoice& compiled) {
  if (target.vendor != "AMD") return;
  for (std::size_t i = 0; i < compiled.kernels.size(); ++i) {
    CompiledKernel& kernel = compiled.kernels[i];
    if (!kernel.listing || kernel.code_object.empty()) continue;
    const KernelSource& source = compiled.plan.sources[i];
    const auto& block = source.block;
    kernel.loop = loop_of(target, kernel, source.entry, block[0] * block[1] * block[2],
                          launch_of(compiled, i));
  }
}

Result<CodeObjectKernels> examine_code_object(std::span<const std::byte> code_object,
                                              const OpenOptions& options) {
  const auto contents = device::hip::read_contents(code_object);
  if (!contents) return contents.failure();
  const auto target = architecture_info(contents->architecture);
  const auto listing = device::hip::disassemble(code_object, options);
  if (!listing) return listing.failure();
  CodeObjectKernels examined{target.value(), {}};
  for (const auto& [name, threads] : contents->kernels) {
    const auto statistics = device::hip::read_statistics(code_object, name);
    if (!statistics) return statistics.failure();
    CompiledKernel kernel{{}, *statistics, *listing, true};
    kernel.statistics.matrix_instructions = count_matrix_instructions(*listing);
    kernel.loop = loop_of(*target, kernel, name, threads, std::nullopt);
    examined.kernels.push_back({name, threads, std::move(kernel)});
  }
  return examined;
}

}  // namespace greta::tuner
