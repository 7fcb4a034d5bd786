#include <fmt/format.h>

#include <algorithm>

#include "kernels/templates/gemm/plan.hpp"
#include "kernels/templates/gemm/space.hpp"

namespace greta::gemm {
namespace {

/// Workgroups that keep the device busy; a guess where the API does not say.
std::int64_t busy(const DeviceInfo& device) {
  return device.compute_units > 0 ? device.compute_units : 32;
}

/// The widest vector of an operand: at most 16 bytes, dividing `stride` and `elements`.
int widest(const Shape& shape, std::int64_t stride, std::int64_t elements) {
  int width = shape.in == DType::f32 ? 4 : 8;
  while (stride % width != 0 || elements % width != 0) width /= 2;
  return width;
}

struct Tile {
  int bm, bn, tm, tn, bk;
};

/// Tiles of C for one problem, best first: big ones reuse more, small ones make more workgroups.
std::vector<Tile> tiles_for(const Shape& shape, const DeviceInfo& device) {
  if (device.is_cpu())
    return {{128, 128, 8, 16, 16}, {64, 64, 8, 8, 16}, {16, 64, 4, 8, 16}, {16, 32, 4, 4, 8}};
  constexpr Tile by_size[] = {{128, 128, 8, 8, 16}, {128, 64, 8, 4, 16}, {64, 64, 8, 4, 16},
                              {64, 64, 4, 4, 16},   {32, 64, 4, 4, 16},  {32, 32, 4, 4, 16},
                              {16, 64, 4, 4, 16},   {16, 32, 4, 4, 16}};
  std::vector<Tile> order, few;
  for (const Tile& tile : by_size) {
    const std::int64_t count = ceil_div(shape.m, tile.bm) * ceil_div(shape.n, tile.bn);
    (count >= busy(device) ? order : few).push_back(tile);
  }
  order.insert(order.end(), few.rbegin(), few.rend());
  for (std::size_t i = 0, all = order.size(); i < all; ++i) {
    Tile shallow = order[i];
    shallow.bk = 8;
    order.push_back(shallow);
  }
  return order;
}

/// Slices of K that `count` workgroups need to fill the device; 1 where they do.
int split_for(const Shape& shape, const DeviceInfo& device, std::int64_t count) {
  int split = 1;
  constexpr std::int64_t longest_slice = 50000;  // of K, for the loops of a CPU driver
  while (device.is_cpu() && split < 32 && shape.k / split > longest_slice) split *= 2;
  while (!device.is_cpu() && split < 16 && count * split < busy(device) &&
         shape.k >= std::int64_t{512} * split) {
    split *= 2;
  }
  return split;
}

Config tiled_config(const Shape& shape, const DeviceInfo& device, const Tile& tile) {
  const int threads = tile.bm / tile.tm * (tile.bn / tile.tn);
  const int split =
      split_for(shape, device, ceil_div(shape.m, tile.bm) * ceil_div(shape.n, tile.bn));
  const bool gpu = !device.is_cpu();
  Config config{split > 1 ? "split_k" : "tiled",
                {{"BM", tile.bm},
                 {"BN", tile.bn},
                 {"TM", tile.tm},
                 {"TN", tile.tn},
                 {"LX", 8},
                 {"BK", tile.bk},
                 {"STAGES", gpu ? 2 : 1},
                 {"PAD", gpu ? 4 : 0},
                 {"VA", widest(shape, shape.a_stride(), tile.bm * tile.bk / threads)},
                 {"VB", widest(shape, shape.b_stride(), tile.bn * tile.bk / threads)},
                 {"UNROLL", gpu ? tile.bk : 1},
                 {"SWIZZLE", gpu ? 8 : 1},
                 {"SUBGROUP", 0}}};
  if (split > 1) config.values.emplace_back("SPLIT", split);
  return config;
}

/// Few rows. Rows of B that are read across want wide workgroups with many loads in flight; columns
/// that are read along K want many small workgroups.
std::vector<Config> gemv_configs(const Shape& shape, const DeviceInfo& device) {
  const bool gpu = !device.is_cpu();
  const int unroll = !gpu ? 2 : shape.b_along_k ? 1 : 8;
  const int vb = widest(shape, shape.b_stride(), 8);
  const int va = shape.b_along_k ? vb : widest(shape, shape.a_along_k ? shape.k : 1, unroll);
  int cols = gpu && shape.b_along_k ? 2 : 8;
  const auto groups = [&] {
    return ceil_div(shape.n, std::int64_t{cols} * (shape.b_along_k ? 1 : vb));
  };
  while (cols > 2 && 3 * groups() < busy(device)) cols /= 2;
  std::vector<Config> configs;
  for (const int threads : {gpu && !shape.b_along_k ? 1024 : 256, 512, 256, 128, 64}) {
    configs.push_back({"gemv",
                       {{"THREADS", threads},
                        {"COLS", cols},
                        {"VB", vb},
                        {"VA", va},
                        {"UNROLL", unroll},
                        // A slice more costs as much as it hides until most of the device is idle.
                        {"SPLIT", gpu ? split_for(shape, device, 4 * groups()) : 1}}});
  }
  return configs;
}

}  // namespace

Config naive_config() {
  return {"naive", {{"THREADS", 256}}};
}

Config default_config(const Problem& problem, const DeviceInfo& device) {
  const Shape shape = shape_of(problem);
  const auto choices = alternatives(shape, device);
  std::vector<Config> wanted;
  constexpr std::int64_t hardly_any = 8;  // columns or products: tiles would be mostly idle
  if (shape.m <= most_gemv_rows) {
    wanted = gemv_configs(shape, device);
  } else if (shape.n < hardly_any || shape.k < hardly_any) {
    wanted = {naive_config()};
  }
  for (const Tile& tile : tiles_for(shape, device)) {
    wanted.push_back(tiled_config(shape, device, tile));
  }
  const auto found = std::find_if(wanted.begin(), wanted.end(),
                                  [&](const Config& config) { return !rejects(choices, config); });
  if (found != wanted.end()) return *found;
  const Space space(choices);
  if (space.count() == 0) {
    throw Error(Failure{Status::constraints,
                        fmt::format("{} can't run on {}: {}", problem.key(), device.name,
                                    *rejects(choices, wanted.front())),
                        {}});
  }
  return space.at(0);
}

Problem stand_in(const Problem& problem, double fraction) {
  // Whole blocks are taken away, so that alignment and edge tiles stay as they are; at least one
  // block of m and n, and enough of k for every split, remain.
  constexpr std::int64_t block = 256, least_k = 2048;
  Problem smaller = problem;
  const auto dim = [&smaller](std::string_view name) -> std::int64_t& {
    return std::find_if(smaller.dims.begin(), smaller.dims.end(),
                        [name](const auto& d) { return d.first == name; })
        ->second;
  };
  std::int64_t &m = dim("m"), &n = dim("n"), &k = dim("k");
  const auto work = [&] {
    return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  };
  const auto shrink = [](std::int64_t& extent) {
    extent -= block * std::max<std::int64_t>(1, extent / block / 8);
  };
  const double target = fraction * work();
  while (work() > target) {
    std::int64_t& larger = m > n ? m : n;
    if (larger >= 2 * block) {
      shrink(larger);
    } else if (k >= least_k + block) {
      shrink(k);
    } else {
      break;
    }
  }
  return smaller;
}

}  // namespace greta::gemm
