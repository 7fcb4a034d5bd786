#include "kernels/templates/attention/packing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/planning/arrival.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/attention/prefill.hpp"
#include "kernels/templates/attention/slices.hpp"
#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels::attention {
namespace {

// What a join in a cluster costs, in barriers of workgroups.
constexpr double cluster_barriers = 80;

/// Returns SPLIT: what fills the device `times` with slices of 256 keys and more, of few rows 448
/// (results/2026-12-01-nvidia-h200-long-single-queries), unless the last workgroup would then read
/// more of the slices' sums than each reads of the keys.
int split_for(const Shape& shape, const DeviceInfo& device, std::int64_t readers, std::int64_t rows,
              int times) {
  const std::int64_t in = static_cast<std::int64_t>(bits_of(shape.in)) / 8;
  const std::int64_t least_keys = rows < 4 ? 448 : 256;
  int best = 1;
  for (const int split : key_slices()) {
    const bool fits = readers * split <= times * busy_workgroups(device);
    const bool joins = std::int64_t{split} * split * times * rows <= shape.capacity * in;
    if (fits && joins && split * least_keys <= shape.capacity) best = split;
  }
  return best;
}

/// Returns whether slices leave their sums in the workspace.
bool through_workspace(const Config& config) {
  return config["SPLIT"] > 1 && !(config.has("FOLD") && config["FOLD"] == fold_in_cluster);
}

}  // namespace

bool folds_in_clusters(const DeviceInfo& device) {
  return device.language == Language::hip && has_clusters(device.architecture);
}

std::vector<int> folds(const DeviceInfo& device) {
  if (folds_in_clusters(device)) return {1, fold_in_cluster};
  return {1};
}

Constraint cluster_constraint() {
  return {"cluster",
          fmt::format("there are no slices to FOLD, or more than {}", most_slices_in_cluster),
          p["FOLD"] != fold_in_cluster || (p["SPLIT"] > 1 && p["SPLIT"] <= most_slices_in_cluster)};
}

std::int64_t join_bytes(const Shape& shape, int split, int fold, std::int64_t rows,
                        std::int64_t wave_bytes) {
  const std::int64_t slices = split > 1 ? 4 * (slices_floats(rows, split) + 4) : 0;
  if (fold != fold_in_cluster) return std::max(wave_bytes, slices);
  return wave_bytes + rows * (shape.v_dim + 8) * 4 + slices;
}

std::int64_t packed_heads(const Shape& shape, bool pack) {
  return pack ? shape.group() : 1;
}

std::int64_t packed_heads(const Shape& shape, const Config& config) {
  return packed_heads(shape, config["PACK"] != 0);
}

std::int64_t readers_of(const Shape& shape, std::int64_t packed, std::int64_t rows) {
  return shape.tiles(rows, packed) * shape.tile_sets() * (shape.heads / packed);
}

std::vector<Constraint> packing_constraints(const Shape& shape, const DeviceInfo& device,
                                            const Expression& rows) {
  const Expression packed = shape.group() > 1 ? select(p["PACK"] != 0, shape.group(), 1) : 1;
  const Expression readers = shape.tiles(rows, packed) * shape.tile_sets() * (shape.heads / packed);
  auto list = tile_constraints(shape, device, rows, packed);
  append(list, {{"packing", "PACK needs several heads that share a KV head",
                 p["PACK"] == 0 || shape.group() > 1},
                {"slices", fmt::format("SPLIT slices of {} keys must have BK each", shape.capacity),
                 p["SPLIT"] <= ceil_div(rounded_capacity(shape), p["BK"])},
                workspace_constraint(device, p["SPLIT"] == 1,
                                     slices_bytes(shape, readers * rows, p["SPLIT"]))});
  return list;
}

std::vector<Division> packing_divisions(const Shape& shape, const Config& config, std::int64_t rows,
                                        const std::string& buffers) {
  auto list = prefill_divisions(shape, config, rows, packed_heads(shape, config));
  // Whether each slice has the same number of tiles, all of them whole.
  const std::int64_t tiles = std::int64_t{config["BK"]} * config["SPLIT"];
  list.push_back({"slices of kv", shape.capacity, tiles});
  if (config.has(buffers)) list.push_back(buffered_tiles(shape, config, tiles, buffers));
  return list;
}

LaunchWork packing_work(const Shape& shape, const Config& config, std::int64_t rows) {
  const double split = config["SPLIT"], bk = config["BK"], in = bytes_of(shape.in, 1);
  const auto dim = static_cast<double>(shape.dim), v_dim = static_cast<double>(shape.v_dim);
  const std::int64_t packed = packed_heads(shape, config);
  LaunchWork work = prefill_work(shape, config, rows, packed);
  work.workgroups *= split;
  work.steps = std::ceil(work.steps / split);
  work.read_bytes = (work.steps * bk * (dim + v_dim) + static_cast<double>(rows) * dim) * in;
  if (through_workspace(config)) {
    const auto used = static_cast<double>(std::min(rows, shape.queries * packed));
    work.written_bytes = used * v_dim * 4;
    work.barriers = barriers_of_arrival(4 * split * used * v_dim);
    work.unique_bytes += 2 * work.workgroups * used * v_dim * 4;
  } else if (split > 1) {
    work.barriers = cluster_barriers;
  }
  return work;
}

LaunchPlan packing_plan(const Shape& shape, const DeviceInfo& device, std::string_view name,
                        const Config& config, Defines defines, std::int64_t rows,
                        std::int64_t threads) {
  add_parameters(defines, config);
  const std::int64_t packed = packed_heads(shape, config);
  defines.emplace_back("GROUP", std::to_string(packed));
  const int split = config["SPLIT"];
  const std::int64_t readers = readers_of(shape, packed, rows);
  LaunchPlan plan;
  const bool workspace = through_workspace(config);
  if (workspace) {
    plan.zeroed_bytes = counter_bytes(readers);
    plan.workspace_bytes =
        plan.zeroed_bytes + static_cast<std::uint64_t>(slices_bytes(shape, readers * rows, split));
  }
  const auto list = arguments(shape, shape.tiles(rows, packed), workspace, plan.zeroed_bytes);
  plan.sources.push_back(kernel_source(device, name, defines, threads, list));
  const auto count = static_cast<std::uint64_t>(readers);
  plan.launches.push_back({0, grid(device, plan.sources[0], count, split), list});
  return plan;
}

bool are_few_packed_rows(const Shape& shape, const DeviceInfo& device, bool copies) {
  const std::int64_t least = !copies ? 9 : has_clusters(device.architecture) ? 2 : 4;
  return shape.queries <= 16 && shape.queries * shape.group() >= least;
}

std::vector<PackedTile> packed_tiles(const Shape& shape, const DeviceInfo& device, int times) {
  const std::int64_t rows = shape.queries * shape.group();
  std::vector<PackedTile> list;
  for (const int waves : {4, 2, 1}) {
    const std::int64_t own = 16 * waves;
    const std::int64_t readers = ceil_div(rows, own) * shape.batch * shape.kv_heads;
    if (waves > 1 && (rows <= own / 2 || readers < busy_workgroups(device))) continue;
    const int split = split_for(shape, device, readers, std::min(rows, own), times);
    list.push_back({waves, split, readers * split});
  }
  return list;
}

}  // namespace greta::kernels::attention
