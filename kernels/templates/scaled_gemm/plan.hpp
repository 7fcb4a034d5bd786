#pragma once

#include "kernels/planning/plan.hpp"
#include "kernels/templates/scaled_gemm/shape.hpp"

/// Shared parts of the launch plans of several variants.
namespace greta::kernels::scaled_gemm {

/// Returns the macros of all kernels of the problem. They contain no sizes, so that a problem's
/// stand-in has the same kernels.
Defines problem_defines(const Shape& shape);

/// Returns A, B, scales_a, scales_b, C, the extents and the tiles along n.
std::vector<Argument> arguments(const Shape& shape, std::int64_t tiles_n);

/// A launch of one kernel for tiles of C.
struct TiledLaunch {
  std::string_view name;     ///< of the kernel, e.g. "tiled"
  std::int64_t threads = 0;  ///< of a workgroup
  std::int64_t rows = 1, columns = 1;
};

/// Returns the plan of a kernel whose workgroups compute tiles of C.
LaunchPlan plan_of_tiles(const Shape& shape, const DeviceInfo& device, const Config& config,
                         const TiledLaunch& launch);

/// Returns the bytes that the launches of a configuration read and write at least.
double least_bytes(const Shape& shape);

}  // namespace greta::kernels::scaled_gemm
