#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/by_cost.hpp"
#include "kernels/planning/cluster_units.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/attention/packing.hpp"
#include "kernels/templates/attention/prefill.hpp"
#include "kernels/templates/attention/slices.hpp"
#include "kernels/templates/attention/warpgroup_kernel.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// Attention for many queries, with matrix instructions of warpgroups (sm_90).
namespace greta::kernels::attention {
namespace {

// Of a thread, besides outputs, scores and weights, at least.
constexpr std::int64_t other_registers = 28;

bool offers_warpgroups(const Shape& shape, const DeviceInfo& device) {
  return device.language == Language::hip && has_warpgroup_products(device.architecture) &&
         bits_of(shape.in) == 16;
}

std::vector<Constraint> own_constraints(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t shared = device.shared_memory_bytes;
  const std::int64_t registers = std::min(thread_registers(device), std::int64_t{255});
  const std::int64_t workgroup = workgroup_registers(device) / warpgroup_size;
  const auto needed = warpgroup_sums(shape, p["BK"]) + other_registers;
  return {
      storage_constraint(shape.in, shape.out, device),
      {"warpgroup_products",
       fmt::format("the device has no matrix operations of warpgroups on {}", to_string(shape.in)),
       (offers_warpgroups(shape, device))},
      {"producer", "a PRODUCER is for two or three GROUPS, and TURNS are of two with a PRODUCER",
       select(p["PRODUCER"] == 1, p["GROUPS"] >= 2 && (p["TURNS"] == 0 || p["GROUPS"] == 2),
              p["TURNS"] == 0)},
      {"barriers", "STAGES with a PRODUCER need more barriers than the device has",
       p["PRODUCER"] == 0 || p["STAGES"] * (p["GROUPS"] + 1) + 2 * p["TURNS"] < 15},
      {"shared_memory",
       fmt::format("STAGES tiles of BK keys and values, and the queries, must fit {} KiB; so must "
                   "the sums of SPLIT slices",
                   shared / 1024),
       {{"BK", "GROUPS", "STAGES", "SPLIT", "FOLD"},
        [=](const Config& c) {
          const WarpgroupTile tile{.bk = c["BK"],
                                   .groups = c["GROUPS"],
                                   .stages = c["STAGES"],
                                   .split = c["SPLIT"],
                                   .fold = c["FOLD"]};
          return warpgroup_shared_bytes(shape, tile) <= shared;
        }}},
      {"registers",
       fmt::format("outputs, scores and weights, and {} more, need more registers than a thread "
                   "has",
                   other_registers),
       // A producer leaves them 240 or 160.
       select(p["PRODUCER"] == 1, needed <= 400 - p["GROUPS"] * 80,
              needed <= registers && needed * p["GROUPS"] <= workgroup)},
  };
}

Alternative warpgroup_space(const Shape& shape, const DeviceInfo& device) {
  Alternative a{"warpgroups", {}, {}};
  // BK        keys per step: fewer barriers versus more registers
  // GROUPS    warpgroups per workgroup, with 64 queries each: reuse of keys and values
  // STAGES    tiles of keys, and of values, in shared memory
  // PRODUCER  a further warpgroup starts the copies
  // TURNS     two warpgroups start their products in turn
  // PACK      rows are the queries of all heads that share a KV head, else those of one head
  // SPLIT     workgroups that share the keys of a sequence
  // FOLD      who joins slices: 1 the last workgroup, from the workspace; 2 all of them, as a
  //           cluster that reads each other's shared memory
  // TOGETHER  heads that are scheduled together, for L2 reuse
  a.parameters = {{"BK", {32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192}},
                  {"GROUPS", {1, 2, 3}},
                  {"STAGES", {2, 3, 4}},
                  {"PRODUCER", {0, 1}},
                  {"TURNS", {0, 1}},
                  {"PACK", {0, 1}},
                  {"SPLIT", key_slices()},
                  {"FOLD", folds(device)},
                  {"TOGETHER", heads_together()}};
  a.constraints = own_constraints(shape, device);
  append(a.constraints, packing_constraints(shape, device, p["GROUPS"] * rows_of_warpgroup));
  a.constraints.push_back(cluster_constraint());
  return a;
}

/// Returns those tiles that were the fastest ones of some problems with such heads. `many`: of
/// those with many rounds of workgroups.
std::vector<WarpgroupTile> tiles_of(const Shape& shape, bool many) {
  const std::int64_t dim = shape.longest();
  if (dim > 128) return {{32, 1, 2}, {48, 1, 2}, {64, 1, 2}, {64, 1, 3}, {80, 2, 2, 1, 1}};
  if (dim > 96) {
    if (many) return {{64, 1, 3}, {128, 2, 2, 1, 1}, {80, 3, 2, 1}};
    return {{32, 1, 2},  {48, 1, 2},        {64, 1, 3},    {80, 1, 3},   {112, 1, 3},
            {128, 1, 2}, {128, 2, 2, 1, 1}, {48, 3, 3, 1}, {80, 3, 2, 1}};
  }
  if (dim > 64) {
    if (many && shape.queries > 64) return {{64, 2, 2}};
    return {{32, 1, 4},  {64, 1, 3}, {80, 1, 4},        {112, 1, 4},
            {128, 1, 2}, {64, 2, 2}, {128, 2, 2, 1, 1}, {96, 3, 2, 1}};
  }
  if (many) return {{80, 1, 2}, {128, 1, 2}};
  return {{64, 1, 4}, {80, 1, 2}, {112, 1, 3}, {128, 1, 2}, {128, 2, 2, 1, 1}, {128, 3, 2, 1}};
}

/// Returns TOGETHER: the more heads, the fewer units are idle at the end, as long as their keys and
/// values stay in the cache.
int heads_of_cache(const Shape& shape, bool pack) {
  constexpr std::int64_t bytes = 16 << 20;
  const std::int64_t of_kv_head = shape.capacity * shape.both_dims() * 2;
  const std::int64_t of_head = pack ? of_kv_head : of_kv_head / shape.group();
  return 32 * of_head <= bytes ? 32 : default_heads_together(shape);
}

/// Returns the tiles to choose from: of whole keys, and of slices that fill the device up to twice.
std::vector<WarpgroupTile> candidates(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t least = ceil_div(shape.queries, rows_of_warpgroup) * shape.batch * shape.heads;
  const std::vector<int> slices = key_slices(), ways = folds(device);
  std::vector<WarpgroupTile> list;
  for (WarpgroupTile tile : tiles_of(shape, least >= 6 * busy_workgroups(device))) {
    // A producer's few registers don't hold what finding a page takes.
    if (tile.producer != 0 && shape.page > 0) continue;
    for (tile.pack = 0; tile.pack <= (shape.group() > 1 ? 1 : 0); ++tile.pack) {
      const bool pack = tile.pack != 0;
      tile.together = heads_of_cache(shape, pack);
      const std::int64_t readers = readers_of(shape, packed_heads(shape, pack), tile.rows());
      for (const int split : slices) {
        const bool fills = readers * split <= 2 * busy_workgroups(device);
        if (split > 1 && (!fills || std::int64_t{2} * split * tile.bk > shape.capacity)) break;
        tile.split = split;
        for (const int fold : ways) {
          // Larger clusters wait for neighbouring units.
          if (fold == fold_in_cluster && (split == 1 || split > most_in_cluster)) continue;
          tile.fold = fold;
          list.push_back(tile);
        }
      }
    }
  }
  return list;
}

/// Returns the valid candidates that are predicted to be the fastest, and the smallest tile if it
/// is valid.
std::vector<Config> warpgroup_defaults(const Shape& shape, const DeviceInfo& device) {
  constexpr std::size_t most = 6;
  // Of few queries, other variants are known to be faster.
  if (!offers_warpgroups(shape, device) || are_few_packed_rows(shape, device, true)) return {};
  std::vector<std::pair<double, WarpgroupTile>> predicted;
  for (const WarpgroupTile& tile : candidates(shape, device)) {
    predicted.emplace_back(warpgroup_cycles(shape, device, tile), tile);
  }
  const Alternative space = warpgroup_space(shape, device);
  std::vector<Config> configs;
  const auto add_if_valid = [&](const WarpgroupTile& tile) {
    Config config = warpgroup_config(tile);
    if (!rejects(space, config)) configs.push_back(std::move(config));
  };
  for (const WarpgroupTile& tile : by_cost(std::move(predicted))) {
    if (configs.size() < most) add_if_valid(tile);
  }
  add_if_valid({.bk = 32, .groups = 1, .stages = 2, .together = heads_of_cache(shape, false)});
  return configs;
}

LaunchPlan warpgroup_plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const WarpgroupTile tile = warpgroup_tile(config);
  LaunchPlan plan = packing_plan(shape, device, "attention/warpgroups", config,
                                 problem_defines(shape), tile.rows(), tile.threads());
  plan.sources[0].dynamic_shared_bytes =
      static_cast<std::uint32_t>(warpgroup_shared_bytes(shape, tile));
  // NVRTC supports these instructions only under this name.
  compile_for_warpgroups(plan.sources[0], device);
  return plan;
}

KernelWork warpgroup_work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const WarpgroupTile tile = warpgroup_tile(config);
  const double groups = tile.groups, queries = static_cast<double>(tile.rows());
  const double bk = tile.bk, in = bytes_of(shape.in, 1);
  const auto dim = static_cast<double>(warpgroup_padded(shape.dim));
  const double both = dim + static_cast<double>(warpgroup_padded(shape.v_dim));
  LaunchWork work = packing_work(shape, config, tile.rows());
  work.threads = static_cast<double>(tile.threads());
  work.shared_bytes = static_cast<double>(warpgroup_shared_bytes(shape, tile));
  work.registers = static_cast<double>(warpgroup_registers(shape, device, tile));
  work.matrix_flops = 2 * queries * bk * both * work.steps;
  work.warpgroups = true;
  // Without a producer, groups meet in each step: products of one are seldom beside weights of
  // another.
  const double beside = groups > 1 && !tile.producer ? 1.4 : 1;
  work.vector_flops = beside * flops_of_weight * queries * bk * work.steps;
  // Each warpgroup reads its queries, the keys and the values; copies write the latter.
  work.shared_traffic = work.steps * in * (both * bk * (1 + groups) + dim * queries);
  work.loads = work.read_bytes / 16;
  work.overlapped = true;
  work.ahead_bytes *= 2 * (tile.stages - 1);
  work.barriers += work.steps;
  if (tile.fold == fold_in_cluster) {
    constexpr double barriers_of_join = 200;  // beside those of any cluster, by measurement
    work.usable_units = usable_by_clusters(device, tile.split);
    work.barriers += barriers_of_join;
  }
  return {work};
}

}  // namespace

Variant warpgroups() {
  Variant variant = attention_variant(
      "warpgroups",
      "many queries, on matrix cores of warpgroups: scores of a tile of keys become weights while "
      "the values of the tile before are multiplied",
      warpgroup_space, warpgroup_plan, warpgroup_defaults,
      [](const Shape& shape, const Config& c) {
        return packing_divisions(shape, c, warpgroup_tile(c).rows(), "STAGES");
      },
      warpgroup_work);
  variant.default_stands = true;
  variant.migrations = {added("PACK", 0), added("SPLIT", 1), added("FOLD", 1)};
  return variant;
}

}  // namespace greta::kernels::attention
