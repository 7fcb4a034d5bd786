#pragma once

#include "kernels/planning/plan.hpp"
#include "kernels/templates/quantized_gemm/shape.hpp"

/// Shared parts of the launch plans of several variants.
namespace greta::kernels::quantized_gemm {

/// A launch of one kernel for tiles of C.
struct TiledLaunch {
  std::string_view name;     ///< of the kernel, e.g. "gemv"
  std::int64_t threads = 0;  ///< of a workgroup
  std::int64_t rows = 1, columns = 1;
  int subgroup = 0;         ///< with GLSL: the size that subgroups must have; 0: any
  std::int64_t blocks = 0;  ///< workgroups, which compute tiles in turn; 0: one for each tile
  std::int64_t dynamic_shared_bytes = 0;
  int split = 1;  ///< workgroups of a tile
  /// Sums of f32 that each of these leaves in the workspace, after a counter for each tile.
  std::int64_t slice_sums = 0;
  Defines defines{};  ///< more macros
};

/// Returns the macros of all kernels of the problem. They contain no sizes but whether there are
/// few rows, which look-ups do not round, so that a problem's stand-in has the same kernels.
Defines problem_defines(const Shape& shape);
/// Returns A, B, scales, zeros, bias or residual (0 where there are none), C, the extents, the
/// tiles along n, or with variant `tma` along m, and the workgroups if `blocks` is not 0. With a
/// norm, its weight and epsilon follow; of groups their rows and their number.
std::vector<Argument> arguments(const Shape& shape, std::int64_t tiles, std::int64_t blocks = 0);

/// Rejects norms, for variants whose workgroups have no whole rows.
Constraint no_norm(const Shape& shape);

/// Returns the constraints of tiles BM x BN x BK in shared memory; BM of `least_rows` always fits.
std::vector<Constraint> tile_constraints(const Shape& shape, const DeviceInfo& device,
                                         int least_rows);

/// Rejects words of AWQ and GPTQ (Shape::packing).
Constraint rows_of_weights(const Shape& shape);

/// Returns the kernel quantized_gemm/NAME in the device's language, or quantized_grouped_gemm/NAME
/// where there are groups.
KernelSource kernel_of(const Shape& shape, const DeviceInfo& device, std::string_view name,
                       const Defines& defines, std::int64_t threads,
                       const std::vector<Argument>& arguments);

/// Returns the plan of a kernel whose workgroups compute tiles of C.
LaunchPlan plan_of_tiles(const Shape& shape, const DeviceInfo& device, const Config& config,
                         const TiledLaunch& launch);

/// Returns the bytes of weights that a load of a thread brings: of packed ones a word of GPTQ's, or
/// a nibble of AWQ's, else `otherwise`.
double bytes_of_load(const Shape& shape, double otherwise);
/// Returns the bytes of scales and zero points for each weight, of those beside B.
double scale_bytes(const Shape& shape);
/// Returns how much longer instructions take of a kernel whose loop of `kib` KiB exceeds NVIDIA's
/// caches of instructions.
double time_of_code(const DeviceInfo& device, double kib);
/// Returns the bytes that the launches of a configuration read and write at least.
double least_bytes(const Shape& shape);

}  // namespace greta::kernels::quantized_gemm
