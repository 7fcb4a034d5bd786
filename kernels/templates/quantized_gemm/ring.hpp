#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/quantized_gemm/cores.hpp"
#include "kernels/templates/quantized_gemm/plan.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// What the variants share whose waves copy weights to shared memory ahead (ring.hip).
namespace greta::kernels::quantized_gemm {

inline constexpr std::int64_t pair = 2 * core_unit;  ///< weights of a line that a stage has

/// Returns whether the device has the matrix cores, and lanes of its HIP kernels copy to shared
/// memory where they like.
inline bool has_copies(const Shape& shape, const DeviceInfo& device) {
  return device::has_lane_copies(device.architecture) && has_cores(shape, device);
}

/// Returns the bytes of a line's pair of units and of its scales.
inline std::int64_t line_bytes(const Shape& shape) {
  return row_bytes(shape.format, pair) + 4;
}

/// Returns the workgroups, which compute tile after tile: RESIDENT per compute unit, or with 0 one
/// for each tile.
inline std::int64_t resident_blocks(const Shape& shape, const DeviceInfo& device,
                                    const Config& config) {
  const std::int64_t tiles = ceil_div(shape.products(), config["TN"] * core_side);
  const std::int64_t units = std::max<std::int64_t>(1, device.compute_units);
  return config["RESIDENT"] == 0 ? tiles : std::min(tiles, config["RESIDENT"] * units);
}

/// Rejects more resident workgroups of `bytes` of shared memory than a compute unit has room for.
inline Constraint resident_constraint(const DeviceInfo& device, const Expression& bytes) {
  const std::int64_t shared =
      std::max<std::int64_t>(device.unit_shared_memory_bytes, device.shared_memory_bytes);
  const std::int64_t threads = std::max<std::int64_t>(device.unit_threads, most_threads(device));
  return {"resident",
          fmt::format("RESIDENT workgroups must fit a compute unit's {} KiB and {} threads",
                      shared / 1024, threads),
          p["RESIDENT"] <= 1 || (p["RESIDENT"] * (bytes + 1024) <= shared &&
                                 p["RESIDENT"] * p["WAVES"] * device.subgroup_size <= threads)};
}

/// Returns what K, the waves that divide it, and `bytes` of shared memory must fulfil.
inline std::vector<Constraint> ring_constraints(const Shape& shape, const DeviceInfo& device,
                                                const Expression& bytes) {
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  return {
      {"groups", "weights must be int4 or int8 in groups of 128", shape.group == core_unit},
      {"pairs", fmt::format("k, {}, must be a multiple of {}", shape.k, pair), shape.k % pair == 0},
      {"waves", fmt::format("the device allows {} threads", threads),
       p["WAVES"] * std::int64_t{device.subgroup_size} <= threads},
      {"columns",
       fmt::format("TN x 16 must not be twice n, {}, or more, unless TN is 1", shape.products()),
       p["TN"] == 1 || p["TN"] * core_side < 2 * shape.products()},
      {"idle_waves",
       fmt::format("WAVES must not exceed the pairs of units of k, {}", shape.k / pair),
       p["WAVES"] <= shape.k / pair},
      {"shared_memory", fmt::format("stages, sums and A must fit {} KiB", shared / 1024),
       bytes <= shared},
      resident_constraint(device, bytes)};
}

/// Returns the columns of C that a workgroup computes on average.
inline double columns_of_block(const Shape& shape, const DeviceInfo& device, const Config& config) {
  return static_cast<double>(shape.products()) /
         static_cast<double>(resident_blocks(shape, device, config));
}

/// Returns the work of a launch but for its arithmetic, its registers and barriers. A workgroup has
/// `shared` bytes of shared memory, and reads `read_of_a` bytes of A for `rows` rows of C.
inline LaunchWork work_of_ring(const Shape& shape, const DeviceInfo& device, const Config& config,
                               std::int64_t shared, double rows, double read_of_a) {
  const double columns = columns_of_block(shape, device, config);
  const double weights = columns * static_cast<double>(shape.k) * (traits(shape.format).bits / 8.0);
  LaunchWork work;
  work.workgroups = static_cast<double>(resident_blocks(shape, device, config));
  work.threads = static_cast<double>(config["WAVES"] * device.subgroup_size);
  work.shared_bytes = static_cast<double>(shared);
  work.read_bytes = weights + read_of_a;
  work.written_bytes = rows * columns * bytes_of(shape.out, 1);
  work.loads = work.read_bytes / 16;
  work.ahead_bytes = static_cast<double>(config["WAVES"] * (config["STAGES"] - 1) * config["TN"] *
                                         core_side * line_bytes(shape));
  work.steps = std::max(1.0, weights / work.ahead_bytes);
  work.unique_bytes = least_bytes(shape);
  return work;
}

/// Returns whether such variants answer without a search: where groups are whole units.
inline bool good_for_rings(const Shape& shape, const DeviceInfo& device) {
  return has_copies(shape, device) && shape.group == core_unit;
}

/// Returns the tiles that a workgroup computes.
inline double tiles_of_block(double columns, const Config& config) {
  return std::ceil(columns / static_cast<double>(config["TN"] * core_side));
}

}  // namespace greta::kernels::quantized_gemm
