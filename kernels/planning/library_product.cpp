#include "kernels/planning/library_product.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

namespace greta::kernels {

std::vector<Parameter> library_parameters() {
  return {{"RANK", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
          {"WORKSPACE_MIB", {32, 4, 0}},
          {"SPLITK", {0, 2, 4, 8}}};
}

std::vector<ConfigMigration> library_migrations() {
  return {added("SPLITK", 0)};
}

std::uint64_t library_workspace(const Config& config) {
  constexpr std::uint64_t mib = 1 << 20;
  return static_cast<std::uint64_t>(config["WORKSPACE_MIB"]) * mib;
}

LaunchPlan library_plan(std::string name, const DeviceInfo& device, const Config& config,
                        MatrixProduct product, const LibraryOperands& operands) {
  product.workspace_bytes = library_workspace(config);
  product.rank = static_cast<std::uint32_t>(config["RANK"]);
  Launch launch;
  launch.arguments = {
      operands.a,        operands.b,
      operands.added,    operands.result,
      operands.bias,     product.workspace_bytes > 0 ? Argument(WorkspaceArgument{0}) : no_operand,
      operands.scales_a, operands.scales_b};
  KernelSource source;
  source.name = std::move(name);
  source.language = device.language;
  source.argument_bytes = sizeof(MatrixProductArguments);
  LaunchPlan plan;
  plan.workspace_bytes = product.workspace_bytes;
  source.call = product;
  if (config["SPLITK"] > 0) source.options = {fmt::format("SPLITK={}", config["SPLITK"])};
  plan.sources.push_back(std::move(source));
  plan.launches.push_back(std::move(launch));
  return plan;
}

}  // namespace greta::kernels
