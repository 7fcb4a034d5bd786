#include "kernels/planning/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/launch/argument_block.hpp"
#include "kernels/planning/device_limits.hpp"

namespace greta::kernels {
namespace {

struct Pack {
  std::string memory;     ///< the type in memory.glsl
  std::string registers;  ///< the register type of one load
};

/// Vectors of f32 are loaded as such, vectors of smaller types as 32-bit words.
Pack pack(DType type, int width) {
  const DTypeTraits& t = traits(type);
  if (width == 1) return {std::string(t.glsl), std::string(t.glsl_register)};
  if (t.bits == 32) return {fmt::format("{}x{}", t.glsl, width), fmt::format("vec{}", width)};
  const int words = width * t.bits / 32;
  if (words == 1) return {"U32", "uint"};
  return {fmt::format("U32x{}", words), fmt::format("uvec{}", words)};
}

/// Returns the size of the comment or string that a text begins with; 0 if it begins with neither.
/// A string ends at the end of its line.
std::size_t skipped_size(std::string_view text) {
  if (text.starts_with("/*")) return std::min(text.find("*/", 2), text.size() - 2) + 2;
  const bool comment = text.starts_with("//");
  if (!comment && !text.starts_with('"')) return 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\n') return i;
    if (!comment && text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return text.size();
}

/// Returns a source without comments and strings.
std::string code_of(std::string_view text) {
  std::string code;
  while (!text.empty()) {
    std::size_t size = std::min(text.find_first_of("/\""), text.size());
    if (size == 0 && skipped_size(text) == 0) size = 1;
    code += text.substr(0, size);
    text.remove_prefix(size);
    text.remove_prefix(skipped_size(text));
  }
  return code;
}

}  // namespace

bool awaits_launches(std::string_view text) {
  const std::string code = code_of(text);
  const auto calls = [&code](const char* call) { return code.find(call) != std::string::npos; };
  return calls("begin_launch();") || calls("begin_launch_early();") ||
         calls("begin_launch_alone();") || calls("begin_launch_whole();");
}

std::uint32_t block_bytes(const std::vector<Argument>& arguments) {
  ArgumentBlock block;
  for (const Argument& argument : arguments) {
    block.add(argument, [](const auto&) { return std::uint64_t{0}; });
  }
  return static_cast<std::uint32_t>(block.take().size());
}

void declare_arguments(KernelSource& kernel, const std::vector<Argument>& arguments) {
  ArgumentBlock block;
  std::vector<std::uint32_t> offsets;
  bool maps = false;
  for (const Argument& argument : arguments) {
    const std::size_t at = block.add(argument, [](const auto&) { return std::uint64_t{0}; });
    offsets.push_back(static_cast<std::uint32_t>(at));
    maps = maps || std::holds_alternative<TensorMapArgument>(argument);
  }
  kernel.argument_bytes = static_cast<std::uint32_t>(block.take().size());
  kernel.argument_offsets = maps ? std::move(offsets) : std::vector<std::uint32_t>{};
}

Defines type_defines(const std::vector<TypedName>& operands) {
  Defines defines;
  for (const auto& [name, type] : operands) {
    for (const DType known : narrow_types()) {
      defines.emplace_back(fmt::format("{}_{}", name, traits(known).glsl),
                           type == known ? "1" : "0");
    }
  }
  return defines;
}

void add_parameters(Defines& defines, const Config& config) {
  for (const auto& [name, value] : config.values) defines.emplace_back(name, std::to_string(value));
}

void add_pack(Defines& defines, const DeviceInfo& device, std::string_view name, DType type,
              int width) {
  if (device.language != Language::glsl) return;
  const Pack types = pack(type, width);
  defines.emplace_back(fmt::format("{}_PACK", name), types.memory);
  defines.emplace_back(fmt::format("{}_RAW", name), types.registers);
}

KernelSource kernel_source(const DeviceInfo& device, std::string_view path, const Defines& defines,
                           std::int64_t threads, const std::vector<Argument>& arguments) {
  const bool glsl = device.language == Language::glsl;
  KernelSource kernel;
  kernel.name = path;
  kernel.language = device.language;
  kernel.entry = path;
  std::replace(kernel.entry.begin(), kernel.entry.end(), '/', '_');
  if (glsl) kernel.entry = "main";
  kernel.text = render(fmt::format("{}.{}", path, glsl ? "comp" : "hip"), defines);
  kernel.awaits_launches = !glsl && awaits_launches(kernel.text);
  declare_arguments(kernel, arguments);
  kernel.block = {static_cast<std::uint32_t>(threads), 1, 1};
  return kernel;
}

void compile_for_warpgroups(KernelSource& kernel, const DeviceInfo& device) {
  if (!device.is_cpu()) kernel.options.emplace_back("--gpu-architecture=sm_90a");
}

int whole_subgroups(const DeviceInfo& device, int threads) {
  constexpr int most = 32;  // supported by every driver
  const int size = device.subgroup_size_control ? static_cast<int>(device.subgroup_size) : 0;
  return size > 0 && threads % size == 0 && threads / size <= most ? size : 0;
}

std::array<std::uint32_t, 3> grid(const DeviceInfo& device, const KernelSource& kernel,
                                  std::uint64_t count, int slices) {
  // AMD GPUs limit the threads of a dimension to 32 bits.
  std::uint64_t most = std::min<std::uint64_t>(device.max_grid[0], 0xffffffffU / kernel.block[0]);
  if (device.planned_grid_row > 0) {
    const std::uint64_t least = ceil_div(count, device.max_grid[1]);
    most = std::min(most, std::max<std::uint64_t>(device.planned_grid_row, least));
  }
  const std::uint64_t x = std::min(count, most);
  return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(ceil_div(count, x)),
          static_cast<std::uint32_t>(slices)};
}

}  // namespace greta::kernels
