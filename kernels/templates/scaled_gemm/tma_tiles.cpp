#include "kernels/templates/scaled_gemm/tma_tiles.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/planning/by_cost.hpp"
#include "kernels/planning/cluster_units.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/scaled_gemm/cores.hpp"
#include "kernels/templates/scaled_gemm/plan.hpp"

namespace greta::kernels::scaled_gemm::tma_tiles {

bool promoted(const Shape& shape) {
  return !shape.integers() || shape.scales == Scales::block;
}

std::int64_t threads_of(const Config& config, std::int64_t wave) {
  const std::int64_t groups = config["GROUPS"];
  return (groups == 1 ? 5 : groups * 4 + 4) * wave;
}

int cluster_of(const Config& config) {
  return config["CLUSTER_M"] * config["CLUSTER_N"];
}

std::int64_t tile_columns(const Shape& shape, const Config& config) {
  return config["BN"] / (shape.gated() ? 2 : 1);
}

bool stores_narrow(const Shape& shape, const Config& config) {
  const std::int64_t columns = tile_columns(shape, config);
  return columns > 64 && columns % 64 == 32;
}

bool folds_in_cluster(const Config& config) {
  return config["FOLD"] == 2;
}

bool has_whole_rows(const Shape& shape) {
  return bytes_of(shape.out, shape.n) % 16 == 0;
}

std::int64_t shared_bytes(const Shape& shape, const Config& config) {
  const std::int64_t bm = config["BM"], bn = config["BN"], stages = config["STAGES"];
  const bool whole = config["STORE"] != 0;
  const bool folds = folds_in_cluster(config);
  const std::int64_t part = tile_columns(shape, config) / (folds ? config["SPLIT"] : 1);
  const std::int64_t columns = whole || part % 32 != 0 ? part : part % 64 == 0 ? 64 : 32;
  const std::int64_t rows = whole ? bm / config["GROUPS"] / 4 : 16;  // of a wave
  const std::int64_t stored = rows * bytes_of(shape.out, columns + 8);
  const std::int64_t sums = folds ? bm * bn * 4 : 0;  // of a slice, where stages were
  return std::max(stages * (bm + bn) * step, sums) + config["GROUPS"] * 4 * stored + stages * 16;
}

std::int64_t least_registers(const Shape& shape, const Config& config) {
  const std::int64_t sums = config["BN"] / 2;  // of a product
  const std::int64_t products = config["BM"] / config["GROUPS"] / warpgroup_rows;
  // By NVRTC: two warpgroups with a product each need fewer.
  const std::int64_t addresses = config["GROUPS"] == 2 && products == 1 ? 16 : 28;
  return sums * (products + (promoted(shape) ? config["SUMS"] : 0)) + addresses;
}

bool has_registers(const Shape& shape, const Config& config) {
  static constexpr std::array<std::int64_t, 4> most{0, 255, 240, 160};
  // ptxas wants an instruction's sums and addresses to fit what a thread has at launch.
  const std::int64_t at_launch = 65536 / threads_of(config, 32) / 8 * 8;
  return least_registers(shape, config) <= most[static_cast<std::size_t>(config["GROUPS"])] &&
         config["BN"] / 2 + 26 <= at_launch;
}

std::int64_t clusters_along_m(const Shape& shape, const Config& c) {
  return launched_lines(shape, std::int64_t{c["BM"]} * c["CLUSTER_M"]);
}

std::int64_t clusters_along_n(const Shape& shape, const Config& c) {
  return ceil_div(shape.products(), std::int64_t{c["BN"]} * c["CLUSTER_N"]);
}

bool has_blocks(const Shape& shape, const Config& c) {
  if (shape.scales != Scales::block) return true;
  const std::int64_t columns = tile_columns(shape, c);
  if (shape.gated()) return scale_block % columns == 0 && shape.n % columns == 0;
  return columns <= scale_block + std::gcd(columns, scale_block);
}

namespace {

struct Tile {
  int bm, bn, groups;
};

/// Returns a configuration with as many stages as shared memory has room for, of a tile of which
/// SPLIT workgroups share k as a cluster; nothing if it can't be.
std::optional<Config> config_of_tile(const Shape& shape, const DeviceInfo& device, const Tile& tile,
                                     int split) {
  Config config{"tma",
                {{"BM", tile.bm},
                 {"BN", tile.bn},
                 {"GROUPS", tile.groups},
                 {"STAGES", 2},
                 {"CLUSTER_M", 1},
                 {"CLUSTER_N", 1},
                 {"RESIDENT", 0},
                 {"SWIZZLE", 8},
                 {"STORE", 0},
                 {"STAGGER", 0},
                 {"SUMS", 1},
                 {"SPLIT", split},
                 {"FOLD", split > 1 ? 2 : 1}}};
  if (promoted(shape) && tile.bm == tile.groups * warpgroup_rows) config.value("SUMS") = 2;
  if (!has_registers(shape, config)) config.value("SUMS") = 1;
  if (!has_registers(shape, config) || !has_blocks(shape, config)) return std::nullopt;
  // Threads would store few columns at a time.
  if (stores_narrow(shape, config) && has_whole_rows(shape) && split == 1)
    config.value("STORE") = 1;
  if (tile.bm > warpgroup_rows && too_high(shape, tile.bm)) return std::nullopt;
  if (shape.gated() && tile.bn < 16) return std::nullopt;
  const std::int64_t count = clusters_along_m(shape, config) * clusters_along_n(shape, config);
  const bool rounds = split == 1 && count > busy_workgroups(device);
  // With groups, workgroups that end are replaced while others look for the group of their tile.
  if (tile.groups > 1 && rounds && !shape.grouped()) config.value("RESIDENT") = 1;
  const std::int64_t of_two = device.shared_memory_bytes / (tile.groups == 1 && rounds ? 2 : 1);
  for (const int stages : {3, 4, 5, 6, 7, 8, 10, 12}) {
    Config more = config;
    more.value("STAGES") = stages;
    if (shared_bytes(shape, more) <= of_two) config = more;
  }
  return config;
}

/// Appends tiles that are predicted beside those of defaults(): of other sizes, whose number of
/// rounds may be better, and tiles of which a cluster shares k where there are fewer than compute
/// units.
void append_predicted(const Shape& shape, const DeviceInfo& device, std::vector<Config>& configs) {
  static constexpr Tile whole[] = {
      {192, 128, 3}, {192, 96, 3}, {128, 160, 2}, {256, 96, 2}, {128, 96, 2}};
  static constexpr Tile shared[] = {{192, 128, 3}, {192, 96, 3}, {128, 160, 2},
                                    {128, 128, 2}, {128, 96, 2}, {128, 64, 2},
                                    {64, 128, 1},  {64, 96, 1},  {64, 64, 1}};
  for (const Tile& tile : whole) {
    if (auto config = config_of_tile(shape, device, tile, 1)) configs.push_back(std::move(*config));
  }
  if (shape.grouped() || shape.gated()) return;
  const std::int64_t steps = ceil_div(shape.k, step);
  for (const Tile& tile : shared) {
    const std::int64_t count = count_tiles(shape, tile.bm, tile.bn);
    for (const int split : {2, 3, 4, 6, 8}) {
      const bool fits = split <= steps && tile.bn % (split * 8) == 0 &&
                        count * split <= units_of_clusters(device, split);
      if (!fits) continue;
      if (auto config = config_of_tile(shape, device, tile, split)) {
        configs.push_back(std::move(*config));
      }
    }
  }
}

/// Returns tiles of groups of rows, those first that compute the fewest elements, each of which
/// takes `cost` (measured on an H200, results/2026-11-28-nvidia-h200-learnt-defaults).
std::vector<Config> defaults_of_groups(const Shape& shape, const DeviceInfo& device) {
  struct Measured {
    Tile tile;
    double cost;
  };
  static constexpr Measured tiles[] = {
      {{192, 128, 3}, 1},   {{128, 192, 2}, 1.02}, {{256, 128, 2}, 1.1}, {{128, 128, 2}, 1.12},
      {{64, 128, 1}, 1.35}, {{64, 64, 1}, 1.6},    {{64, 32, 1}, 2.2},   {{64, 16, 1}, 4}};
  std::vector<std::pair<double, Config>> found;
  for (const auto& [tile, cost] : tiles) {
    auto config = config_of_tile(shape, device, tile, 1);
    if (!config) continue;
    const double elements = expected_lines(shape, tile.bm) * tile.bm *
                            static_cast<double>(round_up(shape.products(), tile.bn));
    found.emplace_back(cost * elements, std::move(*config));
  }
  return by_cost(std::move(found));
}

}  // namespace

std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (!has_warpgroup_bytes(shape, device) || for_few_rows(shape)) return {};
  if (shape.grouped()) return defaults_of_groups(shape, device);
  static constexpr Tile tiles[] = {{128, 256, 2}, {256, 128, 2}, {128, 128, 2}, {64, 128, 1},
                                   {64, 64, 1},   {64, 32, 1},   {64, 16, 1},   {64, 8, 1}};
  std::vector<Config> busy, idle;
  for (const Tile& tile : tiles) {
    auto config = config_of_tile(shape, device, tile, 1);
    if (!config) continue;
    const std::int64_t count = clusters_along_m(shape, *config) * clusters_along_n(shape, *config);
    (count >= busy_workgroups(device) ? busy : idle).push_back(std::move(*config));
  }
  std::reverse(idle.begin(), idle.end());
  busy.insert(busy.end(), idle.begin(), idle.end());
  append_predicted(shape, device, busy);
  return busy;
}

}  // namespace greta::kernels::scaled_gemm::tma_tiles
