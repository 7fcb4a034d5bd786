#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/gemm/shape.hpp"

/// Shared parts of the launch plans of several variants.
namespace greta::kernels::gemm {

/// Returns the macros of all kernels of the problem. They contain no sizes, so that a problem's
/// stand-in has the same kernels.
Defines problem_defines(const Shape& shape);
/// Adds the GLSL types for loads of VA and VB elements.
void add_packs(Defines& defines, const Shape& shape, const DeviceInfo& device,
               const Config& config);

/// Returns the kernel gemm/NAME in the device's language, or grouped_gemm/NAME where there are
/// groups.
KernelSource kernel_source(const Shape& shape, const DeviceInfo& device, std::string_view name,
                           const Defines& defines, std::int64_t threads);

/// The fields of the argument block (operands.glsl, operands.hip) that differ between launches.
struct Tiles {
  std::uint64_t m = 1, n = 1;
  std::int64_t slice = 0;
};

/// Returns the argument block. `zeroed_bytes` is the offset of the partial sums in the workspace,
/// after the counters.
std::vector<Argument> arguments(const Shape& shape, const Tiles& tiles, bool workspace,
                                std::uint64_t zeroed_bytes = 0);

/// Returns the size of `split` partial sums of every element.
std::uint64_t partial_bytes(const Shape& shape, int split);

/// Returns the plan of a kernel that computes tiles of BM x BN in steps of BK. With SPLIT, each
/// slice of K writes its partial sums to the workspace, and a second launch adds them; with FOLD,
/// the kernel adds them itself: the last slice to arrive from the workspace, or a cluster in shared
/// memory.
LaunchPlan plan_of_tiles(const Shape& shape, const DeviceInfo& device, const Config& config,
                         KernelSource kernel);

/// Operands that a launch before the product copies into the workspace.
struct CopiedOperands {
  std::string_view kernel;  ///< gemm/NAME, with workgroups of 256 threads
  Defines defines;
  std::int64_t a_bytes = 0, b_bytes = 0;  ///< sizes of the copies, aligned; 0: used in place
  std::int64_t workgroups = 0;            ///< of the larger copy
};
/// Adds the copies to the workspace of a plan, whose first launch reads them in place of the
/// operands, and a launch before it that makes them.
void add_copies(LaunchPlan& plan, const Shape& shape, const DeviceInfo& device,
                const CopiedOperands& copies);

/// Returns the divisions of such a kernel: C into tiles, these into groups of SWIZZLE rows (or
/// columns), and K into slices and steps.
std::vector<Division> divisions_of_tiles(const Shape& shape, const Config& config);
/// Also returns how STAGES buffers divide the K steps of a slice.
std::vector<Division> divisions_of_stages(const Shape& shape, const Config& c);

}  // namespace greta::kernels::gemm
