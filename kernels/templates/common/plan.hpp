#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/templates/common/render.hpp"

/// What the launch plans of every operation share.
namespace greta::kernels {

/// An operand's name in the sources, and its element type.
struct TypedName {
  std::string_view name;
  DType type;
};

/// NAME_F16, NAME_BF16 and so on of each operand: 1 for its element type, 0 for others. f32 is the
/// type for which all of them are 0.
Defines type_defines(const std::vector<TypedName>& operands);
/// The configuration's values under their names.
void add_parameters(Defines& defines, const Config& config);
/// GLSL's types for loads of `width` elements, as NAME_PACK in memory and NAME_RAW in registers;
/// for HIP, which has templates, nothing.
void add_pack(Defines& defines, const DeviceInfo& device, std::string_view name, DType type,
              int width);

/// A kernel in the device's language: `path`.comp, or `path`.hip with an entry that is called like
/// it: softmax_held for "softmax/held". `arguments`: what every launch of it passes.
KernelSource kernel_source(const DeviceInfo& device, std::string_view path, const Defines& defines,
                           std::int64_t threads, const std::vector<Argument>& arguments);

/// `count` workgroups, folded into two dimensions where one is too short; `slices` along z.
std::array<std::uint32_t, 3> grid(const DeviceInfo& device, const KernelSource& kernel,
                                  std::uint64_t count, int slices = 1);

}  // namespace greta::kernels
