#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/quantized_gemm/plan.hpp"
#include "kernels/templates/quantized_gemm/variant.hpp"

/// Products of many rows with quantised weights by plain arithmetic.
namespace greta::kernels::quantized_gemm {
namespace {

constexpr std::int64_t chunk = 32;  ///< weights of a line that are decoded at once

std::int64_t threads_of(const Config& config) {
  return std::int64_t{config["BM"]} / config["TM"] * (config["BN"] / config["TN"]);
}

/// Returns the bytes of both tiles. NVIDIA GPUs have more than 48 KiB as dynamic memory only.
std::int64_t shared_bytes(const Config& config) {
  return std::int64_t{config["BK"]} * (config["BM"] + config["BN"] + 8) * 4;
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t most = most_threads(device);
  const std::int64_t shared = device.shared_memory_bytes;
  const Expression threads = p["BM"] / p["TM"] * (p["BN"] / p["TN"]);
  // BM x BN  tile of C of a workgroup
  // BK       k that are decoded to shared memory at a time
  // TM x TN  elements of C of a thread
  Alternative a{"tiled",
                {{"BM", {8, 16, 32, 64, 128}},
                 {"BN", {16, 32, 64, 128}},
                 {"BK", {32, 64}},
                 {"TM", {1, 2, 4, 8}},
                 {"TN", {1, 2, 4, 8}}},
                {storage_constraint(shape.halves(), shape.out, device), no_norm(shape)}};
  append(a.constraints, {{"thread_tiles", "TM must divide BM, and TN BN",
                          p["BM"] % p["TM"] == 0 && p["BN"] % p["TN"] == 0},
                         {"gates", "TN must be even with swiglu", !shape.gated() || p["TN"] >= 2},
                         {"workgroup_threads",
                          fmt::format("the device allows {} threads, and 32 are the least", most),
                          threads <= most && threads >= 32}});
  append(a.constraints, tile_constraints(shape, device, 8));
  append(a.constraints, {{"shared_memory", fmt::format("both tiles must fit {} KiB", shared / 1024),
                          p["BK"] * (p["BM"] + p["BN"] + 8) * 4 <= shared},
                         register_constraint(
                             device, "sums and operands", 2 * p["TM"] * p["TN"] + p["TM"] + p["TN"],
                             device.language == Language::hip ? threads : Expression(1))});
  if (vectorising_cpu(device)) {
    // A load has at least 8 elements.
    const Expression of_a = ceil_div(p["BM"] * p["BK"] / 8, threads);
    const Expression of_b = ceil_div(p["BN"] * p["BK"] / 8, threads);
    a.constraints.push_back(
        loop_limit(ceil_div(shape.k, p["BK"]) * (4 + p["BK"] + of_a + of_b), shape.k));
    a.constraints.push_back(
        {"code_size", "TM x TN above 64 compiles slowly for a CPU", p["TM"] * p["TN"] <= 64});
  }
  return a;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  return plan_of_tiles(
      shape, device, config,
      {.name = "tiled",
       .threads = threads_of(config),
       .rows = config["BM"],
       .columns = config["BN"],
       .dynamic_shared_bytes = device.language == Language::hip ? shared_bytes(config) : 0});
}

/// The largest tiles that keep the device busy. `gemv` is for few rows.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (!shape.grouped() && shape.m < 16) return {};
  struct Tile {
    int bm, bn, tm, tn;
  };
  static constexpr Tile tiles[] = {
      {128, 128, 8, 8}, {64, 128, 8, 4}, {64, 64, 4, 4}, {32, 64, 4, 4}, {16, 64, 4, 2},
      {16, 32, 4, 2},   {8, 32, 2, 2},   {8, 32, 2, 1},  {8, 16, 1, 2},  {8, 16, 1, 1}};
  std::vector<Config> fitting, small;
  for (const Tile& tile : tiles) {
    // GLSL's compilers keep sums of 64 elements in memory.
    if (device.language == Language::glsl && tile.tm * tile.tn > 32) continue;
    if (shape.gated() && tile.tn < 2) continue;
    // More than half of a tile would be idle.
    if (shape.grouped() && tile.bm > 8 && tile.bm >= 2 * shape.rows_of_group()) continue;
    const std::int64_t count =
        filled_lines(shape, tile.bm) * ceil_div(shape.products(), std::int64_t{tile.bn});
    auto& list = count >= busy_workgroups(device) ? fitting : small;
    list.push_back(
        {"tiled",
         {{"BM", tile.bm}, {"BN", tile.bn}, {"BK", 32}, {"TM", tile.tm}, {"TN", tile.tn}}});
  }
  std::reverse(small.begin(), small.end());
  std::vector<Config> configs = std::move(fitting);
  configs.insert(configs.end(), small.begin(), small.end());
  return configs;
}

std::vector<Division> divisions(const Shape& shape, const Config& config) {
  return {{"m", shape.m, config["BM"], "BM", 8},
          {"n", shape.products(), config["BN"], "BN", 16},
          {"chunks", shape.k / chunk, config["BK"] / chunk, {}, 4}};
}

KernelWork work(const Shape& shape, const DeviceInfo&, const Config& config) {
  const double bm = config["BM"], bn = config["BN"], k = static_cast<double>(shape.k);
  const double tm = config["TM"], tn = config["TN"];
  const double weight = static_cast<double>(row_bytes(shape.format, shape.k)) / k;
  LaunchWork work;
  work.workgroups = expected_tiles(shape, config["BM"], config["BN"]);
  work.threads = static_cast<double>(threads_of(config));
  work.shared_bytes = static_cast<double>(shared_bytes(config));
  work.registers = 2 * tm * tn + tm + tn + 40;
  // A weight costs its integer, its conversion, a difference and a product.
  work.vector_flops = 2 * bm * bn * k + 6 * bn * k + 2 * bm * k;
  work.shared_traffic = 4 * k * (bm + bn + bm * bn * (1 / tm + 1 / tn));
  work.read_bytes = bn * k * (weight + scale_bytes(shape)) + bm * k * bytes_of(shape.in, 1.0);
  work.written_bytes = bm * bn * bytes_of(shape.out, 1.0);
  const double of_b = bn * k * weight;
  work.loads = (work.read_bytes - of_b) / 16 + of_b / bytes_of_load(shape, 16);
  work.steps = std::ceil(k / config["BK"]);
  work.ahead_bytes = work.read_bytes / work.steps;
  work.barriers = 2 * work.steps;
  work.unique_bytes = least_bytes(shape);
  return {work};
}

}  // namespace

Variant tiled() {
  Variant variant = make_variant<Shape>(
      "tiled",
      "many rows, plain arithmetic: a workgroup decodes a tile of weights to shared memory", space,
      plan, defaults, divisions);
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::quantized_gemm
