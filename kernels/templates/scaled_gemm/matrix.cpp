#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/scaled_gemm/cores.hpp"
#include "kernels/templates/scaled_gemm/plan.hpp"
#include "kernels/templates/scaled_gemm/variant.hpp"

/// Scaled products of numbers of eight bits by the matrix cores of waves.
namespace greta::kernels::scaled_gemm {
namespace {

constexpr std::int64_t side = core_side;
constexpr std::int64_t matrix_step = 128;  ///< k of a stage

std::int64_t matrix_threads(const DeviceInfo& device, const Config& config) {
  return std::int64_t{config["BM"]} / config["WM"] * (config["BN"] / config["WN"]) *
         device.subgroup_size;
}

Alternative matrix_space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t wave = device.subgroup_size, groups = most_workgroups(device);
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  const Expression all = p["BM"] / p["WM"] * (p["BN"] / p["WN"]) * wave;
  const std::int64_t sums = adds_steps(shape, device) ? 2 : 1;
  // BM x BN  tile of C of a workgroup
  // WM x WN  part of it of a wave
  // BUFFERS  steps of 128 k in shared memory
  return {
      "matrix",
      {{"BM", {16, 32, 64, 128, 256}},
       {"BN", {16, 32, 64, 128, 256}},
       {"WM", {16, 32, 64, 128}},
       {"WN", {16, 32, 64, 128}},
       {"BUFFERS", {1, 2}}},
      {storage_constraint(DType::f32, shape.out, device),
       cores_constraint(shape, device),
       {"waves", "WM must divide BM, and WN BN", p["BM"] % p["WM"] == 0 && p["BN"] % p["WN"] == 0},
       {"workgroup_threads", fmt::format("the device allows {} threads", threads), all <= threads},
       {"tile_m", fmt::format("BM must not be twice m, {}, or more, unless it is 16", shape.m),
        p["BM"] < 2 * shape.m || p["BM"] == side},
       {"tile_n",
        fmt::format("BN must not be twice n, {}, or more, unless it is 16", shape.products()),
        p["BN"] < 2 * shape.products() || p["BN"] <= side * (shape.gated() ? 2 : 1)},
       {"gates", "with gates, WN must have 16 of them and their ups",
        !shape.gated() || p["WN"] % (2 * side) == 0},
       {"blocks", "ups must begin at multiples of 16 lines of a block",
        !shape.gated() || shape.scales != Scales::block || shape.n % side == 0},
       {"grid", fmt::format("C has more than {} workgroups", groups),
        ceil_div(shape.products(), p["BN"]) * launched_lines(shape, p["BM"]) <= groups},
       {"shared_memory", fmt::format("BUFFERS of both tiles must fit {} KiB", shared / 1024),
        p["BUFFERS"] * (p["BM"] + p["BN"]) * matrix_step <= shared},
       register_constraint(device, "sums, fragments, and loads in flight",
                           p["WM"] * p["WN"] * sums / wave + (p["WM"] + p["WN"]) / 4 +
                               (p["BM"] + p["BN"]) * (matrix_step / 4) / all,
                           all),
       // Scales of rows have addresses.
       {"vector_registers",
        "sums, scales, fragments, and loads in flight must fit 224 registers: others are moved",
        p["WM"] * p["WN"] * sums / wave + (p["WM"] + p["WN"]) / 4 +
                (p["BM"] + p["BN"]) * (matrix_step / 4) / all +
                (sums - 1) * (p["WM"] * (3 * side) / wave) <=
            224}}};
}

LaunchPlan matrix_plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  LaunchPlan plan = plan_of_tiles(shape, device, config,
                                  {.name = "matrix",
                                   .threads = matrix_threads(device, config),
                                   .rows = config["BM"],
                                   .columns = config["BN"]});
  plan.sources[0].dynamic_shared_bytes =
      static_cast<std::uint32_t>(config["BUFFERS"] * (config["BM"] + config["BN"]) * matrix_step);
  return plan;
}

/// The largest tiles that keep the device busy.
std::vector<Config> matrix_defaults(const Shape& shape, const DeviceInfo& device) {
  if (!has_cores(shape, device) || for_few_rows(shape)) return {};
  struct Tile {
    int bm, bn, wm, wn;
  };
  static constexpr Tile tiles[] = {
      {128, 128, 64, 32}, {64, 128, 32, 32}, {64, 64, 32, 32}, {32, 64, 16, 32}, {32, 32, 16, 16},
      {16, 64, 16, 16},   {16, 64, 16, 32},  {16, 32, 16, 32}, {16, 32, 16, 16}, {16, 16, 16, 16}};
  std::vector<Config> busy, idle;
  const bool many_sums = adds_steps(shape, device) && device.subgroup_size == 32;
  for (const Tile& tile : tiles) {
    if (many_sums && tile.wm * tile.wn > 1024) continue;  // compilers would spill
    if (shape.gated() && tile.wn % 32 != 0) continue;
    if (too_high(shape, tile.bm)) continue;
    const std::int64_t count = count_tiles(shape, tile.bm, tile.bn);
    for (const int buffers : {2, 1}) {
      (count >= busy_workgroups(device) ? busy : idle)
          .push_back({"matrix",
                      {{"BM", tile.bm},
                       {"BN", tile.bn},
                       {"WM", tile.wm},
                       {"WN", tile.wn},
                       {"BUFFERS", buffers}}});
    }
  }
  std::reverse(idle.begin(), idle.end());
  busy.insert(busy.end(), idle.begin(), idle.end());
  return busy;
}

std::vector<Division> matrix_divisions(const Shape& shape, const Config& config) {
  return {{"m", shape.m, config["BM"], "BM", side},
          {"n", shape.products(), config["BN"], "BN", side},
          {"k", shape.k, matrix_step, {}, 1}};
}

KernelWork matrix_work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double bm = config["BM"], bn = config["BN"], wm = config["WM"], wn = config["WN"];
  const double steps = static_cast<double>(ceil_div(shape.k, matrix_step));
  const double waves = bm / wm * (bn / wn);
  LaunchWork work;
  work.workgroups = static_cast<double>(count_tiles(shape, config["BM"], config["BN"]));
  work.threads = static_cast<double>(matrix_threads(device, config));
  work.shared_bytes = config["BUFFERS"] * (bm + bn) * matrix_step;
  work.registers = wm * wn * (adds_steps(shape, device) ? 2 : 1) / device.subgroup_size +
                   (wm + wn) / 4 + (bm + bn) * matrix_step / 4 / work.threads + 32;
  // The rates are those of 16-bit types, half of those of 8 bits.
  work.matrix_flops = bm * bn * matrix_step * steps;
  work.vector_flops = adds_steps(shape, device) ? 2 * bm * bn * steps : 0;
  work.shared_traffic = steps * matrix_step * (bm + bn + waves * (wm + wn));
  work.read_bytes = steps * matrix_step * (bm + bn);
  work.written_bytes = bm * bn * bytes_of(shape.out, 1.0);
  work.loads = work.read_bytes / 16;
  work.steps = steps;
  work.ahead_bytes = (bm + bn) * matrix_step;
  work.overlapped = true;
  work.barriers = steps * (config["BUFFERS"] == 1 ? 2 : 1);
  work.unique_bytes = least_bytes(shape);
  return {work};
}

}  // namespace

Variant matrix() {
  Variant variant = make_variant<Shape>(
      "matrix", "HIP: waves multiply parts of a tile by matrix cores of 8-bit numbers",
      matrix_space, matrix_plan, matrix_defaults, matrix_divisions);
  set_work<Shape>(variant, matrix_work);
  return variant;
}

}  // namespace greta::kernels::scaled_gemm
