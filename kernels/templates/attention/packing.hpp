#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/model/launch_work.hpp"
#include "kernels/planning/render.hpp"
#include "kernels/templates/attention/shape.hpp"

/// Shared parts of kernels with tiles of queries that may be of several heads (PACK), and whose
/// keys may be divided into slices (SPLIT): packing.hip and slices.hip, and packing.glsl and
/// slices.glsl. `rows` are those of a tile.
namespace greta::kernels::attention {

constexpr int fold_in_cluster = 2;  ///< FOLD: slices are a cluster and join in shared memory
/// Workgroups of a cluster of slices, of which some devices have more than most_in_cluster.
constexpr int most_slices_in_cluster = 16;
bool folds_in_clusters(const DeviceInfo& device);
/// Returns the values of FOLD on the device.
std::vector<int> folds(const DeviceInfo& device);
/// Returns the constraint that a cluster has slices to FOLD, and not too many.
Constraint cluster_constraint();

/// Returns the size of shared memory in which a workgroup joins SPLIT slices of `rows` rows with
/// FOLD, beside `wave_bytes` of the sums of its waves. Source of the layout: partial_sums.hip.
std::int64_t join_bytes(const Shape& shape, int split, int fold, std::int64_t rows,
                        std::int64_t wave_bytes);

/// Returns the number of heads whose queries share a tile: with PACK those of a KV head, else one.
std::int64_t packed_heads(const Shape& shape, bool pack);
std::int64_t packed_heads(const Shape& shape, const Config& config);

/// Returns the number of tiles, each of which has SPLIT workgroups. `packed` heads share a tile.
std::int64_t readers_of(const Shape& shape, std::int64_t packed, std::int64_t rows);

/// Returns the constraints that tiles fit the grid and are not mostly idle, that there are heads to
/// pack and keys to divide, and that the device can hold what slices leave.
std::vector<Constraint> packing_constraints(const Shape& shape, const DeviceInfo& device,
                                            const Expression& rows);

/// Returns the divisions of such a kernel: those of prefill_divisions(), the keys into rounds of
/// tiles, one for each slice, and a slice's tiles into buffers, of which `buffers` is the number.
std::vector<Division> packing_divisions(const Shape& shape, const Config& config, std::int64_t rows,
                                        const std::string& buffers);

/// Returns the work of such a kernel, without the fields that depend on how it computes, but with
/// the barriers of the slices' arrival.
LaunchWork packing_work(const Shape& shape, const Config& config, std::int64_t rows);

/// Returns the single launch of such a kernel. The last slice to arrive joins all, or the cluster.
LaunchPlan packing_plan(const Shape& shape, const DeviceInfo& device, std::string_view name,
                        const Config& config, Defines defines, std::int64_t rows,
                        std::int64_t threads);

/// A default for few queries: tiles of 16 rows for each wave, and slices of their keys.
struct PackedTile {
  int waves, split;
  std::int64_t workgroups;
};

/// Returns the defaults of few queries, the best first. Tiles of more rows read keys fewer times,
/// if they fill the device without slices. Slices fill it up to `times`.
std::vector<PackedTile> packed_tiles(const Shape& shape, const DeviceInfo& device, int times);

/// Returns whether few queries of heads that share a KV head are better multiplied by matrix cores,
/// with PACK, than one by one as `decode` does: on NVIDIA GPUs from sm_90 on from two rows on
/// (results/2026-12-01-nvidia-h200-long-single-queries). Elsewhere, by the count of instructions,
/// plain multiplications take longer than the keys' way from memory from about four rows on, or
/// from nine where matrix cores need keys to pass through registers (`copies`: they need not).
bool are_few_packed_rows(const Shape& shape, const DeviceInfo& device, bool copies);

/// Returns whether that is so and the variant `matrix` has a valid default for them.
bool fits_matrix_rows(const Shape& shape, const DeviceInfo& device);

}  // namespace greta::kernels::attention
