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

/// A tile whose K steps are multiplied as `multiplied_rows` rows, which are at least `rows`.
struct TileExtents {
  int rows = 0, columns = 0, k = 0, multiplied_rows = 0;
};

/// Estimates the run time of tiles with `split` slices of K on `units` compute units, in
/// multiplications of one: whole waves of tiles, moving the tiles' edges, and adding slices.
double cost_of_tiles(const Shape& shape, const TileExtents& tile, int split, std::int64_t units);

/// Adds what the slices of a tile do to add their sums in the same launch: `by_the_last` of them
/// from memory, or all of them in a cluster.
void add_folding(LaunchWork& work, const Config& config, bool by_the_last);

/// Adds the launch that copies operands to aligned rows, with ALIGN.
KernelWork with_alignment(KernelWork launches, const Shape& shape, const Config& config);

}  // namespace greta::kernels::gemm
