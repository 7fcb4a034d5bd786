#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/quantized_gemm/cooperative.hpp"
#include "kernels/templates/quantized_gemm/cores.hpp"
#include "kernels/templates/quantized_gemm/plan.hpp"
#include "kernels/templates/quantized_gemm/variant.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// Products with quantised weights by matrix cores.
namespace greta::kernels::quantized_gemm {
namespace {

constexpr std::int64_t side = core_side, segment = 32;

/// Returns the weights of a line that a wave multiplies at a time: those of a long group, or a
/// segment of other formats (matrix_segments.hip).
std::int64_t unit_of(const Shape& shape) {
  return shape.group == core_unit ? core_unit : segment;
}

/// Returns the lanes of a wave that share a line of weights (products.hip).
std::int64_t lanes_of_line(const DeviceInfo& device) {
  const MatrixCores cores = device::matrix_cores(device.architecture);
  return cores == MatrixCores::wmma11 ? 1 : cores == MatrixCores::wmma12 ? 2 : 4;
}

/// Returns the 32-bit registers of a unit of weights of one tile that a lane holds.
std::int64_t unit_registers(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t lines = device::matrix_cores(device.architecture) == MatrixCores::mma ? 2 : 1;
  // A segment as it is stored, its scale, zero point and rest.
  const bool fours = shape.format == WeightFormat::int4 || shape.format == WeightFormat::mxfp4;
  if (unit_of(shape) == segment) return lines * ((fours ? 4 : 8) / lanes_of_line(device) + 3);
  const std::int64_t integers = shape.format == WeightFormat::int4 ? 4 : 8;
  return lines * (4 / lanes_of_line(device)) * (integers + 1);
}

std::int64_t threads_of(const DeviceInfo& device, const Config& config) {
  return std::int64_t{config["WAVES"]} * device.subgroup_size;
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t wave = device.subgroup_size, groups = most_workgroups(device);
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  const std::int64_t unit = unit_of(shape);
  const Expression tiles = p["RT"] * p["TN"];
  // WAVES   waves of a workgroup, among which K is divided
  // TN      tiles of 16 columns of C, which one load of A serves
  // RT      tiles of 16 rows of C, which one load of B serves
  // UNROLL  units of weights in flight for each column: groups of 128, or 32 weights
  return {
      "matrix",
      {{"WAVES", {1, 2, 4, 8, 16}}, {"TN", {1, 2, 4}}, {"RT", {1, 2, 4}}, {"UNROLL", {1, 2, 3, 4}}},
      {storage_constraint(shape.halves(), shape.out, device),
       no_norm(shape),
       rows_of_weights(shape),
       {"matrix_operations",
        fmt::format("HIP kernels of the device have no matrix cores of {}", to_string(shape.in)),
        has_cores(shape, device)},
       {"waves", fmt::format("the device allows {} threads", threads),
        p["WAVES"] * wave <= threads},
       {"rows", fmt::format("RT x 16 must not be twice m, {}, or more, unless RT is 1", shape.m),
        p["RT"] == 1 || p["RT"] * side < 2 * shape.m},
       {"columns",
        fmt::format("TN x 16 must not be twice n, {}, or more, unless TN is 1", shape.products()),
        p["TN"] == 1 || p["TN"] * side < 2 * shape.products()},
       {"idle_waves", fmt::format("WAVES must not exceed the units of {} of k, {}", unit, shape.k),
        p["WAVES"] <= shape.k / unit},
       {"idle_loads", fmt::format("UNROLL must not exceed the units of {} of k, {}", unit, shape.k),
        p["UNROLL"] <= shape.k / unit},
       {"grid", fmt::format("C has more than {} workgroups", groups),
        ceil_div(shape.products(), p["TN"] * side) * launched_lines(shape, p["RT"] * side) <=
            groups},
       {"shared_memory", fmt::format("sums of waves must fit {} KiB", shared / 1024),
        p["WAVES"] * (side * (side + 8) * 4) <= shared},
       register_constraint(device, "sums, and units in flight",
                           (shape.few_rows() ? 1 : 2) * tiles * (side * side / wave) +
                               p["UNROLL"] * p["TN"] * unit_registers(shape, device),
                           p["WAVES"] * wave)}};
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  return plan_of_tiles(shape, device, config,
                       {.name = unit_of(shape) == segment ? "matrix_segments" : "matrix",
                        .threads = threads_of(device, config),
                        .rows = config["RT"] * side,
                        .columns = config["TN"] * side});
}

/// Waves share K until the device is busy.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (!has_cores(shape, device)) return {};
  // Of short units and few rows, most of an instruction is wasted. Integers are converted quickly:
  // on an H200 `matrix` was faster than `gemv` with 8 rows of them, and slower with 2.
  const bool wide = integers_in_groups(shape) && device.vendor == "NVIDIA";
  if (unit_of(shape) == segment && !shape.grouped() && shape.m < (wide ? 3 : 8)) return {};
  int rt = 1;
  while (rt < 4 && rt * side < shape.rows_of_group()) rt *= 2;
  // The tiles of many groups or rows keep a device busy by themselves.
  const auto keep_busy = [&](int tn, int rows) {
    return ceil_div(shape.products(), tn * side) * filled_lines(shape, rows * side) >=
           4 * busy_workgroups(device);
  };
  // Bytes of a lane of NVIDIA's GPUs and four rows of tiles leave words in memory, of groups those
  // of gates.
  const bool bytes = device.vendor == "NVIDIA" && shape.format == WeightFormat::int8 &&
                     unit_of(shape) != segment && (!shape.grouped() || shape.gated()) && rt == 4 &&
                     keep_busy(2, 2);
  if (bytes) rt = 2;
  // A lane of gfx11 holds whole lines: all rows of tiles are as much as registers have room for.
  // AMD's compiler spills with zero points of gates, and of RDNA's 256 registers some for panels
  // with zero points, or with int4 that become bf16.
  const bool panels = shape.panels && thread_registers(device) <= 256;
  const bool converts = shape.format == WeightFormat::int4 && shape.in == DType::bf16;
  const bool spills = device.vendor != "NVIDIA" &&
                      ((shape.gated() && shape.zeros) || (panels && (shape.zeros || converts)));
  const bool room = rt < 4 || (lanes_of_line(device) > 1 && !spills);
  // Of groups with few rows, two tiles share those of A (measured on an H200).
  const bool pairs = rt == 1 && shape.grouped() && device.vendor == "NVIDIA" && keep_busy(2, 1);
  const int most_tn = (rt > 1 && room) || pairs ? 2 : 1;
  const bool many = bytes || (shape.grouped() && keep_busy(most_tn, rt));
  std::vector<int> all_waves{8, 4, 2, 1};
  const bool two = pairs && shape.k >= 2 * unit_of(shape);  // waves that have units of K
  if (many) all_waves = two ? std::vector{2} : std::vector{2, 1};
  std::vector<Config> configs;
  for (const int tn : {most_tn, 1}) {
    for (const int waves : all_waves) {
      configs.push_back({"matrix", {{"WAVES", waves}, {"TN", tn}, {"RT", rt}, {"UNROLL", 1}}});
    }
  }
  return configs;
}

/// For few rows, of which one line of tiles has all.
std::vector<Config> candidates(const Shape& shape, const DeviceInfo& device) {
  if (device.vendor != "NVIDIA" || device.language != Language::hip) return {};
  if (shape.grouped() || shape.m > side) return {};
  return combinations("matrix",
                      {{"WAVES", {16, 8, 4}}, {"TN", {1, 2}}, {"RT", {1}}, {"UNROLL", {1, 2, 4}}});
}

std::vector<Division> divisions(const Shape& shape, const Config& config) {
  return {
      {"m", shape.m, config["RT"] * side},
      {"n", shape.products(), config["TN"] * side},
      {"units", shape.k / unit_of(shape), std::int64_t{config["WAVES"]} * config["UNROLL"], {}, 2}};
}

/// Returns an estimate of the registers of a lane, by those of NVRTC for sm_90. A long unit's
/// elements of A are kept for all columns, and those of the first row of tiles used at once.
std::int64_t estimated_registers(const Shape& shape, const DeviceInfo& device, const Config& c) {
  const std::int64_t wave = device.subgroup_size, of_a = side * core_unit / 2 / wave;
  const std::int64_t kept = unit_of(shape) == segment ? 0 : (c["RT"] - 1) * of_a;
  return 2 * c["RT"] * c["TN"] * (side * side / wave) +
         c["UNROLL"] * c["TN"] * unit_registers(shape, device) + kept + 40;
}

/// Returns the instructions that a weight takes besides its products. Those of NVIDIA are fitted to
/// times of an H200: short segments take more.
double instructions_of_weight(const Shape& shape, const DeviceInfo& device) {
  if (device.vendor != "NVIDIA") return 4;
  if (shape.format == WeightFormat::q6_k) return 18;
  return unit_of(shape) == segment ? 10 : 3;
}

/// Returns the KiB of a kernel's loop, by those of NVRTC for sm_90.
double code_kib(const Config& c) {
  const double tiles = c["RT"] * c["TN"];
  return 5 + 2.6 * tiles + c["UNROLL"] * (2.6 + tiles);
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double rows = static_cast<double>(config["RT"] * side);
  const double columns = static_cast<double>(config["TN"] * side);
  const double k = static_cast<double>(shape.k), waves = config["WAVES"];
  const double unit = static_cast<double>(unit_of(shape));
  const double weight =
      static_cast<double>(row_bytes(shape.format, shape.k)) / static_cast<double>(shape.k);
  // Products for each weight, with ones or zeros among them, and sums that are scaled.
  const double products = in_super_blocks(shape.format) ? 2 : 1;
  LaunchWork work;
  work.workgroups = expected_tiles(shape, config["RT"] * side, config["TN"] * side);
  work.threads = static_cast<double>(threads_of(device, config));
  work.shared_bytes = waves * side * (side + 8) * 4;
  work.registers = static_cast<double>(estimated_registers(shape, device, config));
  work.matrix_flops = 2 * rows * columns * k * products;
  const double of_weight = instructions_of_weight(shape, device);
  work.vector_flops = columns * k * (of_weight + rows / unit * 2 * products) *
                      time_of_code(device, code_kib(config));
  const double of_weights = columns * k * (weight + scale_bytes(shape));
  // Lanes past the last row repeat it: they load, but nothing else.
  const bool mma = device::matrix_cores(device.architecture) == MatrixCores::mma;
  const double loaded_rows = mma && shape.few_rows() ? 8 : rows;
  const double of_a = loaded_rows * k * bytes_of(shape.in, 1);
  work.read_bytes =
      of_weights + of_a * std::min(1.0, static_cast<double>(shape.rows_of_group()) / loaded_rows);
  work.written_bytes = rows * columns * bytes_of(shape.out, 1);
  work.loads = columns * k * weight / (unit_of(shape) == segment ? 4 : 16) + of_a / 16;
  // Elements of A are loaded when a unit is multiplied, whatever UNROLL is, but from caches.
  const double of_units = waves * columns * unit * weight, ahead = config["UNROLL"] * of_units;
  constexpr double cached = 0.3;
  work.ahead_bytes = work.read_bytes / (of_weights / ahead + cached * of_a / of_units);
  work.steps = std::max(1.0, columns * k * weight / ahead);
  work.barriers = 2.0 * config["RT"] * config["TN"];
  work.unique_bytes = least_bytes(shape);
  return {work};
}

bool cooperative(const DeviceInfo& device) {
  return device.language == Language::glsl;
}

}  // namespace

Variant matrix() {
  constexpr auto any_space = [](const Shape& shape, const DeviceInfo& device) {
    return cooperative(device) ? cooperative_space(shape, device) : space(shape, device);
  };
  constexpr auto any_plan = [](const Shape& shape, const DeviceInfo& device, const Config& config) {
    return cooperative(device) ? cooperative_plan(shape, device, config)
                               : plan(shape, device, config);
  };
  constexpr auto any_defaults = [](const Shape& shape, const DeviceInfo& device) {
    return cooperative(device) ? cooperative_defaults(shape, device) : defaults(shape, device);
  };
  // Only GLSL kernels have tiles of BM rows.
  constexpr auto any_divisions = [](const Shape& shape, const Config& config) {
    return config.has("BM") ? cooperative_divisions(shape, config) : divisions(shape, config);
  };
  Variant variant = make_variant<Shape>(
      "matrix",
      "matrix cores. HIP: a workgroup's waves share K and compute TN x RT tiles; Vulkan: a "
      "workgroup decodes a tile of weights to shared memory, for products of many rows",
      any_space, any_plan, any_defaults, any_divisions);
  set_candidates<Shape>(variant, candidates);
  set_work<Shape>(variant, [](const Shape& shape, const DeviceInfo& device, const Config& config) {
    return cooperative(device) ? cooperative_work(shape, device, config)
                               : work(shape, device, config);
  });
  return variant;
}

}  // namespace greta::kernels::quantized_gemm
