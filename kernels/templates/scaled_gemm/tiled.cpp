#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/scaled_gemm/plan.hpp"
#include "kernels/templates/scaled_gemm/variant.hpp"

/// Scaled products of numbers of four or eight bits by plain arithmetic.
namespace greta::kernels::scaled_gemm {
namespace {

std::int64_t threads_of(const Config& config) {
  return std::int64_t{config["BM"]} / config["TM"] * (config["BN"] / config["TN"]);
}

/// Returns how many numbers a byte has at most.
int numbers_of_byte(const Shape& shape) {
  return std::max(8 / traits(shape.format).bits, 8 / traits(shape.format_b).bits);
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t most = most_threads(device), groups = most_workgroups(device);
  const std::int64_t shared = device.shared_memory_bytes;
  const Expression threads = p["BM"] / p["TM"] * (p["BN"] / p["TN"]);
  // BM x BN  tile of C of a workgroup
  // BK       k that are decoded to shared memory at a time
  // TM x TN  elements of C of a thread
  // VEC      bytes of a load
  const int narrow = shape.gated() ? 32 : 16;  // a row of it has 16 threads
  Alternative a{"tiled",
                {{"BM", {1, 2, 4, 8, 16, 32, 64, 128}},
                 {"BN", {16, 32, 64, 128, 256}},
                 {"BK", {16, 32, 64, 128}},
                 {"TM", {1, 2, 4, 8}},
                 {"TN", {1, 2, 4, 8, 16}},
                 {"VEC", {4, 16}}},
                {storage_constraint(DType::f32, shape.out, device)}};
  append(
      a.constraints,
      {{"gates", "TN must be even with gates", !shape.gated() || p["TN"] >= 2},
       {"thread_tiles", "TM must divide BM, and TN BN",
        p["BM"] % p["TM"] == 0 && p["BN"] % p["TN"] == 0},
       {"workgroup_threads",
        fmt::format("the device allows {} threads, and 16 are the least", most),
        threads <= most && threads >= 16},
       {"tile_m", fmt::format("BM must not be twice m, {}, or more", shape.m),
        p["BM"] < 2 * shape.m || p["BM"] == 1},
       {"tile_n",
        fmt::format("BN must not be twice n, {}, or more, unless it is {} or less",
                    shape.products(), narrow),
        p["BN"] < 2 * shape.products() || p["BN"] <= narrow},
       {"scales", "with scales mx, BK must divide 32", !shape.mx() || p["BK"] <= mx_block},
       {"loads", "VEC bytes of e2m1, 2 VEC numbers, must divide BK",
        numbers_of_byte(shape) == 1 || p["BK"] % (p["VEC"] * 2) == 0},
       {"step", fmt::format("BK must not be twice k, {}, or more", shape.k),
        p["BK"] < 2 * shape.k || p["BK"] == 16},
       {"grid", fmt::format("C has more than {} workgroups", groups),
        ceil_div(shape.products(), p["BN"]) * launched_lines(shape, p["BM"]) <= groups},
       {"shared_memory", fmt::format("both tiles must fit {} KiB", shared / 1024),
        p["BK"] * (p["BM"] + p["BN"] + 2) * 4 <= shared},
       register_constraint(device, "sums and operands",
                           p["TM"] * p["TN"] * (shape.block_scales() ? 2 : 1) + p["TM"] + p["TN"],
                           device.language == Language::hip ? threads : Expression(1))});
  if (vectorising_cpu(device)) {
    const Expression of_a = ceil_div(p["BM"] * p["BK"] / p["VEC"], threads);
    const Expression of_b = ceil_div(p["BN"] * p["BK"] / p["VEC"], threads);
    a.constraints.push_back(
        loop_limit(ceil_div(shape.k, p["BK"]) * (4 + p["BK"] + of_a + of_b), shape.k));
    a.constraints.push_back(
        {"code_size", "TM x TN above 32 compiles slowly for a CPU", p["TM"] * p["TN"] <= 32});
  }
  return a;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  LaunchPlan plan = plan_of_tiles(shape, device, config,
                                  {.name = "tiled",
                                   .threads = threads_of(config),
                                   .rows = config["BM"],
                                   .columns = config["BN"]});
  if (device.language == Language::hip) {
    plan.sources[0].dynamic_shared_bytes =
        static_cast<std::uint32_t>(4 * config["BK"] * (config["BM"] + config["BN"] + 2));
  }
  return plan;
}

/// The largest tiles that keep the device busy.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  struct Tile {
    int bm, bn, tm, tn;
  };
  static constexpr Tile tiles[] = {
      {128, 128, 8, 8}, {64, 128, 8, 4}, {64, 64, 4, 4}, {32, 64, 4, 4}, {16, 64, 4, 2},
      {16, 32, 4, 2},   {8, 32, 2, 2},   {4, 32, 2, 1},  {2, 32, 1, 1},  {1, 32, 1, 2},
      {1, 32, 1, 1},    {1, 16, 1, 1},   {16, 16, 1, 1}};
  std::vector<Config> fitting, small;
  for (const Tile& tile : tiles) {
    // Two sums of each element need more registers than compilers keep.
    if (shape.block_scales() && tile.tm * tile.tn > 32) continue;
    if ((shape.gated() && tile.tn < 2) || too_high(shape, tile.bm)) continue;
    const std::int64_t count = count_tiles(shape, tile.bm, tile.bn);
    auto& list = count >= busy_workgroups(device) ? fitting : small;
    list.push_back({"tiled",
                    {{"BM", tile.bm},
                     {"BN", tile.bn},
                     {"BK", 16 * numbers_of_byte(shape)},
                     {"TM", tile.tm},
                     {"TN", tile.tn},
                     {"VEC", 16}}});
  }
  std::reverse(small.begin(), small.end());
  std::vector<Config> configs = std::move(fitting);
  configs.insert(configs.end(), small.begin(), small.end());
  return configs;
}

std::vector<Division> divisions(const Shape& shape, const Config& config) {
  return {{"m", shape.m, config["BM"], "BM", 4},
          {"n", shape.products(), config["BN"], "BN", 16},
          {"16 k", shape.k / 16, config["BK"] / 16, {}, 2},
          {"block of k", shape.k, shape.mx() ? mx_block : scale_block, {}, 1}};
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double bm = config["BM"], bn = config["BN"], k = static_cast<double>(shape.k);
  const auto bytes_a = static_cast<double>(shape.bytes_a(shape.k));
  const auto bytes_b = static_cast<double>(shape.bytes_b(shape.k));
  const double tm = config["TM"], tn = config["TN"];
  LaunchWork work;
  work.workgroups = expected_tiles(shape, config["BM"], config["BN"]);
  work.threads = static_cast<double>(threads_of(config));
  work.shared_bytes = config["BK"] * (bm + bn + 2) * 4;
  work.registers = tm * tn * (shape.block_scales() ? 2 : 1) + tm + tn + 24;
  // Decoding a number costs about six operations.
  work.vector_flops = 2 * bm * bn * k + 6 * (bm + bn) * k;
  work.shared_traffic = 4 * k * (bm + bn + bm * bn * (1 / tm + 1 / tn));
  work.read_bytes = bm * bytes_a + bn * bytes_b;
  work.written_bytes = bm * bn * bytes_of(shape.out, 1.0);
  work.loads = work.read_bytes / config["VEC"];
  work.steps = std::ceil(k / config["BK"]);
  work.ahead_bytes = work.read_bytes * config["BK"] / k;
  work.barriers = 2 * work.steps;
  work.unique_bytes = least_bytes(shape);
  (void)device;
  return {work};
}

}  // namespace

Variant tiled() {
  Variant variant = make_variant<Shape>(
      "tiled", "plain arithmetic: a workgroup decodes tiles of both operands to shared memory",
      space, plan, defaults, divisions);
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::scaled_gemm
