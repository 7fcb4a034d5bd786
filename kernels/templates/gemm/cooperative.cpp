#include "kernels/templates/gemm/cooperative.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/cooperative_operations.hpp"
#include "kernels/templates/gemm/alignment.hpp"
#include "kernels/templates/gemm/plan.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "kernels/templates/gemm/work.hpp"

namespace greta::kernels::gemm {
namespace {

constexpr int chunk = 8;  // elements in 16 bytes; operands are f16 or bf16

auto subgroups_of(const auto& c) {
  return c["BM"] / c["WM"] * (c["BN"] / c["WN"]);
}

auto threads_of(const auto& c) {
  return subgroups_of(c) * c["SUBGROUP"];
}

/// Returns the columns of the accumulators that are staged through shared memory at a time.
auto piece_of(const auto& c) {
  return min(c["WN"], 64);
}

std::int64_t shared_bytes(const Shape& shape, const Config& c, const MatrixOperation& o) {
  const auto tile = [&c](bool along_k, const char* span) {
    const std::int64_t lines = along_k ? c[span] : c["BK"], length = along_k ? c["BK"] : c[span];
    return lines * (length / chunk + c["PAD"]) * 16;
  };
  const std::int64_t stage = tile(shape.a_along_k, "BM") + tile(shape.b_along_k, "BN");
  const std::int64_t piece = std::int64_t{o.m} * (piece_of(c) / 4 + 1) * 16;
  return std::max(c["STAGES"] * stage, subgroups_of(c) * piece);
}

/// Returns an estimate of a thread's 32-bit registers: accumulators, one row of A's fragments and
/// two of B's, loads in flight, addresses.
std::int64_t registers_of(const Config& c, const MatrixOperation& o) {
  const std::int64_t lanes = c["SUBGROUP"];
  const std::int64_t sums = std::int64_t{c["WM"]} * c["WN"] / lanes;
  const std::int64_t fragments = (std::int64_t{c["WM"]} + 2 * o.n) * o.k / 2 / lanes;
  // 0 if a constraint is evaluated for WM > BM or WN > BN, which other constraints reject.
  const std::int64_t threads = std::max(1, threads_of(c));
  const std::int64_t chunks = std::int64_t{c["BM"] + c["BN"]} * c["BK"] / chunk / threads;
  return sums + fragments + 4 * chunks + 40;
}

/// Every thread loads the same number of chunks of an operand's tile.
Constraint loads_divide(const char* name, const char* extent) {
  return {
      name,
      fmt::format("{} x BK elements in chunks of 8 must give every thread at least one", extent),
      p[extent] * p["BK"] % (chunk * threads_of(p)) == 0};
}

std::vector<Constraint> tile_constraints(const Shape& shape, const DeviceInfo& device,
                                         const std::vector<MatrixOperation>& list) {
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  const std::int64_t file = register_file(device);
  return {
      {"waves",
       "products of INSTR must divide WM x WN and BK, and WM and WN must not exceed BM and BN",
       {{"BM", "BN", "WM", "WN", "BK", "INSTR"},
        [list](const Config& c) {
          const MatrixOperation o = product_of(list, c["INSTR"]);
          const auto divides = [](std::int64_t part, std::int64_t whole) {
            return whole % part == 0;
          };
          return c["WM"] <= c["BM"] && c["WN"] <= c["BN"] && divides(o.m, c["WM"]) &&
                 divides(o.n, piece_of(c)) && divides(o.k, c["BK"]);
        }}},
      {"workgroup_threads",
       fmt::format("BM/WM x BN/WN subgroups must not be more than {} threads", threads),
       threads_of(p) <= threads},
      loads_divide("a_loads", "BM"),
      loads_divide("b_loads", "BN"),
      {"writes",
       "every lane must write the same number of fours of a product's rows",
       {{"WN", "INSTR", "SUBGROUP"},
        [list](const Config& c) {
          const std::int64_t rows = product_of(list, c["INSTR"]).m;
          return rows * piece_of(c) % (4 * c["SUBGROUP"]) == 0;
        }}},
      {"shared_memory",
       fmt::format("STAGES of both tiles must fit {} KiB, as must INSTR rows of the sums",
                   shared / 1024),
       {{"BM", "BN", "WM", "WN", "BK", "INSTR", "PAD", "STAGES"},
        [=](const Config& c) {
          return shared_bytes(shape, c, product_of(list, c["INSTR"])) <= shared;
        }}},
      {"registers",
       "sums, fragments and what is loaded need more than 255 registers of a thread",
       {{"BM", "BN", "WM", "WN", "BK", "INSTR", "SUBGROUP"},
        [list](const Config& c) { return registers_of(c, product_of(list, c["INSTR"])) <= 255; }}},
      {"register_file",
       fmt::format("the threads of a workgroup need more than {} registers together", file),
       {{"BM", "BN", "WM", "WN", "BK", "INSTR", "SUBGROUP"},
        [=](const Config& c) {
          return registers_of(c, product_of(list, c["INSTR"])) * threads_of(c) <= file;
        }}},
  };
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
  append(a.constraints, tile_constraints(shape, device, list));
  append(a.constraints, slice_constraints(shape, device));
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
  KernelSource kernel = kernel_source(shape, device, "matrix", defines, threads_of(config));
  require_subgroups(kernel, device, config);
  LaunchPlan plan = plan_of_tiles(shape, device, config, std::move(kernel));
  add_alignment(plan, shape, device, config);
  return plan;
}

KernelWork cooperative_work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const MatrixOperation o = product_of(cooperative_products(shape.in, device), config["INSTR"]);
  const double bm = config["BM"], bn = config["BN"], bk = config["BK"];
  const double wm = config["WM"], wn = config["WN"];
  LaunchWork work = work_of_tiles(shape, config);
  work.threads = threads_of(config);
  work.shared_bytes = static_cast<double>(shared_bytes(shape, config, o));
  work.registers = beside_matrices * static_cast<double>(registers_of(config, o));
  work.matrix_flops = 2 * bm * bn * bk * work.steps;
  // A fragment of A serves all columns of a subgroup's part; those of B are read for each row.
  const double read = subgroups_of(config) * (wm + wn * std::max(1.0, wm / (2.0 * o.m)));
  work.shared_traffic = 2 * work.steps * bk * (bm + bn + read);
  // Rows of a power of two bytes begin in the same banks.
  work.conflicts = config["PAD"] != 0 ? 1 : std::clamp(bk / 16, 1.0, 8.0);
  work.overlapped = config["STAGES"] > 1;
  work.barriers = work.steps * (work.overlapped ? 1 : 2);
  work.ahead_bytes = 2 * bk * (bm + bn);
  return work_of_launches(work, shape, config);
}

}  // namespace greta::kernels::gemm
