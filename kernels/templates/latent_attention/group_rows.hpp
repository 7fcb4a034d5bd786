#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/templates/latent_attention/shape.hpp"

/// What the variants have in common whose warpgroups divide the dimensions of 64 rows' outputs
/// (group_rows.hip).
namespace greta::kernels::latent {

constexpr std::int64_t tile_rows = 64;  ///< of a warpgroup's product

/// A workgroup of such a kernel.
struct RowGroups {
  std::int64_t groups;        ///< warpgroups that compute
  std::int64_t threads;       ///< all
  std::int64_t keys;          ///< of the scores of a warpgroup
  std::int64_t shared_bytes;  ///< all
  std::int64_t readers;       ///< warpgroups that read the queries for a tile
};

/// Returns the dimensions of a key in shared memory.
std::int64_t padded(const Shape& shape);
/// Returns the dimensions of a warpgroup's outputs: whole panels of 64, 32 or 16.
std::int64_t group_values(const Shape& shape, std::int64_t groups);
/// Returns whether dimensions after the last warpgroup's are whole panels of 64, at least one.
bool has_spare_panel(const Shape& shape, std::int64_t groups);
/// Returns the bytes of queries, whose place outputs take at the end.
std::int64_t queries_bytes(const Shape& shape);
/// Returns a thread's registers, of a warpgroup that computes.
std::int64_t registers(const Shape& shape, const RowGroups& workgroup);

/// Returns whether the device has the instructions, and the rows the types for them.
bool has_row_groups(const Shape& shape, const DeviceInfo& device);
/// Returns the constraints on types, instructions, dimensions and slices. `workgroup` of a
/// configuration is asked for its number of warpgroups, `groups` names the parameters for that.
std::vector<Constraint> group_constraints(const Shape& shape, const DeviceInfo& device,
                                          std::vector<std::string> names,
                                          RowGroups (*workgroup)(const Shape&, const Config&));
/// How a kernel's workgroups divide keys.
struct Slicing {
  int split = 0;        ///< slices; 0: `matrix` is faster
  bool stream = false;  ///< with STREAM_K, and one slice
};
/// What a kernel's slices cost, in steps of 64 keys of 576 elements with values of 512.
struct SliceCosts {
  double round;            ///< a workgroup's start and end
  double join;             ///< the launch of the join
  double joined_in_step;   ///< elements
  double fetch = 0;        ///< keys' way from memory to all compute units, if each reads others
  double stream_part = 0;  ///< of a workgroup's part with STREAM_K; 0: not offered
  double stream_join = 0;  ///< the join there, and the search of parts
};
/// Returns the slices that are predicted to be the fastest. `matrix` is faster where a tile is
/// mostly idle, and with fewer than four tiles of rows, where two thirds of the compute units would
/// be with as many slices as there are units for (on an H200,
/// results/2026-11-28-nvidia-h200-latent-few-sequences and
/// 2026-12-01-nvidia-h200-long-single-queries).
Slicing fastest_slices(const Shape& shape, const DeviceInfo& device, const SliceCosts& costs);
/// Returns the launches of the kernel `path`, whose workgroups are `workgroup`.
LaunchPlan group_plan(const Shape& shape, const DeviceInfo& device, std::string_view path,
                      const Config& config, const RowGroups& workgroup);
/// Returns the work of a configuration, but for what the threads wait for. `rows`: what rows_work()
/// or streamed_work() returns.
LaunchWork group_work(const Shape& shape, const Config& config, const RowGroups& workgroup,
                      LaunchWork rows);

}  // namespace greta::kernels::latent
