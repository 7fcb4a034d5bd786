#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/attention/prefill.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// Attention for many queries, with matrix instructions of warpgroups (sm_90).
namespace greta::kernels::attention {
namespace {

constexpr std::int64_t warpgroup_threads = 128, warpgroup_queries = 64;
// Of a thread: addresses, rows' maxima and sums, and what an instruction works on.
constexpr std::int64_t other_registers = 28;

std::int64_t threads_of(const Config& config) {
  return (config["GROUPS"] + config["PRODUCER"]) * warpgroup_threads;
}

bool offers_warpgroups(const Shape& shape, const DeviceInfo& device) {
  return device.language == Language::hip && has_warpgroup_products(device.architecture) &&
         bits_of(shape.in) == 16;
}

/// Returns the elements of a head in shared memory: those of whole matrix instructions.
std::int64_t padded(std::int64_t dim) {
  return ceil_div(dim, 16) * 16;
}

/// Returns the size of shared memory: the workgroup's queries, STAGES tiles of keys, and of values
/// from a multiple of 1024 bytes on.
auto shared_bytes(const Shape& shape, const auto& c) {
  const auto tile = c["STAGES"] * c["BK"];
  const auto keys = (c["GROUPS"] * warpgroup_queries + tile) * (padded(shape.dim) * 2);
  return ceil_div(keys, 1024) * 1024 + tile * (padded(shape.v_dim) * 2);
}

/// Returns the number of 32-bit registers of a thread for outputs, scores and weights.
auto least_registers(const Shape& shape, const auto& c) {
  return padded(shape.v_dim) / 2 + c["BK"] / 2 + c["BK"] / 4;
}

Alternative warpgroup_space(const Shape& shape, const DeviceInfo& device) {
  Alternative a{"warpgroups", {}, {}};
  // BK        keys per step: fewer barriers versus more registers
  // GROUPS    warpgroups per workgroup, with 64 queries each: reuse of keys and values
  // STAGES    tiles of keys, and of values, in shared memory
  // PRODUCER  a further warpgroup starts the copies
  // TURNS     two warpgroups start their products in turn
  // TOGETHER  heads that are scheduled together, for L2 reuse
  a.parameters = {{"BK", {32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192}},
                  {"GROUPS", {1, 2, 3}},
                  {"STAGES", {2, 3, 4}},
                  {"PRODUCER", {0, 1}},
                  {"TURNS", {0, 1}},
                  {"TOGETHER", heads_together()}};
  const std::int64_t shared = device.shared_memory_bytes;
  const std::int64_t registers = std::min(thread_registers(device), std::int64_t{255});
  const std::int64_t workgroup = workgroup_registers(device) / warpgroup_threads;
  const auto needed = least_registers(shape, p) + other_registers;
  a.constraints = {
      storage_constraint(shape.in, shape.out, device),
      {"warpgroup_products",
       fmt::format("the device has no matrix operations of warpgroups on {}", to_string(shape.in)),
       (offers_warpgroups(shape, device))},
      {"producer", "a PRODUCER is for two or three GROUPS, and TURNS are of two with a PRODUCER",
       select(p["PRODUCER"] == 1, p["GROUPS"] >= 2 && (p["TURNS"] == 0 || p["GROUPS"] == 2),
              p["TURNS"] == 0)},
      {"barriers", "STAGES with a PRODUCER need more barriers than the device has",
       p["PRODUCER"] == 0 || p["STAGES"] * (p["GROUPS"] + 1) + 2 * p["TURNS"] < 15},
      {"shared_memory",
       fmt::format("STAGES tiles of BK keys and values, and the queries, must fit {} KiB",
                   shared / 1024),
       shared_bytes(shape, p) <= shared},
      {"registers",
       fmt::format("outputs, scores and weights, and {} more, need more registers than a thread "
                   "has",
                   other_registers),
       // A producer leaves them 240 or 160.
       select(p["PRODUCER"] == 1, needed <= 400 - p["GROUPS"] * 80,
              needed <= registers && needed * p["GROUPS"] <= workgroup)},
  };
  append(a.constraints, tile_constraints(shape, device, p["GROUPS"] * warpgroup_queries));
  return a;
}

struct Tile {
  int bk, groups, stages, producer = 0, turns = 0;
};

/// Returns tiles in the order in which they are tried: the last ones fit any head.
std::vector<Tile> default_tiles(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t busy = busy_workgroups(device);
  const auto workgroups = [&](std::int64_t groups) {
    return ceil_div(shape.queries, groups * warpgroup_queries) * shape.batch * shape.heads;
  };
  // Of few queries, warpgroups that share keys would be idle:
  // results/2026-11-27-nvidia-h200-row-defaults.
  const auto shares = [&](std::int64_t groups) {
    const std::int64_t alone = ceil_div(shape.queries, warpgroup_queries);
    if (alone <= 2 && shape.capacity <= 512) return false;
    return 5 * groups * ceil_div(alone, groups) < 6 * alone;
  };
  std::vector<Tile> tiles;
  // A producer's few registers don't hold what finding a page takes.
  if (shape.dim > 96 && shape.page == 0) {
    // Workgroups fill a processor. Three warpgroups use keys most often; two have a shorter tail.
    if (workgroups(3) >= 6 * busy && shares(3)) tiles.push_back({80, 3, 2, 1});
    if (2 * workgroups(2) >= busy && shares(2)) {
      tiles.insert(tiles.end(), {{128, 2, 2, 1, 1}, {80, 2, 2, 1, 1}});
    } else if (workgroups(1) > 2 * busy && workgroups(1) <= 3 * busy) {
      tiles.push_back({48, 1, 2});  // three fit a processor
    }
  } else if (shape.dim > 64 && workgroups(2) >= busy) {
    tiles.push_back({64, 2, 2});
  } else if (shape.dim <= 64) {
    tiles.push_back({80, 1, 2});
  }
  // Small workgroups hide each other's softmax; wide heads leave registers for few keys.
  tiles.insert(tiles.end(), {{64, 1, 3}, {96, 1, 2}, {64, 1, 2}, {32, 1, 2}});
  return tiles;
}

std::vector<Config> warpgroup_defaults(const Shape& shape, const DeviceInfo& device) {
  std::vector<Config> configs;
  if (!offers_warpgroups(shape, device)) return configs;
  for (const Tile& tile : default_tiles(shape, device)) {
    configs.push_back({"warpgroups",
                       {{"BK", tile.bk},
                        {"GROUPS", tile.groups},
                        {"STAGES", tile.stages},
                        {"PRODUCER", tile.producer},
                        {"TURNS", tile.turns},
                        {"TOGETHER", default_heads_together(shape)}}});
  }
  return configs;
}

LaunchPlan warpgroup_plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  LaunchPlan plan = prefill_plan(shape, device, "attention/warpgroups", defines,
                                 config["GROUPS"] * warpgroup_queries, threads_of(config));
  plan.sources[0].dynamic_shared_bytes = static_cast<std::uint32_t>(shared_bytes(shape, config));
  // NVRTC supports these instructions only under this name.
  compile_for_warpgroups(plan.sources[0], device);
  return plan;
}

KernelWork warpgroup_work(const Shape& shape, const DeviceInfo&, const Config& config) {
  const double groups = config["GROUPS"], queries = groups * warpgroup_queries;
  const double bk = config["BK"], in = bytes_of(shape.in, 1);
  const auto dim = static_cast<double>(padded(shape.dim));
  const double both = dim + static_cast<double>(padded(shape.v_dim));
  LaunchWork work = prefill_work(shape, config, config["GROUPS"] * warpgroup_queries);
  work.threads = static_cast<double>(threads_of(config));
  work.shared_bytes = static_cast<double>(shared_bytes(shape, config));
  work.registers = static_cast<double>(least_registers(shape, config) + other_registers);
  work.matrix_flops = 2 * queries * bk * both * work.steps;
  work.warpgroups = true;
  work.vector_flops = flops_of_weight * queries * bk * work.steps;
  // Each warpgroup reads its queries, the keys and the values; copies write the latter.
  work.shared_traffic =
      work.steps * in * (both * bk * (1 + groups) + dim * groups * warpgroup_queries);
  work.loads = work.read_bytes / 16;
  work.overlapped = true;
  work.ahead_bytes *= 2 * (config["STAGES"] - 1);
  work.barriers = work.steps;
  return {work};
}

}  // namespace

Variant warpgroups() {
  Variant variant = attention_variant(
      "warpgroups",
      "many queries, on matrix cores of warpgroups: scores of a tile of keys become weights while "
      "the values of the tile before are multiplied",
      warpgroup_space, warpgroup_plan, warpgroup_defaults,
      [](const Shape& shape, const Config& c) {
        auto list = prefill_divisions(shape, c, c["GROUPS"] * warpgroup_queries);
        list.push_back(buffered_tiles(shape, c, c["BK"], "STAGES"));
        return list;
      },
      warpgroup_work);
  variant.default_stands = true;
  return variant;
}

}  // namespace greta::kernels::attention
