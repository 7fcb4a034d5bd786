#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/line_map.hpp"
#include "kernels/templates/scaled_gemm/cores.hpp"
#include "kernels/templates/scaled_gemm/plan.hpp"
#include "kernels/templates/scaled_gemm/variant.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// Scaled products of few rows by warpgroups, whose products have the lines of B as rows: NVIDIA's
/// sm_90.
namespace greta::kernels::scaled_gemm {
namespace {

constexpr std::int64_t step = 128;  ///< k of a stage
constexpr std::int64_t side = core_side, most_rows = 64;

bool offered(const Shape& shape, const DeviceInfo& device) {
  return has_warpgroup_bytes(shape, device) && !shape.integers();
}

std::int64_t threads_of(const Config& config, std::int64_t wave) {
  return (config["GROUPS"] * 4 + 1) * wave;
}

/// Returns the bytes of dynamic shared memory, as tma_rows.hip has them.
std::int64_t shared_bytes(const Config& config) {
  const std::int64_t bm = config["BM"], bn = config["BN"], stages = config["STAGES"];
  const std::int64_t sums = bm * bn * 4 + (config["SPLIT"] > 1 ? 16 : 0);
  return stages * ((bm + bn) * step + 16) + sums;
}

std::int64_t tiles_along_m(const Shape& shape, const Config& c) {
  return ceil_div(shape.m, std::int64_t{c["BM"]});
}

std::int64_t tiles_along_n(const Shape& shape, const Config& c) {
  return ceil_div(shape.n, std::int64_t{c["BN"]});
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t shared = device.shared_memory_bytes, groups = most_workgroups(device);
  const std::int64_t steps = ceil_div(shape.k, step);
  // BM x BN  tile of C of a workgroup
  // GROUPS   warpgroups that share its columns
  // STAGES   steps of 128 k in shared memory
  // SPLIT    workgroups of a cluster that share k
  return {
      "tma_rows",
      {{"BM", {8, 16, 32, 64}},
       {"BN", {64, 128, 256}},
       {"GROUPS", {1, 2, 4}},
       {"STAGES", {2, 3, 4, 6, 8, 12, 16}},
       {"SPLIT", {1, 2, 4, 8}}},
      {storage_constraint(DType::f32, shape.out, device),
       {"scales", "there are no scales mx", !shape.mx()},
       {"warpgroups",
        fmt::format("the format must be fp8 that the device's warpgroups multiply, not {}",
                    to_string(shape.format)),
        offered(shape, device)},
       {"rows", fmt::format("C has {} rows, this variant is for {} at most", shape.m, most_rows),
        shape.m <= most_rows},
       {"tile_m", fmt::format("BM must not be twice m, {}, or more, unless it is 8", shape.m),
        p["BM"] < 2 * shape.m || p["BM"] == 8},
       {"tile_n", fmt::format("BN must not be twice n, {}, or more, unless it is 64", shape.n),
        p["BN"] < 2 * shape.n || p["BN"] == 64},
       {"groups", "GROUPS must divide BN into multiples of 64, two of these at most",
        p["BN"] % (p["GROUPS"] * 64) == 0 && p["BN"] <= p["GROUPS"] * 128},
       {"owners", "SPLIT must divide the 16 columns of BN that a wave has",
        p["BN"] % (p["SPLIT"] * side) == 0},
       {"clusters", "the device has no clusters of workgroups",
        p["SPLIT"] == 1 || has_clusters(device.architecture)},
       {"slices", fmt::format("SPLIT must not exceed the steps of {} k, {}", step, steps),
        p["SPLIT"] <= steps},
       {"stages",
        fmt::format("STAGES must not be twice the steps of a slice of {}, or more", steps),
        p["STAGES"] == 2 || p["STAGES"] * p["SPLIT"] < 2 * steps},
       {"grid", fmt::format("C has more than {} workgroups", groups),
        ceil_div(shape.n, p["BN"]) * ceil_div(shape.m, p["BM"]) <= groups},
       {"shared_memory",
        fmt::format("STAGES of both tiles, and sums, must fit {} KiB", shared / 1024),
        {{"BM", "BN", "STAGES", "SPLIT"},
         [=](const Config& c) { return shared_bytes(c) <= shared; }}}}};
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const std::int64_t wave = device.subgroup_size, along_n = tiles_along_n(shape, config);
  const std::int64_t tiles = tiles_along_m(shape, config) * along_n;
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  defines.emplace_back("WAVE", std::to_string(wave));
  defines.emplace_back("SHARED_BYTES", std::to_string(shared_bytes(config)));
  std::vector<Argument> given = arguments(shape, along_n);
  given.emplace_back(static_cast<std::uint32_t>(tiles));
  given.push_back(map_of_lines(0, shape.m, shape.k, config["BM"]));
  given.push_back(map_of_lines(1, shape.n, shape.k, config["BN"]));
  LaunchPlan plan;
  plan.sources.push_back(
      kernel_of(shape, device, "tma_rows", defines, threads_of(config, wave), given));
  KernelSource& source = plan.sources[0];
  compile_for_warpgroups(source, device);
  source.dynamic_shared_bytes = static_cast<std::uint32_t>(shared_bytes(config));
  plan.launches.push_back({0,
                           grid(device, source, static_cast<std::uint64_t>(tiles), config["SPLIT"]),
                           std::move(given)});
  plan.launches.back().early_operands = {1};
  return plan;
}

/// Returns tiles that keep the device busy, the widest ones first. Pairs of workgroups share k
/// where there are too few tiles; larger clusters would not all run at once.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (!offered(shape, device) || shape.m > most_rows) return {};
  const std::int64_t steps = ceil_div(shape.k, step);
  int bm = 8;
  while (bm < shape.m) bm *= 2;
  std::vector<Config> busy, idle;
  for (const int split : {1, 2}) {
    for (const int bn : {256, 128, 64}) {
      if (split > steps || (bn >= 2 * shape.n && bn > 64)) continue;
      Config config{"tma_rows",
                    {{"BM", bm}, {"BN", bn}, {"GROUPS", bn / 64}, {"STAGES", 2}, {"SPLIT", split}}};
      for (const int stages : {3, 4, 6, 8}) {
        Config more = config;
        more.value("STAGES") = stages;
        const bool used = std::int64_t{stages} * split < 2 * steps;
        if (used && shared_bytes(more) <= device.shared_memory_bytes) config = more;
      }
      const bool many = 10 * tiles_along_n(shape, config) * split >= 9 * busy_workgroups(device);
      (many ? busy : idle).push_back(config);
    }
  }
  std::reverse(idle.begin(), idle.end());
  busy.insert(busy.end(), idle.begin(), idle.end());
  return busy;
}

std::vector<Division> divisions(const Shape& shape, const Config& config) {
  return {{"m", shape.m, config["BM"], "BM", 8},
          {"n", shape.n, config["BN"], "BN", 64},
          {"k", shape.k, step, {}, 1},
          {"slices", ceil_div(shape.k, step), config["SPLIT"], {}, 2}};
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double bm = config["BM"], bn = config["BN"], split = config["SPLIT"];
  LaunchWork work;
  work.workgroups =
      static_cast<double>(tiles_along_m(shape, config) * tiles_along_n(shape, config)) * split;
  work.threads = static_cast<double>(threads_of(config, device.subgroup_size));
  work.shared_bytes = static_cast<double>(shared_bytes(config));
  work.registers = static_cast<double>(config["BM"] * config["BN"] / config["GROUPS"] / 64 + 32);
  const double steps = std::ceil(static_cast<double>(ceil_div(shape.k, step)) / split);
  // The rates are those of 16-bit types, half of those of 8 bits.
  work.matrix_flops = bm * bn * step * steps;
  work.vector_flops = 2 * bm * bn * steps;
  work.warpgroups = true;
  work.overlapped = true;
  work.read_bytes = steps * step * (bm + bn);
  work.written_bytes = bm * bn / split * bytes_of(shape.out, 1);
  work.shared_traffic = 2 * work.read_bytes + 2 * bm * bn * 4;
  work.loads = 2 * steps + 2 * bm * bn;  // lanes add up and store single sums
  work.ahead_bytes = std::min<double>(config["STAGES"], steps) * step * (bm + bn);
  work.steps = std::max(1.0, work.read_bytes / work.ahead_bytes);
  work.barriers = 2 + (split > 1 ? 4 : 0);
  // No other workgroup computes while one begins, and sends sums (fitted to times of an H200).
  work.tail_cycles = 2000 + 500 * split;
  work.unique_bytes = least_bytes(shape);
  return {work};
}

}  // namespace

Variant tma_rows() {
  Variant variant = make_variant<Shape>("tma_rows",
                                        "NVIDIA's sm_90, up to 64 rows of fp8: warpgroups multiply "
                                        "lines of B, which one thread copies in "
                                        "boxes, by all rows of A; workgroups of a cluster share k",
                                        space, plan, defaults, divisions);
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::scaled_gemm
