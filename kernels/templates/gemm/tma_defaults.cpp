#include "kernels/templates/gemm/tma_defaults.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/planning/cluster_units.hpp"
#include "kernels/templates/gemm/alignment.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "kernels/templates/gemm/tma_kernel.hpp"
#include "kernels/templates/gemm/work.hpp"
#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels::gemm {
namespace {

/// A tile, and the warpgroups that compute it, or take turns with whole ones.
struct Tile {
  int bm, bn, bk, groups;
  bool turns = false;
};

/// Returns tiles with the operands of as many K steps as shared memory has room for. Of tiles that
/// cost the same, the first one is the default. Tiles of 192 rows are of three warpgroups
/// (results/2026-11-27-nvidia-h200-few-rows-f32). Other tiles of 80 to 208 rows, which are columns
/// of the warpgroups' products, multiply rows past a group's end, too. Those of 208, 96 and 80 rows
/// are for products of one or two rows of tiles: for more they are measured to be slower than the
/// models say (results/2026-11-27-nvidia-h200-fresh), and so are all of them with a short k. Tiles
/// of 72 to 152 rows in other steps have 64 columns, for products of up to eight rows of tiles
/// (results/2026-11-29-nvidia-h200-gemm-tails). Of groups, there are those of 160 to 184 rows, two
/// of which hold a group of the mean length (results/2026-12-01-nvidia-h200-long-single-queries).
std::vector<Tile> default_tiles(const Shape& shape) {
  std::vector<Tile> tiles;
  for (int bn = 256; bn >= 64; bn -= 16) tiles.push_back({128, bn, 64, 2});
  tiles.push_back({256, 128, 64, 2});
  if (!shape.grouped()) {
    for (int bn = 192; bn >= 64; bn -= 16) tiles.push_back({192, bn, 64, 3});
  } else {
    for (const auto& [bm, bn] : {std::pair{184, 256}, {176, 128}, {160, 128}}) {
      if (shape.rows_of_group() <= 2 * bm) tiles.push_back({bm, bn, 64, 2});
    }
  }
  for (const int bm : {208, 160, 144, 112, 96, 80}) {
    const bool for_many_rows = bm >= 112 && bm <= 160 && shape.k >= 1024;
    if (shape.grouped() || (shape.m > 2 * bm && !for_many_rows)) continue;
    for (const int bn : {256, 128}) tiles.push_back({bm, bn, 64, 2});
    if (shape.m <= 2 * bm) tiles.push_back({bm, 64, 64, 1});
  }
  for (const int bm : {152, 136, 120, 104, 88, 72}) {
    if (!shape.grouped() && shape.m <= 8 * bm) tiles.push_back({bm, 64, 64, 1});
  }
  for (int bn = 256; bn >= 64; bn -= 16) tiles.push_back({64, bn, 64, 1});
  for (const int bm : {48, 40, 32, 24, 16, 8}) {
    tiles.push_back({bm, 128, 64, 2});
    tiles.push_back({bm, 64, 128, 1});
  }
  return tiles;
}

/// Returns the tiles of warpgroups that take turns with them (PINGPONG), by which one stores while
/// another one multiplies: for a short k, where storing takes as long as multiplying
/// (results/2026-11-30-nvidia-h200-short-k).
std::vector<Tile> tiles_in_turns(const Shape& shape) {
  constexpr std::int64_t short_k = 1024;
  if (shape.k > short_k || shape.grouped()) return {};
  return {{128, 192, 64, 2, true}, {128, 128, 64, 2, true}, {64, 256, 64, 2, true},
          {64, 192, 64, 2, true},  {64, 192, 64, 3, true},  {64, 128, 64, 3, true}};
}

/// A cluster of workgroups, by its rows and columns.
struct Cluster {
  int m = 1, n = 1;
};

/// Slices of K, and who adds them (FOLD).
struct Slices {
  int split = 1, fold = 0;
};

Config config_of(const Shape& shape, const DeviceInfo& device, const Tile& tile,
                 const Slices& slices, const Cluster& cluster) {
  const TmaKernel kernel(shape, device);
  Config config{"tma",
                {{"BM", tile.bm},
                 {"BN", tile.bn},
                 {"BK", tile.bk},
                 {"GROUPS", tile.groups},
                 {"PINGPONG", tile.turns ? 1 : 0},
                 {"STAGES", 2},
                 {"CLUSTER_M", cluster.m},
                 {"CLUSTER_N", cluster.n},
                 {"RESIDENT", 0},
                 {"SWIZZLE", 8},
                 {"WALK", 0},
                 {"SPLIT", slices.split},
                 {"FOLD", slices.fold},
                 {"ALIGN", has_odd_lines(shape) ? 1 : 0},
                 {"DYNAMIC", 0},
                 {"STREAM_K", 0}}};
  const int blocks = TmaKernel::cluster(config);
  if (slices.split == 1 && TmaKernel::clusters(shape, config) > resident_clusters(device, blocks)) {
    config.value("RESIDENT") = 1;
    // Tiles of groups of rows take different times.
    config.value("DYNAMIC") = shape.grouped() && blocks == 1 && !tile.turns ? 1 : 0;
  }
  raise_stages(config, 10, device, [&](const Config& c) { return kernel.shared_bytes(c); });
  return config;
}

/// Appends configurations of a tile whose slices a second launch adds. Where launches overlap, that
/// often is faster than in a cluster (results/2026-12-01-nvidia-h200-overlap-in-plans). These
/// slices may be more than a cluster has.
void append_second_launch(const Shape& shape, const DeviceInfo& device, const Tile& tile, int split,
                          std::vector<Config>& configs) {
  if (split == 1 || !overlaps_launches(device.architecture)) return;
  const std::vector<int> splits =
      split < most_in_cluster ? std::vector{split} : std::vector{split, 12, 16};
  for (const int slices : splits) {
    if (std::int64_t{slices} * tile.bk > shape.k) break;
    configs.push_back(config_of(shape, device, tile, {slices, 0}, {}));
  }
}

/// Appends configurations of a tile with larger clusters, where these have all tiles at once.
void append_larger_clusters(const Shape& shape, const DeviceInfo& device, const Tile& tile,
                            std::vector<Config>& configs) {
  static constexpr Cluster clusters[] = {{2, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}};
  for (const Cluster& cluster : clusters) {
    Config config = config_of(shape, device, tile, {}, cluster);
    if (config["RESIDENT"] == 0) configs.push_back(std::move(config));
  }
}

}  // namespace

std::vector<Config> tma_defaults(const Shape& shape, const DeviceInfo& device) {
  if (!TmaKernel(shape, device).offered()) return {};
  const std::vector<Tile> tiles = default_tiles(shape);
  std::vector<TileExtents> extents;
  for (const Tile& tile : tiles) {
    // As columns of products, rows are multiplied more slowly: by one sixteenth, as far as
    // measured.
    const int slower = shape.grouped() && tile.bm % warpgroup_rows != 0 ? tile.bm / 16 : 0;
    extents.push_back({tile.bm, tile.bn, tile.bk, std::max(tile.bm + slower, warpgroup_rows)});
  }
  const bool may_share = !shape.several() && has_clusters(device.architecture);
  const bool shares = may_share && between_cache_lines(shape);
  std::vector<Config> configs, larger, second_launch;
  for (const auto& [tile, split] : cheapest_first(shape, device, extents)) {
    const Tile& of = tiles[tile];
    // Two lines of tiles share each tile of B (results/2026-12-01-nvidia-h200-overlap-in-plans).
    // Halves of most tiles are not of whole panels.
    const bool two_lines = may_share && !shape.panels && shape.m <= 2 * of.bm;
    const bool pairs =
        (shares || two_lines) && split == 1 && of.bm >= warpgroup_rows && shape.m > of.bm;
    const Slices slices{split, split > 1 ? 2 : 0};  // of a cluster
    configs.push_back(config_of(shape, device, of, slices, {pairs ? 2 : 1, 1}));
    if (pairs && shares) append_larger_clusters(shape, device, of, larger);
    append_second_launch(shape, device, of, split, second_launch);
  }
  configs.insert(configs.end(), larger.begin(), larger.end());
  configs.insert(configs.end(), second_launch.begin(), second_launch.end());
  for (const Tile& tile : tiles_in_turns(shape)) {
    for (const int sharing : {1, 2}) {
      Config config = config_of(shape, device, tile, {}, {sharing, 1});
      if (config["RESIDENT"] != 0) configs.push_back(std::move(config));
    }
  }
  return configs;
}

}  // namespace greta::kernels::gemm
