#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/attention/prefill.hpp"

/// Attention for many queries, without matrix instructions.
namespace greta::kernels::attention {
namespace {

auto threads_of(const auto& c) {
  return c["BQ"] / c["TQ"] * c["LANES"];
}

/// Returns the size of shared memory: queries, keys or values, and weights, in f32.
auto shared_bytes(const Shape& shape, const auto& c) {
  return 4 *
         (c["BQ"] * (shape.dim + 4) + c["BK"] * (shape.longest() + 4) + c["BQ"] * (c["BK"] + 4));
}

auto loads_of(const Shape& shape, const auto& c) {
  return ceil_div(ceil_div(c["BK"] * shape.longest(), c["VEC"]), threads_of(c));
}

/// Returns the number of 32-bit registers that a thread uses at once: accumulators, scores, and
/// elements that wait to be written to shared memory.
auto least_registers(const Shape& shape, const auto& c) {
  const auto waiting = loads_of(shape, c) * shape.load_registers(c["VEC"]);
  return c["TQ"] * (shape.v_dim / c["LANES"] + c["BK"] / c["LANES"]) + waiting;
}

/// Returns an estimate of what a thread needs: also vectors of four elements of queries and keys,
/// or of weights and a value, and addresses.
std::int64_t registers_of(const Shape& shape, const Config& c) {
  return least_registers(shape, c) + 7 * c["TQ"] + 4 * min(c["BK"] / c["LANES"], 8) + 32;
}

std::vector<Constraint> constraints(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  const int wave = static_cast<int>(device.min_subgroup_size);
  const int whole = static_cast<int>(device.max_subgroup_size);
  return {
      {"lanes",
       fmt::format("4 x LANES must divide {}, {}, and LANES be in one subgroup, of {} threads",
                   shape.v_dim == shape.dim ? "dim" : "v_dim", shape.v_dim, wave),
       shape.v_dim % (4 * p["LANES"]) == 0 && p["LANES"] <= wave},
      {"rows", "TQ must divide BQ, and LANES BK",
       p["BQ"] % p["TQ"] == 0 && p["BK"] % p["LANES"] == 0},
      {"workgroup_threads",
       fmt::format("BQ / TQ x LANES threads must be whole subgroups, and not more than {}",
                   threads),
       threads_of(p) <= threads && threads_of(p) % whole == 0},
      {"alignment",
       fmt::format("VEC must divide dim, {}{}", shape.dim,
                   shape.v_dim == shape.dim ? "" : fmt::format(", and v_dim, {}", shape.v_dim)),
       std::gcd(shape.dim, shape.v_dim) % p["VEC"] == 0},
      {"loads", "a thread must not have more than 32 loads of keys in a tile",
       loads_of(shape, p) <= 32},
      {"shared_memory",
       fmt::format("BQ queries, BK keys and their weights must fit {} KiB", shared / 1024),
       shared_bytes(shape, p) <= shared},
      register_constraint(device, "TQ rows and a tile in flight", least_registers(shape, p),
                          threads_of(p)),
  };
}

/// Returns the constraints of a CPU through Vulkan.
std::vector<Constraint> vector_cpu_constraints(const Shape& shape) {
  return {
      {"code_size",
       "more than 32 multiplications of a thread in a step, or elements of a tile to load, compile "
       "slowly for a CPU",
       {{"BQ", "BK", "TQ", "LANES"},
        [shape](const Config& c) {
          return c["TQ"] * std::max<std::int64_t>(c["BK"], shape.v_dim) / c["LANES"] <= 32 &&
                 c["BK"] * shape.longest() / threads_of(c) <= 32;
        }}},
      loop_limit(ceil_div(shape.capacity, p["BK"]) * (p["BK"] + 4), shape.capacity),
  };
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  Alternative a{"vector", {}, {}};
  // BQ x BK   queries per workgroup, and keys per step in shared memory
  // TQ        rows of queries per thread: reuse of shared memory reads
  // LANES     threads that share these rows
  // VEC       elements per load
  // TOGETHER  heads that are scheduled together, for L2 reuse
  a.parameters = {
      {"BQ", {8, 16, 32, 64, 128}},
      {"BK", {8, 16, 32, 64}},
      {"TQ", {1, 2, 4, 8}},
      {"LANES", {2, 4, 8, 16}},
      {"VEC", vector_widths(shape.in)},
      {"TOGETHER", heads_together()},
  };
  a.constraints = {storage_constraint(shape.in, shape.out, device)};
  append(a.constraints, tile_constraints(shape, device, p["BQ"]));
  append(a.constraints, constraints(shape, device));
  if (vectorising_cpu(device)) append(a.constraints, vector_cpu_constraints(shape));
  return a;
}

std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  struct Tile {
    int bq, bk, tq, lanes;
  };
  std::vector<Tile> tiles = {{128, 32, 8, 16}, {64, 32, 4, 8}, {64, 32, 4, 16}, {64, 16, 4, 4},
                             {32, 32, 2, 8},   {32, 32, 4, 8}, {32, 16, 2, 4},  {32, 8, 2, 2}};
  if (vectorising_cpu(device)) tiles.clear();
  // For few queries, little shared memory, and head sizes that few numbers of lanes divide.
  for (const int bq : {32, 16, 8}) {
    for (const int bk : {32, 16, 8}) {
      for (const int tq : {2, 1}) {
        for (const int lanes : {8, 4, 16, 2}) tiles.push_back({bq, bk, tq, lanes});
      }
    }
  }
  std::vector<Config> configs;
  for (const Tile& t : tiles) {
    configs.push_back({"vector",
                       {{"BQ", t.bq},
                        {"BK", t.bk},
                        {"TQ", t.tq},
                        {"LANES", t.lanes},
                        {"VEC", widest_vector(shape.in, std::gcd(shape.dim, shape.v_dim), 8)},
                        {"TOGETHER", default_heads_together(shape)}}});
  }
  // RDNA has 256 vector registers, in which its compilers keep the bounds of packed sequences.
  const bool rdna = device.vendor == "AMD" && device.min_subgroup_size == 32;
  roomy_first(configs, device, [&shape, bounds = rdna && shape.finds_tokens()](const Config& c) {
    return registers_of(shape, c) + (bounds ? 8 : 0);
  });
  // They also keep an address for each load, and where its token or its page lies.
  if (rdna && device.language == Language::hip) {
    const int of_load = shape.page > 0 ? 9 : shape.finds_tokens() ? 7 : 5;
    std::stable_partition(configs.begin(), configs.end(), [&](const Config& c) {
      return registers_of(shape, c) + of_load * loads_of(shape, c) <= 248;
    });
  }
  return configs;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  add_pack(defines, device, "IN", shape.in, config["VEC"]);
  LaunchPlan plan =
      prefill_plan(shape, device, "attention/vector", defines, config["BQ"], threads_of(config));
  if (device.language == Language::hip) {
    plan.sources[0].dynamic_shared_bytes = static_cast<std::uint32_t>(shared_bytes(shape, config));
  }
  return plan;
}

KernelWork work(const Shape& shape, const DeviceInfo&, const Config& config) {
  const double bq = config["BQ"], bk = config["BK"], tq = config["TQ"], lanes = config["LANES"];
  const auto dim = static_cast<double>(shape.dim), both = static_cast<double>(shape.both_dims());
  const double threads = threads_of(config);
  LaunchWork work = prefill_work(shape, config, config["BQ"]);
  work.threads = threads;
  work.shared_bytes = static_cast<double>(shared_bytes(shape, config));
  work.registers = static_cast<double>(registers_of(shape, config));
  work.vector_flops = work.steps * bq * bk * (2 * both + flops_of_weight);
  // A wave of 32 threads has 32/LANES groups of TQ rows, which read all keys and values together.
  const double rows = 32 / lanes * tq;
  work.shared_traffic =
      4 * work.steps * (bk * both + threads / 32 * (rows * dim + bk * both) + 2 * bq * bk);
  work.loads = work.steps * bk * both / config["VEC"];
  work.barriers = 4 * work.steps;
  return {work};
}

}  // namespace

Variant vector() {
  return attention_variant(
      "vector",
      "many queries by plain multiplications, for f32 and devices without matrix cores: a tile of "
      "one head's queries over all keys",
      space, plan, defaults,
      [](const Shape& shape, const Config& c) { return prefill_divisions(shape, c, c["BQ"]); },
      work);
}

}  // namespace greta::kernels::attention
