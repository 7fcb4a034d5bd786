#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/templates/common/plan.hpp"
#include "kernels/templates/gemm/shape.hpp"

/// What the launch plans of several variants share.
namespace greta::kernels::gemm {

/// What every kernel of the problem is rendered with. No size is among it, so that a problem's
/// stand-in has the same kernels.
Defines problem_defines(const Shape& shape);
/// GLSL's types for loads of VA and VB elements.
void add_packs(Defines& defines, const Shape& shape, const DeviceInfo& device,
               const Config& config);

/// gemm/NAME in the device's language.
KernelSource kernel_source(const DeviceInfo& device, std::string_view name, const Defines& defines,
                           std::int64_t threads);

/// The fields of the argument block (operands.glsl, operands.hip) that differ between launches.
struct Tiles {
  std::uint64_t m = 1, n = 1;
  std::int64_t slice = 0;
};

/// The argument block. `zeroed_bytes`: where the partial sums start in the workspace, after the
/// counters.
std::vector<Argument> arguments(const Shape& shape, const Tiles& tiles, bool workspace,
                                std::uint64_t zeroed_bytes = 0);

/// Bytes of `split` partial sums of every element.
std::uint64_t partial_bytes(const Shape& shape, int split);

/// The plan of a kernel that computes tiles of BM x BN in steps of BK. With a SPLIT, each slice of
/// K leaves its sums in the workspace, and a second launch adds them.
LaunchPlan plan_of_tiles(const Shape& shape, const DeviceInfo& device, const Config& config,
                         KernelSource kernel);

/// What such a kernel cuts: C into tiles, these into groups of SWIZZLE rows, K into slices and
/// steps.
std::vector<Division> divisions_of_tiles(const Shape& shape, const Config& config);

}  // namespace greta::kernels::gemm
