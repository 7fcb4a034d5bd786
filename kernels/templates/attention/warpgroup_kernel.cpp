#include "kernels/templates/attention/warpgroup_kernel.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/planning/cluster_units.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/attention/packing.hpp"

namespace greta::kernels::attention {
namespace {

// Of a thread: addresses, rows' maxima and sums, and what an instruction works on.
constexpr std::int64_t registers_besides = 44;
// What the system takes of each workgroup's shared memory.
constexpr std::int64_t reserved_shared_bytes = 1024;

/// Returns the number of workgroups that a compute unit holds.
double resident_workgroups(const Shape& shape, const DeviceInfo& device,
                           const WarpgroupTile& tile) {
  const std::int64_t shared = (device.shared_memory_bytes + reserved_shared_bytes) /
                              (warpgroup_shared_bytes(shape, tile) + reserved_shared_bytes);
  const std::int64_t registers = round_up(warpgroup_registers(shape, device, tile), 8);
  const std::int64_t file = register_file(device) / (tile.threads() * registers);
  return static_cast<double>(std::max<std::int64_t>(1, std::min(shared, file)));
}

/// Returns the cycles of a step of a workgroup that shares its unit with `resident` ones in all.
/// More GROUPS copy keys less often.
double cycles_of_step(const Shape& shape, const WarpgroupTile& tile, double resident) {
  const double scores = static_cast<double>(tile.rows() * tile.bk);
  const auto dims =
      static_cast<double>(warpgroup_padded(shape.dim) + warpgroup_padded(shape.v_dim));
  const double matrix = scores * dims / 4096, vector = scores / 16;  // at the unit's full rates
  if (tile.producer != 0) {
    const double step = 775 + 1.45 * matrix + 0.88 * vector;
    return tile.groups > 2 ? 0.94 * step : step;
  }
  const double alone = 673 + 1.68 * matrix + 1.04 * vector;
  return std::max(
      alone,
      resident * (tile.groups > 1 ? 0.91 : 1.0) * (1.68 * matrix + 0.40 * vector) + 0.57 * alone);
}

/// Returns the cycles of a workgroup beside its steps: its start and end, and its part in joining
/// slices.
double cycles_besides(const Shape& shape, const WarpgroupTile& tile) {
  constexpr double start_and_end = 8020;
  if (tile.split == 1) return start_and_end;
  const std::int64_t rows =
      std::min(tile.rows(), shape.queries * packed_heads(shape, tile.pack != 0));
  const double sums = static_cast<double>(rows * shape.v_dim) * 4 / 64;  // bytes of a cycle
  if (tile.fold == fold_in_cluster) return start_and_end + 15300 + 1.18 * sums;
  return start_and_end + 19400 + 0.92 * sums * (1 + tile.split);
}

/// The steps of a slice of the first, and of the last tile.
struct Steps {
  double first, last;
};

Steps steps_of(const Shape& shape, const WarpgroupTile& tile) {
  const std::int64_t rows = tile.rows(), packed = packed_heads(shape, tile.pack != 0);
  const auto steps = [&](std::int64_t last_row) {
    std::int64_t keys = shape.capacity;
    if (shape.causal) {
      const std::int64_t query = std::min(last_row / packed, shape.queries - 1);
      keys = std::clamp<std::int64_t>(shape.capacity - shape.queries + query + 1, 1, keys);
      if (shape.window > 0) keys = std::min(keys, shape.window + rows / packed);
    }
    return static_cast<double>(ceil_div(ceil_div(keys, tile.bk), tile.split));
  };
  return {steps(rows - 1), steps(shape.queries * packed - 1)};
}

}  // namespace

WarpgroupTile warpgroup_tile(const Config& c) {
  return {c["BK"],   c["GROUPS"], c["STAGES"], c["PRODUCER"], c["TURNS"],
          c["PACK"], c["SPLIT"],  c["FOLD"],   c["TOGETHER"]};
}

Config warpgroup_config(const WarpgroupTile& tile) {
  return {"warpgroups",
          {{"BK", tile.bk},
           {"GROUPS", tile.groups},
           {"STAGES", tile.stages},
           {"PRODUCER", tile.producer},
           {"TURNS", tile.turns},
           {"PACK", tile.pack},
           {"SPLIT", tile.split},
           {"FOLD", tile.fold},
           {"TOGETHER", tile.together}}};
}

std::int64_t warpgroup_padded(std::int64_t dim) {
  return round_up(dim, 16);
}

std::int64_t warpgroup_shared_bytes(const Shape& shape, const WarpgroupTile& tile) {
  const std::int64_t rows = tile.rows(), lines = std::int64_t{tile.stages} * tile.bk;
  const std::int64_t keys = (rows + lines) * warpgroup_padded(shape.dim) * 2;
  const std::int64_t walk = round_up(keys, 1024) + lines * warpgroup_padded(shape.v_dim) * 2;
  return std::max(walk, join_bytes(shape, tile.split, tile.fold, rows, 0));
}

std::int64_t warpgroup_registers(const Shape& shape, const DeviceInfo& device,
                                 const WarpgroupTile& tile) {
  if (tile.producer != 0) return register_file(device) / tile.threads() / 8 * 8;
  return std::min(thread_registers(device),
                  warpgroup_sums(shape, std::int64_t{tile.bk}) + registers_besides);
}

double warpgroup_cycles(const Shape& shape, const DeviceInfo& device, const WarpgroupTile& tile) {
  const double resident = resident_workgroups(shape, device, tile);
  const int cluster = tile.fold == fold_in_cluster ? tile.split : 1;
  const auto units = static_cast<double>(units_of_clusters(device, cluster));
  const std::int64_t packed = packed_heads(shape, tile.pack != 0);
  const auto workgroups = static_cast<double>(readers_of(shape, packed, tile.rows()) * tile.split);
  const double neighbours = std::clamp(std::ceil(workgroups / units - 0.02), 1.0, resident);
  const Steps steps = steps_of(shape, tile);
  const double step = cycles_of_step(shape, tile, neighbours),
               besides = cycles_besides(shape, tile);
  const double longest = besides + steps.last * step;
  const double mean = besides + (steps.first + steps.last) / 2 * step;
  // Equal workgroups end together, so that the last round takes as long as a full one. Of unequal
  // ones, the longest come first, and some of the last round is idle.
  const double full = workgroups / (units * resident);
  const double spread = (steps.last - steps.first) / steps.last;
  const double heads = std::min<double>(
      tile.together, static_cast<double>(shape.tile_sets() * shape.heads / packed));
  const double idle = (0.44 + 0.42 / (heads * resident)) * std::min(1.0, full);
  const double rounds = full + (1 - spread) * (std::ceil(full) - full) + spread * idle;
  return std::max(longest, rounds * mean);
}

}  // namespace greta::kernels::attention
