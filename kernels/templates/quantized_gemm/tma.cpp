#include <fmt/format.h>

#include <algorithm>

#include "kernels/model/weight_panels.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/line_map.hpp"
#include "kernels/templates/quantized_gemm/plan.hpp"
#include "kernels/templates/quantized_gemm/tma_tiles.hpp"
#include "kernels/templates/quantized_gemm/variant.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// Products of many rows with quantised weights by warpgroups, which make operands of what one
/// thread copies in boxes: NVIDIA's sm_90.
namespace greta::kernels::quantized_gemm {
namespace {

using namespace tma_tiles;

/// Reject tiles that the problem or the device cannot have, or that would be mostly idle.
std::vector<Constraint> constraints_of_tiles(const Shape& shape, const DeviceInfo& device) {
  // What is valid for an m is valid for all that are looked up with it.
  const std::int64_t rows_of_bucket = next_power(shape.m);
  return {
      {"warpgroups",
       fmt::format("the device has no warpgroup instructions on {}", to_string(shape.in)),
       offered(shape, device)},
      {"clusters", "the device has no clusters of workgroups",
       p["SPLIT"] == 1 || has_clusters(device.architecture)},
      {"slices", "gates and groups of rows have no slices: SPLIT and SHARES must be 1",
       (p["SPLIT"] == 1 && p["SHARES"] == 1) || !(shape.gated() || shape.grouped())},
      {"shares",
       "SHARES=2 needs groups of weights, GROUPS up to 2, an even number of STAGES from 4 on, "
       "RESIDENT=0 and ROUND=0",
       p["SHARES"] == 1 || (!in_blocks(shape.format) && p["GROUPS"] <= 2 && p["STAGES"] >= 4 &&
                            p["STAGES"] % 2 == 0 && p["RESIDENT"] == 0 && p["ROUND"] == 0)},
      {"math",
       "ROUND=1 needs math rounded_weights, or A of bf16 and weights of mxfp4, which bf16 has "
       "below 2^128; f16 does not have the range of mxfp4",
       p["ROUND"] == 0 || may_round(shape)},
      {"products", "with blocks, BN must be 64 x GROUPS",
       !in_blocks(shape.format) || p["BN"] == p["GROUPS"] * product_cols},
      {"groups", "GROUPS must divide BN into multiples of 64, two of these at most",
       p["BN"] % (p["GROUPS"] * product_cols) == 0 && p["BN"] <= p["GROUPS"] * (2 * product_cols)},
      {"tile_m",
       fmt::format("BM must not exceed m, {}, rounded up to a power of two, unless it is 16",
                   shape.m),
       p["BM"] <= rows_of_bucket || p["BM"] == 16},
      {"tile_n",
       fmt::format("BN must not be twice the product's columns, {}, or more, unless it is 64",
                   shape.products()),
       p["BN"] < 2 * shape.products() || p["BN"] == 64}};
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t shared = device.shared_memory_bytes, groups = most_workgroups(device);
  // BM x BN   tile of C of a workgroup
  // GROUPS    warpgroups that share its columns
  // STAGES    steps of 128 k in shared memory
  // SPLIT     workgroups of a cluster that share K
  // RESIDENT  1: a workgroup for each compute unit, which computes tile after tile
  // ROUND     1: weights are scaled and rounded to A's type before they are multiplied
  // SHARES    shares of K in a workgroup, each of which has GROUPS warpgroups
  Alternative a{"tma",
                {{"BM", {16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 256}},
                 {"BN", {64, 128, 192, 256}},
                 {"GROUPS", {1, 2, 3}},
                 {"STAGES", {2, 3, 4, 5, 6, 8, 10, 12}},
                 {"SPLIT", {1, 2, 4, 8}},
                 {"RESIDENT", {0, 1}},
                 {"ROUND", {0, 1}},
                 {"SHARES", {1, 2}}},
                {storage_constraint(shape.halves(), shape.out, device), no_norm(shape),
                 rows_of_weights(shape)}};
  append(a.constraints, constraints_of_tiles(shape, device));
  append(a.constraints,
         {{"split",
           fmt::format("SPLIT must divide BM, not exceed the steps of 128 of k, {}, and have "
                       "RESIDENT=0",
                       shape.k),
           p["SPLIT"] == 1 || (p["BM"] % p["SPLIT"] == 0 && p["RESIDENT"] == 0 &&
                               p["SPLIT"] <= ceil_div(shape.k, step))},
          {"grid", fmt::format("C has more than {} workgroups", groups),
           ceil_div(shape.products(), p["BN"]) * launched_lines(shape, p["BM"]) <= groups},
          {"shared_memory",
           fmt::format("STAGES of both operands, and stored sums, must fit {} KiB", shared / 1024),
           {{"BM", "BN", "STAGES", "GROUPS", "SPLIT", "SHARES"},
            [=](const Config& c) { return shared_bytes(shape, c) <= shared; }}},
          {"registers",
           "sums and operands need more registers than a thread has",
           {{"BM", "BN", "GROUPS", "ROUND", "SHARES"},
            [=](const Config& c) { return has_registers(shape, c); }}}});
  return a;
}

std::int64_t blocks_of(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const std::int64_t tiles = tiles_along_m(shape, config) * tiles_along_n(shape, config);
  return config["RESIDENT"] != 0
             ? std::min(tiles, std::max<std::int64_t>(1, busy_workgroups(device)))
             : tiles;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const std::int64_t wave = device.subgroup_size;
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  defines.emplace_back("WAVE", std::to_string(wave));
  defines.emplace_back("WHOLE_STEPS", shape.k % step == 0 ? "1" : "0");
  defines.emplace_back("LINE_STAGES", std::to_string(line_stages(shape, config)));
  defines.emplace_back("LINE_BYTES", std::to_string(box_bytes(shape)));
  defines.emplace_back("SHARED_BYTES", std::to_string(shared_bytes(shape, config)));
  std::vector<Argument> given = arguments(shape, tiles_along_m(shape, config));
  for (const std::int64_t count :
       {tiles_along_m(shape, config) * tiles_along_n(shape, config),
        ceil_div(ceil_div(shape.k, step), std::int64_t{config["SPLIT"]})}) {
    given.emplace_back(static_cast<std::uint32_t>(count));
  }
  given.push_back(map_of_lines(0, shape.all_rows(), shape.k * 2, config["BM"]));
  if (box_bytes(shape) != 0) {
    // Gates and ups of a warpgroup are boxes of their own.
    const std::int64_t lines = shape.gated() ? config["BN"] / config["GROUPS"] / 2 : config["BN"];
    const std::int64_t rows = shape.groups * shape.products();
    const std::int64_t bytes = row_bytes(shape.format, shape.k);
    // A box of panels has two units of each of their rows.
    given.push_back(
        shape.panels
            ? map_of_lines(1, rows / panel_rows, panel_rows * bytes, lines / panel_rows,
                           2 * panel_rows * panel_unit_bytes)
            : map_of_lines(1, rows, bytes, lines, in_blocks(shape.format) ? box_bytes(shape) : 0));
  }
  LaunchPlan plan;
  plan.sources.push_back(kernel_of(shape, device, "tma", defines, threads_of(config, wave), given));
  KernelSource& source = plan.sources[0];
  compile_for_warpgroups(source, device);
  source.dynamic_shared_bytes = static_cast<std::uint32_t>(shared_bytes(shape, config));
  const auto blocks = static_cast<std::uint64_t>(blocks_of(shape, device, config));
  plan.launches.push_back({0, grid(device, source, blocks, config["SPLIT"]), std::move(given)});
  return plan;
}

/// Tiles with the same weights are in bands, which begin again for each column of tiles.
std::vector<Division> divisions(const Shape& shape, const Config& config) {
  constexpr std::int64_t band = 16;  // as tile_of() in tma.hip
  const bool columns = shape.products() > config["BN"];
  return {{"m", shape.m, config["BM"], "BM", 16},
          {"n", shape.products(), config["BN"]},
          {"steps", ceil_div(shape.k, step), config["SPLIT"], {}, 2},
          {"lines of tiles", columns ? ceil_div(shape.m, config["BM"]) : 0, columns ? band : 1}};
}

}  // namespace

Variant tma() {
  Variant variant = make_variant<Shape>(
      "tma",
      "NVIDIA's sm_90, many rows, integers in groups: warpgroups make operands of weights that one "
      "thread copies in boxes",
      space, plan, defaults, divisions);
  variant.migrations = {added("ROUND", 0), added("SHARES", 1)};
  set_work<Shape>(variant, work);
  set_candidates<Shape>(variant, candidates);
  return variant;
}

}  // namespace greta::kernels::quantized_gemm
