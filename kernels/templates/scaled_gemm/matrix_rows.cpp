#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/arrival.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/scaled_gemm/cores.hpp"
#include "kernels/templates/scaled_gemm/plan.hpp"
#include "kernels/templates/scaled_gemm/variant.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// Scaled products of few rows by the matrix cores of waves that share k.
namespace greta::kernels::scaled_gemm {
namespace {

constexpr std::int64_t side = core_side, unit = 128;

/// Returns whether up to eight rows of A are one product on this device.
bool half_products(const Shape& shape, const DeviceInfo& device) {
  return shape.m <= 8 && matrix_cores(device.architecture) == MatrixCores::mma;
}

/// Returns whether the kernel multiplies fp8 as f16 (matrix_rows.hip).
bool as_f16(const Shape& shape, const DeviceInfo& device) {
  return !shape.integers() && (shape.mx() || device.architecture == "sm_90");
}

/// Returns whether threads add the sums of each unit.
bool adds_units(const Shape& shape, const DeviceInfo& device) {
  return adds_steps(shape, device) && (shape.block_scales() || !as_f16(shape, device));
}

/// Returns the 32-bit registers of a lane for a unit of 16 lines.
std::int64_t unit_registers(const DeviceInfo& device) {
  const std::int64_t words = side * unit / 4 / device.subgroup_size;
  return matrix_cores(device.architecture) == MatrixCores::wmma11 ? 2 * words : words;
}

/// Returns the 32-bit registers of a lane's units, and of its sums.
auto registers_of(const Shape& shape, const DeviceInfo& device, const auto& c) {
  const std::int64_t of_unit = unit_registers(device);
  const std::int64_t halves = half_products(shape, device) ? 1 : 2;
  const std::int64_t sums = side * side / device.subgroup_size * halves / 2;
  const std::int64_t promoted = adds_units(shape, device) ? sums : 0;
  return of_unit * c["UNROLL"] * c["TN"] + of_unit * halves + sums * c["RT"] * c["TN"] + promoted;
}

/// Returns an estimate of the registers that compilers need, by those of NVRTC for sm_90.
std::int64_t estimated_registers(const Shape& shape, const DeviceInfo& device, const Config& c) {
  const std::int64_t addresses = 32 + 4 * c["TN"] + 4 * c["RT"];
  // Columns that are converted once for all rows.
  const std::int64_t converted = as_f16(shape, device) ? 8 * (c["TN"] - 1) * c["RT"] : 0;
  const std::int64_t scales = shape.block_scales() ? 16 + 16 * c["RT"] * c["TN"] : 0;
  return registers_of(shape, device, c) + addresses + converted + scales;
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t wave = device.subgroup_size, groups = most_workgroups(device);
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  const std::int64_t units = ceil_div(shape.k, unit);
  // WAVES   waves of a workgroup, among which k is divided
  // TN      tiles of 16 columns of C, which one load of A serves
  // RT      tiles of 16 rows of C, which one load of B serves
  // UNROLL  units of 128 k in flight for each column
  // SPLIT   workgroups that share k
  Alternative a{
      "matrix_rows",
      {{"WAVES", {1, 2, 4, 8, 16, 32}},
       {"TN", {1, 2, 4}},
       {"RT", {1, 2, 4}},
       {"UNROLL", {1, 2, 4}},
       {"SPLIT", {1, 2, 4, 8}}},
      {storage_constraint(DType::f32, shape.out, device),
       cores_constraint(shape, device),
       {"scales", "only NVIDIA GPUs have scales mx", rows_have_scales(shape, device)},
       {"waves", fmt::format("the device allows {} threads", threads),
        p["WAVES"] * wave <= threads},
       {"rows", fmt::format("RT x 16 must not be twice m, {}, or more, unless RT is 1", shape.m),
        p["RT"] == 1 || p["RT"] * side < 2 * shape.m},
       {"columns", fmt::format("TN x 16 must not be twice n, {}, or more, unless TN is 1", shape.n),
        p["TN"] == 1 || p["TN"] * side < 2 * shape.n},
       {"idle_waves",
        fmt::format("WAVES x UNROLL units must not be twice the {} of k, or more", units),
        p["WAVES"] * p["UNROLL"] < 2 * units || p["WAVES"] * p["UNROLL"] == 1},
       {"grid", fmt::format("C has more than {} workgroups", groups),
        ceil_div(shape.n, p["TN"] * side) * ceil_div(shape.m, p["RT"] * side) <= groups},
       {"shared_memory", fmt::format("sums of waves must fit {} KiB", shared / 1024),
        p["WAVES"] * (side * (side + 4) * 4) <= std::min<std::int64_t>(shared, 48 << 10)},
       register_constraint(device, "sums, and units in flight", registers_of(shape, device, p),
                           p["WAVES"] * wave)}};
  append(a.constraints, slice_constraints(shape, device, unit));
  return a;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  LaunchPlan plan = plan_of_tiles(shape, device, config,
                                  {.name = "matrix_rows",
                                   .threads = config["WAVES"] * device.subgroup_size,
                                   .rows = config["RT"] * side,
                                   .columns = config["TN"] * side,
                                   .defines = {{"FEW_ROWS", shape.m <= 8 ? "1" : "0"},
                                               {"AS_F16", as_f16(shape, device) ? "1" : "0"}},
                                   .slice = slice_length(shape, config, unit)});
  return plan;
}

/// Returns the number of workgroups that share k so that the device is busy, each with one of these
/// rounds of its waves at least.
int split_of(std::int64_t tiles, std::int64_t busy, std::int64_t rounds) {
  int split = 1;
  while (split < 8 && 2 * tiles * split <= busy && 2 * split <= rounds) split *= 2;
  return split;
}

/// Waves, and where there are few columns workgroups, share k until a compute unit has 32 KiB of B
/// under way.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (!has_cores(shape, device) || !rows_have_scales(shape, device)) return {};
  if (shape.mx() && !for_few_rows(shape)) return {};
  constexpr std::int64_t under_way = 32 << 10;
  int rt = 1;
  while (rt < 4 && rt * side < shape.m) rt *= 2;
  const std::int64_t units = ceil_div(shape.k, unit), busy = busy_workgroups(device);
  std::vector<Config> good, others;
  for (const int tn : {2, 1}) {
    // NVRTC keeps the totals of one column and several rows in memory.
    if (shape.mx() && rt > 1 && tn == 1) continue;
    const std::int64_t tiles =
        ceil_div(shape.n, tn * side) * ceil_div(shape.m, std::int64_t{rt} * side);
    for (const int waves : {16, 8, 4, 2, 1}) {
      for (const int unroll : {4, 2, 1}) {
        const std::int64_t of_workgroup = std::int64_t{waves} * unroll;
        const int split = split_of(tiles, busy, units / of_workgroup);
        const Config config{
            "matrix_rows",
            {{"WAVES", waves}, {"TN", tn}, {"RT", rt}, {"UNROLL", unroll}, {"SPLIT", split}}};
        const std::int64_t room =
            register_limit(device, std::int64_t{waves} * device.subgroup_size);
        if (estimated_registers(shape, device, config) > room) continue;
        const std::int64_t ahead = tiles * split * of_workgroup * (tn * side * unit);
        const bool is_good = of_workgroup <= units && ahead >= under_way * busy;
        (is_good ? good : others).push_back(config);
      }
    }
  }
  // Of problems that can't keep the device busy, that with the most waves.
  std::stable_sort(others.begin(), others.end(), [](const Config& a, const Config& b) {
    return a["WAVES"] * a["UNROLL"] > b["WAVES"] * b["UNROLL"];
  });
  return good.empty() ? others : good;
}

std::vector<Division> divisions(const Shape& shape, const Config& config) {
  const std::int64_t units = ceil_div(shape.k, unit);
  return {{"m", shape.m, config["RT"] * side, {}, side},
          {"n", shape.n, config["TN"] * side, {}, side},
          {"k", shape.k, unit, {}, 1},
          {"units", ceil_div(units, std::int64_t{config["SPLIT"]}),
           std::int64_t{config["WAVES"]} * config["UNROLL"]},
          {"slices", units, config["SPLIT"], "SPLIT", never}};
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double rows = static_cast<double>(config["RT"] * side);
  const double columns = static_cast<double>(config["TN"] * side);
  const double waves = config["WAVES"], split = config["SPLIT"];
  const auto k = static_cast<double>(slice_length(shape, config, unit));
  LaunchWork work;
  work.workgroups = static_cast<double>(ceil_div(shape.n, config["TN"] * side) *
                                        ceil_div(shape.m, config["RT"] * side)) *
                    split;
  work.threads = static_cast<double>(config["WAVES"] * device.subgroup_size);
  work.shared_bytes = waves * side * (side + 4) * 4;
  work.registers = static_cast<double>(estimated_registers(shape, device, config));
  // The rates are those of 16-bit types.
  work.matrix_flops = rows * columns * k * (half_products(shape, device) ? 0.5 : 1);
  const std::int64_t added = shape.mx() ? mx_block : unit;
  work.vector_flops =
      adds_units(shape, device) ? 2 * rows * columns * k / static_cast<double>(added) : 0;
  // Both operands of each workgroup become f16.
  if (as_f16(shape, device)) work.vector_flops += 4 * (rows + columns) * k;
  const double of_scales = shape.mx() ? 1.0 / mx_block : 0;
  const double bytes_a = static_cast<double>(shape.bytes_a(unit)) / unit + of_scales;
  const double bytes_b = static_cast<double>(shape.bytes_b(unit)) / unit + of_scales;
  work.read_bytes = (rows * bytes_a + columns * bytes_b) * k;
  work.written_bytes = rows * columns * (split > 1 ? 4 : bytes_of(shape.out, 1));
  work.loads = work.read_bytes / (shape.mx() ? 8 : 16);
  work.ahead_bytes = waves * config["UNROLL"] * columns * unit * bytes_b;
  work.steps = std::max(1.0, columns * k * bytes_b / work.ahead_bytes);
  work.barriers = 2.0 * config["RT"] * config["TN"] +
                  (split > 1 ? barriers_of_arrival(4 * rows * columns * split) : 0);
  work.unique_bytes = least_bytes(shape);
  return {work};
}

}  // namespace

Variant matrix_rows() {
  Variant variant =
      make_variant<Shape>("matrix_rows",
                          "HIP, few rows: waves share k of TN x RT tiles, by matrix cores of 8-bit "
                          "numbers",
                          space, plan, defaults, divisions);
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::scaled_gemm
