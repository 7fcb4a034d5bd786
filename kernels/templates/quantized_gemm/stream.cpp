#include <fmt/format.h>

#include <algorithm>

#include "kernels/templates/quantized_gemm/plan.hpp"
#include "kernels/templates/quantized_gemm/ring.hpp"
#include "kernels/templates/quantized_gemm/variant.hpp"

/// Products of few rows with quantised weights whose waves copy weights ahead.
namespace greta::kernels::quantized_gemm {
namespace {

/// Returns the floats of the sums of a wave's tile (products.hip).
std::int64_t floats_of_sums(const Shape& shape) {
  return core_side * (shape.m <= 8 ? 8 : 24);
}

/// Returns the rows of the product: with a norm, a weighted element of A is the sum of two, its
/// pieces (stream.hip).
std::int64_t rows_of_a(const Shape& shape) {
  return shape.norm ? 2 * shape.m : shape.m;
}

/// Returns the bytes of stages and sums, and of A's rows, of which each wave has a part.
template <typename Values>  // an Expression or a number
Values shared_bytes(const Shape& shape, Values waves, Values tn, Values stages) {
  const Values rows = ceil_div(Values(shape.k / pair), waves) * (pair * rows_of_a(shape) * 2);
  const std::int64_t fixed = 8 * floats_of_sums(shape) + (shape.norm ? 32 : 0);
  return waves * (stages * tn * (core_side * line_bytes(shape)) + fixed + rows);
}

std::int64_t shared_bytes(const Shape& shape, const Config& config) {
  return shared_bytes<std::int64_t>(shape, config["WAVES"], config["TN"], config["STAGES"]);
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t wave = device.subgroup_size;
  const std::int64_t tiles = ceil_div(shape.m, core_side);
  const Expression bytes = shared_bytes<Expression>(shape, p["WAVES"], p["TN"], p["STAGES"]);
  // WAVES     waves of a workgroup, among which K is divided
  // TN        tiles of 16 columns of C, which one load of A serves
  // RT        tiles of 16 rows of C: all rows
  // STAGES    pairs of units of a wave in shared memory, all but one of them being copied
  // RESIDENT  workgroups per compute unit, which compute tile after tile; 0: one for each tile
  Alternative a{
      "stream",
      {{"WAVES", {2, 4, 8, 16, 32}},
       {"TN", {1, 2, 4}},
       {"RT", {1, 2, 3, 4}},
       {"STAGES", {2, 3, 4, 6, 8}},
       {"RESIDENT", {0, 1, 2, 3, 4}}},
      {storage_constraint(shape.halves(), shape.out, device),
       rows_of_weights(shape),
       {"lane_copies",
        fmt::format("the device must be an NVIDIA GPU with HIP kernels and matrix cores of {}",
                    to_string(shape.in)),
        has_copies(shape, device)},
       {"norm",
        fmt::format(
            "with a norm, a row of A takes two of eight rows, so that m, {}, must be at most 4",
            shape.m),
        rows_of_a(shape) <= 8 || !shape.norm},
       {"norm_output",
        "with a norm of f16, the output must be f16: the rest of a small element is rounded",
        !shape.norm || shape.in != DType::f16 || shape.out == DType::f16},
       {"rows", fmt::format("RT x 16 must be m, {}, rounded up", shape.m), p["RT"] == tiles}}};
  append(a.constraints, ring_constraints(shape, device, bytes));
  a.constraints.push_back(register_constraint(
      device, "sums, weights of a unit and elements of A",
      p["RT"] * p["TN"] * (2 * core_side * core_side / wave) + 16 * p["TN"] + 64,
      p["WAVES"] * wave));
  return a;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  return plan_of_tiles(shape, device, config,
                       {.name = "stream",
                        .threads = config["WAVES"] * device.subgroup_size,
                        .rows = config["RT"] * core_side,
                        .columns = config["TN"] * core_side,
                        .blocks = resident_blocks(shape, device, config),
                        .dynamic_shared_bytes = shared_bytes(shape, config)});
}

/// Waves share K until the device is busy.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (!good_for_rings(shape, device)) return {};
  const int rt = static_cast<int>(ceil_div(shape.m, core_side));
  std::vector<Config> configs;
  for (const int waves : {16, 8, 4, 2}) {
    for (const int stages : {4, 2}) {
      configs.push_back(
          {"stream",
           {{"WAVES", waves}, {"TN", 1}, {"RT", rt}, {"STAGES", stages}, {"RESIDENT", 0}}});
    }
  }
  return configs;
}

std::vector<Config> candidates(const Shape& shape, const DeviceInfo& device) {
  if (!good_for_rings(shape, device)) return {};
  return combinations("stream", {{"WAVES", {16, 8, 4}},
                                 {"TN", {1, 2}},
                                 {"RT", {static_cast<int>(ceil_div(shape.m, core_side))}},
                                 {"STAGES", {2, 3, 4}},
                                 {"RESIDENT", {0, 1, 2, 3}}});
}

std::vector<Division> divisions(const Shape& shape, const Config& config) {
  constexpr std::int64_t never = 64;  // WAVES does not exceed the pairs
  return {{"m", shape.m, core_side},
          {"n", shape.products(), config["TN"] * core_side},
          {"pairs", shape.k / pair, config["WAVES"], {}, never}};
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const auto rows = static_cast<double>(config["RT"] * core_side), k = static_cast<double>(shape.k);
  const double columns = columns_of_block(shape, device, config);
  const double tiles = tiles_of_block(columns, config);
  const double of_a = static_cast<double>(shape.m) * k * bytes_of(shape.in, 1);
  LaunchWork work = work_of_ring(shape, device, config, shared_bytes(shape, config), rows, of_a);
  const double of_weights = work.read_bytes - of_a;
  const double read_rows = rows_of_a(shape) <= 8 ? 8 : rows;
  work.shared_traffic = 2 * of_weights + of_a + tiles * read_rows * k * bytes_of(shape.in, 1);
  work.ahead_bytes =
      work.read_bytes / (of_weights / work.ahead_bytes + rounds_of_rows(shape, work.threads, k));
  work.registers = static_cast<double>(config["RT"] * config["TN"] *
                                           (2 * core_side * core_side / device.subgroup_size) +
                                       16 * config["TN"] + 64);
  work.matrix_flops = 2 * rows * columns * k;
  work.vector_flops = columns * k * 1.5 * time_of_code(device, 8 + 6.0 * config["TN"]);
  work.barriers = tiles * config["RT"] * config["TN"];
  return {work};
}

}  // namespace

Variant stream() {
  Variant variant = make_variant<Shape>("stream",
                                        "HIP on NVIDIA GPUs, integers in groups of 128: workgroups "
                                        "stay, and their waves copy weights "
                                        "to shared memory ahead",
                                        space, plan, defaults, divisions);
  set_work<Shape>(variant, work);
  set_candidates<Shape>(variant, candidates);
  return variant;
}

}  // namespace greta::kernels::quantized_gemm
