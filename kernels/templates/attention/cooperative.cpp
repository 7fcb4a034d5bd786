#include "kernels/templates/attention/cooperative.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/cooperative_operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/attention/packing.hpp"
#include "kernels/templates/attention/prefill.hpp"
#include "kernels/templates/attention/slices.hpp"

namespace greta::kernels::attention {
namespace {

auto threads_of(const auto& c) {
  return c["WAVES"] * c["SUBGROUP"];
}

auto rows_of(const auto& c) {
  return c["WAVES"] * c["WQ"];
}

/// Returns the size of shared memory: a tile of keys and one of values, the scores and row factors
/// of each subgroup, and the queries, which share this memory with QREG; or what joins slices.
std::int64_t shared_bytes(const Shape& shape, const Config& c, const MatrixOperation& o) {
  const std::int64_t line = shape.dim / 8 + 1, value_line = shape.v_dim / 8 + 1;
  const std::int64_t sums = rows_of(c) * (c["BK"] / 4 + 1 + std::int64_t{o.n} / 4);
  const std::int64_t tiles = c["BK"] * (line + value_line) + sums, own = rows_of(c) * line;
  const std::int64_t walk = 16 * (c["QREG"] != 0 ? std::max(own, tiles) : own + tiles);
  if (c["SPLIT"] == 1) return walk;
  constexpr std::int64_t arrivals = 4;
  return std::max<std::int64_t>(walk, 12 * rows_of(c) * c["SPLIT"]) + arrivals;
}

/// Returns an estimate of a thread's 32-bit registers: outputs, scores, queries, two keys, loads in
/// flight, a part of a row, addresses.
std::int64_t registers_of(const Shape& shape, const Config& c, const MatrixOperation& o) {
  const std::int64_t lanes = c["SUBGROUP"], wq = c["WQ"];
  const std::int64_t sums = wq * (shape.v_dim + c["BK"]) / lanes;
  const std::int64_t queries = wq * (c["QREG"] != 0 ? shape.dim : std::int64_t{o.k}) / 2 / lanes;
  const std::int64_t keys = 2 * std::int64_t{o.n} * o.k / 2 / lanes;
  const std::int64_t waiting = 4 * ceil_div(c["BK"] * shape.longest() / 8, threads_of(c));
  return sums + queries + keys + waiting + 40;
}

std::vector<Constraint> constraints(const Shape& shape, const DeviceInfo& device,
                                    const std::vector<MatrixOperation>& list) {
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  const std::int64_t file = register_file(device);
  return {
      {"matrix_operations",
       fmt::format("the device has no cooperative matrices of {}", to_string(shape.in)),
       (!list.empty())},
      {"products",
       shape.v_dim == shape.dim
           ? fmt::format("products of INSTR must divide WQ, BK, and dim, {}", shape.dim)
           : fmt::format("products of INSTR must divide WQ, BK, dim, {}, and v_dim, {}", shape.dim,
                         shape.v_dim),
       {{"BK", "WQ", "INSTR"},
        [=, dim = shape.dim, v_dim = shape.v_dim](const Config& c) {
          const MatrixOperation o = product_of(list, c["INSTR"]);
          const auto divides = [](std::int64_t part, std::int64_t whole) {
            return whole % part == 0;
          };
          return divides(o.m, c["WQ"]) && divides(o.n, c["BK"]) && divides(o.k, c["BK"]) &&
                 divides(o.n, v_dim) && divides(o.k, dim) && divides(8, o.n);
        }}},
      {"rows", "WQ rows of BK scores must give every lane of a subgroup eight and more of one row",
       p["SUBGROUP"] <= p["WQ"] * (p["BK"] / 8)},
      {"workgroup_threads",
       fmt::format("WAVES subgroups must not be more than {} threads", threads),
       threads_of(p) <= threads},
      {"shared_memory",
       fmt::format("keys, values, scores and queries must fit {} KiB, as must the rows' weights "
                   "of SPLIT slices",
                   shared / 1024),
       {{"BK", "WQ", "WAVES", "INSTR", "QREG", "SPLIT"},
        [=](const Config& c) {
          return shared_bytes(shape, c, product_of(list, c["INSTR"])) <= shared;
        }}},
      {"registers",
       fmt::format("outputs, scores and queries need more than 255 registers of a thread, or {} of "
                   "a workgroup",
                   file),
       {{"BK", "WQ", "WAVES", "INSTR", "QREG", "SUBGROUP"},
        [=](const Config& c) {
          const auto registers = registers_of(shape, c, product_of(list, c["INSTR"]));
          return registers <= 255 && registers * threads_of(c) <= file;
        }}},
  };
}

CooperativeLoop loop_of(const Shape& shape, const Config& c, const MatrixOperation& o) {
  const std::int64_t rows = c["WQ"] / o.m, keys = c["BK"] / o.n, values = shape.v_dim / o.n;
  return {.steps = ceil_div(ceil_div(shape.capacity, std::int64_t{c["BK"]}), c["SPLIT"]),
          .products = rows * (keys * (shape.dim / o.k) + c["BK"] / o.k * values),
          .others = rows * (2 * keys + 1 + values)};
}

/// What defaults vary.
struct Tile {
  int bk, waves, qreg, pack, split;
};

Config default_of(const Shape& shape, const DeviceInfo& device, const Tile& t) {
  return {"matrix",
          {{"BK", t.bk},
           {"WQ", 16},
           {"WAVES", t.waves},
           {"INSTR", product_names(cooperative_products(shape.in, device)).front()},
           {"QREG", t.qreg},
           {"PACK", t.pack},
           {"SPLIT", t.split},
           {"TOGETHER", default_heads_together(shape)},
           {"SUBGROUP", subgroup_sizes(device).front()}}};
}

}  // namespace

Alternative cooperative_space(const Shape& shape, const DeviceInfo& device) {
  const auto list = cooperative_products(shape.in, device);
  Alternative a{"matrix", {}, {}};
  // BK        keys per step in shared memory: fewer barriers versus more memory
  // WQ        rows per subgroup: reuse of shared memory reads
  // WAVES     subgroups per workgroup: reuse of memory reads
  // INSTR     n of the matrix instruction
  // QREG      queries stay in registers
  // PACK      rows are the queries of all heads that share a KV head, else those of one head
  // SPLIT     workgroups that share the keys of a sequence
  // TOGETHER  heads that are scheduled together, for L2 reuse
  // SUBGROUP  required subgroup size
  a.parameters = {
      {"BK", {16, 32, 64, 128}},
      {"WQ", {16, 32}},
      {"WAVES", {1, 2, 4, 8}},
      {"INSTR", product_names(list)},
      {"QREG", {0, 1}},
      {"PACK", {0, 1}},
      {"SPLIT", key_slices()},
      {"TOGETHER", heads_together()},
      {"SUBGROUP", subgroup_sizes(device)},
  };
  a.constraints = {storage_constraint(shape.in, shape.out, device)};
  append(a.constraints, packing_constraints(shape, device, rows_of(p)));
  append(a.constraints, constraints(shape, device, list));
  append(a.constraints,
         cooperative_cpu_constraints(
             device, list, {"BK", "WQ", "SPLIT"},
             [shape](const Config& c, const MatrixOperation& o) { return loop_of(shape, c, o); },
             shape.capacity));
  return a;
}

std::vector<Config> cooperative_packed_defaults(const Shape& shape, const DeviceInfo& device) {
  std::vector<Config> configs;
  if (!are_few_packed_rows(shape, device, false)) return configs;
  for (const auto& [waves, split, workgroups] : packed_tiles(shape, device, 2)) {
    for (const int bk : {64, 32, 16}) {
      for (const int qreg : {1, 0}) {
        configs.push_back(default_of(shape, device, {bk, waves, qreg, shape.group() > 1, split}));
      }
    }
  }
  return configs;
}

std::vector<Config> cooperative_defaults(const Shape& shape, const DeviceInfo& device) {
  if (cooperative_products(shape.in, device).empty()) return {};
  std::vector<Config> configs;
  for (const int waves : {8, 4, 2, 1}) {
    for (const int bk : {32, 64, 16}) {
      for (const int qreg : {1, 0}) {
        configs.push_back(default_of(shape, device, {bk, waves, qreg, 0, 1}));
      }
    }
  }
  // Tiles that fill the device come first, after those of packed heads.
  std::stable_partition(configs.begin(), configs.end(), [&](const Config& c) {
    return ceil_div(shape.queries, rows_of(c)) * shape.batch * shape.heads >=
           busy_workgroups(device);
  });
  const std::vector<Config> packed = cooperative_packed_defaults(shape, device);
  configs.insert(configs.begin(), packed.begin(), packed.end());
  return configs;
}

LaunchPlan cooperative_plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const auto o = product_of(cooperative_products(shape.in, device), config["INSTR"]);
  Defines defines = problem_defines(shape);
  add_operation(defines, o);
  LaunchPlan plan = packing_plan(shape, device, "attention/matrix", config, std::move(defines),
                                 rows_of(config), threads_of(config));
  require_subgroups(plan.sources[0], device, config);
  return plan;
}

KernelWork cooperative_work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const auto o = product_of(cooperative_products(shape.in, device), config["INSTR"]);
  const double rows = rows_of(config), bk = config["BK"];
  const auto dim = static_cast<double>(shape.dim), both = static_cast<double>(shape.both_dims());
  LaunchWork work = packing_work(shape, config, rows_of(config));
  work.threads = threads_of(config);
  work.shared_bytes = static_cast<double>(shared_bytes(shape, config, o));
  work.registers = beside_matrices * static_cast<double>(registers_of(shape, config, o));
  work.matrix_flops = 2 * rows * bk * both * work.steps;
  work.vector_flops = flops_of_weight * rows * bk * work.steps;
  // Scores go through shared memory: written, read for the weights, written and read again.
  const double own = config["QREG"] != 0 ? 0 : rows;
  const double parts = config["WAVES"] * std::max(1.0, config["WQ"] / double(o.m));
  work.shared_traffic = work.steps * (2 * (both * bk * (1 + parts) + dim * own) + 12 * rows * bk);
  work.loads = work.read_bytes / 16;
  work.overlapped = true;
  work.barriers += 4 * work.steps;
  return {work};
}

}  // namespace greta::kernels::attention
