#include "kernels/templates/quantized_gemm/plan.hpp"

#include <fmt/format.h>

#include "kernels/planning/arrival.hpp"

namespace greta::kernels::quantized_gemm {

Defines problem_defines(const Shape& shape) {
  Defines defines = type_defines({{"IN", shape.in}, {"OUT", shape.out}});
  defines.emplace_back("FORMAT", std::to_string(static_cast<int>(shape.format)));
  defines.emplace_back("GROUP", std::to_string(shape.group));
  defines.emplace_back("ZEROS", shape.zeros ? "1" : "0");
  const int words = shape.packing ? 1 + static_cast<int>(*shape.packing) : 0;
  defines.emplace_back("PACKING", std::to_string(shape.panels ? 4 : words));
  defines.emplace_back("EPILOGUE", std::to_string(static_cast<int>(shape.epilogue)));
  defines.emplace_back("FEW_ROWS", shape.few_rows() ? "1" : "0");
  defines.emplace_back("NORM", shape.norm ? "1" : "0");
  defines.emplace_back("GROUPED", std::to_string(static_cast<int>(shape.grouping)));
  defines.emplace_back("SCALES_BF16", shape.halves() == DType::bf16 ? "1" : "0");
  return defines;
}

Constraint no_norm(const Shape& shape) {
  return {"whole_rows", "this variant does not normalise rows of A; gemv and stream do",
          !shape.norm};
}

std::vector<Constraint> tile_constraints(const Shape& shape, const DeviceInfo& device,
                                         int least_rows) {
  const std::int64_t groups = most_workgroups(device);
  return {
      {"tile_m",
       fmt::format("BM must not be twice m, {}, or more, unless it is {}", shape.m, least_rows),
       p["BM"] < 2 * shape.m || p["BM"] == least_rows},
      {"tile_n",
       fmt::format("BN must not be twice n, {}, or more, unless it is 16", shape.products()),
       p["BN"] < 2 * shape.products() || p["BN"] == 16},
      {"step", fmt::format("BK must not be twice k, {}, or more", shape.k), p["BK"] < 2 * shape.k},
      {"grid", fmt::format("C has more than {} workgroups", groups),
       ceil_div(shape.products(), p["BN"]) * launched_lines(shape, p["BM"]) <= groups}};
}

Constraint rows_of_weights(const Shape& shape) {
  return {"rows_of_weights",
          "this variant does not read weights of AWQ and GPTQ; gemv and tiled do", !shape.packing};
}

std::vector<Argument> arguments(const Shape& shape, std::int64_t tiles, std::int64_t blocks) {
  const Argument none = std::uint64_t{0};
  std::size_t next = 2;
  std::vector<Argument> list{OperandArgument{0}, OperandArgument{1}};
  list.push_back(shape.group > 0 ? Argument(OperandArgument{next++}) : none);
  list.push_back(shape.zeros ? Argument(OperandArgument{next++}) : none);
  const Argument weight = shape.norm ? Argument(OperandArgument{next++}) : none;
  const bool adds = shape.epilogue == Epilogue::bias || shape.epilogue == Epilogue::residual;
  list.push_back(adds ? Argument(OperandArgument{next++}) : none);
  const std::size_t group_rows = next;
  if (shape.grouped()) ++next;
  list.emplace_back(OperandArgument{next});
  for (const std::int64_t extent : {shape.m, shape.n, shape.k, tiles}) {
    list.emplace_back(static_cast<std::uint32_t>(extent));
  }
  if (blocks > 0) list.emplace_back(static_cast<std::uint32_t>(blocks));
  if (shape.norm) list.insert(list.end(), {weight, shape.epsilon});
  if (shape.grouped()) {
    list.emplace_back(OperandArgument{group_rows});
    list.emplace_back(static_cast<std::uint32_t>(shape.groups));
  }
  return list;
}

KernelSource kernel_of(const Shape& shape, const DeviceInfo& device, std::string_view name,
                       const Defines& defines, std::int64_t threads,
                       const std::vector<Argument>& arguments) {
  const std::string_view folder = shape.grouped() ? "quantized_grouped_gemm" : "quantized_gemm";
  return kernel_source(device, fmt::format("{}/{}", folder, name), defines, threads, arguments);
}

namespace {

/// Returns the indices of B and its scales and zero points.
std::vector<std::size_t> weights_of(const Shape& shape) {
  std::vector<std::size_t> operands{1};
  if (shape.group > 0) operands.push_back(2);
  if (shape.zeros) operands.push_back(3);
  return operands;
}

}  // namespace

LaunchPlan plan_of_tiles(const Shape& shape, const DeviceInfo& device, const Config& config,
                         const TiledLaunch& launch) {
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  defines.insert(defines.end(), launch.defines.begin(), launch.defines.end());
  const bool glsl = device.language == Language::glsl;
  if (glsl) defines.emplace_back("SUBGROUP", std::to_string(launch.subgroup));
  const std::int64_t across = ceil_div(shape.products(), launch.columns);
  std::vector<Argument> given = arguments(shape, across, launch.blocks);
  const std::int64_t tiles = across * launched_lines(shape, launch.rows);
  LaunchPlan plan;
  if (launch.slice_sums > 0) {
    plan.zeroed_bytes = counter_bytes(tiles);
    plan.workspace_bytes = plan.zeroed_bytes +
                           static_cast<std::uint64_t>(tiles * launch.split * launch.slice_sums * 4);
    given.emplace_back(WorkspaceArgument{0});
    given.emplace_back(WorkspaceArgument{plan.zeroed_bytes});
  }
  plan.sources.push_back(kernel_of(shape, device, launch.name, defines, launch.threads, given));
  if (glsl) plan.sources[0].required_subgroup_size = static_cast<std::uint32_t>(launch.subgroup);
  plan.sources[0].dynamic_shared_bytes = static_cast<std::uint32_t>(launch.dynamic_shared_bytes);
  const auto blocks = static_cast<std::uint64_t>(launch.blocks > 0 ? launch.blocks : tiles);
  plan.launches.push_back(
      {0, grid(device, plan.sources[0], blocks, launch.split), std::move(given)});
  plan.launches.back().early_operands = weights_of(shape);
  return plan;
}

double bytes_of_load(const Shape& shape, double otherwise) {
  if (!shape.packing) return otherwise;
  return shape.packed().along_n() ? 0.5 : 4;
}

double scale_bytes(const Shape& shape) {
  if (shape.group == 0) return 0;
  return (bytes_of(shape.scales(), 1.0) + (shape.zeros ? 1 : 0)) / static_cast<double>(shape.group);
}

double time_of_code(const DeviceInfo& device, double kib) {
  const bool known = device.vendor == "NVIDIA" && device.language == Language::hip;
  return known ? 1 + std::max(0.0, kib / 16 - 1) : 1;
}

double least_bytes(const Shape& shape) {
  const auto m = static_cast<double>(filled_lines(shape, 1)), n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k);
  const auto rows = static_cast<double>(shape.groups * shape.products());
  const double out = bytes_of(shape.out, 1.0);
  const double added = shape.epilogue == Epilogue::bias       ? n * out
                       : shape.epilogue == Epilogue::residual ? m * n * out
                                                              : 0;
  const double norm = shape.norm ? k * bytes_of(shape.in, 1.0) : 0;
  return added + norm +
         rows * (static_cast<double>(row_bytes(shape.format, shape.k)) + k * scale_bytes(shape)) +
         m * (k * bytes_of(shape.in, 1.0) + n * out);
}

}  // namespace greta::kernels::quantized_gemm
