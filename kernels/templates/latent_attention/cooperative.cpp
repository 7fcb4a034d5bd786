#include "kernels/templates/latent_attention/cooperative.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kernels/planning/cooperative_operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/attention/prefill.hpp"
#include "kernels/templates/attention/slices.hpp"

namespace greta::kernels::latent {
namespace {

auto rows_of(const auto& c) {
  return c["WAVES"] * c["WQ"];
}

auto threads_of(const auto& c) {
  return c["WAVES"] * c["VWAVES"] * c["SUBGROUP"];
}

/// Returns the keys whose scores a subgroup has.
std::int64_t wave_keys(const Config& c, const MatrixOperation& o) {
  const std::int64_t blocks = ceil_div(std::int64_t{c["BK"]}, std::int64_t{o.n});
  return o.n * ceil_div(blocks, std::min<std::int64_t>(blocks, c["VWAVES"]));
}

/// Returns the size of shared memory: factors of rows, queries, a tile of keys and one of values,
/// scores and weights; or pieces of the outputs, or what joins slices.
std::int64_t shared_bytes(const Shape& shape, const Config& c, const MatrixOperation& o) {
  const std::int64_t rows = rows_of(c), bk = c["BK"], n = o.n;
  const std::int64_t line = shape.dim / 8 + 1, value_line = shape.shared ? 0 : shape.v_dim / 8 + 1;
  const std::int64_t factors = rows * (n / 4);
  const std::int64_t walk =
      rows * line + bk * (line + value_line) + rows * (bk / 4 + 1 + bk / 8 + 1);
  const std::int64_t pieces =
      std::int64_t{c["WAVES"]} * c["VWAVES"] * std::int64_t{o.m} * (n / 2 + 1);
  const std::int64_t chunks = factors + std::max(walk, pieces);
  if (c["SPLIT"] == 1) return 16 * chunks;
  constexpr std::int64_t arrivals = 4;
  return std::max(16 * chunks, 12 * rows * c["SPLIT"]) + arrivals;
}

/// Returns an estimate of a thread's 32-bit registers: outputs, scores, queries, two keys, loads in
/// flight, a part of a row, addresses.
std::int64_t registers_of(const Shape& shape, const Config& c, const MatrixOperation& o) {
  const std::int64_t lanes = c["SUBGROUP"], wq = c["WQ"];
  const std::int64_t sums =
      wq * (ceil_div(shape.v_dim, std::int64_t{c["VWAVES"]}) + wave_keys(c, o)) / lanes;
  const std::int64_t operands = (wq * o.k + 2 * std::int64_t{o.n} * o.k) / 2 / lanes;
  const std::int64_t chunks = c["BK"] * shape.read_elements() / 8;
  return sums + operands + 4 * ceil_div(chunks, std::int64_t{threads_of(c)}) + 16 + 40;
}

/// Returns the number of matrix operations of a subgroup per tile.
std::int64_t instructions(const Shape& shape, const Config& c, const MatrixOperation& o) {
  const std::int64_t blocks = ceil_div(std::int64_t{c["WQ"]}, std::int64_t{o.m});
  const std::int64_t values = ceil_div(shape.v_dim, std::int64_t{c["VWAVES"]}) / o.n;
  return blocks * (wave_keys(c, o) / o.n * (shape.dim / o.k) + c["BK"] / o.k * values);
}

std::vector<Constraint> constraints(const Shape& shape, const DeviceInfo& device,
                                    const std::vector<MatrixOperation>& list) {
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  const std::int64_t file = register_file(device);
  return {
      {"matrix_cores",
       fmt::format("the device has no cooperative matrices of {}", to_string(shape.in)),
       (!list.empty())},
      {"products",
       fmt::format("products of INSTR must divide WQ, BK, dimensions of keys, {}, and VWAVES equal "
                   "parts of those of values, {}; subgroups have the same number of keys",
                   shape.dim, shape.v_dim),
       {{"BK", "WQ", "VWAVES", "INSTR"},
        [=, dim = shape.dim, v_dim = shape.v_dim](const Config& c) {
          const MatrixOperation o = product_of(list, c["INSTR"]);
          const auto divides = [](std::int64_t part, std::int64_t whole) {
            return whole % part == 0;
          };
          return divides(8, o.n) && divides(o.m, c["WQ"]) && divides(o.n, c["BK"]) &&
                 divides(o.k, c["BK"]) && divides(std::int64_t{o.n} * c["VWAVES"], v_dim) &&
                 divides(o.k, dim) && c["BK"] % wave_keys(c, o) == 0;
        }}},
      {"rows", "a row's lanes, BK / 8, must be in one subgroup", p["BK"] <= p["SUBGROUP"] * 8},
      {"workgroup_threads",
       fmt::format("WAVES x VWAVES subgroups must not be more than {} threads", threads),
       threads_of(p) <= threads},
      {"shared_memory",
       fmt::format("queries, keys, values, scores and weights must fit {} KiB, as must the rows' "
                   "weights of SPLIT slices",
                   shared / 1024),
       {{"BK", "WQ", "WAVES", "VWAVES", "INSTR", "SPLIT"},
        [=](const Config& c) {
          return list.empty() || shared_bytes(shape, c, product_of(list, c["INSTR"])) <= shared;
        }}},
      {"code_size",
       "a tile of more than 1024 matrix instructions compiles slowly",
       {{"BK", "WQ", "VWAVES", "INSTR"},
        [=](const Config& c) {
          return instructions(shape, c, product_of(list, c["INSTR"])) <= 1024;
        }}},
      {"registers",
       fmt::format("outputs and scores need more than 255 registers of a thread, or {} of a "
                   "workgroup",
                   file),
       {{"BK", "WQ", "WAVES", "VWAVES", "INSTR", "SUBGROUP"},
        [=](const Config& c) {
          const auto registers = registers_of(shape, c, product_of(list, c["INSTR"]));
          return registers <= 255 && registers * threads_of(c) <= file;
        }}},
  };
}

CooperativeLoop loop_of(const Shape& shape, const Config& c, const MatrixOperation& o) {
  const std::int64_t rows = c["WQ"] / o.m, keys = wave_keys(c, o) / o.n;
  const std::int64_t values = ceil_div(shape.v_dim, std::int64_t{c["VWAVES"]}) / o.n;
  return {.steps = ceil_div(ceil_div(shape.capacity, std::int64_t{c["BK"]}), c["SPLIT"]),
          .products = instructions(shape, c, o),
          .others = rows * (2 * keys + 1 + values)};
}

}  // namespace

Alternative cooperative_space(const Shape& shape, const DeviceInfo& device) {
  const auto list = cooperative_products(shape.in, device);
  Alternative a{"matrix", {}, {}};
  // BK        keys per step in shared memory: fewer barriers versus more memory
  // WQ        rows per subgroup: reuse of shared memory reads
  // WAVES     groups of subgroups that have rows of their own: reuse of memory reads
  // VWAVES    subgroups of a group, which divide the keys of scores and the dimensions of outputs
  // INSTR     n of the matrix instruction
  // SPLIT     workgroups that share the keys of a KV head
  // SUBGROUP  required subgroup size
  a.parameters = {
      {"BK", {16, 32, 64, 128}},
      {"WQ", {16, 32}},
      {"WAVES", {1, 2, 4}},
      {"VWAVES", {1, 2, 4, 8}},
      {"INSTR", product_names(list)},
      {"SPLIT", attention::key_slices()},
      {"SUBGROUP", subgroup_sizes(device)},
  };
  a.constraints = {storage_constraint(shape.in, shape.out, device)};
  append(a.constraints, rows_constraints(shape, device, rows_of(p)));
  append(a.constraints, constraints(shape, device, list));
  append(a.constraints,
         cooperative_cpu_constraints(
             device, list, {"BK", "WQ", "VWAVES", "SPLIT"},
             [shape](const Config& c, const MatrixOperation& o) { return loop_of(shape, c, o); },
             shape.capacity));
  return a;
}

/// Tiles of as many rows as there are come first, with subgroups for all dimensions of the outputs.
std::vector<Config> cooperative_defaults(const Shape& shape, const DeviceInfo& device) {
  const auto list = cooperative_products(shape.in, device);
  std::vector<Config> configs;
  if (list.empty()) return configs;
  for (const int waves : {4, 2, 1}) {
    if (waves > 1 && 8 * waves >= shape.rows()) continue;
    for (const int v_waves : {4, 8, 2, 1}) {
      for (const int bk : {32, 16, 64}) {
        configs.push_back({"matrix",
                           {{"BK", bk},
                            {"WQ", 16},
                            {"WAVES", waves},
                            {"VWAVES", v_waves},
                            {"INSTR", product_names(list).front()},
                            {"SPLIT", split_for(shape, device, std::int64_t{16} * waves)},
                            {"SUBGROUP", subgroup_sizes(device).front()}}});
      }
    }
  }
  return configs;
}

LaunchPlan cooperative_plan(const Shape& shape, const DeviceInfo& device, std::string_view path,
                            const Config& config) {
  const auto o = product_of(cooperative_products(shape.in, device), config["INSTR"]);
  Defines defines = attention::problem_defines(shape);
  add_operation(defines, o);
  LaunchPlan plan = rows_plan(shape, device, path, config, std::move(defines), rows_of(config),
                              threads_of(config));
  require_subgroups(plan.sources[0], device, config);
  return plan;
}

KernelWork cooperative_work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const auto o = product_of(cooperative_products(shape.in, device), config["INSTR"]);
  const double rows = rows_of(config), bk = config["BK"], v_waves = config["VWAVES"];
  const auto dim = static_cast<double>(shape.dim), both = static_cast<double>(shape.both_dims());
  const auto key = static_cast<double>(shape.read_elements());
  LaunchWork work = rows_work(shape, config, rows_of(config));
  work.threads = threads_of(config);
  work.shared_bytes = static_cast<double>(shared_bytes(shape, config, o));
  work.registers = beside_matrices * static_cast<double>(registers_of(shape, config, o));
  work.matrix_flops = 2 * rows * bk * both * work.steps;
  work.vector_flops = attention::flops_of_weight * rows * bk * work.steps;
  // Each group reads the tile once for each INSTR_M of its rows; each subgroup reads its queries
  // and all weights. Scores are written and read in f32, weights written in 16 bits.
  const double parts = config["WAVES"] * std::max(1.0, config["WQ"] / double(o.m));
  work.shared_traffic =
      work.steps *
      (2 * (bk * key + parts * bk * both + rows * v_waves * (dim + bk)) + 10 * rows * bk);
  work.loads = work.read_bytes / 16;
  work.overlapped = true;
  work.barriers += 4 * work.steps;
  return {work};
}

}  // namespace greta::kernels::latent
