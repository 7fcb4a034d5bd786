#include <fmt/format.h>

#include <algorithm>

#include "kernels/templates/quantized_gemm/plan.hpp"
#include "kernels/templates/quantized_gemm/ring.hpp"
#include "kernels/templates/quantized_gemm/variant.hpp"

/// Products of one row of f16 or bf16 as integers.
namespace greta::kernels::quantized_gemm {
namespace {

constexpr std::int64_t unit_digits = 896;  ///< bytes of A's digits of a unit (digits.hip)

/// Returns the bytes of stages, sums and digits, of which each wave has a part.
template <typename Values>  // an Expression or a number
Values digits_shared_bytes(const Shape& shape, Values waves, Values tn, Values stages) {
  const Values digits = ceil_div(Values(shape.k / pair), waves) * (2 * unit_digits);
  return waves * (stages * tn * (core_side * line_bytes(shape)) + tn * (8 * core_side) + digits);
}

std::int64_t digits_shared_bytes(const Shape& shape, const Config& config) {
  return digits_shared_bytes<std::int64_t>(shape, config["WAVES"], config["TN"], config["STAGES"]);
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t wave = device.subgroup_size;
  const Expression bytes = digits_shared_bytes<Expression>(shape, p["WAVES"], p["TN"], p["STAGES"]);
  // WAVES     waves of a workgroup, among which K is divided
  // TN        tiles of 16 columns of C, which one load of A serves
  // STAGES    pairs of units of a wave in shared memory, all but one of them being copied
  // RESIDENT  workgroups per compute unit, which compute tile after tile; 0: one for each tile
  Alternative a{
      "digits",
      {{"WAVES", {2, 4, 8, 16}}, {"TN", {1, 2}}, {"STAGES", {2, 3, 4}}, {"RESIDENT", {0, 1, 2, 3}}},
      {storage_constraint(shape.halves(), shape.out, device),
       no_norm(shape),
       rows_of_weights(shape),
       {"lane_copies", "the device must be an NVIDIA GPU with HIP kernels and matrix cores",
        has_copies(shape, device)},
       {"digits", "A must be one row", shape.m == 1}}};
  append(a.constraints, ring_constraints(shape, device, bytes));
  a.constraints.push_back(register_constraint(device, "sums, weights of a unit and digits",
                                              34 * p["TN"] + 48, p["WAVES"] * wave));
  return a;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  return plan_of_tiles(shape, device, config,
                       {.name = "digits",
                        .threads = config["WAVES"] * device.subgroup_size,
                        .rows = 1,
                        .columns = config["TN"] * core_side,
                        .blocks = resident_blocks(shape, device, config),
                        .dynamic_shared_bytes = digits_shared_bytes(shape, config)});
}

/// Few columns are one tile for each compute unit, whose waves are many; else two workgroups share
/// a unit, and one multiplies while the other one stores.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (!good_for_rings(shape, device)) return {};
  const auto config = [](int waves, int tn, int stages, int resident) {
    return Config{"digits",
                  {{"WAVES", waves}, {"TN", tn}, {"STAGES", stages}, {"RESIDENT", resident}}};
  };
  std::vector<Config> configs;
  if (ceil_div(shape.products(), 2 * core_side) <= device.compute_units) {
    configs = {config(16, 2, 2, 1), config(16, 1, 2, 1)};
  }
  for (const int waves : {8, 4, 2}) {
    configs.push_back(config(waves, 1, 3, 2));
    configs.push_back(config(waves, 1, 2, 1));
  }
  return configs;
}

std::vector<Config> candidates(const Shape& shape, const DeviceInfo& device) {
  if (shape.m != 1 || !good_for_rings(shape, device)) return {};
  return combinations(
      "digits",
      {{"WAVES", {16, 8}}, {"TN", {1, 2}}, {"STAGES", {2, 3, 4}}, {"RESIDENT", {0, 1, 2}}});
}

std::vector<Division> divisions(const Shape& shape, const Config& config) {
  constexpr std::int64_t never = 64;  // WAVES does not exceed the pairs
  return {{"n", shape.products(), config["TN"] * core_side},
          {"pairs", shape.k / pair, config["WAVES"], {}, never}};
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const auto k = static_cast<double>(shape.k);
  const double columns = columns_of_block(shape, device, config);
  LaunchWork work = work_of_ring(shape, device, config, digits_shared_bytes(shape, config), 1,
                                 k * bytes_of(shape.in, 1));
  work.registers = static_cast<double>(34 * config["TN"] + 48);
  work.matrix_flops = 8 * columns * k;
  work.vector_flops = columns * k * 0.75 + 14 * k;
  work.barriers = tiles_of_block(columns, config);
  return {work};
}

}  // namespace

Variant digits() {
  Variant variant =
      make_variant<Shape>("digits",
                          "HIP on NVIDIA GPUs, one row of f16 or bf16, integers in "
                          "groups of 128: A as digits, which integer matrix cores multiply "
                          "exactly; workgroups and copies as in stream",
                          space, plan, defaults, divisions);
  set_work<Shape>(variant, work);
  set_candidates<Shape>(variant, candidates);
  return variant;
}

}  // namespace greta::kernels::quantized_gemm
