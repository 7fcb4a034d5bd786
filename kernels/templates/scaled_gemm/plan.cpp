#include "kernels/templates/scaled_gemm/plan.hpp"

#include <fmt/format.h>

namespace greta::kernels::scaled_gemm {

Defines problem_defines(const Shape& shape) {
  Defines defines = type_defines({{"IN", DType::f32}, {"OUT", shape.out}});
  defines.emplace_back("FORMAT", std::to_string(static_cast<int>(shape.format)));
  defines.emplace_back("SCALES", std::to_string(static_cast<int>(shape.scales)));
  return defines;
}

std::vector<Argument> arguments(const Shape& shape, std::int64_t tiles_n) {
  std::vector<Argument> list;
  for (std::size_t operand = 0; operand < 5; ++operand) list.emplace_back(OperandArgument{operand});
  for (const std::int64_t extent : {shape.m, shape.n, shape.k, tiles_n}) {
    list.emplace_back(static_cast<std::uint32_t>(extent));
  }
  return list;
}

LaunchPlan plan_of_tiles(const Shape& shape, const DeviceInfo& device, const Config& config,
                         const TiledLaunch& launch) {
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  const std::int64_t across = ceil_div(shape.n, launch.columns);
  std::vector<Argument> given = arguments(shape, across);
  LaunchPlan plan;
  plan.sources.push_back(kernel_source(device, fmt::format("scaled_gemm/{}", launch.name), defines,
                                       launch.threads, given));
  const auto tiles = static_cast<std::uint64_t>(across * ceil_div(shape.m, launch.rows));
  plan.launches.push_back({0, grid(device, plan.sources[0], tiles), std::move(given)});
  return plan;
}

double least_bytes(const Shape& shape) {
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n);
  return (m + n) * static_cast<double>(shape.k) + m * n * bytes_of(shape.out, 1.0);
}

}  // namespace greta::kernels::scaled_gemm
