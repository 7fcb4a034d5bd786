#include "kernels/templates/gemm/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/templates/common/render.hpp"
#include "kernels/templates/gemm/space.hpp"

namespace greta::gemm {
namespace {

struct Pack {
  const char* memory;     ///< type in memory.glsl
  const char* registers;  ///< what one load gives
};

Pack pack(DType type, int width) {
  if (type == DType::f32) {
    if (width == 1) return {"F32", "float"};
    return width == 2 ? Pack{"F32x2", "vec2"} : Pack{"F32x4", "vec4"};
  }
  if (width == 1) return {"F16", "float"};
  if (width == 2) return {"U32", "uint"};
  return width == 4 ? Pack{"U32x2", "uvec2"} : Pack{"U32x4", "uvec4"};
}

std::string number(std::int64_t value) {
  return std::to_string(value);
}

/// What every kernel of the problem is rendered with. No size is among it, so that a problem's
/// stand-in has the same kernels.
Defines problem_defines(const Shape& shape) {
  return {
      {"IN_F16", number(shape.in == DType::f16)}, {"OUT_F16", number(shape.out == DType::f16)},
      {"A_ALONG_K", number(shape.a_along_k)},     {"B_ALONG_K", number(shape.b_along_k)},
      {"HAS_BIAS", number(shape.bias)},           {"HAS_RESIDUAL", number(shape.residual)},
      {"ACTIVATION", number(shape.activation)},   {"STORE_VEC", number(shape.n % 4 == 0 ? 4 : 1)},
  };
}

void add_packs(Defines& defines, const Shape& shape, const Config& config) {
  for (const char* operand : {"A", "B"}) {
    const Pack types = pack(shape.in, config[fmt::format("V{}", operand)]);
    defines.emplace_back(fmt::format("{}_PACK", operand), types.memory);
    defines.emplace_back(fmt::format("{}_RAW", operand), types.registers);
  }
}

/// The fields of the block in operands.glsl that differ between launches.
struct Tiles {
  std::uint64_t m = 1, n = 1;
  std::int64_t slice = 0;
};

/// `zeroed_bytes`: where the partial sums start in the workspace, after the counters.
std::vector<Argument> arguments(const Shape& shape, const Tiles& tiles, bool workspace,
                                std::uint64_t zeroed_bytes = 0) {
  std::size_t next = 0;
  const auto operand = [&next](bool there) -> Argument {
    if (!there) return std::uint64_t{0};
    return OperandArgument{next++};
  };
  std::vector<Argument> list;
  for (const bool there : {true, true, shape.bias, shape.residual, true}) {
    list.push_back(operand(there));
  }
  for (const std::uint64_t offset : {zeroed_bytes, std::uint64_t{0}}) {
    list.push_back(workspace ? Argument{WorkspaceArgument{offset}} : Argument{std::uint64_t{0}});
  }
  for (const std::int64_t value : {shape.m, shape.n, shape.k, static_cast<std::int64_t>(tiles.m),
                                   static_cast<std::int64_t>(tiles.n), tiles.slice}) {
    list.emplace_back(static_cast<std::uint32_t>(value));
  }
  list.emplace_back(shape.alpha);
  list.emplace_back(shape.beta);
  return list;
}

/// Bytes of the block: seven addresses, six integers, two factors.
constexpr std::uint32_t argument_bytes = 7 * 8 + 6 * 4 + 2 * 4;

KernelSource source(std::string_view name, std::string_view file, const Defines& defines,
                    std::uint32_t threads) {
  KernelSource kernel;
  kernel.name = fmt::format("gemm/{}", name);
  kernel.language = "glsl";
  kernel.text = render(fmt::format("gemm/{}", file), defines);
  kernel.argument_bytes = argument_bytes;
  kernel.block = {threads, 1, 1};
  return kernel;
}

/// `count` workgroups, folded into two dimensions where one is too short; `slices` along z.
std::array<std::uint32_t, 3> grid(std::uint64_t count, std::uint32_t slices,
                                  const DeviceInfo& device) {
  const std::uint64_t x = std::min<std::uint64_t>(count, device.max_grid[0]);
  return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(ceil_div(count, x)), slices};
}

/// The launch that turns `split` partial sums into C.
void add_reduction(LaunchPlan& plan, const Shape& shape, int split, const DeviceInfo& device) {
  const auto m = static_cast<std::uint64_t>(shape.m), n = static_cast<std::uint64_t>(shape.n);
  Defines defines = problem_defines(shape);
  defines.emplace_back("SPLIT", number(split));
  plan.sources.push_back(source("reduce", "reduce.comp", defines, 256));
  plan.launches.push_back({plan.sources.size() - 1,
                           grid(ceil_div(m * ceil_div(n, 4), 256), 1, device),
                           arguments(shape, {}, true)});
}

LaunchPlan naive_plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const auto threads = static_cast<std::uint32_t>(config["THREADS"]);
  const auto elements = static_cast<std::uint64_t>(shape.m) * static_cast<std::uint64_t>(shape.n);
  Defines defines = problem_defines(shape);
  defines.emplace_back("THREADS", number(threads));
  LaunchPlan plan;
  plan.sources.push_back(source("naive", "naive.comp", defines, threads));
  plan.launches.push_back(
      {0, grid(ceil_div(elements, threads), 1, device), arguments(shape, {}, false)});
  return plan;
}

}  // namespace

Result<LaunchPlan> plan(const Problem& problem, const DeviceInfo& device, const Config& config) {
  const Shape shape = shape_of(problem);
  if (const auto broken = rejects(alternatives(shape, device), config)) {
    return Failure{Status::constraints, *broken, {}};
  }
  if (config.variant == "naive") return naive_plan(shape, device, config);
  const bool gemv = config.variant == "gemv";
  const int split = config.has("SPLIT") ? config["SPLIT"] : 1;
  Defines defines = problem_defines(shape);
  for (const auto& [name, value] : config.values) defines.emplace_back(name, number(value));
  if (!config.has("SPLIT")) defines.emplace_back("SPLIT", "1");
  if (gemv) defines.emplace_back("ROWS", number(shape.m));
  add_packs(defines, shape, config);

  Tiles tiles;
  std::uint32_t threads = 0;
  const auto m = static_cast<std::uint64_t>(shape.m), n = static_cast<std::uint64_t>(shape.n);
  if (gemv) {
    threads = static_cast<std::uint32_t>(config["THREADS"]);
    tiles.n = ceil_div(n, static_cast<std::uint64_t>(gemv_width(shape, config)));
  } else {
    threads =
        static_cast<std::uint32_t>(config["BM"] / config["TM"] * (config["BN"] / config["TN"]));
    tiles.m = ceil_div(m, static_cast<std::uint64_t>(config["BM"]));
    tiles.n = ceil_div(n, static_cast<std::uint64_t>(config["BN"]));
  }
  tiles.slice = slice_length(shape, config);

  LaunchPlan result;
  result.sources.push_back(
      source(config.variant, gemv ? "gemv.comp" : "tiled.comp", defines, threads));
  if (config.has("SUBGROUP")) {
    result.sources[0].required_subgroup_size = static_cast<std::uint32_t>(config["SUBGROUP"]);
  }
  if (split > 1) result.workspace_bytes = static_cast<std::uint64_t>(split) * m * n * 4;
  if (gemv && split > 1) {  // the last slice to arrive adds the others' sums
    result.zeroed_bytes = ceil_div(tiles.n * 4, 256) * 256;
    result.workspace_bytes += result.zeroed_bytes;
  }
  result.launches.push_back({0, grid(tiles.m * tiles.n, static_cast<std::uint32_t>(split), device),
                             arguments(shape, tiles, split > 1, result.zeroed_bytes)});
  if (!gemv && split > 1) add_reduction(result, shape, split, device);
  return result;
}

}  // namespace greta::gemm
