#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/model/space.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/gemm/shape.hpp"
#include "runtime/device/device_info.hpp"

/// Shared parts of the spaces of several variants.
namespace greta::kernels::gemm {

/// gemv supports up to most_gemv_rows rows. Tiles need least_tiled_rows; with fewer rows most of a
/// tile is idle.
constexpr std::int64_t most_gemv_rows = 8;
constexpr std::int64_t least_tiled_rows = 5;
/// Up to this n or k, tiles are mostly idle as well.
constexpr std::int64_t hardly_any = 7;

/// Returns the largest number of sums of squares that a thread adds one by one for a norm: a bound
/// of their error.
std::int64_t most_square_rounds(std::int64_t k);

/// Returns the default split of K for `count` workgroups: 1 if they fill the device.
int default_split(const Shape& shape, const DeviceInfo& device, std::int64_t count);
/// Returns the K steps of each of `split` slices, a multiple of `step`. The last slice may be
/// shorter or empty.
std::int64_t slice_length(const Shape& shape, int split, int step);

/// Returns the constraint that vectors are aligned in every stored row of an operand. `parameter`
/// is VA or VB.
Constraint alignment_constraint(const char* name, const char* parameter, std::int64_t stride);
/// Rejects tiles of at least twice the matrix, which only add idle threads. `parameter` is the
/// tile's extent.
Constraint tile_fits(const char* name, const char* parameter, std::int64_t extent, char dim);
/// Rejects prologues and gates, for tiles that have neither whole rows of A nor the gate and the up
/// of a column.
Constraint plain_product(const Shape& shape);
/// Rejects prologues, which need whole rows of A, and gates whose lines of B a tile can't alternate
/// with those of their ups; for variants that can copy odd lines (`aligns`) also such copies of
/// gates.
std::vector<Constraint> tiled_product(const Shape& shape, bool aligns);
/// Rejects FOLD without slices, and clusters of too many of them.
Constraint fold_constraint();
/// Rejects WALK=1 where there are few tiles on one side.
Constraint walk_constraint(const Shape& shape);

/// Rejects a BK that does not divide k where there are several products: a step must not read the
/// operands of the next one.
Constraint whole_steps_constraint(const Shape& shape);
/// Rejects batches whose matrices are not whole lines apart.
Constraint whole_lines_constraint(const Shape& shape);
/// Raises STAGES, to `most` at most, while `shared_bytes` of the configuration fit the device.
void raise_stages(Config& config, int most, const DeviceInfo& device,
                  const std::function<std::int64_t(const Config&)>& shared_bytes);

/// Rejects slices of K and copies of odd lines where there are groups, with the reason.
std::vector<Constraint> group_constraints(const Shape& shape);
/// Rejects more tiles of BM x BN than the grid supports.
Constraint grid_of_tiles(const Shape& shape, const DeviceInfo& device);
/// What a problem demands of tiles of BM x BN: enough rows, tiles that are not mostly idle, a grid
/// that has them all, and tiled_product().
std::vector<Constraint> tiling_constraints(const Shape& shape, const DeviceInfo& device,
                                           bool aligns);
/// Also of variants with clusters of CLUSTER_M x CLUSTER_N tiles, which are launched whole.
Constraint grid_of_clusters(const Shape& shape, const DeviceInfo& device);
/// SPLIT partial sums of C in f32 must leave room for the operands.
Constraint workspace_constraint(const Shape& shape, const DeviceInfo& device);

}  // namespace greta::kernels::gemm
