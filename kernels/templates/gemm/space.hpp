#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/space.hpp"
#include "kernels/templates/common/limits.hpp"
#include "kernels/templates/gemm/shape.hpp"
#include "runtime/device/device_info.hpp"

/// What the spaces of several variants share.
namespace greta::kernels::gemm {

/// gemv is offered up to so many rows, tiles from so many on: below, most of a tile is idle.
constexpr std::int64_t most_gemv_rows = 8;
constexpr std::int64_t least_tiled_rows = 5;
/// Up to so many columns or products, tiles are mostly idle as well.
constexpr std::int64_t hardly_any = 7;

/// A default's slices of K for `count` workgroups; 1 where they fill the device.
int default_split(const Shape& shape, const DeviceInfo& device, std::int64_t count);
/// K steps of each of `split` slices, a multiple of `step`; the last may be shorter or empty.
std::int64_t slice_length(const Shape& shape, int split, int step);

/// Vectors along a row of an operand, whose `parameter` is VA or VB.
Constraint alignment_constraint(const char* name, const char* parameter, std::int64_t stride);
/// A tile of twice the matrix or more only adds idle threads. `parameter`: of the tile's extent.
Constraint tile_fits(const char* name, const char* parameter, std::int64_t extent, char dim);
/// Tiles of BM x BN must not be more than the grid takes.
Constraint grid_of_tiles(const Shape& shape, const DeviceInfo& device);
/// SPLIT copies of C in f32 must leave room for the operands.
Constraint workspace_constraint(const Shape& shape, const DeviceInfo& device);

}  // namespace greta::kernels::gemm
