#include "kernels/templates/quantized_gemm/cooperative.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/cooperative_operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/gemm/cooperative_tiles.hpp"
#include "kernels/templates/quantized_gemm/plan.hpp"

namespace greta::kernels::quantized_gemm {
namespace {

constexpr std::int64_t segment = 32;  ///< weights of a line that lie together

/// Returns how many numbers of A's type add up to any weight, but for what the bound of exact
/// products has room for (weight_parts.glsl); 0 if none do. With bf16, weights of scales of its own
/// and integers of 8 bits have 16 bits, those of GGUF formats up to 24. f16 has not the range of
/// mxfp4.
int exact_parts(const Shape& shape) {
  const bool half = shape.in == DType::f16;
  if (shape.format == WeightFormat::mxfp4) return half ? 0 : 1;
  if (half || !in_blocks(shape.format) || shape.format == WeightFormat::q4_0) return 2;
  return 3;
}

/// Returns whether matrix operations of f16 take numbers below the normal ones as they are, which
/// lower parts of weights often are. NVIDIA's and those of CPUs do. AMD's MI200 takes them as 0; of
/// the others it is not known.
bool keeps_denormals(const DeviceInfo& device) {
  return device.vendor == "NVIDIA" || device.vendor == "Mesa";
}

/// Returns whether weights may be rounded to one number, whose range they are in.
bool may_round(const Shape& shape) {
  return shape.rounded && shape.format != WeightFormat::mxfp4;
}

gemm::CooperativeTiles tiles() {
  return {.loaded =
              [](const Config& c) {
                // 0 if a constraint is evaluated for WM > BM or WN > BN, which others reject.
                const std::int64_t threads = std::max(1, gemm::cooperative_threads(c));
                const std::int64_t step = c["BK"], decoded = c["DECODE"];
                const std::int64_t of_a = c["BM"] * step / 8 / threads * 4;
                return of_a + c["BN"] * step / decoded / threads * (decoded / 4 + 3);
              },
          .further = {"PARTS", "DECODE"}};
}

std::vector<Constraint> problem_constraints(const Shape& shape, const DeviceInfo& device,
                                            bool has_products) {
  const int exact = exact_parts(shape);
  std::vector<Constraint> list{
      storage_constraint(shape.halves(), shape.out, device),
      no_norm(shape),
      {"matrix_operations",
       fmt::format("the device has no cooperative matrices of {}", to_string(shape.in)),
       has_products},
      {"range", "f16 does not have the range of mxfp4", exact > 0},
      {"math",
       fmt::format("PARTS must be {}, the numbers of {} that add up to a weight; or 1 with math "
                   "rounded_weights",
                   exact, to_string(shape.in)),
       p["PARTS"] == exact || (may_round(shape) && p["PARTS"] == 1)},
      {"denormals",
       "exact products of f16 need matrix operations that do not take small numbers as 0, which is "
       "known of NVIDIA's and of those of CPUs; math rounded_weights does not",
       p["PARTS"] == 1 || shape.in != DType::f16 || keeps_denormals(device)},
  };
  append(list, tile_constraints(shape, device, 16));
  list.push_back({"decoding",
                  "BN x BK weights, DECODE at a time, must give every thread the same number",
                  p["BN"] * p["BK"] % (p["DECODE"] * gemm::cooperative_threads(p)) == 0});
  return list;
}

struct Tile {
  int bm, bn, wm, wn, bk = 32, stages = 2;

  std::int64_t count(const Shape& shape) const {
    return filled_lines(shape, bm) * ceil_div(shape.products(), std::int64_t{bn});
  }
};

Config config_of(const Shape& shape, const DeviceInfo& device, const MatrixOperation& o,
                 const Tile& tile) {
  Config config{"matrix",
                {{"BM", tile.bm},
                 {"BN", tile.bn},
                 {"WM", tile.wm},
                 {"WN", tile.wn},
                 {"BK", tile.bk},
                 {"INSTR", static_cast<int>(o.n)},
                 {"PAD", 1},
                 {"STAGES", tile.stages},
                 {"SWIZZLE", 8},
                 {"PARTS", may_round(shape) ? 1 : exact_parts(shape)},
                 {"DECODE", 8},
                 {"SUBGROUP", subgroup_sizes(device).front()}}};
  // One load for all weights of a segment, where that leaves no thread idle.
  const int threads = gemm::cooperative_threads(config);
  if (threads > 0 && tile.bn * tile.bk % (segment * threads) == 0) config.value("DECODE") = 32;
  return config;
}

}  // namespace

Alternative cooperative_space(const Shape& shape, const DeviceInfo& device) {
  const auto list = cooperative_products(shape.in, device);
  // BM x BN  tile of C per workgroup: reuse of A and of decoded weights versus number of workgroups
  // WM x WN  part of the tile per subgroup: reuse of shared memory reads
  // BK       K steps per stage in shared memory: fewer barriers versus more memory
  // INSTR    n of the matrix instruction
  // PAD      16-byte chunks of padding per row in shared memory, against bank conflicts
  // STAGES   2: double buffering, with one barrier per stage instead of two
  // SWIZZLE  rows of tiles that are rasterised together, for L2 reuse
  // PARTS    numbers of A's type that stand for a weight, each of which is multiplied
  // DECODE   weights of a line that a thread loads and decodes at a time
  // SUBGROUP required subgroup size
  Alternative a{"matrix",
                {{"BM", {16, 32, 64, 128, 256}},
                 {"BN", {16, 32, 64, 128, 256}},
                 {"WM", {16, 32, 64, 128}},
                 {"WN", {16, 32, 64, 128}},
                 {"BK", {32, 64}},
                 {"INSTR", product_names(list)},
                 {"PAD", {0, 1}},
                 {"STAGES", {1, 2}},
                 {"SWIZZLE", {1, 2, 4, 8, 16}},
                 {"PARTS", {1, 2, 3}},
                 {"DECODE", {8, 32}},
                 {"SUBGROUP", subgroup_sizes(device)}},
                problem_constraints(shape, device, !list.empty())};
  append(a.constraints, gemm::cooperative_constraints(tiles(), device, list));
  append(a.constraints, gemm::tiles_cpu_constraints(tiles(), device, list, shape.k, false));
  return a;
}

/// The largest tiles that keep the device busy, as for gemm. `gemv` is for few rows.
std::vector<Config> cooperative_defaults(const Shape& shape, const DeviceInfo& device) {
  std::vector<Config> configs;
  const auto list = cooperative_products(shape.in, device);
  if (list.empty() || (!shape.grouped() && shape.m < 16)) return configs;
  // The sums of two levels leave registers for those of 64 x 32 elements.
  static constexpr Tile by_size[] = {{128, 256, 64, 64}, {128, 128, 64, 64}, {128, 128, 64, 32},
                                     {128, 64, 64, 32},  {64, 64, 32, 32},   {32, 64, 32, 32},
                                     {16, 64, 16, 32},   {32, 32, 32, 16},   {16, 32, 16, 16}};
  std::vector<Tile> order, few;
  for (const Tile& tile : by_size) {
    // More than half of a tile would be idle.
    if (tile.bm > 16 && tile.bm >= 2 * shape.rows_of_group()) continue;
    (tile.count(shape) >= busy_workgroups(device) ? order : few).push_back(tile);
  }
  order.insert(order.end(), few.rbegin(), few.rend());
  for (const int stages : {2, 1}) {
    for (Tile tile : order) {
      tile.stages = stages;
      configs.push_back(config_of(shape, device, list.front(), tile));
    }
  }
  return configs;
}

LaunchPlan cooperative_plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const std::int64_t rows = config["BM"], columns = config["BN"];
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  add_operation(defines, product_of(cooperative_products(shape.in, device), config["INSTR"]));
  const std::int64_t across = ceil_div(shape.products(), columns);
  const std::int64_t lines = launched_lines(shape, rows);
  std::vector<Argument> given = arguments(shape, across, lines);
  LaunchPlan plan;
  plan.sources.push_back(
      kernel_of(shape, device, "matrix", defines, gemm::cooperative_threads(config), given));
  require_subgroups(plan.sources[0], device, config);
  const auto workgroups = static_cast<std::uint64_t>(across * lines);
  plan.launches.push_back({0, grid(device, plan.sources[0], workgroups), std::move(given)});
  return plan;
}

std::vector<Division> cooperative_divisions(const Shape& shape, const Config& config) {
  const std::int64_t lines = launched_lines(shape, std::int64_t{config["BM"]});
  return {{"m", shape.m, config["BM"], "BM", 16},
          {"n", shape.products(), config["BN"], "BN", 16},
          {"chunks", shape.k / segment, config["BK"] / segment, {}, 2},
          {"lines of tiles", lines, config["SWIZZLE"], "SWIZZLE"}};
}

KernelWork cooperative_work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const MatrixOperation o = product_of(cooperative_products(shape.in, device), config["INSTR"]);
  const double bm = config["BM"], bn = config["BN"], parts = config["PARTS"];
  LaunchWork work;
  work.workgroups = expected_tiles(shape, config["BM"], config["BN"]);
  work.steps = static_cast<double>(ceil_div(shape.k, std::int64_t{config["BK"]}));
  gemm::set_cooperative_work(work, tiles(), config, o);
  const double k = work.steps * config["BK"];
  const double weight =
      static_cast<double>(row_bytes(shape.format, shape.k)) / static_cast<double>(shape.k);
  // A weight costs its integer, its conversion, a difference, a product and the rounding of its
  // only part, and what is left of it for each further one about as much.
  work.vector_flops += bn * k * (6 * parts);
  work.read_bytes = bn * k * (weight + scale_bytes(shape)) + bm * k * 2;
  work.written_bytes = bm * bn * bytes_of(shape.out, 1.0);
  work.loads = bm * k / 8 + bn * k * (weight / bytes_of_load(shape, weight * config["DECODE"]));
  work.ahead_bytes = work.read_bytes / work.steps;
  work.unique_bytes = least_bytes(shape);
  return {work};
}

}  // namespace greta::kernels::quantized_gemm
