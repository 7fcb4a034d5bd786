#include <algorithm>

#include "kernels/planning/by_cost.hpp"
#include "kernels/planning/cluster_units.hpp"
#include "kernels/templates/quantized_gemm/cores.hpp"
#include "kernels/templates/quantized_gemm/tma_tiles.hpp"

/// What `tma` begins with: tiles in the order of their costs.
namespace greta::kernels::quantized_gemm::tma_tiles {
namespace {

/// Returns the rows from which on the other variants, which are for few, are slower: less where
/// they can't multiply a group of 128 weights before they scale it, and least for one product of
/// GGUF's blocks that are copied in boxes.
std::int64_t least_rows(const Shape& shape) {
  if (in_blocks(shape.format)) return shape.grouped() || box_bytes(shape) == 0 ? 17 : 5;
  return shape.group < core_unit ? 9 : 17;
}

/// Returns the configuration with as many stages as shared memory has room for.
Config with_stages(const Shape& shape, const DeviceInfo& device, Config config) {
  for (const int stages : {3, 4, 5, 6, 8}) {
    if (stages % config["SHARES"] != 0) continue;
    Config more = config;
    more.value("STAGES") = stages;
    if (shared_bytes(shape, more) <= device.shared_memory_bytes) config = more;
  }
  return config;
}

/// Returns the tiles of defaults, those that round first. Weights that are rounded need no sums of
/// their own, which leaves registers for larger tiles. `wide`: also those of three warpgroups,
/// where there are no groups.
std::vector<Config> default_tiles(const Shape& shape, bool wide) {
  std::vector<Config> tiles;
  int round = may_round(shape) ? 1 : 0;
  const auto add = [&](int bm, int bn, int groups) {
    tiles.push_back({"tma",
                     {{"BM", bm},
                      {"BN", bn},
                      {"GROUPS", groups},
                      {"STAGES", 2},
                      {"SPLIT", 1},
                      {"RESIDENT", 0},
                      {"ROUND", round},
                      {"SHARES", 1}}});
  };
  if (round != 0) {
    for (const int bm : {256, 192}) add(bm, 128, 2);
    if (!in_blocks(shape.format)) {
      for (const int bm : {128, 96, 64}) add(bm, 256, 2);
    }
  }
  for (; round >= 0; --round) {
    for (const int bm : {192, 160, 144, 128, 96, 64, 48, 32, 16}) {
      if (bm == 192 && (round != 0 || shape.group != step)) continue;  // has no registers to spare
      // Few rows leave registers for three.
      if ((shape.grouped() || wide) && bm <= 48 && shape.rows_of_group() <= bm) add(bm, 192, 3);
      for (const int groups : {2, 1}) add(bm, groups * 64, groups);
    }
  }
  return tiles;
}

/// Returns what a workgroup with a configuration takes, in rows that a warpgroup multiplies by a
/// step of weights.
double cost_of_tile(const Shape& shape, const Config& config) {
  const double bm = config["BM"];
  const std::int64_t steps = steps_of_warpgroup(shape, config);
  // A warpgroup alone leaves matrix cores idle.
  const double of_step =
      static_cast<double>(products_of(config)) * (bm + 40) * (warpgroups_of(config) == 1 ? 0.8 : 1);
  const double exchange = slices_of(config) > 1 ? 2 * bm : 0;
  return static_cast<double>(steps) * of_step + bm + exchange;
}

/// Returns whether defaults may give a tile two shares of K, of one warpgroup each: four warpgroups
/// are slower (results/2026-11-30-nvidia-h200-quantized-steps).
bool has_shares(const Shape& shape, const Config& config) {
  return config["GROUPS"] == 1 && config["ROUND"] == 0 && products_of(config) == 1 &&
         !(shape.gated() || shape.grouped() || in_blocks(shape.format));
}

/// Returns tiles in the order of the steps that the busiest compute unit multiplies, shared by
/// workgroups, and by their warpgroups, where there are fewer tiles than units.
std::vector<Config> ordered(const Shape& shape, const DeviceInfo& device,
                            const std::vector<Config>& tiles_to_order) {
  const std::int64_t units = std::max<std::int64_t>(1, busy_workgroups(device));
  const std::int64_t steps = ceil_div(shape.k, step);
  std::vector<std::pair<double, Config>> found;
  const auto add = [&](Config config) {
    const std::int64_t tiles = filled_tiles(shape, config);
    const double cost = static_cast<double>(ceil_div(tiles, units)) * cost_of_tile(shape, config);
    // Groups gain nothing from it (results/2026-11-28-nvidia-h200-learnt-defaults).
    config.value("RESIDENT") = tiles > units && config["SHARES"] == 1 && !shape.grouped() ? 1 : 0;
    found.emplace_back(cost, with_stages(shape, device, std::move(config)));
  };
  for (const Config& tile : tiles_to_order) {
    for (const int split : {1, 2, 4, 8}) {
      Config config = tile;
      config.value("SPLIT") = split;
      const std::int64_t tiles = filled_tiles(shape, config);
      if (split > 1 && (shape.gated() || shape.grouped() || split > steps ||
                        tiles * split > units_of_clusters(device, split))) {
        break;
      }
      add(config);
      if (tiles * split > units || !has_shares(shape, config)) continue;
      config.value("SHARES") = 2;
      add(config);
    }
  }
  return by_cost(std::move(found));
}

}  // namespace

/// The other variants are for few rows.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (!offered(shape, device) || shape.rows_of_group() < least_rows(shape)) return {};
  return ordered(shape, device, default_tiles(shape, false));
}

std::vector<Config> candidates(const Shape& shape, const DeviceInfo& device) {
  constexpr std::int64_t most_rows = 48;
  if (!offered(shape, device) || shape.grouped() || shape.m == 1 || shape.m > most_rows) return {};
  return ordered(shape, device, default_tiles(shape, true));
}

}  // namespace greta::kernels::quantized_gemm::tma_tiles
