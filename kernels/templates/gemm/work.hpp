#pragma once

#include <cstddef>
#include <vector>

#include "kernels/model/config.hpp"
#include "kernels/model/launch_work.hpp"
#include "kernels/templates/gemm/shape.hpp"
#include "runtime/device/device_info.hpp"

/// Shared parts of the work of several variants.
namespace greta::kernels::gemm {

/// Returns the work of workgroups that compute tiles of BM x BN in steps of BK, each a slice of K,
/// without the fields that depend on how they do it.
LaunchWork work_of_tiles(const Shape& shape, const Config& config);

/// Returns the cycles in which a workgroup stores a tile of BM x BN and multiplies nothing, on
/// NVIDIA's sm_90, where a multiprocessor stores an element in `stored` cycles. An activation adds
/// cycles of its own, `lone` times as many where few waves compute it at the same time. Slices are
/// stored as add_folding() says, and those of a cluster share the activations.
double tail_of_tile(const Shape& shape, const Config& config, double stored, double lone);
/// Returns whether lines of an operand do not start with lines of the cache, so that each is
/// fetched from two of them.
bool between_cache_lines(const Shape& shape);
/// What that takes, in times of fetching from one, on sm_90
/// (results/2026-11-29-nvidia-h200-clusters).
constexpr double cost_of_two_lines = 1.15;

/// Returns the work of the launch that adds the slices' partial sums.
LaunchWork work_of_adding_slices(const Shape& shape, int split);

/// A tile whose K steps are multiplied as `multiplied_rows` rows, which are at least `rows`.
struct TileExtents {
  int rows = 0, columns = 0, k = 0, multiplied_rows = 0;
};

/// Estimates the run time of tiles with `split` slices of K on `units` compute units, in
/// multiplications of one: whole waves of tiles, moving the tiles' edges, and adding slices. Tiles
/// of groups take different times, so that half a wave is added to theirs, in place of the rest of
/// one.
double cost_of_tiles(const Shape& shape, const TileExtents& tile, int split, std::int64_t units);

/// One of several tiles, by its index, with a number of slices of K.
struct TileChoice {
  std::size_t tile;
  int split;
};

/// Returns the tiles with numbers of slices that the shape supports, by their estimated run time.
std::vector<TileChoice> cheapest_first(const Shape& shape, const DeviceInfo& device,
                                       const std::vector<TileExtents>& tiles);

/// Adds what the slices of a tile do to add their sums in the same launch: `by_the_last` of them
/// from memory, or all of them in a cluster.
void add_folding(LaunchWork& work, const Config& config, bool by_the_last);

/// Returns the launch of a product with those beside it: that which copies operands to aligned
/// rows, with ALIGN, and that which adds slices, unless there is a FOLD.
KernelWork work_of_launches(const LaunchWork& product, const Shape& shape, const Config& config);

}  // namespace greta::kernels::gemm
