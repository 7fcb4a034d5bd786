#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/planning/arrival.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/scaled_gemm/plan.hpp"
#include "kernels/templates/scaled_gemm/variant.hpp"

/// Scaled products of few rows by plain arithmetic.
namespace greta::kernels::scaled_gemm {
namespace {

/// Returns the numbers of a line that a thread loads at once.
std::int64_t chunk_of(const Shape& shape) {
  return shape.mx() ? mx_block : 16;
}

std::int64_t width_of(const Config& config) {
  return std::int64_t{config["COLS"]} * config["TN"];
}

/// Returns the bytes of shared memory: one sum for each wave, or with GLSL each thread.
Expression shared_bytes(const DeviceInfo& device) {
  if (device.language == Language::hip) {
    return 4 * p["ROWS"] * p["TN"] * (p["THREADS"] / std::int64_t{device.min_subgroup_size} + 1);
  }
  return 8 * p["THREADS"];
}

/// Returns the 32-bit registers of a thread's sums, operands and chunks in flight.
auto registers_of(const Shape& shape, const auto& c) {
  const int sums = shape.block_scales() ? 2 : 1;
  const std::int64_t of_a = shape.bytes_a(chunk_of(shape)) / 4;
  const std::int64_t of_b = shape.bytes_b(chunk_of(shape)) / 4;
  return sums * c["ROWS"] * c["TN"] + of_b * c["UNROLL"] * c["TN"] + of_a * c["ROWS"] +
         4 * c["TN"] + 4;
}

/// Returns an estimate of the registers that compilers need. NVRTC decodes numbers of fp8 where
/// they are used; compilers for other devices decode all of a chunk at once.
std::int64_t estimated_registers(const Shape& shape, const DeviceInfo& device,
                                 const Config& config) {
  const bool at_once = !shape.integers() && !compiled_by_nvrtc(device);
  const int of_line = shape.mx() ? 64 : 36;
  const std::int64_t decoded = at_once ? of_line * (config["ROWS"] + config["TN"]) : 0;
  return registers_of(shape, config) + decoded + 24;
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device), groups = most_workgroups(device);
  const std::int64_t shared = device.shared_memory_bytes, chunk = chunk_of(shape);
  // THREADS   workgroup size
  // COLS      threads along n; the others are along k
  // TN        columns of a thread, which one load of A serves
  // ROWS      rows of C of a workgroup, which one load of B serves
  // UNROLL    chunks in flight for each column: 16 bytes, with scales mx 32 k
  // SPLIT     workgroups that share k
  Alternative a{"gemv",
                {{"THREADS", {32, 64, 128, 256, 512, 1024}},
                 {"COLS", {1, 2, 4, 8, 16, 32}},
                 {"TN", {1, 2, 4, 8}},
                 {"ROWS", {1, 2, 4, 8}},
                 {"UNROLL", {1, 2, 4, 8}},
                 {"SPLIT", {1, 2, 4, 8}}},
                {storage_constraint(DType::f32, shape.out, device)}};
  append(
      a.constraints,
      {{"workgroup_threads", fmt::format("the device allows {} threads", threads),
        p["THREADS"] <= threads},
       {"columns", "COLS must not exceed THREADS", p["COLS"] <= p["THREADS"]},
       {"rows", fmt::format("ROWS must not be twice m, {}, or more", shape.m),
        p["ROWS"] < 2 * shape.m},
       {"idle_threads",
        fmt::format("THREADS / COLS chunks of {} must not be twice k, {}, or more", chunk, shape.k),
        p["THREADS"] / p["COLS"] * chunk < 2 * shape.k || p["THREADS"] <= 32 * p["COLS"]},
       {"grid", fmt::format("C has more than {} workgroups", groups),
        ceil_div(shape.n, p["COLS"] * p["TN"]) * ceil_div(shape.m, p["ROWS"]) <= groups},
       {"shared_memory", fmt::format("sums of waves must fit {} KiB", shared / 1024),
        shared_bytes(device) <= shared},
       register_constraint(device, "sums, operands and chunks in flight", registers_of(shape, p),
                           device.language == Language::hip ? p["THREADS"] : Expression(1))});
  append(a.constraints, slice_constraints(shape, device, chunk));
  if (vectorising_cpu(device)) {
    a.constraints.push_back({"code_size", "ROWS x TN x UNROLL above 8 compiles slowly for a CPU",
                             p["ROWS"] * p["TN"] * p["UNROLL"] <= 8});
    a.constraints.push_back(loop_limit(
        ceil_div(shape.k, p["THREADS"] / p["COLS"] * p["UNROLL"] * p["SPLIT"] * chunk), shape.k));
  }
  return a;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  return plan_of_tiles(shape, device, config,
                       {.name = "gemv",
                        .threads = config["THREADS"],
                        .rows = config["ROWS"],
                        .columns = width_of(config),
                        .slice = slice_length(shape, config, chunk_of(shape)),
                        .subgroup = whole_subgroups(device, config["THREADS"])});
}

/// One wave for some columns at a time; several rows share what is loaded of B. More rows than a
/// workgroup has are for tiles.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (shape.m > 8) return {};
  const bool gpu = !vectorising_cpu(device);
  const int most_rows = gpu ? 8 : 4;
  int rows = 1;
  while (rows < most_rows && rows < shape.m) rows *= 2;
  int unroll = !gpu || rows > 4 ? 1 : rows > 2 ? 2 : 4;
  const bool nvidia = compiled_by_nvrtc(device);
  // Chunks of scales mx are twice as long, which other compilers than NVRTC decode at once.
  if (gpu && shape.mx()) unroll = rows > 1 ? 1 : nvidia ? 4 : 2;
  const bool wide = gpu && (!shape.mx() || (nvidia && rows == 1)) && rows <= 2 &&
                    shape.n / 2 >= busy_workgroups(device);
  std::vector<Config> configs;
  for (const int tn : {wide ? 2 : 1, 1}) {
    for (const int threads : {128, 64, 32}) {
      Config config{"gemv",
                    {{"THREADS", threads},
                     {"COLS", threads / 32},
                     {"TN", tn},
                     {"ROWS", rows},
                     {"UNROLL", unroll},
                     {"SPLIT", 1}}};
      const std::int64_t room = register_limit(device, std::int64_t{threads});
      while (config["ROWS"] > 1 && estimated_registers(shape, device, config) > room) {
        config.value("ROWS") /= 2;
      }
      configs.push_back(std::move(config));
    }
  }
  return configs;
}

std::vector<Division> divisions(const Shape& shape, const Config& config) {
  const std::int64_t lanes = config["THREADS"] / config["COLS"], chunk = chunk_of(shape);
  return {{"m", shape.m, config["ROWS"], "ROWS", 4},
          {"n", shape.n, width_of(config)},
          {"k", slice_length(shape, config, chunk), lanes * config["UNROLL"] * chunk},
          {"slices", shape.k / chunk, config["SPLIT"], "SPLIT", never}};
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double rows = config["ROWS"], columns = static_cast<double>(width_of(config));
  const double threads = config["THREADS"], split = config["SPLIT"];
  const std::int64_t chunk = chunk_of(shape);
  const auto k = static_cast<double>(slice_length(shape, config, chunk));
  const auto of_chunk = static_cast<double>(chunk);
  const double bytes_a = static_cast<double>(shape.bytes_a(chunk)) / of_chunk;  // of a number
  const double bytes_b = static_cast<double>(shape.bytes_b(chunk)) / of_chunk;
  LaunchWork work;
  work.workgroups = std::ceil(static_cast<double>(shape.n) / columns) * split *
                    static_cast<double>(ceil_div(shape.m, std::int64_t{config["ROWS"]}));
  work.threads = threads;
  work.registers = static_cast<double>(estimated_registers(shape, device, config));
  // A number costs its conversion, and a product for each row or column.
  const double of_a = rows * config["COLS"];
  work.vector_flops = k * (2 * rows * columns + 4 * (columns + of_a));
  work.read_bytes = k * (columns * bytes_b + of_a * bytes_a);
  work.written_bytes = rows * columns * (split > 1 ? 4 : bytes_of(shape.out, 1));
  work.loads = work.read_bytes / 16;
  work.ahead_bytes = threads * config["UNROLL"] * config["TN"] * of_chunk * bytes_b;
  work.steps = std::max(1.0, columns * k * bytes_b / work.ahead_bytes);
  work.barriers = (device.language == Language::hip ? 1 : rows * config["TN"]) +
                  (split > 1 ? barriers_of_arrival(4 * rows * columns * split) : 0);
  work.unique_bytes = least_bytes(shape);
  return {work};
}

}  // namespace

Variant gemv() {
  Variant variant = make_variant<Shape>(
      "gemv", "few rows, plain arithmetic: a workgroup's threads share k of some columns", space,
      plan, defaults, divisions);
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::scaled_gemm
