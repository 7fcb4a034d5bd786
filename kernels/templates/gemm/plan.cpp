#include "kernels/templates/gemm/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

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
  if (width == 1) return type == DType::f16 ? Pack{"F16", "float"} : Pack{"BF16", "uint"};
  if (width == 2) return {"U32", "uint"};
  return width == 4 ? Pack{"U32x2", "uvec2"} : Pack{"U32x4", "uvec4"};
}

std::string number(std::int64_t value) {
  return std::to_string(value);
}

/// Bytes of the block: seven addresses, six integers, two factors.
constexpr std::uint32_t argument_bytes = 7 * 8 + 6 * 4 + 2 * 4;

}  // namespace

Defines problem_defines(const Shape& shape) {
  const auto is = [](bool yes) { return std::string(yes ? "1" : "0"); };
  return {
      {"IN_F16", is(shape.in == DType::f16)},
      {"IN_BF16", is(shape.in == DType::bf16)},
      {"OUT_F16", is(shape.out == DType::f16)},
      {"OUT_BF16", is(shape.out == DType::bf16)},
      {"A_ALONG_K", is(shape.a_along_k)},
      {"B_ALONG_K", is(shape.b_along_k)},
      {"HAS_BIAS", is(shape.bias)},
      {"HAS_RESIDUAL", is(shape.residual)},
      {"ACTIVATION", number(shape.activation)},
      {"STORE_VEC", shape.n % 4 == 0 ? "4" : "1"},
  };
}

void add_parameters(Defines& defines, const Config& config) {
  for (const auto& [name, value] : config.values) defines.emplace_back(name, number(value));
}

void add_packs(Defines& defines, const Shape& shape, const DeviceInfo& device,
               const Config& config) {
  if (device.language != "glsl") return;  // HIP has templates
  for (const char* operand : {"A", "B"}) {
    const Pack types = pack(shape.in, config[fmt::format("V{}", operand)]);
    defines.emplace_back(fmt::format("{}_PACK", operand), types.memory);
    defines.emplace_back(fmt::format("{}_RAW", operand), types.registers);
  }
}

std::vector<Argument> arguments(const Shape& shape, const Tiles& tiles, bool workspace,
                                std::uint64_t zeroed_bytes) {
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

KernelSource kernel_source(const DeviceInfo& device, std::string_view name, const Defines& defines,
                           std::int64_t threads) {
  const bool glsl = device.language == "glsl";
  KernelSource kernel;
  kernel.name = fmt::format("gemm/{}", name);
  kernel.language = device.language;
  kernel.entry = glsl ? "main" : fmt::format("gemm_{}", name);
  kernel.text = render(fmt::format("gemm/{}.{}", name, glsl ? "comp" : "hip"), defines);
  kernel.argument_bytes = argument_bytes;
  kernel.block = {static_cast<std::uint32_t>(threads), 1, 1};
  return kernel;
}

std::array<std::uint32_t, 3> grid(const DeviceInfo& device, const KernelSource& kernel,
                                  std::uint64_t count, int slices) {
  // AMD counts the threads of a dimension in 32 bits.
  const std::uint64_t most =
      std::min<std::uint64_t>(device.max_grid[0], 0xffffffffU / kernel.block[0]);
  const std::uint64_t x = std::min(count, most);
  return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(ceil_div(count, x)),
          static_cast<std::uint32_t>(slices)};
}

std::uint64_t partial_bytes(const Shape& shape, int split) {
  return static_cast<std::uint64_t>(split) * static_cast<std::uint64_t>(shape.m) *
         static_cast<std::uint64_t>(shape.n) * 4;
}

LaunchPlan plan_of_tiles(const Shape& shape, const DeviceInfo& device, const Config& config,
                         KernelSource kernel) {
  const int split = config.has("SPLIT") ? config["SPLIT"] : 1;
  Tiles tiles;
  tiles.m = static_cast<std::uint64_t>(ceil_div(shape.m, config["BM"]));
  tiles.n = static_cast<std::uint64_t>(ceil_div(shape.n, config["BN"]));
  tiles.slice = slice_length(shape, split, config["BK"]);
  LaunchPlan plan;
  plan.sources.push_back(std::move(kernel));
  plan.launches.push_back({0, grid(device, plan.sources[0], tiles.m * tiles.n, split),
                           arguments(shape, tiles, split > 1)});
  if (split == 1) return plan;

  plan.workspace_bytes = partial_bytes(shape, split);
  Defines defines = problem_defines(shape);
  defines.emplace_back("SPLIT", number(split));
  plan.sources.push_back(kernel_source(device, "reduce", defines, 256));
  const std::int64_t fours = shape.m * ceil_div(shape.n, 4);  // a thread's elements
  plan.launches.push_back(
      {1, grid(device, plan.sources[1], static_cast<std::uint64_t>(ceil_div(fours, 256))),
       arguments(shape, {}, true)});
  return plan;
}

}  // namespace greta::gemm
