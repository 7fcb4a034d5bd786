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

LaunchPlan library_plan(std::string name, const DeviceInfo& device, const Config& config,
                        MatrixProduct product, const LibraryOperands& operands) {
  constexpr std::uint64_t mib = 1 << 20;
  product.workspace_bytes = static_cast<std::uint64_t>(config["WORKSPACE_MIB"]) * mib;
  product.rank = static_cast<std::uint32_t>(config["RANK"]);
  const Argument none = std::uint64_t{0};
  const auto given = [&](const std::optional<std::size_t>& operand) {
    return operand ? Argument(OperandArgument{*operand}) : none;
  };
  Launch launch;
  launch.arguments = {OperandArgument{operands.a},
                      OperandArgument{operands.b},
                      OperandArgument{operands.added},
                      OperandArgument{operands.result},
                      given(operands.bias),
                      product.workspace_bytes > 0 ? Argument(WorkspaceArgument{0}) : none,
                      given(operands.scales_a),
                      given(operands.scales_b)};
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
