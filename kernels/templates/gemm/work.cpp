#include "kernels/templates/gemm/work.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/planning/arrival.hpp"
#include "kernels/planning/by_cost.hpp"
#include "kernels/templates/gemm/alignment.hpp"
#include "kernels/templates/gemm/space.hpp"

namespace greta::kernels::gemm {

LaunchWork work_of_tiles(const Shape& shape, const Config& config) {
  const double bm = config["BM"], bn = config["BN"], bk = config["BK"];
  const double in = bytes_of(shape.in, 1), out = bytes_of(shape.out, 1);
  const double m = static_cast<double>(filled_lines(shape, 1)),
               n = static_cast<double>(shape.products()), k = static_cast<double>(shape.k),
               groups = static_cast<double>(shape.groups);
  const int split = config.has("SPLIT") ? config["SPLIT"] : 1;
  const auto slice = slice_length(shape, split, config["BK"]);
  LaunchWork work;
  work.workgroups = expected_tiles(shape, config["BM"], config["BN"]) * split;
  work.steps = static_cast<double>(ceil_div(slice, config["BK"]));
  work.read_bytes = work.steps * bk * (bm + bn) * in;
  const double moved = shape.residual ? 2 * out : out;  // of an element of C
  work.written_bytes = bm * bn * (split > 1 ? 4 : moved);
  work.loads = work.steps * bk * (bm / config["VA"] + bn / config["VB"]);
  work.barriers = work.steps;
  const double stored = split > 1 ? n * 4 * split : static_cast<double>(shape.n) * moved;
  work.unique_bytes = (m + groups * n) * k * in + m * stored;
  return work;
}

double tail_of_tile(const Shape& shape, const Config& config, double stored, double lone) {
  // By their exponentials and reciprocals, and by results/2026-11-30-nvidia-h200-short-k.
  static constexpr double of_activation[] = {0, 0.11, 0.15};
  const double activation = lone * of_activation[shape.activation];
  const double elements = static_cast<double>(config["BM"]) * config["BN"];
  if (config["SPLIT"] == 1) return elements * (stored + activation);
  const int fold = config["FOLD"];
  return fold == 0 ? 0 : elements * activation / (fold == 2 ? config["SPLIT"] : 1);
}

bool between_cache_lines(const Shape& shape) {
  constexpr std::int64_t line = 128;  // bytes
  const auto apart = [](std::int64_t stride, std::int64_t offset) {
    return stride * 2 % line != 0 || offset * 2 % line != 0;
  };
  return apart(shape.a_stride(), shape.a_offset) || apart(shape.b_stride(), shape.b_offset);
}

LaunchWork work_of_adding_slices(const Shape& shape, int split) {
  constexpr double threads = 256, elements = 4;  // of a thread
  LaunchWork work;
  work.threads = threads;
  work.workgroups = static_cast<double>(ceil_div(shape.m * ceil_div(shape.products(), 4), 256));
  work.read_bytes = threads * elements * 4 * split;
  work.written_bytes = threads * elements * bytes_of(shape.out, 1);
  work.loads = threads * split;
  work.ahead_bytes = work.read_bytes;
  work.registers = 32;
  work.unique_bytes = work.workgroups * (work.read_bytes + work.written_bytes);
  return work;
}

double cost_of_tiles(const Shape& shape, const TileExtents& tile, int split, std::int64_t units) {
  constexpr double moved = 64, added = 512;  // cost per element, in multiplications
  const double tiles = expected_tiles(shape, tile.rows, tile.columns) * split;
  const double full = tiles / static_cast<double>(units);
  // Groups have tiles of different times, and none waits for a whole round.
  const double rounds = shape.grouped() ? std::max(1.0, full + 0.5) : std::ceil(full);
  const auto length = static_cast<double>(slice_length(shape, split, tile.k));
  const double step = tile.multiplied_rows * tile.columns + moved * (tile.rows + tile.columns);
  const double sums = static_cast<double>(shape.m) * static_cast<double>(shape.products()) * split;
  return rounds * step * length + (split > 1 ? added * sums / static_cast<double>(units) : 0);
}

std::vector<TileChoice> cheapest_first(const Shape& shape, const DeviceInfo& device,
                                       const std::vector<TileExtents>& tiles) {
  const std::int64_t units = busy_workgroups(device);
  std::vector<std::pair<double, TileChoice>> choices;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    for (const int split : {1, 2, 3, 4, 6, 8}) {
      if (split > 1 && (shape.several() || split * tiles[i].k > shape.k)) break;
      choices.push_back({cost_of_tiles(shape, tiles[i], split, units), {i, split}});
    }
  }
  return by_cost(std::move(choices));
}

void add_folding(LaunchWork& work, const Config& config, bool by_the_last) {
  const double tile_bytes = 4.0 * config["BM"] * config["BN"];
  if (!by_the_last) {
    constexpr double of_cluster = 20;  // barriers, by their cost
    work.barriers += of_cluster;
    work.shared_traffic += 2 * tile_bytes;
    return;
  }
  work.barriers += barriers_of_arrival(tile_bytes * config["SPLIT"]);
  work.read_bytes += tile_bytes;
}

namespace {

LaunchWork work_of_alignment(const Shape& shape) {
  const auto in = static_cast<std::int64_t>(bytes_of(shape.in, 1));
  const std::int64_t bytes =
      in * shape.k * ((has_odd_a(shape) ? shape.m : 0) + (has_odd_b(shape) ? shape.n : 0));
  LaunchWork copy;
  copy.threads = 256;
  copy.registers = 32;
  copy.workgroups = static_cast<double>(ceil_div(bytes, 256 * 16));
  copy.read_bytes = copy.written_bytes = copy.ahead_bytes = 256 * 16;
  copy.loads = 256 * 16 / static_cast<double>(in);
  copy.unique_bytes = 2 * static_cast<double>(bytes);
  return copy;
}

}  // namespace

KernelWork work_of_launches(const LaunchWork& product, const Shape& shape, const Config& config) {
  KernelWork launches;
  if (config["ALIGN"] != 0) launches.push_back(work_of_alignment(shape));
  launches.push_back(product);
  const bool folded = config.has("FOLD") && config["FOLD"] != 0;
  if (config["SPLIT"] > 1 && !folded) {
    launches.push_back(work_of_adding_slices(shape, config["SPLIT"]));
  }
  return launches;
}

}  // namespace greta::kernels::gemm
