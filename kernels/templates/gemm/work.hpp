#pragma once

#include "kernels/model/config.hpp"
#include "kernels/model/launch_work.hpp"
#include "kernels/templates/gemm/shape.hpp"

/// Shared parts of the work of several variants.
namespace greta::kernels::gemm {

/// Returns the work of workgroups that compute tiles of BM x BN in steps of BK, each a slice of K,
/// without the fields that depend on how they do it.
LaunchWork work_of_tiles(const Shape& shape, const Config& config);

/// Returns the work of the launch that adds the slices' partial sums.
LaunchWork work_of_adding_slices(const Shape& shape, int split);

/// Adds the launch that copies operands to aligned rows, with ALIGN.
KernelWork with_alignment(KernelWork launches, const Shape& shape, const Config& config);

}  // namespace greta::kernels::gemm
