#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/attention/prefill.hpp"
#include "kernels/templates/attention/slices.hpp"
#include "kernels/templates/latent_attention/shape.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// Rows that share keys, with matrix instructions of warpgroups (sm_90).
namespace greta::kernels::latent {
namespace {

constexpr std::int64_t tile_rows = 64;  ///< of a warpgroup's product
constexpr std::int64_t most_values = 256;
// Of a thread: addresses, rows' maxima and sums, and what an instruction works on.
constexpr std::int64_t other_registers = 48;

bool offered(const Shape& shape, const DeviceInfo& device) {
  return device.language == Language::hip && has_warpgroup_products(device.architecture) &&
         bits_of(shape.in) == 16 && shape.shared;
}

std::int64_t padded(const Shape& shape) {
  return ceil_div(shape.dim, std::int64_t{16}) * 16;
}

/// Returns the dimensions of a warpgroup's outputs: whole panels of 64, 32 or 16.
std::int64_t group_values(const Shape& shape, std::int64_t groups) {
  const std::int64_t dim = padded(shape);
  const std::int64_t panel = dim % 64 == 0 ? 64 : dim % 32 == 0 ? 32 : 16;
  return ceil_div(shape.v_dim, groups * panel) * panel;
}

std::int64_t panels(std::int64_t bytes) {
  return ceil_div(bytes, std::int64_t{1024}) * 1024;
}

std::int64_t shared_bytes(const Shape& shape, const Config& c) {
  const std::int64_t line = padded(shape) * 2, bk = c["BK"];
  return panels(tile_rows * line) + c["BUFFERS"] * panels(bk * line) + tile_rows * bk * 2 +
         c["GROUPS"] * tile_rows * 4;
}

std::int64_t registers(const Shape& shape, const Config& c) {
  return group_values(shape, c["GROUPS"]) / 2 + c["BK"] / c["GROUPS"] / 2 + other_registers;
}

std::int64_t threads(const Config& c) {
  return std::int64_t{c["GROUPS"]} * 128;
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  Alternative a{"warpgroups", {}, {}};
  // BK       keys per step: fewer barriers versus more memory
  // GROUPS   warpgroups that divide the keys of scores and the dimensions of outputs
  // BUFFERS  tiles in shared memory, which asynchronous copies fill
  // SPLIT    workgroups that share the keys of a KV head; a second launch joins what they leave
  a.parameters = {{"BK", {32, 48, 64, 96, 128}},
                  {"GROUPS", {1, 2, 3, 4}},
                  {"BUFFERS", {2, 3}},
                  {"SPLIT", attention::key_slices()}};
  const std::int64_t shared = device.shared_memory_bytes, file = workgroup_registers(device);
  a.constraints = {
      storage_constraint(shape.in, shape.out, device),
      {"warpgroup_products",
       fmt::format("the device has no matrix operations of warpgroups on {}", to_string(shape.in)),
       (offered(shape, device))},
      {"keys", "each of GROUPS must have a multiple of 8 keys, and at most 64, of BK",
       p["BK"] % (p["GROUPS"] * 8) == 0 && p["BK"] <= p["GROUPS"] * 64},
      {"values",
       fmt::format(
           "GROUPS parts of {} dimensions, whole panels of at most {}, must be in a key of {}",
           shape.v_dim, most_values, shape.dim),
       {{"GROUPS"},
        [=](const Config& c) {
          const std::int64_t values = group_values(shape, c["GROUPS"]);
          return values <= most_values && c["GROUPS"] * values <= padded(shape);
        }}},
      {"shared_memory",
       fmt::format("queries, BUFFERS of BK keys and their weights must fit {} KiB", shared / 1024),
       {{"BK", "GROUPS", "BUFFERS"},
        [=](const Config& c) { return shared_bytes(shape, c) <= shared; }}},
      {"registers",
       "outputs and scores need more registers than a thread has",
       {{"BK", "GROUPS"},
        [=](const Config& c) {
          return registers(shape, c) <= std::min<std::int64_t>(255, file / threads(c));
        }}},
  };
  append(a.constraints, rows_constraints(shape, device, Expression(tile_rows)));
  return a;
}

/// Returns the SPLIT that is predicted to be the fastest. A time is in steps of 64 keys of 576
/// elements with values of 512, measured on an H200
/// (results/2026-12-01-nvidia-h200-unseen-catalog).
int fastest_split(const Shape& shape, const DeviceInfo& device) {
  constexpr double steps_of_round = 1.2;  // a workgroup's start and end
  constexpr double steps_of_join = 2.4, joined_in_step = 3000.0 * 512;  // the launch, and elements
  const std::int64_t readers = readers_of(shape, tile_rows), units = busy_workgroups(device);
  const std::int64_t tiles = ceil_div(shape.capacity, std::int64_t{64});
  const double of_tile = static_cast<double>(shape.both_dims()) / 1088;
  int fastest = 1;
  double least = std::numeric_limits<double>::infinity();
  for (const int split : attention::key_slices()) {
    if (split > tiles) break;
    const auto rounds = static_cast<double>(ceil_div(readers * split, units));
    const auto steps = static_cast<double>(ceil_div(tiles, std::int64_t{split}));
    const auto joined = static_cast<double>(readers * tile_rows * split * shape.v_dim);
    const double join = split > 1 ? steps_of_join + joined / joined_in_step : 0;
    const double cost = rounds * (steps * of_tile + steps_of_round) + join;
    if (cost < least) fastest = split;
    least = std::min(least, cost);
  }
  return fastest;
}

/// Two warpgroups and 64 keys if they fit, and the SPLIT of the least predicted time. `matrix` is
/// faster where a tile is mostly idle, and where two thirds of the compute units would be with as
/// many slices as there are units for (on an H200,
/// results/2026-11-28-nvidia-h200-latent-few-sequences).
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  std::vector<Config> configs;
  if (!offered(shape, device) || shape.rows() <= tile_rows / 2) return configs;
  const std::int64_t most = readers_of(shape, tile_rows) * split_for(shape, device, tile_rows, 1);
  if (3 * most < busy_workgroups(device)) return configs;
  const int split = fastest_split(shape, device);
  for (const int bk : {64, 32}) {
    for (const int groups : {2, 1, 3, 4}) {
      configs.push_back(
          {"warpgroups", {{"BK", bk}, {"GROUPS", groups}, {"BUFFERS", 2}, {"SPLIT", split}}});
    }
  }
  return configs;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  LaunchPlan plan = rows_plan(shape, device, "latent_attention/warpgroups", config,
                              attention::problem_defines(shape), tile_rows, threads(config));
  plan.sources[0].dynamic_shared_bytes = static_cast<std::uint32_t>(shared_bytes(shape, config));
  // NVRTC supports these instructions only under this name.
  compile_for_warpgroups(plan.sources[0], device);
  return plan;
}

KernelWork work(const Shape& shape, const DeviceInfo&, const Config& config) {
  const double rows = tile_rows, bk = config["BK"], groups = config["GROUPS"];
  const double in = bytes_of(shape.in, 1);
  const auto dim = static_cast<double>(shape.dim), both = static_cast<double>(shape.both_dims());
  LaunchWork work = rows_work(shape, config, tile_rows);
  work.threads = static_cast<double>(threads(config));
  work.shared_bytes = static_cast<double>(shared_bytes(shape, config));
  work.registers = static_cast<double>(registers(shape, config));
  work.matrix_flops = 2 * rows * bk * both * work.steps;
  work.warpgroups = true;
  work.vector_flops = attention::flops_of_weight * rows * bk * work.steps;
  // Each warpgroup reads queries and weights; copies write a tile, and both products read it.
  work.shared_traffic = work.steps * in * (bk * (dim + both) + groups * rows * (dim + bk));
  work.loads = work.read_bytes / 16;
  work.overlapped = true;
  work.ahead_bytes *= config["BUFFERS"] - 1;
  work.barriers += 3 * work.steps;
  if (!has_join(config)) return {work};
  return {work, join_work(shape, config, tile_rows)};
}

}  // namespace

Variant warpgroups() {
  Variant variant = make_variant<Shape>(
      "warpgroups",
      "64 rows of all heads that share keys, on matrix cores of warpgroups, which divide the keys "
      "of the scores and the dimensions of the outputs",
      space, plan, defaults,
      [](const Shape& shape, const Config& c) { return rows_divisions(shape, c, tile_rows); });
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::latent
