#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/attention/prefill.hpp"
#include "kernels/templates/attention/slices.hpp"
#include "kernels/templates/latent_attention/shape.hpp"

/// Rows that share keys, without matrix instructions.
namespace greta::kernels::latent {
namespace {

auto threads_of(const auto& c) {
  return c["BQ"] / c["TQ"] * c["LANES"];
}

/// Returns the size of shared memory: lines of queries, keys and values in the inputs' type, each
/// with a pad, and weights in f32; and what joins slices, which in HIP takes their place.
auto shared_bytes(const Shape& shape, const DeviceInfo& device, const auto& c) {
  const bool glsl = device.language == Language::glsl;
  // GLSL keeps single elements in words.
  const std::int64_t own = static_cast<std::int64_t>(bits_of(shape.in)) / 8, word = glsl ? 4 : own;
  const auto in = select(c["VEC"] == 1, word, own);
  const auto pad = glsl ? c["VEC"] * in : c["VEC"] * 0 + 16;
  const auto line = pad + shape.dim * in, value_line = pad + shape.v_dim * in;
  const auto tile = c["BK"] * (shape.shared ? line : line + value_line);
  const auto walk = c["BQ"] * line + tile + 4 * c["BQ"] * (c["BK"] + 4);
  const auto rows = c["BQ"], split = c["SPLIT"];
  if (glsl) return walk + 4 * (3 * split * rows + 1);
  return max(walk, 4 * (rows * (2 * split + 2) + 4));
}

auto loads_of(const Shape& shape, const auto& c) {
  return ceil_div(ceil_div(c["BK"] * shape.read_elements(), c["VEC"]), threads_of(c));
}

/// Returns the number of 32-bit registers that a thread uses at once: accumulators, scores, and
/// elements that wait to be written to shared memory.
auto least_registers(const Shape& shape, const auto& c) {
  const auto waiting = loads_of(shape, c) * shape.load_registers(c["VEC"]);
  return c["TQ"] * (shape.v_dim / c["LANES"] + c["BK"] / c["LANES"]) + waiting;
}

/// Returns an estimate of what a thread needs: also elements of queries and keys, or of weights and
/// a value, what rows see, and addresses.
std::int64_t registers_of(const Shape& shape, const Config& c) {
  return least_registers(shape, c) + (6 + c["VEC"]) * c["TQ"] +
         c["VEC"] * min(c["BK"] / c["LANES"], 4) + (shape.tree ? 4 * c["TQ"] : 0) + 40;
}

std::vector<Constraint> constraints(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  const int wave = static_cast<int>(device.min_subgroup_size);
  const int whole = static_cast<int>(device.max_subgroup_size);
  return {
      {"lanes",
       fmt::format("VEC must divide {}, and VEC x LANES {}, and LANES be in one subgroup, of {} "
                   "threads",
                   shape.dim, shape.v_dim, wave),
       shape.dim % p["VEC"] == 0 && shape.v_dim % (p["VEC"] * p["LANES"]) == 0 &&
           p["LANES"] <= wave},
      {"rows", "TQ must divide BQ, and LANES BK",
       p["BQ"] % p["TQ"] == 0 && p["BK"] % p["LANES"] == 0},
      {"workgroup_threads",
       fmt::format("BQ / TQ x LANES threads must be whole subgroups, and not more than {}",
                   threads),
       threads_of(p) <= threads && threads_of(p) % whole == 0},
      {"loads", "a thread must not have more than 32 loads of keys in a tile",
       loads_of(shape, p) <= 32},
      {"shared_memory",
       fmt::format("BQ queries, BK keys and their weights, and what joins SPLIT slices, must fit "
                   "{} KiB",
                   shared / 1024),
       shared_bytes(shape, device, p) <= shared},
      register_constraint(device, "TQ rows and a tile in flight", least_registers(shape, p),
                          threads_of(p)),
  };
}

/// Returns the number of iterations of a thread's loops on a CPU.
auto iterations(const Shape& shape, const auto& c) {
  const auto rounds = ceil_div(ceil_div(shape.capacity, c["BK"]), c["SPLIT"]);
  return rounds * (ceil_div(shape.dim, c["VEC"]) + c["BK"] + 8);
}

/// Returns the constraints of a CPU through Vulkan.
std::vector<Constraint> vector_cpu_constraints(const Shape& shape, const DeviceInfo& device) {
  // A row of the longest latents has more than 64 elements for each of a subgroup's threads.
  const std::int64_t least = ceil_div(shape.v_dim, std::int64_t{device.min_subgroup_size});
  const std::int64_t most = std::clamp<std::int64_t>(least, 64, 128);
  return {
      {"code_size",
       fmt::format("more than {} multiplications of a thread in a step, or 192 elements of a tile "
                   "to load, compile slowly for a CPU",
                   most),
       p["TQ"] * max(p["BK"], shape.v_dim) / p["LANES"] <= most &&
           p["BK"] * shape.read_elements() / threads_of(p) <= 192},
      loop_limit(iterations(shape, p), shape.capacity),
  };
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  Alternative a{"vector", {}, {}};
  // BQ x BK   rows per workgroup, and keys per step in shared memory
  // TQ        rows per thread: reuse of shared memory reads
  // LANES     threads that share these rows
  // VEC       elements per load
  // SPLIT     workgroups that share the keys of a KV head
  a.parameters = {
      {"BQ", {4, 8, 16, 32, 64}},
      {"BK", {4, 8, 16, 32}},
      {"TQ", {1, 2, 4, 8}},
      {"LANES", {2, 4, 8, 16, 32}},
      {"VEC", vector_widths(shape.in)},
      {"SPLIT", attention::key_slices()},
  };
  a.constraints = {storage_constraint(shape.in, shape.out, device)};
  append(a.constraints, rows_constraints(shape, device, p["BQ"]));
  append(a.constraints, constraints(shape, device));
  if (vectorising_cpu(device)) append(a.constraints, vector_cpu_constraints(shape, device));
  return a;
}

/// Tiles with most rows come first, unless these would be more than there are.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  std::vector<Config> configs;
  for (const int bq : {32, 16, 8, 4}) {
    if (bq > 4 && bq / 2 >= shape.rows()) continue;
    int split = split_for(shape, device, bq);
    for (const int bk : {16, 8, 32, 4}) {
      for (const int lanes : {16, 8, 32, 4, 2}) {
        for (const int tq : {2, 1, 4}) {
          for (const int vec : {8, 4, 2, 1}) {
            Config config{"vector",
                          {{"BQ", bq},
                           {"BK", bk},
                           {"TQ", tq},
                           {"LANES", lanes},
                           {"VEC", vec},
                           {"SPLIT", split}}};
            int& slices = config.values.back().second;
            // A CPU's driver must run all iterations.
            while (vectorising_cpu(device) && slices < 64 &&
                   iterations(shape, config) >= most_iterations) {
              slices *= 2;
            }
            configs.push_back(std::move(config));
          }
        }
      }
    }
  }
  attention::roomy_first(configs, device,
                         [&shape](const Config& c) { return registers_of(shape, c); });
  return configs;
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double bq = config["BQ"], bk = config["BK"], tq = config["TQ"], lanes = config["LANES"];
  const auto dim = static_cast<double>(shape.dim), both = static_cast<double>(shape.both_dims());
  const double in = bytes_of(shape.in, 1), threads = threads_of(config);
  LaunchWork work = rows_work(shape, config, config["BQ"]);
  work.threads = threads;
  work.shared_bytes = static_cast<double>(shared_bytes(shape, device, config));
  work.registers = static_cast<double>(registers_of(shape, config));
  work.vector_flops = work.steps * bq * bk * (2 * both + attention::flops_of_weight);
  // A wave of 32 threads has 32 / LANES groups of TQ rows, which read all keys and values together.
  const double rows = 32 / lanes * tq, key = static_cast<double>(shape.read_elements());
  work.shared_traffic =
      work.steps * (in * (bk * key + threads / 32 * (rows * dim + bk * both)) + 8 * bq * bk);
  work.loads = work.steps * bk * key / config["VEC"];
  work.overlapped = true;
  work.barriers += 3 * work.steps;
  return {work};
}

}  // namespace

Variant vector(std::string_view folder) {
  Variant variant = make_variant<Shape>(
      "vector",
      "rows of all heads that share keys, by plain multiplications, for f32 and devices without "
      "matrix cores: a tile of keys serves scores and outputs of all of a workgroup's rows",
      space,
      [path = std::string(folder) + "/vector"](const Shape& shape, const DeviceInfo& device,
                                               const Config& config) {
        Defines defines = attention::problem_defines(shape);
        add_pack(defines, device, "IN", shape.in, config["VEC"]);
        LaunchPlan plan = rows_plan(shape, device, path, config, std::move(defines), config["BQ"],
                                    threads_of(config));
        if (device.language == Language::hip) {
          plan.sources[0].dynamic_shared_bytes =
              static_cast<std::uint32_t>(shared_bytes(shape, device, config));
        }
        return plan;
      },
      defaults,
      [](const Shape& shape, const Config& c) { return rows_divisions(shape, c, c["BQ"]); });
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::latent
