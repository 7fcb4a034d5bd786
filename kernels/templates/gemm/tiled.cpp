#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/planning/cluster_units.hpp"
#include "kernels/templates/gemm/matrix_kernel.hpp"
#include "kernels/templates/gemm/plan.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "kernels/templates/gemm/tiled_space.hpp"
#include "kernels/templates/gemm/transposition.hpp"
#include "kernels/templates/gemm/variant.hpp"
#include "kernels/templates/gemm/work.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// GEMM with tiles in shared memory, without matrix instructions: tiled and split_k.
namespace greta::kernels::gemm {
namespace {

struct Tile {
  int bm, bn, tm, tn, bk = 16, lx = 8;
};

/// How a product is computed with a tile.
struct Choice {
  Tile tile;
  int split = 1;
  bool transpose = false;  ///< operands along k first
  int fold = 0;
};

/// Returns tiles for a problem, best first: large tiles reuse more, small ones give more
/// workgroups.
std::vector<Tile> tiles_for(const Shape& shape, const DeviceInfo& device) {
  if (vectorising_cpu(device))
    return {{128, 128, 8, 16, 16}, {64, 64, 8, 8, 16}, {16, 64, 4, 8, 16}, {16, 32, 4, 4, 8}};
  constexpr Tile by_size[] = {{128, 128, 8, 8, 16}, {128, 64, 8, 4, 16}, {64, 64, 8, 4, 16},
                              {64, 64, 4, 4, 16},   {32, 64, 4, 4, 16},  {32, 32, 4, 4, 16},
                              {16, 64, 4, 4, 16},   {16, 32, 4, 4, 16}};
  std::vector<Tile> order, few;
  for (const Tile& tile : by_size) {
    const std::int64_t count = filled_lines(shape, tile.bm) * ceil_div(shape.products(), tile.bn);
    (count >= busy_workgroups(device) ? order : few).push_back(tile);
  }
  order.insert(order.end(), few.rbegin(), few.rend());
  for (std::size_t i = 0, all = order.size(); i < all; ++i) {
    Tile shallow = order[i];
    shallow.bk = 8;
    order.push_back(shallow);
  }
  return order;
}

bool may_transpose(const Shape& shape, const DeviceInfo& device) {
  return transposes(shape, device) && transposed_bytes(shape) <= most_workspace(device);
}

std::vector<Choice> first_choices(const Shape& shape, const DeviceInfo& device) {
  // Below that, the copies take longer than they save.
  constexpr std::int64_t least_transposed = 2048;
  const bool large = std::min(shape.m, shape.n) >= least_transposed;
  std::vector<Choice> choices;
  for (const Tile& tile : tiles_for(shape, device)) {
    const int split = default_split(
        shape, device, ceil_div(shape.m, tile.bm) * ceil_div(shape.products(), tile.bn));
    choices.push_back({tile, split, split == 1 && large && may_transpose(shape, device)});
  }
  return choices;
}

/// Returns further choices where operands are copied past the registers: more tiles, each with
/// numbers of slices that fill the device's last round of workgroups.
std::vector<Choice> more_choices(const Shape& shape, const DeviceInfo& device) {
  if (!copies(shape, device)) return {};
  constexpr Tile tiles[] = {
      {128, 128, 8, 8},       {128, 128, 16, 8},      {128, 256, 16, 8},     {256, 128, 16, 8},
      {128, 64, 8, 8},        {64, 128, 8, 8},        {64, 64, 8, 8},        {96, 128, 8, 8},
      {128, 96, 8, 8, 16, 4}, {96, 64, 8, 8},         {64, 96, 8, 8, 16, 4}, {128, 64, 8, 4},
      {64, 64, 8, 4},         {128, 48, 8, 4, 16, 4}, {64, 48, 8, 4, 16, 4}, {48, 128, 4, 8},
      {48, 64, 4, 8},         {64, 32, 8, 4},         {32, 128, 4, 8},       {32, 64, 4, 4}};
  constexpr double least_filled = 0.8;  // of the last round of workgroups
  constexpr std::int64_t least_k = 64;  // of a slice
  const std::int64_t units = busy_workgroups(device);
  std::vector<int> splits = slice_counts();
  splits.insert(splits.begin(), 1);
  std::vector<Choice> choices;
  for (const Tile& tile : tiles) {
    const std::int64_t count = filled_lines(shape, tile.bm) * ceil_div(shape.products(), tile.bn);
    for (const int split : splits) {
      if (split > 1 && (shape.several() || split * least_k > shape.k)) break;
      const std::int64_t all = count * split, rounds = ceil_div(all, units);
      const double filled = static_cast<double>(all) / static_cast<double>(rounds * units);
      if (split > 1 && (filled < least_filled || rounds > 8)) continue;
      choices.push_back({tile, split});
      // Vectors are copied faster beside the products of more threads.
      const bool few_threads = tile.tm * tile.tn > 64 && tile.bm * tile.bn == 128 * 128;
      if (may_transpose(shape, device) && !few_threads) choices.push_back({tile, split, true});
      if (split > 1 && split <= most_in_cluster && has_clusters(device.architecture)) {
        choices.push_back({tile, split, false, 2});
      }
    }
  }
  return choices;
}

Config config_of(const Shape& shape, const DeviceInfo& device, const Choice& choice) {
  const Tile& tile = choice.tile;
  const int split = choice.split;
  const bool transpose = choice.transpose;
  const int threads = tile.bm / tile.tm * (tile.bn / tile.tn);
  const bool gpu = !vectorising_cpu(device);
  const bool copied = copies(shape, device);
  const auto width = [&](bool along_k, std::int64_t unit, int extent) {
    if (copied && along_k && !transpose) return 1;
    const std::int64_t aligned = along_k && transpose ? 0 : unit;  // transposed lines are padded
    return widest_vector(shape.in, aligned, extent * tile.bk / threads);
  };
  const int va = width(shape.a_along_k, shape.a_unit(), tile.bm);
  const int vb = width(shape.b_along_k, shape.b_unit(), tile.bn);
  // Mesa's AMD driver keeps an address per load. Many narrow loads leave no registers for
  // prefetched elements.
  const bool ahead =
      gpu && (va * vb > 1 || device.vendor != "AMD" || device.language != Language::glsl);
  Config config{split > 1 ? "split_k" : "tiled",
                {{"BM", tile.bm},
                 {"BN", tile.bn},
                 {"TM", tile.tm},
                 {"TN", tile.tn},
                 {"LX", tile.lx},
                 {"BK", tile.bk},
                 {"STAGES", copied  ? 4
                            : ahead ? 2
                                    : 1},
                 {"PAD", gpu ? 4 : 0},
                 {"VA", va},
                 {"VB", vb},
                 {"UNROLL", gpu ? tile.bk : 1},
                 {"SWIZZLE", gpu ? 8 : 1}}};
  if (device.language == Language::glsl) config.values.emplace_back("SUBGROUP", 0);
  if (copied) config.values.emplace_back("ORDER", 1);
  if (transposes(shape, device)) {
    config.values.emplace_back("TRANSPOSE", transpose ? 1 : 0);
  }
  if (split > 1) {
    config.values.emplace_back("SPLIT", split);
    if (device.language == Language::hip) config.values.emplace_back("FOLD", choice.fold);
  }
  return config;
}

std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  std::vector<Config> configs;
  for (const Choice& choice : first_choices(shape, device)) {
    configs.push_back(config_of(shape, device, choice));
  }
  for (const Choice& choice : more_choices(shape, device)) {
    configs.push_back(config_of(shape, device, choice));
  }
  return configs;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const bool transpose = config.has("TRANSPOSE") && config["TRANSPOSE"] == 1;
  Defines defines = problem_defines(transpose ? transposed(shape) : shape);
  add_parameters(defines, config);
  defines.emplace_back("TRANSPOSED_A", transpose && shape.a_along_k ? "1" : "0");
  defines.emplace_back("TRANSPOSED_B", transpose && shape.b_along_k ? "1" : "0");
  if (!config.has("SPLIT")) defines.emplace_back("SPLIT", "1");
  if (!config.has("FOLD")) defines.emplace_back("FOLD", "0");
  if (!config.has("ORDER")) defines.emplace_back("ORDER", "0");
  const bool hip = device.language == Language::hip;
  if (hip) defines.emplace_back("SHARED_BYTES", std::to_string(shared_bytes(config)));
  add_packs(defines, shape, device, config);
  KernelSource kernel = kernel_source(shape, device, "tiled", defines, threads_of(config));
  kernel.required_subgroup_size =
      config.has("SUBGROUP") ? static_cast<std::uint32_t>(config["SUBGROUP"]) : 0;
  if (hip) {
    kernel.dynamic_shared_bytes = static_cast<std::uint32_t>(shared_bytes(config));
  }
  LaunchPlan plan = plan_of_tiles(shape, device, config, std::move(kernel));
  if (transpose) add_transposition(plan, shape, device);
  return plan;
}

/// Returns how often the lanes of a bundle write to the same bank of shared memory. A tile that is
/// loaded along K is transposed: neighbouring lanes write `width` rows apart. Where elements are
/// copied past the registers, they are placed without conflicts if the reader knows where
/// (tile_loader.hip).
double write_conflicts(bool along_k, const Config& config, const char* extent, const char* width) {
  if (!along_k || (config["STAGES"] > 2 && config["UNROLL"] == config["BK"])) return 1;
  constexpr int banks = 32;
  const int apart = config[width] * (config[extent] + config["PAD"]);
  const int distinct = banks / std::gcd(apart, banks);
  return std::max(1.0, static_cast<double>(config["BK"]) / config[width] / distinct);
}

/// Returns by how much waiting lengthens the products of threads with `sums` sums each: for reads
/// of shared memory and for barriers, where few threads run at once on a compute unit, and between
/// workgroups that walk `length` of K.
double waiting(const LaunchWork& work, const DeviceInfo& device, double sums, double length) {
  if (vectorising_cpu(device)) return 1;  // threads run one after the other
  const double shared = std::max(device.unit_shared_memory_bytes, device.shared_memory_bytes);
  const double fit = std::min(static_cast<double>(register_file(device)) / work.registers,
                              shared * work.threads / work.shared_bytes);
  const double resident = std::max(1.0, std::floor(fit / work.threads));
  const double of_unit = std::ceil(work.workgroups / static_cast<double>(busy_workgroups(device)));
  // Fitted to products of an H200 (results/2026-11-27-nvidia-h200-few-rows-f32), whose schedulers
  // are busy with four subgroups each.
  constexpr double slope = 0.7;
  const auto least = static_cast<double>(scheduled_threads(device));
  const double busy = 4 * least;
  const double threads = std::min(resident, of_unit) * work.threads;
  if (sums <= 64) return std::pow(busy / std::clamp(threads, least, busy), slope);
  // A thread with 128 sums has as many independent products as two with 64, but few workgroups run
  // beside one that begins or stores its tile (results/2026-11-29-nvidia-h200-f32-copies).
  constexpr double between = 60;  // of K
  const double rounds = std::max(1.0, of_unit / resident);
  return std::pow(busy / std::clamp(threads * std::min(sums / 64, 2.0), least, busy), slope) *
         (1 + between / length * (1 - 1 / rounds));
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const bool transpose = config.has("TRANSPOSE") && config["TRANSPOSE"] == 1;
  const bool a_along_k = shape.a_along_k && !transpose, b_along_k = shape.b_along_k && !transpose;
  const double bm = config["BM"], bn = config["BN"], bk = config["BK"];
  const double tm = config["TM"], tn = config["TN"], lx = config["LX"];
  const double threads = threads_of(config);
  LaunchWork work = work_of_tiles(shape, config);
  work.threads = threads;
  work.shared_bytes = static_cast<double>(shared_bytes(config));
  const bool copied = config["STAGES"] > 2;  // then the kernel bounds its registers
  const double ahead = bk * (bm + bn) * bits_of(shape.in) / 32 / threads;
  work.overlapped = config["STAGES"] >= 2;
  work.registers = copied
                       ? tm * tn + 64
                       : 1.4 * tm * tn + 3 * (tm + tn) + (config["STAGES"] == 2 ? ahead : 0) + 40;
  // Besides the multiplications, a step of K loads four elements at a time, and has a share of the
  // loop's own instructions.
  constexpr double of_loop = 6;
  const double others = (tm + tn) / 4 + of_loop / config["UNROLL"];
  const double length = static_cast<double>(shape.k) / (config.has("SPLIT") ? config["SPLIT"] : 1);
  work.vector_flops =
      2 * work.steps * bk * (bm * bn + threads * others) * waiting(work, device, tm * tn, length);
  // A bundle of LX x 32/LX threads reads (LX x TN + 32/LX x TM) different elements per step of K.
  work.shared_traffic = 4 * work.steps * bk *
                        (bm * write_conflicts(a_along_k, config, "BM", "VA") +
                         bn * write_conflicts(b_along_k, config, "BN", "VB") +
                         threads / 32 * (lx * tn + 32 / lx * tm));
  work.barriers = work.steps * (work.overlapped ? 1 : 2);
  work.ahead_bytes = std::max(1, config["STAGES"] - 1) * bk * (bm + bn) * bytes_of(shape.in, 1);
  const int fold = config.has("FOLD") ? config["FOLD"] : 0;
  if (fold != 0) add_folding(work, config, fold == 1);
  if (fold == 2) work.usable_units = usable_by_clusters(device, config["SPLIT"]);
  KernelWork launches = {work};
  if (transpose) launches.insert(launches.begin(), work_of_transposition(shape));
  if (config.has("SPLIT") && fold == 0) {
    launches.push_back(work_of_adding_slices(shape, config["SPLIT"]));
  }
  return launches;
}

}  // namespace

Variant tiled() {
  constexpr auto whole = [](const Shape& shape, const DeviceInfo& device) {
    return tiled_space(shape, device, false);
  };
  Variant variant = make_variant<Shape>(
      "tiled", "on vector units: a workgroup computes a tile of C from shared memory", whole, plan,
      defaults, divisions_of_tiles);
  variant.migrations = {added("ORDER", 0), added("TRANSPOSE", 0)};
  set_work<Shape>(variant, work);
  return variant;
}

// It has no defaults: those of `tiled` use it if there are too few tiles.
Variant split_k() {
  constexpr auto split = [](const Shape& shape, const DeviceInfo& device) {
    return tiled_space(shape, device, true);
  };
  constexpr auto none = [](const Shape&, const DeviceInfo&) { return std::vector<Config>{}; };
  Variant variant =
      make_variant<Shape>("split_k", "as tiled, for a slice of K; FOLD says what adds the slices",
                          split, plan, none, divisions_of_tiles);
  variant.migrations = {added("ORDER", 0), added("TRANSPOSE", 0), added("FOLD", 0)};
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::gemm
