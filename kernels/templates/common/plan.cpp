#include "kernels/templates/common/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/launch/argument_block.hpp"
#include "kernels/templates/common/limits.hpp"

namespace greta::kernels {
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

/// Bytes of the block that these make.
std::uint32_t block_bytes(const std::vector<Argument>& arguments) {
  ArgumentBlock block;
  for (const Argument& argument : arguments) {
    std::visit(
        [&block](auto value) {
          using T = decltype(value);
          constexpr bool address =
              std::is_same_v<T, OperandArgument> || std::is_same_v<T, WorkspaceArgument>;
          if constexpr (address) {
            block.add(std::uint64_t{0});
          } else {
            block.add(value);
          }
        },
        argument);
  }
  return static_cast<std::uint32_t>(block.take().size());
}

}  // namespace

Defines type_defines(DType in, DType out) {
  const auto is = [](bool yes) { return std::string(yes ? "1" : "0"); };
  return {{"IN_F16", is(in == DType::f16)},
          {"IN_BF16", is(in == DType::bf16)},
          {"OUT_F16", is(out == DType::f16)},
          {"OUT_BF16", is(out == DType::bf16)}};
}

void add_parameters(Defines& defines, const Config& config) {
  for (const auto& [name, value] : config.values) defines.emplace_back(name, std::to_string(value));
}

void add_pack(Defines& defines, const DeviceInfo& device, std::string_view name, DType type,
              int width) {
  if (device.language != "glsl") return;
  const Pack types = pack(type, width);
  defines.emplace_back(fmt::format("{}_PACK", name), types.memory);
  defines.emplace_back(fmt::format("{}_RAW", name), types.registers);
}

KernelSource kernel_source(const DeviceInfo& device, std::string_view path, const Defines& defines,
                           std::int64_t threads, const std::vector<Argument>& arguments) {
  const bool glsl = device.language == "glsl";
  KernelSource kernel;
  kernel.name = path;
  kernel.language = device.language;
  kernel.entry = path;
  std::replace(kernel.entry.begin(), kernel.entry.end(), '/', '_');
  if (glsl) kernel.entry = "main";
  kernel.text = render(fmt::format("{}.{}", path, glsl ? "comp" : "hip"), defines);
  kernel.argument_bytes = block_bytes(arguments);
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

}  // namespace greta::kernels
