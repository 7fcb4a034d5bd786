#include "kernels/templates/scaled_gemm/plan.hpp"

#include <fmt/format.h>

#include "kernels/planning/arrival.hpp"
#include "kernels/planning/device_limits.hpp"

namespace greta::kernels::scaled_gemm {

Defines problem_defines(const Shape& shape) {
  Defines defines = type_defines({{"IN", DType::f32}, {"OUT", shape.out}});
  defines.emplace_back("FORMAT", std::to_string(static_cast<int>(shape.format)));
  if (shape.mx()) {
    defines.emplace_back("FORMAT_B", std::to_string(static_cast<int>(shape.format_b)));
  }
  defines.emplace_back("SCALES", std::to_string(static_cast<int>(shape.scales)));
  defines.emplace_back("GROUPED", std::to_string(static_cast<int>(shape.grouping)));
  defines.emplace_back("GATE", std::to_string(static_cast<int>(shape.gate)));
  return defines;
}

KernelSource kernel_of(const Shape& shape, const DeviceInfo& device, std::string_view name,
                       const Defines& defines, std::int64_t threads,
                       const std::vector<Argument>& arguments) {
  const std::string_view folder = shape.grouped() ? "scaled_grouped_gemm" : "scaled_gemm";
  return kernel_source(device, fmt::format("{}/{}", folder, name), defines, threads, arguments);
}

std::vector<Argument> arguments(const Shape& shape, std::int64_t tiles_n) {
  constexpr std::size_t inputs = 4;
  std::vector<Argument> list;
  for (std::size_t operand = 0; operand < inputs; ++operand) {
    list.emplace_back(OperandArgument{operand});
  }
  list.emplace_back(OperandArgument{inputs + (shape.grouped() ? 1 : 0)});
  for (const std::int64_t extent : {shape.m, shape.n, shape.k, tiles_n}) {
    list.emplace_back(static_cast<std::uint32_t>(extent));
  }
  if (shape.grouped()) {
    list.emplace_back(OperandArgument{inputs});
    list.emplace_back(static_cast<std::uint32_t>(shape.groups));
  }
  return list;
}

std::int64_t slice_length(const Shape& shape, const Config& config, std::int64_t step) {
  return ceil_div(ceil_div(shape.k, step), std::int64_t{config["SPLIT"]}) * step;
}

std::vector<Constraint> slice_constraints(const Shape& shape, const DeviceInfo& device,
                                          std::int64_t step) {
  const std::int64_t most = most_workspace(device), steps = ceil_div(shape.k, step);
  return {{"slices", fmt::format("SPLIT must not exceed the {} steps of {} k", steps, step),
           p["SPLIT"] <= steps},
          {"workspace",
           fmt::format("SPLIT partial sums of {} x {} elements need more than {} MiB", shape.m,
                       shape.n, most >> 20),
           p["SPLIT"] == 1 || shape.m * shape.n <= most / 4 / p["SPLIT"]}};
}

LaunchPlan plan_of_tiles(const Shape& shape, const DeviceInfo& device, const Config& config,
                         const TiledLaunch& launch) {
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  const bool exchanges = device.language == Language::glsl && config.has("SPLIT");
  if (exchanges) defines.emplace_back("SUBGROUP", std::to_string(launch.subgroup));
  defines.insert(defines.end(), launch.defines.begin(), launch.defines.end());
  const std::int64_t across = ceil_div(shape.products(), launch.columns);
  const auto tiles = static_cast<std::uint64_t>(across * launched_lines(shape, launch.rows));
  const int split = config.has("SPLIT") ? config["SPLIT"] : 1;
  std::vector<Argument> given = arguments(shape, across);
  LaunchPlan plan;
  if (split > 1) {
    plan.zeroed_bytes = counter_bytes(tiles);
    plan.workspace_bytes =
        plan.zeroed_bytes + static_cast<std::uint64_t>(split * shape.m * shape.n * 4);
    given.emplace_back(WorkspaceArgument{0});
    given.emplace_back(WorkspaceArgument{plan.zeroed_bytes});
    given.emplace_back(static_cast<std::uint32_t>(launch.slice));
  }
  plan.sources.push_back(kernel_of(shape, device, launch.name, defines, launch.threads, given));
  if (exchanges) {
    plan.sources[0].required_subgroup_size = static_cast<std::uint32_t>(launch.subgroup);
  }
  plan.launches.push_back({0, grid(device, plan.sources[0], tiles, split), std::move(given)});
  if (!shape.grouped()) plan.launches.back().early_operands = {1};
  return plan;
}

std::int64_t count_tiles(const Shape& shape, std::int64_t rows, std::int64_t columns) {
  return filled_lines(shape, rows) * ceil_div(shape.products(), columns);
}

bool too_high(const Shape& shape, std::int64_t rows) {
  constexpr std::int64_t least = 16;
  return shape.grouped() && rows > least && rows >= 2 * shape.rows_of_group();
}

double least_bytes(const Shape& shape) {
  const auto m = static_cast<double>(filled_lines(shape, 1)), n = static_cast<double>(shape.n);
  const auto lines = static_cast<double>(shape.groups * shape.products());
  return m * static_cast<double>(shape.bytes_a(shape.k)) +
         lines * static_cast<double>(shape.bytes_b(shape.k)) + m * n * bytes_of(shape.out, 1.0);
}

}  // namespace greta::kernels::scaled_gemm
