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

/// What a stage has of lines, in bytes.
struct Stage {
  std::int64_t k = matrix_step;
  std::int64_t a = matrix_step, b = matrix_step;  ///< a line's numbers in shared memory
  std::int64_t scales = 0;                        ///< those of a line in shared memory
  std::int64_t padding = 0;                       ///< between these
  std::int64_t loaded_a = matrix_step, loaded_b = matrix_step;  ///< a line in device memory
};

/// Returns that of the problem's kernel (mx_matrix.hip).
Stage stage_of(const Shape& shape, const DeviceInfo& device) {
  Stage stage;
  if (!shape.mx()) return stage;
  const MxCores cores = mx_cores(shape, device);
  if (cores == MxCores::halves) stage.k /= 2;
  stage.loaded_a = shape.bytes_a(stage.k);
  stage.loaded_b = shape.bytes_b(stage.k);
  if (cores == MxCores::scaled) stage.a = stage.loaded_a;
  if (cores == MxCores::scaled) stage.b = stage.loaded_b;
  stage.scales = 4 * stage.k / mx_block;
  if (cores == MxCores::scaled) stage.padding = 16 * stage.scales;
  return stage;
}

/// Returns the bytes of shared memory.
auto shared_bytes(const Stage& stage, const auto& c) {
  const auto lines = c["BM"] * (stage.a + stage.scales) + c["BN"] * (stage.b + stage.scales);
  if (stage.padding == 0) return c["BUFFERS"] * lines;
  return c["BUFFERS"] * (lines + stage.padding);
}

/// Returns the sums of a wave that are in registers.
auto sums_of(const Shape& shape, const DeviceInfo& device, const auto& c) {
  const std::int64_t more = adds_steps(shape, device) ? 1 : 0;
  // With scales mx, sums of 16 rows at a time are added to the others.
  return c["WM"] * c["WN"] + more * (shape.mx() ? c["WN"] * side : c["WM"] * c["WN"]);
}

std::int64_t matrix_threads(const DeviceInfo& device, const Config& config) {
  return std::int64_t{config["BM"]} / config["WM"] * (config["BN"] / config["WN"]) *
         device.subgroup_size;
}

Alternative matrix_space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t wave = device.subgroup_size, groups = most_workgroups(device);
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  const Expression all = p["BM"] / p["WM"] * (p["BN"] / p["WN"]) * wave;
  const Stage stage = stage_of(shape, device);
  const Expression in_flight = (p["BM"] * stage.loaded_a + p["BN"] * stage.loaded_b) / 4 / all;
  const std::int64_t added = adds_steps(shape, device) && !shape.mx() ? 1 : 0;
  const Expression kept = sums_of(shape, device, p) / wave + (p["WM"] + p["WN"]) / 4 + in_flight;
  const Expression of_scales =
      shape.mx() ? (p["WM"] + p["WN"]) / 8 + 8 : added * (p["WM"] * (3 * side) / wave);
  // BM x BN  tile of C of a workgroup
  // WM x WN  part of it of a wave
  // BUFFERS  steps of 128 k in shared memory, or of 64 as 16-bit numbers
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
        shared_bytes(stage, p) <= shared},
       register_constraint(device, "sums, fragments, and loads in flight",
                           shape.mx() ? kept + of_scales : kept, all),
       // Scales of rows have addresses.
       {"vector_registers",
        "sums, scales, fragments, and loads in flight must fit 224 registers: others are moved",
        kept + of_scales <= 224}}};
}

LaunchPlan matrix_plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  TiledLaunch launch{.name = shape.mx() ? "mx_matrix" : "matrix",
                     .threads = matrix_threads(device, config),
                     .rows = config["BM"],
                     .columns = config["BN"]};
  if (shape.mx()) {
    launch.defines.emplace_back("CORES", std::to_string(static_cast<int>(mx_cores(shape, device))));
  }
  LaunchPlan plan = plan_of_tiles(shape, device, config, launch);
  plan.sources[0].dynamic_shared_bytes =
      static_cast<std::uint32_t>(shared_bytes(stage_of(shape, device), config));
  return plan;
}

/// The largest tiles that keep the device busy.
std::vector<Config> matrix_defaults(const Shape& shape, const DeviceInfo& device) {
  if (!has_cores(shape, device) || (for_few_rows(shape) && rows_have_scales(shape, device)))
    return {};
  struct Tile {
    int bm, bn, wm, wn;
  };
  std::vector<Tile> tiles{{128, 128, 64, 32}, {64, 128, 32, 32}, {64, 64, 32, 32}, {32, 64, 16, 32},
                          {32, 32, 16, 16},   {16, 64, 16, 16},  {16, 64, 16, 32}, {16, 32, 16, 32},
                          {16, 32, 16, 16},   {16, 16, 16, 16}};
  if (mx_cores(shape, device) == MxCores::scaled) {
    // Smaller tiles read shared memory for longer than their products take.
    const bool fours = shape.format == ByteFormat::e2m1 && shape.format_b == ByteFormat::e2m1;
    tiles.insert(tiles.begin(), {256, 128, 64, 64});
    if (fours) tiles.insert(tiles.begin(), {256, 256, 128, 64});
  }
  std::vector<Config> busy, idle;
  const bool many_sums = adds_steps(shape, device) && !shape.mx() && device.subgroup_size == 32;
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
  const Stage stage = stage_of(shape, device);
  const auto line_a = static_cast<double>(stage.a + stage.scales);
  const auto line_b = static_cast<double>(stage.b + stage.scales);
  const double steps = static_cast<double>(ceil_div(shape.k, stage.k));
  const double waves = bm / wm * (bn / wn);
  LaunchWork work;
  work.workgroups = expected_tiles(shape, config["BM"], config["BN"]);
  work.threads = static_cast<double>(matrix_threads(device, config));
  work.shared_bytes = static_cast<double>(shared_bytes(stage, config));
  const std::int64_t scales = stage.scales / 4;  // bytes
  const double loaded = bm * static_cast<double>(stage.loaded_a + scales) +
                        bn * static_cast<double>(stage.loaded_b + scales);
  work.registers = static_cast<double>(sums_of(shape, device, config)) / device.subgroup_size +
                   (wm + wn) / 4 + loaded / 4 / work.threads + 32;
  // The rates are those of 16-bit types, half of those of 8 bits and a quarter of those of 4.
  const MxCores cores = mx_cores(shape, device);
  const double rate = cores == MxCores::halves                                              ? 1
                      : cores == MxCores::scaled && stage.a + stage.b < matrix_step * 3 / 2 ? 4
                                                                                            : 2;
  const auto k_of_step = static_cast<double>(stage.k);
  work.matrix_flops = 2 * bm * bn * k_of_step * steps / rate;
  const double added = shape.mx() ? k_of_step / mx_block : 1;  // sums of a step that are added
  work.vector_flops = adds_steps(shape, device) ? 2 * bm * bn * steps * added : 0;
  if (cores == MxCores::halves) {
    work.vector_flops += 8 * (bm + bn) * k_of_step * steps;  // conversions
  }
  work.shared_traffic = steps * (bm * line_a + bn * line_b + waves * (wm * line_a + wn * line_b));
  work.read_bytes = steps * loaded;
  work.written_bytes = bm * bn * bytes_of(shape.out, 1.0);
  work.loads = work.read_bytes / 16;
  work.steps = steps;
  work.ahead_bytes = loaded;
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
