#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/templates/gemm/alignment.hpp"
#include "kernels/templates/gemm/plan.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "kernels/templates/gemm/split_kernel.hpp"
#include "kernels/templates/gemm/tensor_maps.hpp"
#include "kernels/templates/gemm/variant.hpp"
#include "kernels/templates/gemm/work.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// GEMM of f32 by three products of TF32 on warpgroups, which is NVIDIA's sm_90.
namespace greta::kernels::gemm {
namespace {

constexpr std::int64_t most_rows = 192;  ///< of R: three warpgroups

/// Three products omit at most 2^-20 of the sum of the products' magnitudes where high parts
/// are cut off: 2^-21 by the low parts' product, of either sign, and 2^-22 and 2^-23 by their
/// rounding. The root mean square is less than a tenth of f32's bound from here on.
constexpr std::int64_t least_cut_products = 32;

std::vector<Constraint> problem_constraints(const Shape& shape, const DeviceInfo& device,
                                            const SplitKernel& kernel) {
  return {
      {"math", "three products of TF32 need math tf32x3", shape.tf32x3},
      {"warpgroups", "the device has no warpgroup instructions on TF32",
       !shape.tf32x3 || kernel.offered()},
      {"along_k", "A must lie along k, as in layouts nn and nt", kernel.has_layout()},
      {"many_products",
       fmt::format("k is less than {}: what three products omit may exceed the bound",
                   least_cut_products),
       shape.k >= least_cut_products},
      storage_constraint(shape.in, shape.out, device),
      tile_fits("tile_m", "BM", shape.m, 'm'),
      tile_fits("tile_n", "BN", shape.n, 'n'),
      plain_product(shape),
      grid_of_tiles(shape, device),
      whole_steps_constraint(shape),
      whole_lines_constraint(shape),
      fold_constraint(),
      walk_constraint(shape),
  };
}

std::vector<Constraint> tile_constraints(const DeviceInfo& device, const SplitKernel& kernel) {
  const std::int64_t shared = device.shared_memory_bytes;
  const bool swapped = kernel.swapped();
  const Expression rows = p[swapped ? "BN" : "BM"], span = p[swapped ? "BM" : "BN"];
  return {
      {"rows",
       fmt::format("{} must be 64, 128 or 192: of a warpgroup, two or three",
                   swapped ? "BN" : "BM"),
       rows % 64 == 0 && rows <= most_rows},
      {"piece", fmt::format("PIECE must divide {}", swapped ? "BM" : "BN"), span % p["PIECE"] == 0},
      {"ahead", "AHEAD needs several pieces", p["AHEAD"] == 0 || p["PIECE"] < span},
      {"promote", "PROMOTE of more than 1 needs AHEAD=0, and one piece",
       p["PROMOTE"] == 1 || (p["AHEAD"] == 0 && p["PIECE"] == span)},
      {"shared_memory",
       fmt::format("STAGES of both tiles, and two of low parts, must fit {} KiB", shared / 1024),
       {{"BM", "BN", "BK", "STAGES"},
        [=](const Config& c) { return kernel.shared_bytes(c) <= shared; }}},
      {"registers",
       "sums, those of pieces and the parts of a step need more registers than a thread has",
       {{"BM", "BN", "PIECE", "AHEAD"},
        [=](const Config& c) { return kernel.least_registers(c) <= kernel.register_limit(c); }}},
  };
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const SplitKernel kernel(shape, device);
  // R, which is A or in layout nn B, has 64 rows of the tile for each warpgroup.
  // BM x BN  tile of C per workgroup
  // BK       K steps per stage
  // PIECE    columns of a product, whose sums are added to the whole ones with rounding
  // AHEAD    1: the next piece's products run while a piece's sums are added
  // PROMOTE  K steps whose products are summed up before that
  // ROUNDED  1: high parts of S are rounded, and not cut off
  // STAGES   stages in shared memory
  // SWIZZLE  rows of tiles that are rasterised together; WALK=1: columns
  // SPLIT    slices of K; FOLD: how they are added, as in `matrix`
  // ALIGN    1: operands with odd lines are first copied to aligned rows
  const std::vector<int> extents{64, 96, 128, 160, 192, 224, 256};
  Alternative a{"tf32x3_tma",
                {{"BM", extents},
                 {"BN", extents},
                 {"BK", {32}},
                 {"PIECE", {32, 64, 96, 128, 160, 192}},
                 {"AHEAD", {0, 1}},
                 {"PROMOTE", {1, 2, 4}},
                 {"ROUNDED", {0, 1}},
                 {"STAGES", {2, 3, 4, 5, 6}},
                 {"SWIZZLE", {1, 4, 8, 16}},
                 {"WALK", {0, 1}},
                 {"SPLIT", {1, 2, 3, 4, 6, 8, 12, 16}},
                 {"FOLD", {0, 1}},
                 {"ALIGN", {has_odd_lines(shape) ? 1 : 0}}},
                {}};
  a.constraints = problem_constraints(shape, device, kernel);
  append(a.constraints, tile_constraints(device, kernel));
  append(a.constraints, slice_constraints(shape, device));
  return a;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const SplitKernel kernel(shape, device);
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  defines.emplace_back("WAVE", std::to_string(device.subgroup_size));
  if (shape.alpha == 1) defines.emplace_back("ALPHA_IS_ONE", "1");
  defines.emplace_back("SHARED_BYTES", std::to_string(kernel.shared_bytes(config)));
  KernelSource source = kernel_source(shape, device, "tma_split", defines, kernel.threads(config));
  compile_for_warpgroups(source, device);
  source.dynamic_shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes(config));
  LaunchPlan plan = plan_of_tiles(shape, device, config, std::move(source));
  add_alignment(plan, shape, device, config);
  Launch& product = plan.launches[config["ALIGN"] != 0 ? 1 : 0];
  const std::int64_t bk = config["BK"];
  add_tensor_maps(product.arguments, shape,
                  {shape.a_along_k ? std::int64_t{config["BM"]} : bk,
                   shape.b_along_k ? std::int64_t{config["BN"]} : bk});
  declare_arguments(plan.sources[product.source], product.arguments);
  return plan;
}

struct Tile {
  int rows, span;  ///< of R and of S
  int piece, ahead;
};

/// Returns tiles whose sums fit the registers, large ones first.
std::vector<Tile> default_tiles() {
  return {{128, 256, 64, 0}, {192, 128, 64, 0}, {128, 192, 64, 1}, {128, 128, 64, 0},
          {128, 64, 32, 1},  {64, 256, 64, 0},  {64, 128, 64, 1},  {64, 64, 32, 1}};
}

Config config_of(const Shape& shape, const DeviceInfo& device, const Tile& tile, int split) {
  const SplitKernel kernel(shape, device);
  Config config{"tf32x3_tma",
                {{"BM", kernel.swapped() ? tile.span : tile.rows},
                 {"BN", kernel.swapped() ? tile.rows : tile.span},
                 {"BK", 32},
                 {"PIECE", tile.piece},
                 {"AHEAD", tile.ahead},
                 {"PROMOTE", 1},
                 {"ROUNDED", 0},
                 {"STAGES", 2},
                 {"SWIZZLE", 8},
                 {"WALK", 0},
                 {"SPLIT", split},
                 {"FOLD", split > 1 ? 1 : 0},
                 {"ALIGN", has_odd_lines(shape) ? 1 : 0}}};
  raise_stages(config, 6, device, [&](const Config& c) { return kernel.shared_bytes(c); });
  return config;
}

std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  const SplitKernel kernel(shape, device);
  if (!kernel.offered() || !kernel.has_layout()) return {};
  const std::vector<Tile> tiles = default_tiles();
  std::vector<TileExtents> extents;
  for (const Tile& tile : tiles) {
    const int bm = kernel.swapped() ? tile.span : tile.rows;
    const int bn = kernel.swapped() ? tile.rows : tile.span;
    extents.push_back({bm, bn, 32, bm});
  }
  std::vector<Config> configs;
  for (const auto& [tile, split] : cheapest_first(shape, device, extents)) {
    configs.push_back(config_of(shape, device, tiles[tile], split));
  }
  return configs;
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const SplitKernel kernel(shape, device);
  const double bm = config["BM"], bn = config["BN"], bk = config["BK"];
  const auto rows = static_cast<double>(kernel.rows(config));
  const auto span = static_cast<double>(kernel.span(config));
  Config loads = config;  // as if each thread of a wave copied 16 bytes
  loads.values.emplace_back("VA", 4);
  loads.values.emplace_back("VB", 4);
  LaunchWork work = work_of_tiles(shape, loads);
  work.loads /= 64;  // one instruction for a box
  work.threads = static_cast<double>(kernel.threads(config));
  work.shared_bytes = static_cast<double>(kernel.shared_bytes(config));
  // Those that the feeding warpgroup gives away are enough (register_limit()).
  work.registers = std::min(static_cast<double>(kernel.registers(config)),
                            static_cast<double>(register_file(device)) / work.threads);
  constexpr double slower = 6;  // than products of 16 bits: three, each at half of their rate
  // The rest is measured on an H200: products wait for the sums of a piece, and small tiles for
  // copies.
  const double waits = 1 + (config["AHEAD"] != 0 ? 5.0 : 7.0) / config["PIECE"] + 6000 / (bm * bn) +
                       0.05 * config["ROUNDED"] + (rows > 128 ? 0.1 : 0);
  work.matrix_flops = 2 * bm * bn * bk * work.steps * slower * waits;
  work.warpgroups = true;
  // Products read S for 64 rows of R at a time; S is also read and written to be split.
  const double read = rows + span * (3 * rows / 64 + 2 + config["ROUNDED"]);
  work.shared_traffic = work.steps * bk * 4 * (bm + bn + read);
  work.overlapped = true;
  work.barriers = work.steps / 2;
  work.ahead_bytes = bk * (bm + bn) * 4 * (config["STAGES"] - 1);
  if (config["FOLD"] != 0) {
    add_folding(work, config, true);
    work.barriers += 4 * bm * bn / 300;  // the exchange, by its cost
  }
  return work_of_launches(work, shape, config);
}

}  // namespace

Variant tf32x3_tma() {
  Variant variant = make_variant<Shape>(
      "tf32x3_tma",
      "as tf32x3, on NVIDIA's warpgroups: one thread copies boxes, and high and low parts are "
      "multiplied from registers and shared memory",
      space, plan, defaults, divisions_of_stages);
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::gemm
