#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/space.hpp"
#include "kernels/templates/gemm/shape.hpp"
#include "runtime/device/device_info.hpp"

/// What the spaces of several variants share.
namespace greta::gemm {

/// gemv is offered up to so many rows, tiles from so many on: below, most of a tile is idle.
constexpr std::int64_t most_gemv_rows = 8;
constexpr std::int64_t least_tiled_rows = 5;
/// Up to so many columns or products, tiles are mostly idle as well.
constexpr std::int64_t hardly_any = 7;

/// A CPU that runs GLSL with its vector units (lavapipe). It keeps sums in its cache, compiles
/// slowly and limits loops. hip-host is none: it has the spaces of the GPUs that it imitates.
bool vectorising_cpu(const DeviceInfo& device);

/// Workgroups that keep the device busy; a guess where the API does not say.
std::int64_t busy_workgroups(const DeviceInfo& device);
/// 32-bit vector registers of a compute unit; a guess where the API does not say.
std::int64_t register_file(const DeviceInfo& device);
std::int64_t most_threads(const DeviceInfo& device);
/// Workgroups that fit into a grid folded into two dimensions, and into 32 bits.
std::int64_t most_workgroups(const DeviceInfo& device);

/// Elements of a load, up to 16 bytes.
std::vector<int> vector_widths(DType type);
/// The widest of them that divides both `stride` and `elements`.
int widest_vector(DType type, std::int64_t stride, std::int64_t elements);
/// A default's slices of K for `count` workgroups; 1 where they fill the device.
int default_split(const Shape& shape, const DeviceInfo& device, std::int64_t count);
/// K steps of each of `split` slices, a multiple of `step`; the last may be shorter or empty.
std::int64_t slice_length(const Shape& shape, int split, int step);

void append(std::vector<Constraint>& constraints, std::vector<Constraint> more);

/// The problem's element types in the device's memory.
Constraint storage_constraint(const Shape& shape, const DeviceInfo& device);
/// Vectors along a row of an operand, whose `parameter` is VA or VB.
Constraint alignment_constraint(const char* name, const char* parameter, std::int64_t stride);
/// A tile of twice the matrix or more only adds idle threads. `parameter`: of the tile's extent.
Constraint tile_fits(const char* name, const char* parameter, std::int64_t extent, char dim);
/// Tiles of BM x BN must not be more than the grid takes.
Constraint grid_of_tiles(const Shape& shape, const DeviceInfo& device);
/// SPLIT copies of C in f32 must leave room for the operands.
Constraint workspace_constraint(const Shape& shape, const DeviceInfo& device);

}  // namespace greta::gemm
