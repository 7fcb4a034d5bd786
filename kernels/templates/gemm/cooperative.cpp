#include "kernels/templates/gemm/cooperative.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/cooperative_operations.hpp"
#include "kernels/templates/gemm/alignment.hpp"
#include "kernels/templates/gemm/cooperative_tiles.hpp"
#include "kernels/templates/gemm/plan.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "kernels/templates/gemm/work.hpp"

namespace greta::kernels::gemm {
namespace {

constexpr int chunk = 8;  // elements in 16 bytes; operands are f16 or bf16

CooperativeTiles tiles_of(const Shape& shape) {
  return {
      .a_along_k = shape.a_along_k, .b_along_k = shape.b_along_k, .loaded = [](const Config& c) {
        // 0 if a constraint is evaluated for WM > BM or WN > BN, which other constraints reject.
        const std::int64_t threads = std::max(1, cooperative_threads(c));
        return 4 * (std::int64_t{c["BM"] + c["BN"]} * c["BK"] / chunk / threads);
      }};
}

struct Tile {
  int bm, bn, wm, wn, bk, stages = 2;

  std::int64_t count(const Shape& shape) const {
    return filled_lines(shape, bm) * ceil_div(shape.products(), bn);
  }
};

Config config_of(const Shape& shape, const DeviceInfo& device, const MatrixOperation& o,
                 const Tile& tile, int split) {
  const auto width = [](std::int64_t stride) { return widest_vector(DType::f16, stride, chunk); };
  // A copy costs as much as reading the operand twice. It pays off if many tiles share it.
  constexpr std::int64_t many_rows = 256;
  const bool odd = has_odd_lines(shape);
  const bool align =
      odd && !shape.several() && !shape.gated && std::min(shape.m, shape.n) >= many_rows;
  return {"matrix",
          {{"BM", tile.bm},
           {"BN", tile.bn},
           {"WM", tile.wm},
           {"WN", tile.wn},
           {"BK", tile.bk},
           {"INSTR", static_cast<int>(o.n)},
           {"VA", align ? chunk : width(shape.a_unit())},
           {"VB", align ? chunk : width(shape.b_unit())},
           {"PAD", 1},
           {"STAGES", tile.stages},
           {"SWIZZLE", 8},
           {"SPLIT", split},
           {"ALIGN", align ? 1 : 0},
           {"SUBGROUP", subgroup_sizes(device).front()}}};
}

/// Returns a configuration for small problems: tiles with large BK and many subgroups, whose loads
/// hide each other's latency, and as many slices of at least 256 K steps as are resident at once.
Config config_of_little(const Shape& shape, const DeviceInfo& device, const MatrixOperation& o) {
  const std::int64_t m = shape.rows_of_group();
  if (shape.k <= 1024 && m > 64) {
    return config_of(shape, device, o, {64, 64, 32, 16, 64}, 1);
  }
  const Tile tile = m <= 16   ? Tile{16, 64, 16, 16, 64}
                    : m <= 32 ? Tile{32, 128, 32, 32, 64}
                    : m <= 64 ? Tile{64, 128, 32, 32, 64, 1}
                    : m < 256 ? Tile{128, 64, 32, 32, 64, 1}
                              : Tile{128, 128, 64, 64, 32};
  const std::int64_t room = (m <= 16 ? 4 : 2) * busy_workgroups(device);
  int split = 1;
  while (!shape.several() && split < 32 && tile.count(shape) * split * 2 <= room &&
         shape.k >= 512 * split)
    split *= 2;
  return config_of(shape, device, o, tile, split);
}

}  // namespace

Alternative cooperative_space(const Shape& shape, const DeviceInfo& device) {
  const auto list = cooperative_products(shape.in, device);
  // BM x BN  tile of C per workgroup: reuse of A and B versus number of workgroups
  // WM x WN  part of the tile per subgroup: reuse of shared memory reads
  // BK       K steps per stage in shared memory: fewer barriers versus more memory
  // INSTR    n of the matrix instruction
  // VA, VB   elements of A and B per load
  // PAD      16-byte chunks of padding per row in shared memory, against bank conflicts
  // STAGES   2: double buffering, with one barrier per stage instead of two
  // SWIZZLE  rows of tiles that are rasterised together, for L2 reuse
  // SPLIT    split-K: more workgroups for small C
  // ALIGN    unaligned operands are first copied to aligned rows, for wide loads
  // SUBGROUP required subgroup size
  Alternative a{"matrix", {}, {}};
  a.parameters = {
      {"BM", {16, 32, 64, 128, 256}},
      {"BN", {16, 32, 64, 128, 256}},
      {"WM", {16, 32, 64, 128}},
      {"WN", {16, 32, 64, 128}},
      {"BK", {16, 32, 64}},
      {"INSTR", product_names(list)},
      {"VA", vector_widths(DType::f16)},
      {"VB", vector_widths(DType::f16)},
      {"PAD", {0, 1}},
      {"STAGES", {1, 2}},
      {"SWIZZLE", {1, 2, 4, 8, 16}},
      {"SPLIT", {1, 2, 4, 8, 16, 32}},
      {"ALIGN", {0, 1}},
      {"SUBGROUP", subgroup_sizes(device)},
  };
  a.constraints = {storage_constraint(shape.in, shape.out, device)};
  a.constraints.push_back(
      {"matrix_operations",
       fmt::format("the device has no cooperative matrices of {}", to_string(shape.in)),
       !list.empty()});
  append(a.constraints, tiling_constraints(shape, device, true));
  append(a.constraints, alignment_constraints(shape));
  a.constraints.push_back(wide_enough("a_width", "VA", shape.in, shape.a_unit()));
  a.constraints.push_back(wide_enough("b_width", "VB", shape.in, shape.b_unit()));
  append(a.constraints, cooperative_constraints(tiles_of(shape), device, list));
  append(a.constraints, slice_constraints(shape, device));
  append(a.constraints, tiles_cpu_constraints(tiles_of(shape), device, list, shape.k, true));
  return a;
}

std::vector<Config> cooperative_defaults(const Shape& shape, const DeviceInfo& device) {
  std::vector<Config> configs;
  const auto list = cooperative_products(shape.in, device);
  if (list.empty()) return configs;
  constexpr Tile by_size[] = {{128, 256, 64, 64, 32}, {128, 128, 64, 64, 32}, {128, 64, 64, 32, 32},
                              {64, 64, 32, 32, 32},   {32, 64, 32, 32, 32},   {16, 64, 16, 32, 32},
                              {32, 32, 32, 16, 32},   {16, 32, 16, 16, 32}};
  const std::int64_t busy = busy_workgroups(device);
  if (shape.rows_of_group() <= 64 || by_size[2].count(shape) < 2 * busy) {
    configs.push_back(config_of_little(shape, device, list.front()));
  }
  std::vector<Tile> order, few;
  for (const Tile& tile : by_size) (tile.count(shape) >= busy ? order : few).push_back(tile);
  order.insert(order.end(), few.rbegin(), few.rend());
  for (const int bk : {32, 64, 16}) {
    for (Tile tile : order) {
      tile.bk = bk;
      const int split = default_split(shape, device, tile.count(shape));
      configs.push_back(config_of(shape, device, list.front(), tile, split));
    }
  }
  return configs;
}

LaunchPlan cooperative_plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const MatrixOperation o = product_of(cooperative_products(shape.in, device), config["INSTR"]);
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  add_operation(defines, o);
  add_alignment(defines, shape, config);
  KernelSource kernel =
      kernel_source(shape, device, "matrix", defines, cooperative_threads(config));
  require_subgroups(kernel, device, config);
  LaunchPlan plan = plan_of_tiles(shape, device, config, std::move(kernel));
  add_alignment(plan, shape, device, config);
  return plan;
}

KernelWork cooperative_work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const MatrixOperation o = product_of(cooperative_products(shape.in, device), config["INSTR"]);
  const double bm = config["BM"], bn = config["BN"], bk = config["BK"];
  LaunchWork work = work_of_tiles(shape, config);
  set_cooperative_work(work, tiles_of(shape), config, o);
  work.ahead_bytes = 2 * bk * (bm + bn);
  return work_of_launches(work, shape, config);
}

}  // namespace greta::kernels::gemm
