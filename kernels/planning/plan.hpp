#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/planning/render.hpp"

/// Shared parts of the launch plans of every operation.
namespace greta::kernels {

/// An operand's name in the sources and its element type.
struct TypedName {
  std::string_view name;
  DType type;
};

/// Returns NAME_F16, NAME_BF16 etc. for each operand: 1 for its element type, else 0. For f32 all
/// are 0.
Defines type_defines(const std::vector<TypedName>& operands);
/// Adds the configuration's values under the parameters' names.
void add_parameters(Defines& defines, const Config& config);
/// Adds the GLSL types for loads of `width` elements: NAME_PACK in memory, NAME_RAW in registers.
/// Adds nothing for HIP, which uses templates.
void add_pack(Defines& defines, const DeviceInfo& device, std::string_view name, DType type,
              int width);

/// Whether the code of a template's text, without comments and strings, calls a function of
/// device.hip that begins a launch. A user's version of a template may lack the call.
bool awaits_launches(std::string_view text);

/// Returns a kernel in the device's language: `path`.comp, or `path`.hip with an entry named after
/// the path, e.g. softmax_held for "softmax/held". `arguments` are those of its launches.
KernelSource kernel_source(const DeviceInfo& device, std::string_view path, const Defines& defines,
                           std::int64_t threads, const std::vector<Argument>& arguments);

/// Has a kernel with instructions of warpgroups compiled for sm_90a, which alone has them. hip-host
/// executes them in every kernel for the devices of NVIDIA's that it imitates.
void compile_for_warpgroups(KernelSource& kernel, const DeviceInfo& device);

/// Returns the size of the block of these arguments, in bytes.
std::uint32_t block_bytes(const std::vector<Argument>& arguments);

/// Declares the arguments of a kernel's launches: the block's size, and if there are tensor maps
/// among them their offsets.
void declare_arguments(KernelSource& kernel, const std::vector<Argument>& arguments);

/// Returns the subgroup size of GLSL kernels that exchange values within whole subgroups, if it can
/// be fixed and a workgroup has 1 to 32 of them, else 0: values pass through shared memory.
int whole_subgroups(const DeviceInfo& device, int threads);

/// Returns a grid of `count` workgroups, folded into two dimensions if x is too small, with z =
/// `slices`.
std::array<std::uint32_t, 3> grid(const DeviceInfo& device, const KernelSource& kernel,
                                  std::uint64_t count, int slices = 1);

}  // namespace greta::kernels
