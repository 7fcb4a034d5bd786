#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>

#include "kernels/planning/cluster_units.hpp"
#include "kernels/templates/gemm/alignment.hpp"
#include "kernels/templates/gemm/cooperative.hpp"
#include "kernels/templates/gemm/matrix_kernel.hpp"
#include "kernels/templates/gemm/plan.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "kernels/templates/gemm/variant.hpp"
#include "kernels/templates/gemm/work.hpp"

/// GEMM with tiles in shared memory and matrix instructions.
namespace greta::kernels::gemm {
namespace {

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const MatrixKernel kernel(shape, device);
  Defines defines = problem_defines(shape);
  add_parameters(defines, kernel.with_parts(config));
  defines.emplace_back("WAVE", std::to_string(kernel.wave()));
  defines.emplace_back("SHARED_BYTES", std::to_string(kernel.shared_bytes(config)));
  defines.emplace_back("SUM_COLUMNS", std::to_string(kernel.sum_columns()));
  add_alignment(defines, shape, config);
  KernelSource source = kernel_source(shape, device, "matrix", defines, kernel.threads(config));
  if (kernel.by_warpgroups(config) && has_warpgroup_products(device.architecture)) {
    compile_for_warpgroups(source, device);
  }
  source.dynamic_shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes(config));
  LaunchPlan plan = plan_of_tiles(shape, device, config, std::move(source));
  add_alignment(plan, shape, device, config);
  return plan;
}

struct Tile {
  int bm, bn, bk, wm, wn, stages, fragments, instr = 16;
  bool direct = false;
};

/// Returns tiles of warpgroups that are stacked along m, and those of few rows, which are side by
/// side along n. Of tiles that cost the same, the first one is the default. They have as many
/// stages as shared memory has room for.
std::vector<Tile> warpgroup_tiles() {
  static constexpr int most_bytes = 224 * 1024, most_stages = 6;
  std::vector<Tile> tiles;
  const auto add = [&](int bm, int bn, int bk, int wm, int wn) {
    const int stage = (bm + whole_part(bn)) * bk * 2;
    tiles.push_back(
        {bm, bn, bk, wm, wn, std::min(most_stages, most_bytes / stage), 1, warpgroup_rows});
  };
  for (const int bm : {128, 256, 192, 64}) {
    const int most_columns = bm == 256 ? 192 : 256;  // that the registers of 512 threads have
    for (int bn = most_columns; bn >= 64; bn -= 16) add(bm, bn, 64, 64, whole_part(bn));
  }
  for (const int bm : {48, 40, 32, 24, 16, 8}) {
    for (const int bn : {192, 128, 64}) add(bm, bn, bm + bn > 128 ? 64 : 128, whole_part(bm), 64);
  }
  return tiles;
}

/// Returns tiles for 16-bit inputs, large ones first; f32 uses half of BK.
std::vector<Tile> tiles_for(const DeviceInfo& device, bool by_warpgroups) {
  if (by_warpgroups) return warpgroup_tiles();
  switch (matrix_cores(device.architecture)) {
    case MatrixCores::mma:
      return {
          {128, 256, 64, 64, 64, 4, 2}, {128, 256, 64, 64, 64, 3, 2}, {128, 128, 64, 64, 64, 3, 2},
          {128, 64, 64, 64, 32, 4, 2},  {64, 128, 64, 32, 64, 4, 2},  {64, 64, 64, 32, 32, 5, 2},
          {32, 128, 64, 32, 32, 5, 2},  {32, 64, 64, 16, 32, 5, 2},   {16, 128, 64, 16, 32, 5, 2},
          {16, 64, 128, 16, 16, 4, 2},  {32, 32, 64, 16, 16, 4, 2},   {16, 32, 64, 16, 16, 4, 2}};
    case MatrixCores::mfma:
      return {{256, 256, 64, 64, 128, 2, 2}, {256, 256, 32, 64, 128, 2, 1},
              {256, 128, 32, 64, 64, 2, 1},  {128, 256, 32, 64, 64, 2, 1},
              {128, 128, 32, 64, 64, 2, 1},  {128, 64, 64, 64, 32, 2, 1},
              {64, 128, 64, 32, 64, 2, 1},   {64, 64, 64, 32, 32, 2, 1},
              {32, 64, 128, 16, 32, 2, 1},   {16, 64, 128, 16, 16, 2, 1},
              {32, 32, 128, 16, 16, 2, 1},   {16, 32, 128, 16, 16, 2, 1}};
    case MatrixCores::wmma11:
    case MatrixCores::wmma12:
      return {
          {256, 128, 32, 64, 64, 2, 1}, {128, 128, 32, 32, 64, 2, 1}, {128, 64, 32, 32, 32, 2, 1},
          {64, 128, 32, 32, 32, 2, 1},  {64, 64, 32, 32, 32, 2, 1},   {32, 64, 64, 16, 32, 2, 1},
          {16, 64, 64, 16, 16, 2, 1},   {32, 32, 64, 16, 16, 2, 1},   {16, 32, 64, 16, 16, 2, 1}};
    case MatrixCores::none:
      break;
  }
  return {};
}

/// Returns the tile for B in panels. Of few rows, each wave has all, so that each of B's fragments
/// is loaded to registers once: shared memory would be the limit of these tiles, and how many of
/// them a compute unit has. Of more rows, several waves would load the same fragments
/// (results/2026-11-29-amd-shuffled-b).
Tile of_panels(Tile tile) {
  constexpr int few_rows = 64, least = 16, longest = 4;
  const int waves = tile.bm / tile.wm * (tile.bn / tile.wn), columns = tile.bn / waves;
  if (tile.bm > few_rows || columns < least || tile.bm > longest * columns) return tile;
  tile.direct = true;
  tile.wm = tile.bm;
  tile.wn = columns;
  return tile;
}

/// Clusters add slices with the lowest latency. Without clusters, adding in the same launch uses
/// fewer workgroups, and a second launch starts late.
int default_fold(const DeviceInfo& device, const Tile& tile, int split) {
  if (split == 1) return 0;
  if (has_clusters(device.architecture) && split <= most_in_cluster) return 2;
  return split * tile.bm * tile.bn <= 32768 ? 1 : 0;
}

/// Estimates the run time with this tile and `split` slices of K.
double cost(const Shape& shape, const DeviceInfo& device, const Tile& tile, int split) {
  const bool clusters = default_fold(device, tile, split) == 2;
  const std::int64_t units = clusters ? units_of_clusters(device, split) : busy_workgroups(device);
  return cost_of_tiles(shape, {tile.bm, tile.bn, tile.bk, tile.bm}, split, units);
}

/// Returns the elements of a load that leaves no thread idle, if there is such a width.
int load_width(const Shape& shape, bool turned, std::int64_t stride, std::int64_t of_thread) {
  const std::int64_t lines = turned ? 128 / bits_of(shape.in) : 1;
  return widest_vector(shape.in, stride, std::max<std::int64_t>(1, of_thread / lines));
}

Config config_of(const Shape& shape, const DeviceInfo& device, const Tile& tile, int split) {
  const MatrixKernel kernel(shape, device);
  const bool reads_turn = kernel.turning() == 1;
  Config config{"matrix",
                {{"BM", tile.bm},
                 {"BN", tile.bn},
                 {"WM", tile.wm},
                 {"WN", tile.wn},
                 {"BK", bits_of(shape.in) == 32 ? tile.bk / 2 : tile.bk},
                 {"INSTR", tile.instr},
                 {"VA", 1},
                 {"VB", 1},
                 {"PAD", 0},
                 {"STAGES", tile.stages},
                 {"ASYNC", 0},
                 // Transposing reads need registers.
                 {"FRAGMENTS", reads_turn ? 1 : tile.fragments},
                 {"SWIZZLE", 8},
                 {"WALK", 0},
                 {"XCDS", die_counts(device).back()},
                 {"SPLIT", split},
                 {"FOLD", default_fold(device, tile, split)},
                 {"ALIGN", 0}}};
  if (kernel.offers_pingpong()) config.values.emplace_back("PRIORITY", 0);
  if (kernel.offers_interleaving()) config.values.emplace_back("INTERLEAVE", 0);
  if (kernel.offers_pingpong()) config.values.emplace_back("PINGPONG", 0);
  // Loads that transpose (TURN=2) ran in an emulator alone, which has their layout from
  // measurements of others, so only searches, which verify, choose them.
  if (kernel.turning() != 0) config.values.emplace_back("TURN", kernel.turning() == 1 ? 1 : 0);
  if (kernel.offers_direct()) config.values.emplace_back("DIRECT", tile.direct ? 1 : 0);
  constexpr std::int64_t large = 1024;  // enough multiplications for each copied element
  const bool align = has_odd_lines(shape) && !shape.several() && !shape.gated &&
                     std::min(shape.m, shape.n) >= large;
  const std::int64_t bk = config["BK"];
  const auto of_thread = [&](int span) -> std::int64_t {
    return kernel.by_warpgroups(config) ? 8 : span * bk / kernel.threads(config);
  };
  config.value("ALIGN") = align ? 1 : 0;
  config.value("VA") = load_width(shape, kernel.turned(config, shape.a_along_k),
                                  align ? 8 : shape.a_unit(), of_thread(tile.bm));
  config.value("VB") = load_width(shape, kernel.turned(config, shape.b_along_k),
                                  align ? 8 : shape.b_unit(), of_thread(tile.bn));
  const auto& widths = kernel.copies();
  const auto copied = [&](int width) {
    return std::find(widths.begin(), widths.end(), width) != widths.end();
  };
  const bool async = copied(config["VA"]) && (tile.direct || copied(config["VB"]));
  config.value("ASYNC") = async ? 1 : 0;
  if (tile.direct) config.value("VB") = 8;
  if (!async) config.value("STAGES") = std::min(tile.stages, 2);
  return config;
}

/// A tile with a number of slices of K, and what they are estimated to cost.
struct Choice {
  double cost;
  Tile tile;
  int split;
};

bool is_cheaper(const Choice& x, const Choice& y) {
  return x.cost < y.cost;
}

/// Returns the cheapest numbers of slices for a tile, and one slice, which is always possible.
std::vector<Choice> choices_of(const Shape& shape, const DeviceInfo& device, const Tile& tile,
                               bool powers_of_two) {
  constexpr std::size_t cheapest = 3;
  const std::int64_t tiles = filled_lines(shape, tile.bm) * ceil_div(shape.products(), tile.bn);
  std::vector<Choice> choices;
  for (const int split : MatrixKernel(shape, device).slice_counts()) {
    if (powers_of_two && !std::has_single_bit(static_cast<unsigned>(split))) continue;
    const bool possible =
        !shape.several() && split * tile.bk <= shape.k && tiles * split <= most_slices(device);
    if (split == 1 || possible) {
      choices.push_back({cost(shape, device, tile, split), tile, split});
    }
  }
  const Choice whole = choices.front();
  std::stable_sort(choices.begin(), choices.end(), is_cheaper);
  choices.resize(std::min(choices.size(), cheapest));
  const auto is_whole = [](const Choice& choice) { return choice.split == 1; };
  if (std::none_of(choices.begin(), choices.end(), is_whole)) choices.push_back(whole);
  return choices;
}

std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  const bool offers_warpgroups = MatrixKernel(shape, device).offers_warpgroups() && !shape.panels;
  std::vector<Choice> choices;
  const bool direct = MatrixKernel(shape, device).offers_direct();
  const auto add = [&](bool by_warpgroups) {
    for (const Tile& rows : tiles_for(device, by_warpgroups)) {
      const Tile tile = direct ? of_panels(rows) : rows;
      const auto more = choices_of(shape, device, tile, offers_warpgroups && !by_warpgroups);
      choices.insert(choices.end(), more.begin(), more.end());
    }
  };
  if (offers_warpgroups) add(true);
  add(false);
  std::stable_sort(choices.begin(), choices.end(), is_cheaper);
  std::vector<Config> configs;
  for (const Choice& choice : choices) {
    configs.push_back(config_of(shape, device, choice.tile, choice.split));
  }
  const MatrixKernel kernel(shape, device);
  std::stable_partition(configs.begin(), configs.end(), [&kernel](const Config& c) {
    return kernel.registers(c) <= kernel.register_limit(c);
  });
  return configs;
}

/// With this many products, the bound of their sum is at least 2^-21 times the sum of their
/// magnitudes. Three products of TF32 omit at most as much: 2^-22 by the low parts' product,
/// and 2^-23 by the rounding of each low part.
constexpr std::int64_t least_split_products = 8;

/// Returns the shape without what `math` allows: `matrix` computes with the inputs as they are.
Shape exact(Shape shape) {
  shape.tf32x3 = false;
  return shape;
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const MatrixKernel kernel(shape, device);
  const double in = bytes_of(shape.in, 1), bm = config["BM"], bn = config["BN"], bk = config["BK"];
  const double wm = kernel.wm(config), wn = kernel.wn(config);
  LaunchWork work = work_of_tiles(shape, config);
  if (kernel.by_warpgroups(config) && between_cache_lines(shape)) {
    work.read_bytes *= cost_of_two_lines;
  }
  work.threads = static_cast<double>(kernel.threads(config));
  work.shared_bytes = static_cast<double>(kernel.shared_bytes(config));
  work.registers = static_cast<double>(kernel.registers(config));
  const double slower = kernel.splits() ? 6 : bits_of(shape.in) == 32 ? 8 : 1;  // than 16 bits
  work.warpgroups = kernel.by_warpgroups(config);
  // Warpgroups that also load multiply for part of their time only.
  const double waits = work.warpgroups ? 1.15 : 1;
  work.matrix_flops = 2 * bm * bn * bk * work.steps * slower * waits;
  // Warpgroup instructions read B for 64 rows of A at a time, waves read their part once.
  const double parts = bm / wm * (bn / wn);
  const double read = work.warpgroups ? parts * std::max(1.0, wm / warpgroup_rows) *
                                            (std::min<double>(wm, warpgroup_rows) + wn)
                                      : parts * (wm + wn);
  work.shared_traffic = work.steps * bk * in * (bm + bn + read) * waits;
  if (kernel.direct(config)) {  // A alone, and each row of waves loads B
    work.shared_traffic = work.steps * bk * in * (bm + parts * wm);
    work.loads += work.steps * bk * bn / config["VB"] * (bm / wm - 1);
  }
  const double step = bk * (bm + bn) * in;
  work.overlapped = config["STAGES"] > 1;
  work.ahead_bytes = config["ASYNC"] != 0 ? step * std::max(1, config["STAGES"] - 1) : step;
  if (kernel.offers_warpgroups()) {  // fitted as in tma.cpp
    const double stored = shape.residual ? 0.35 : 0.16;
    work.tail_cycles = tail_of_tile(shape, config, stored, 1);
  }
  if (config["FOLD"] != 0) add_folding(work, config, config["FOLD"] == 1);
  if (config["FOLD"] == 2) {
    work.usable_units = usable_by_clusters(device, config["SPLIT"]);
    if (work.warpgroups) work.barriers += bm * bn / 200;  // the exchange, by its cost
  }
  return work_of_launches(work, shape, config);
}

bool cooperative(const DeviceInfo& device) {
  return device.language == Language::glsl;
}

}  // namespace

Variant matrix() {
  constexpr auto any_space = [](const Shape& shape, const DeviceInfo& device) {
    return cooperative(device) ? cooperative_space(shape, device)
                               : matrix_space(exact(shape), device);
  };
  constexpr auto any_plan = [](const Shape& shape, const DeviceInfo& device, const Config& config) {
    return cooperative(device) ? cooperative_plan(shape, device, config)
                               : plan(exact(shape), device, config);
  };
  constexpr auto any_defaults = [](const Shape& shape, const DeviceInfo& device) {
    return cooperative(device) ? cooperative_defaults(shape, device)
                               : defaults(exact(shape), device);
  };
  Variant variant = make_variant<Shape>(
      "matrix", "on matrix cores: a workgroup computes a tile by products of subgroups", any_space,
      any_plan, any_defaults, divisions_of_tiles);
  variant.kernels_by = "INSTR";
  variant.migrations = {added("WALK", 0),       added("XCDS", 1),     added("PRIORITY", 0),
                        added("INTERLEAVE", 0), added("PINGPONG", 0), added("TURN", 0)};
  set_work<Shape>(variant, [](const Shape& shape, const DeviceInfo& device, const Config& config) {
    return cooperative(device) ? cooperative_work(shape, device, config)
                               : work(exact(shape), device, config);
  });
  return variant;
}

Variant tf32x3() {
  constexpr auto space = [](const Shape& shape, const DeviceInfo& device) {
    Shape rows = shape;
    rows.panels = false;  // of 16-bit values alone, which another constraint rejects
    Alternative a = matrix_space(rows, device);
    a.variant = "tf32x3";
    std::erase_if(a.parameters, [](const Parameter& each) {
      return each.name == "PRIORITY" || each.name == "INTERLEAVE" || each.name == "PINGPONG";
    });
    std::erase_if(a.constraints,
                  [](const Constraint& each) { return each.name.starts_with("pingpong"); });
    // The parts of an f32 take twice the registers of 16-bit values, so that tiles are smaller.
    for (Parameter& each : a.parameters) {
      if (each.name == "BM" || each.name == "BN") each.values = {16, 32, 64, 128};
      if (each.name == "WM" || each.name == "WN") each.values = {16, 32, 64};
      if (each.name == "BK") each.values = {16, 32};
      if (each.name == "SPLIT") each.values = {1, 2, 4, 8};
      if (each.name == "SWIZZLE") each.values = {1, 8};
    }
    a.constraints.insert(
        a.constraints.begin(),
        {{"math", "three products of TF32 need math tf32x3", shape.tf32x3},
         {"tensor_cores", "the device has no products of TF32 that HIP kernels can use",
          (!shape.tf32x3 || MatrixKernel(shape, device).splits())},
         {"many_products",
          fmt::format("k is less than {}: what three products omit may exceed the bound",
                      least_split_products),
          shape.k >= least_split_products}});
    return a;
  };
  constexpr auto own_defaults = [](const Shape& shape, const DeviceInfo& device) {
    if (!MatrixKernel(shape, device).splits()) return std::vector<Config>{};
    std::vector<Config> configs = defaults(shape, device);
    for (Config& config : configs) config.variant = "tf32x3";
    return configs;
  };
  Variant variant = make_variant<Shape>(
      "tf32x3",
      "f32 on NVIDIA's matrix cores, where math allows it: three products of TF32, of the "
      "high and the low parts of values",
      space, plan, own_defaults, divisions_of_tiles);
  // Of one type of inputs, with as many parameters as `matrix`: more random problems are needed.
  variant.kernels_by = "STAGES";
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::gemm
