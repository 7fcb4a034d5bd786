#pragma once

#include "kernels/planning/plan.hpp"
#include "kernels/templates/scaled_gemm/shape.hpp"

/// Shared parts of the launch plans of several variants.
namespace greta::kernels::scaled_gemm {

/// Returns the macros of all kernels of the problem. They contain no sizes, so that a problem's
/// stand-in has the same kernels.
Defines problem_defines(const Shape& shape);

/// Returns the kernel scaled_gemm/NAME in the device's language, or scaled_grouped_gemm/NAME where
/// there are groups.
KernelSource kernel_of(const Shape& shape, const DeviceInfo& device, std::string_view name,
                       const Defines& defines, std::int64_t threads,
                       const std::vector<Argument>& arguments);

/// Returns A, B, scales_a, scales_b, C, the extents, the tiles along n, and of groups their rows
/// and their number.
std::vector<Argument> arguments(const Shape& shape, std::int64_t tiles_n);

/// A launch of one kernel for tiles of C.
struct TiledLaunch {
  std::string_view name;     ///< of the kernel, e.g. "tiled"
  std::int64_t threads = 0;  ///< of a workgroup
  std::int64_t rows = 1, columns = 1;
  Defines defines{};       ///< of this kernel alone
  std::int64_t slice = 0;  ///< k of a workgroup of kernels with SPLIT (slices.hip)
  int subgroup = 0;        ///< of GLSL kernels that exchange values within whole subgroups
};

/// Returns the k of one of SPLIT slices: a multiple of `step`.
std::int64_t slice_length(const Shape& shape, const Config& config, std::int64_t step);
/// Rejects slices shorter than a step and partial sums beyond the device's workspace.
std::vector<Constraint> slice_constraints(const Shape& shape, const DeviceInfo& device,
                                          std::int64_t step);

/// Returns the plan of a kernel whose workgroups compute tiles of C, or with SPLIT slices of these,
/// of which the last one to arrive adds the sums of all.
LaunchPlan plan_of_tiles(const Shape& shape, const DeviceInfo& device, const Config& config,
                         const TiledLaunch& launch);

/// Returns the tiles of C that have rows.
std::int64_t count_tiles(const Shape& shape, std::int64_t rows, std::int64_t columns);
/// Returns whether most of a tile of this height would be idle in the mean group.
bool too_high(const Shape& shape, std::int64_t rows);

/// Returns the bytes that the launches of a configuration read and write at least.
double least_bytes(const Shape& shape);

}  // namespace greta::kernels::scaled_gemm
