#include "kernels/templates/latent_attention/group_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/planning/workspace.hpp"
#include "kernels/templates/attention/prefill.hpp"
#include "kernels/templates/attention/slices.hpp"
#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels::latent {
namespace {

constexpr std::int64_t most_values = 256;
// Of a thread: addresses, rows' maxima and sums, and what an instruction works on.
constexpr std::int64_t other_registers = 48;

}  // namespace

std::int64_t padded(const Shape& shape) {
  return round_up(shape.dim, 16);
}

std::int64_t group_values(const Shape& shape, std::int64_t groups) {
  const std::int64_t dim = padded(shape);
  const std::int64_t panel = dim % 64 == 0 ? 64 : dim % 32 == 0 ? 32 : 16;
  return ceil_div(shape.v_dim, groups * panel) * panel;
}

bool has_spare_panel(const Shape& shape, std::int64_t groups) {
  return padded(shape) % 64 == 0 && padded(shape) - groups * group_values(shape, groups) >= 64;
}

std::int64_t queries_bytes(const Shape& shape) {
  return panels_part(tile_rows * 2 * std::max(padded(shape), shape.v_dim + 8));
}

std::int64_t registers(const Shape& shape, const RowGroups& workgroup) {
  return group_values(shape, workgroup.groups) / 2 + workgroup.keys / 2 + other_registers;
}

bool has_row_groups(const Shape& shape, const DeviceInfo& device) {
  return device.language == Language::hip && has_warpgroup_products(device.architecture) &&
         bits_of(shape.in) == 16 && shape.shared;
}

std::vector<Constraint> group_constraints(const Shape& shape, const DeviceInfo& device,
                                          std::vector<std::string> names,
                                          RowGroups (*workgroup)(const Shape&, const Config&)) {
  const std::int64_t shared = device.shared_memory_bytes;
  std::vector<Constraint> constraints = {
      storage_constraint(shape.in, shape.out, device),
      {"warpgroup_products",
       fmt::format("the device has no matrix operations of warpgroups on {}", to_string(shape.in)),
       has_row_groups(shape, device)},
      {"values",
       fmt::format("each warpgroup's part of {} dimensions, whole panels of at most {}, must be in "
                   "a key of {}",
                   shape.v_dim, most_values, shape.dim),
       {names,
        [=](const Config& c) {
          const std::int64_t groups = workgroup(shape, c).groups;
          const std::int64_t values = group_values(shape, groups);
          return values <= most_values && groups * values <= padded(shape);
        }}},
      {"shared_memory",
       fmt::format("queries, tiles of keys and their weights must fit {} KiB", shared / 1024),
       {std::move(names),
        [=](const Config& c) { return workgroup(shape, c).shared_bytes <= shared; }}},
  };
  append(constraints, rows_constraints(shape, device, Expression(tile_rows)));
  return constraints;
}

Slicing fastest_slices(const Shape& shape, const DeviceInfo& device, const SliceCosts& costs) {
  if (!has_row_groups(shape, device) || shape.rows() <= tile_rows / 2) return {};
  const std::int64_t readers = readers_of(shape, tile_rows), units = busy_workgroups(device);
  constexpr std::int64_t few = 4;
  if (readers < few && 3 * readers * split_for(shape, device, tile_rows, 1) < units) return {};
  const std::int64_t tiles = ceil_div(shape.capacity, std::int64_t{64});
  const double of_tile = static_cast<double>(shape.both_dims()) / 1088;
  // Keys that few workgroups share are as long on their way from memory, and hardly shorter where
  // fewer units load.
  const double of_fetch = costs.fetch * static_cast<double>(shape.dim) / 576 /
                          static_cast<double>(ceil_div(shape.rows(), tile_rows));
  const auto step = [&](std::int64_t running) {
    const double busy = std::min(1.0, static_cast<double>(running) / static_cast<double>(units));
    return std::max(of_tile, of_fetch * std::pow(busy, 0.7));
  };
  Slicing fastest{1, false};
  double least = std::numeric_limits<double>::infinity();
  for (const int split : attention::key_slices()) {
    if (split > tiles) break;
    const auto rounds = static_cast<double>(ceil_div(readers * split, units));
    const auto steps = static_cast<double>(ceil_div(tiles, std::int64_t{split}));
    const auto joined = static_cast<double>(readers * tile_rows * split * shape.v_dim);
    const double join = split > 1 ? costs.join + joined / costs.joined_in_step : 0;
    const double cost = rounds * (steps * step(readers * split) + costs.round) + join;
    if (cost < least) fastest.split = split;
    least = std::min(least, cost);
  }
  if (costs.stream_part > 0) {
    const Stream stream = stream_of(shape, device, tile_rows);
    const double steps =
        std::ceil(static_cast<double>(shape.batch * tiles) / static_cast<double>(stream.groups));
    const auto rounds = static_cast<double>(ceil_div(stream.workgroups(), units));
    const double cost = rounds * (steps * step(units) + stream.parts(shape) * costs.stream_part) +
                        costs.stream_join;
    if (cost < least) fastest = {1, true};
  }
  return fastest;
}

LaunchPlan group_plan(const Shape& shape, const DeviceInfo& device, std::string_view path,
                      const Config& config, const RowGroups& workgroup) {
  LaunchPlan plan = rows_plan(shape, device, path, config, attention::problem_defines(shape),
                              tile_rows, workgroup.threads);
  plan.sources[0].dynamic_shared_bytes = static_cast<std::uint32_t>(workgroup.shared_bytes);
  // NVRTC supports these instructions only under this name.
  compile_for_warpgroups(plan.sources[0], device);
  return plan;
}

LaunchWork group_work(const Shape& shape, const Config& config, const RowGroups& workgroup,
                      LaunchWork work) {
  const double rows = tile_rows, bk = config["BK"];
  const auto groups = static_cast<double>(workgroup.groups);
  const auto readers = static_cast<double>(workgroup.readers);
  const double in = bytes_of(shape.in, 1);
  const auto dim = static_cast<double>(shape.dim), both = static_cast<double>(shape.both_dims());
  work.threads = static_cast<double>(workgroup.threads);
  work.shared_bytes = static_cast<double>(workgroup.shared_bytes);
  work.registers = static_cast<double>(registers(shape, workgroup));
  work.matrix_flops = 2 * rows * bk * both * work.steps;
  work.warpgroups = true;
  work.vector_flops = attention::flops_of_weight * rows * bk * work.steps;
  // Copies write a tile, and both products read it.
  work.shared_traffic =
      work.steps * in * (bk * (dim + both) + readers * rows * dim + groups * rows * bk);
  work.loads = work.read_bytes / 16;
  work.overlapped = true;
  return work;
}

}  // namespace greta::kernels::latent
