#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/quantized_gemm/plan.hpp"
#include "kernels/templates/quantized_gemm/variant.hpp"

/// Products with quantised weights whose threads share columns.
namespace greta::kernels::quantized_gemm {
namespace {

constexpr std::int64_t chunk = 32;  ///< weights that a thread loads at once

std::int64_t width_of(const Config& config) {
  return std::int64_t{config["COLS"]} * config["TN"];
}

/// Returns the 32-bit registers of a loaded chunk: integers as they lie in memory, scales, a zero
/// point.
std::int64_t chunk_registers(const Shape& shape) {
  return chunk * traits(shape.format).bits / 32 + (shape.format == WeightFormat::q6_k ? 3 : 2);
}

/// Returns the bytes of shared memory: one sum for each wave, or with GLSL each thread.
Expression shared_bytes(const Shape& shape, const DeviceInfo& device) {
  if (device.language == Language::hip) {
    return 4 * p["ROWS"] * (p["TN"] + (shape.norm ? 1 : 0)) *
           (p["THREADS"] / std::int64_t{device.min_subgroup_size} + 1);
  }
  return 8 * p["THREADS"];
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device), groups = most_workgroups(device);
  const std::int64_t shared = device.shared_memory_bytes;
  // THREADS   workgroup size
  // COLS      threads along n; the others are along K
  // TN        columns of a thread, which one load of A serves
  // ROWS      rows of C of a workgroup, which one load of B serves
  // UNROLL    chunks of 32 weights in flight for each column
  Alternative a{"gemv",
                {{"THREADS", {32, 64, 128, 256, 512}},
                 {"COLS", {1, 2, 4, 8, 16, 32}},
                 {"TN", {1, 2, 4, 8}},
                 {"ROWS", {1, 2, 4, 8}},
                 {"UNROLL", {1, 2, 4}}},
                {storage_constraint(shape.halves(), shape.out, device)}};
  append(
      a.constraints,
      {{"workgroup_threads", fmt::format("the device allows {} threads", threads),
        p["THREADS"] <= threads},
       {"columns", "COLS must not exceed THREADS", p["COLS"] <= p["THREADS"]},
       {"gates", "TN must be even with swiglu", !shape.gated() || p["TN"] >= 2},
       {"nibbles",
        "with packing awq, TN must be at most 2: each column takes a nibble of 32 words at a time",
        shape.packing != WeightPacking::awq || p["TN"] <= 2},
       {"rounds", "a norm's sum of squares needs two threads along K, 2 COLS <= THREADS",
        !shape.norm || 2 * p["COLS"] <= p["THREADS"]},
       {"rows", fmt::format("ROWS must not be twice m, {}, or more", shape.m),
        p["ROWS"] < 2 * shape.m},
       {"idle_threads",
        fmt::format("THREADS / COLS chunks of 32 must not be twice k, {}, or more", shape.k),
        p["THREADS"] / p["COLS"] * chunk < 2 * shape.k || p["THREADS"] <= 32 * p["COLS"]},
       {"grid", fmt::format("C has more than {} workgroups", groups),
        ceil_div(shape.products(), p["COLS"] * p["TN"]) * ceil_div(shape.m, p["ROWS"]) <= groups},
       {"shared_memory", fmt::format("sums of waves must fit {} KiB", shared / 1024),
        shared_bytes(shape, device) <= shared},
       register_constraint(
           device, "sums, and chunks in flight",
           2 * p["ROWS"] * p["TN"] + 8 + p["UNROLL"] * p["TN"] * chunk_registers(shape),
           device.language == Language::hip ? p["THREADS"] : Expression(1))});
  if (vectorising_cpu(device)) {
    a.constraints.push_back({"code_size", "ROWS x TN x UNROLL above 4 compiles slowly for a CPU",
                             p["ROWS"] * p["TN"] * p["UNROLL"] <= 4});
  }
  return a;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  return plan_of_tiles(shape, device, config,
                       {.name = "gemv",
                        .threads = config["THREADS"],
                        .rows = config["ROWS"],
                        .columns = width_of(config),
                        .subgroup = whole_subgroups(device, config["THREADS"])});
}

/// One wave for some columns at a time; several rows share what is loaded of B.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  const bool gpu = !vectorising_cpu(device);
  const int least = shape.gated() ? 2 : 1;  // columns: a gate and its up
  // Of eight rows whose squares are added, too, AMD's compiler spills, and ptxas those of f32.
  const bool spills =
      device.vendor == "AMD" || (device.language == Language::hip && shape.in == DType::f32);
  const int rows_of_gpu = shape.norm && spills ? 4 : 8;
  const int most_rows = gpu ? rows_of_gpu : 4 / least;
  int rows = 1;
  while (rows < most_rows && rows < shape.m) rows *= 2;
  // GLSL's compilers unroll more than registers have room for.
  const bool room = device.language == Language::hip || rows <= 2;
  const bool wide = gpu && room && shape.products() / 4 >= busy_workgroups(device);
  // Clang converts eight rows of bf16 ahead of products: with four columns, RDNA's 256 registers
  // are too few.
  const bool converts = device.vendor == "AMD" && thread_registers(device) <= 256 &&
                        shape.in == DType::bf16 && rows == 8;
  const int most = shape.packing == WeightPacking::awq || converts ? 2 : 4;
  std::vector<Config> configs;
  for (const int tn : {wide ? most : least, least}) {
    for (const int threads : {128, 64, 32}) {
      const int cols = threads / 32;
      configs.push_back(
          {"gemv",
           {{"THREADS", threads}, {"COLS", cols}, {"TN", tn}, {"ROWS", rows}, {"UNROLL", 1}}});
    }
  }
  return configs;
}

std::vector<Division> divisions(const Shape& shape, const Config& config) {
  const std::int64_t lanes = config["THREADS"] / config["COLS"];
  return {{"m", shape.m, config["ROWS"], "ROWS", 4},
          {"n", shape.products(), width_of(config)},
          {"k", shape.k, lanes * config["UNROLL"] * chunk}};
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double rows = config["ROWS"], columns = static_cast<double>(width_of(config));
  const double threads = config["THREADS"], k = static_cast<double>(shape.k);
  const double rows_of_a = rows + (shape.norm ? 1 : 0);  // and the norm's weight
  const double weight = static_cast<double>(row_bytes(shape.format, shape.k)) / k;
  const double groups = std::ceil(static_cast<double>(shape.products()) / columns);
  LaunchWork work;
  work.workgroups = groups * static_cast<double>(ceil_div(shape.m, std::int64_t{config["ROWS"]}));
  work.threads = threads;
  work.registers =
      static_cast<double>(2 * config["ROWS"] * config["TN"] + 8 * config["TN"] + 24 +
                          std::int64_t{config["UNROLL"]} * config["TN"] * chunk_registers(shape));
  // A weight costs its integer, its conversion and a difference, and a product for each row.
  work.vector_flops = columns * k * (2 * rows + 5);
  if (shape.norm) work.vector_flops += (3 * rows + 1) * k * config["COLS"];
  const double a_bytes = bytes_of(shape.in, 1);
  work.read_bytes =
      columns * k * (weight + scale_bytes(shape)) + rows_of_a * k * config["COLS"] * a_bytes;
  work.written_bytes = rows * columns * bytes_of(shape.out, 1);
  const bool halves = in_blocks(shape.format) && shape.format != WeightFormat::q4_k;
  const double load = bytes_of_load(shape, halves ? 2 : 16);
  work.loads = columns * k * weight / load + rows_of_a * k * config["COLS"] * a_bytes / 16;
  work.ahead_bytes = threads * config["UNROLL"] * config["TN"] * chunk * weight;
  work.steps = std::max(1.0, columns * k * weight / work.ahead_bytes);
  work.barriers = device.language == Language::hip ? 1 : rows * config["TN"];
  work.unique_bytes = least_bytes(shape);
  return {work};
}

}  // namespace

Variant gemv() {
  Variant variant = make_variant<Shape>(
      "gemv", "bound by reading B: a workgroup computes some columns of ROWS rows", space, plan,
      defaults, divisions);
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::quantized_gemm
