#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kernels/planning/cluster_units.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/quantized_gemm/cores.hpp"
#include "kernels/templates/quantized_gemm/plan.hpp"
#include "kernels/templates/quantized_gemm/variant.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// Products of few rows with quantised weights by clusters that share K.
namespace greta::kernels::quantized_gemm {
namespace {

constexpr std::int64_t most_rows = core_side;

/// Returns whether the device has the matrix cores of NVIDIA's GPUs.
bool has_mma(const Shape& shape, const DeviceInfo& device) {
  return has_cores(shape, device) &&
         device::matrix_cores(device.architecture) == device::MatrixCores::mma;
}

/// How lanes have weights of groups shorter than a unit (short_groups.hip).
struct Layout {
  std::int64_t piece = 0;   ///< weights of a lane that follow each other
  std::int64_t sets = 1;    ///< groups of a span, which columns of matrix instructions keep apart
  std::int64_t eights = 1;  ///< of columns

  std::int64_t spans() const { return core_unit / (lanes_of_line * piece); }
  static constexpr std::int64_t lanes_of_line = 4;
};

/// A lane loads 16 bytes at once, unless sets of rows take more than two eights of columns then:
/// each is a matrix instruction.
Layout layout_of(const Shape& shape) {
  if (shape.group == core_unit || !integers_in_groups(shape)) {
    return {core_unit / Layout::lanes_of_line, 1, shape.few_rows() ? 1 : 2};
  }
  Layout layout;
  layout.piece = shape.format == WeightFormat::int4 ? 32 : 16;
  for (;; layout.piece /= 2) {
    layout.sets = Layout::lanes_of_line * layout.piece / shape.group;
    layout.eights = ceil_div(layout.sets * shape.m, std::int64_t{8});
    if (layout.eights <= 2 || layout.sets == 1) return layout;
  }
}

/// Returns the columns of C of a workgroup.
template <typename Parameters>
auto columns_of(const Parameters& c) {
  return c["WAVES"] / c["SHARES"] * c["TN"] * core_side;
}

/// Returns the bytes of A's slice, and of the sums that the workgroup adds up.
std::int64_t shared_bytes(const Shape& shape, const Config& c) {
  const std::int64_t split = c["SPLIT"], units = ceil_div(shape.k / core_unit, split);
  const std::int64_t rows = units * core_unit * shape.m * 2;
  const std::int64_t tile = core_side * (shape.few_rows() ? 8 : 16) * 4;   // bytes of sums
  const std::int64_t zeros = shape.group < core_unit ? core_unit * 2 : 0;  // of a row of zeros
  return rows + zeros + std::int64_t{c["WAVES"]} * c["TN"] * tile + (split > 1 ? 16 : 0);
}

/// Returns the KiB of a kernel's code, by those of NVRTC for sm_90.
double code_kib(const Config& c) {
  return 6 + c["TN"] * (1.5 + 2.1 * c["UNROLL"]);
}

/// Returns the 32-bit registers of sums and of units in flight.
auto registers_of(const Shape& shape, const auto& c) {
  const Layout layout = layout_of(shape);
  const std::int64_t integers = shape.format == WeightFormat::int4 ? 8 : 16;
  const std::int64_t zeros = shape.group < core_unit && shape.zeros ? 2 : 0;
  return c["TN"] * (8 * layout.eights + c["UNROLL"] * (integers + layout.spans() * (2 + zeros)));
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t wave = device.subgroup_size, shared = device.shared_memory_bytes;
  const std::int64_t threads = most_threads(device), units = shape.k / core_unit;
  // WAVES   waves of a workgroup
  // SHARES  waves that share the workgroup's slice of K; others have other columns
  // TN      tiles of 16 columns of C of a wave, which one load of A serves
  // UNROLL  units of 128 weights in flight for each column
  // SPLIT   workgroups of a cluster that share K
  return {
      "cluster",
      {{"WAVES", {2, 4, 8, 16, 32}},
       {"SHARES", {1, 2, 4, 8, 16}},
       {"TN", {1, 2}},
       {"UNROLL", {1, 2, 4}},
       {"SPLIT", {1, 2, 4, 8}}},
      {storage_constraint(shape.halves(), shape.out, device),
       no_norm(shape),
       rows_of_weights(shape),
       {"matrix_operations",
        fmt::format("the device must be an NVIDIA GPU with HIP kernels and matrix cores of {}",
                    to_string(shape.in)),
        has_mma(shape, device)},
       {"groups", "weights must be int4 or int8", integers_in_groups(shape)},
       {"units", fmt::format("k, {}, must be whole units of {}", shape.k, core_unit),
        shape.k % core_unit == 0},
       {"rows", fmt::format("C has {} rows, this variant is for {} at most", shape.m, most_rows),
        shape.m <= most_rows},
       {"waves", fmt::format("the device allows {} threads", threads),
        p["WAVES"] * wave <= threads},
       {"shares", "SHARES must divide WAVES", p["WAVES"] % p["SHARES"] == 0},
       {"owners", "SPLIT must divide the tiles of a workgroup, WAVES / SHARES x TN",
        p["WAVES"] / p["SHARES"] * p["TN"] % p["SPLIT"] == 0},
       {"clusters", "the device has no clusters of workgroups",
        p["SPLIT"] == 1 || has_clusters(device.architecture)},
       {"columns",
        fmt::format("a workgroup's columns must not be twice n, {}, or more, unless they are 16",
                    shape.products()),
        columns_of(p) < 2 * shape.products() || columns_of(p) == core_side},
       {"idle_waves",
        fmt::format("SPLIT x SHARES x UNROLL must not exceed the units of {} of k, {}", core_unit,
                    shape.k),
        p["SPLIT"] * p["SHARES"] * p["UNROLL"] <= units},
       {"shared_memory",
        fmt::format("A's slice and sums must fit {} KiB", shared / 1024),
        {{"WAVES", "TN", "SPLIT"},
         [=](const Config& c) { return shared_bytes(shape, c) <= shared; }}},
       register_constraint(device, "sums, units in flight and elements",
                           registers_of(shape, p) + 40, p["WAVES"] * wave)}};
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  TiledLaunch launch{.name = "cluster",
                     .threads = config["WAVES"] * device.subgroup_size,
                     .rows = most_rows,
                     .columns = columns_of(config),
                     .dynamic_shared_bytes = shared_bytes(shape, config),
                     .split = config["SPLIT"]};
  if (shape.group < core_unit) {
    const Layout layout = layout_of(shape);
    launch.defines = {{"PIECE", std::to_string(layout.piece)},
                      {"EIGHTS", std::to_string(layout.eights)}};
  }
  return plan_of_tiles(shape, device, config, launch);
}

/// Returns whether the variant answers without a search.
bool good_for_clusters(const Shape& shape, const DeviceInfo& device) {
  return has_mma(shape, device) && integers_in_groups(shape) && shape.m <= most_rows &&
         shape.k % core_unit == 0;
}

/// Each compute unit has one workgroup of 16 waves, whose units of weights are all in flight.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (!good_for_clusters(shape, device)) return {};
  std::vector<Config> configs;
  for (const int split : {8, 4, 2, 1}) {
    if (split > 1 && !has_clusters(device.architecture)) continue;
    for (const int waves : {16, 8, 4, 2}) {
      for (const int unroll : {4, 2, 1}) {
        const int shares = std::max(1, std::min(waves, waves / split));
        configs.push_back({"cluster",
                           {{"WAVES", waves},
                            {"SHARES", shares},
                            {"TN", 1},
                            {"UNROLL", unroll},
                            {"SPLIT", split}}});
      }
    }
  }
  return configs;
}

/// Workgroups of several clusters on a compute unit, which compute while others send each other
/// sums.
std::vector<Config> candidates(const Shape& shape, const DeviceInfo& device) {
  if (!good_for_clusters(shape, device)) return {};
  std::vector<Config> list = combinations("cluster", {{"WAVES", {8, 4}},
                                                      {"SHARES", {1, 2}},
                                                      {"TN", {1, 2}},
                                                      {"UNROLL", {1, 2, 4}},
                                                      {"SPLIT", {8, 4, 2}}});
  std::erase_if(list, [](const Config& config) { return config["TN"] * config["UNROLL"] > 4; });
  return list;
}

std::vector<Division> divisions(const Shape& shape, const Config& config) {
  return {{"n", shape.products(), columns_of(config)},
          {"units",
           shape.k / core_unit,
           std::int64_t{config["SHARES"]} * config["UNROLL"] * config["SPLIT"],
           {},
           never}};
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double columns = static_cast<double>(columns_of(config)), split = config["SPLIT"];
  const double k = static_cast<double>(shape.k) / split, m = static_cast<double>(shape.m);
  const double weight = traits(shape.format).bits / 8.0 + scale_bytes(shape);
  const Layout layout = layout_of(shape);
  const double eights = static_cast<double>(layout.eights);
  LaunchWork work;
  work.workgroups = static_cast<double>(ceil_div(shape.products(), columns_of(config))) * split;
  work.threads = static_cast<double>(config["WAVES"] * device.subgroup_size);
  work.shared_bytes = static_cast<double>(shared_bytes(shape, config));
  work.registers = static_cast<double>(registers_of(shape, config) + 30 + 20 * config["TN"]);
  work.matrix_flops = core_side * columns * k * eights;
  work.vector_flops = columns * k * 3;
  work.read_bytes = columns * k * weight + m * k * 2;
  work.written_bytes = m * columns / split * bytes_of(shape.out, 1);
  work.shared_traffic = m * k * 2 + columns / core_side * core_side * k * 2;
  work.loads = work.read_bytes / 16;
  if (shape.group < core_unit) {
    // Scaled sums of each group (fitted to times of an H200), rows that are read for each eight,
    // and pieces of fewer than 16 bytes.
    const double piece = static_cast<double>(layout.piece), usual = shape.few_rows() ? 1 : 2;
    work.vector_flops += columns * k * eights * static_cast<double>(layout.spans()) / 2;
    work.shared_traffic = m * k * 2 + columns * k * 2 * eights / usual;
    work.loads += columns * k * (1 / piece - traits(shape.format).bits / 128.0);
    // Units that clusters leave idle (measured on an H200; not with groups of 128).
    work.usable_units = usable_by_clusters(device, config["SPLIT"]);
  }
  work.vector_flops *= time_of_code(device, code_kib(config));
  const double of_weights = columns * k * weight;
  const double ahead = static_cast<double>(config["WAVES"] * config["UNROLL"] * config["TN"] *
                                           core_side * core_unit) *
                       weight;
  work.ahead_bytes =
      work.read_bytes / (of_weights / ahead + rounds_of_rows(shape, work.threads, k));
  work.steps = std::max(1.0, of_weights / ahead);
  work.barriers = 2 + (split > 1 ? 4 : 0);
  // What waves send each other, which no loads overlap (fitted to times of an H200).
  if (split * config["SHARES"] > 1) work.tail_cycles = 400 * config["WAVES"] * config["TN"];
  work.unique_bytes = least_bytes(shape);
  return {work};
}

}  // namespace

Variant cluster() {
  Variant variant = make_variant<Shape>(
      "cluster",
      "HIP on NVIDIA GPUs, up to 16 rows of integers in groups: waves share K, and on sm_90 "
      "workgroups of a cluster, each with a slice of A in shared memory",
      space, plan, defaults, divisions);
  set_work<Shape>(variant, work);
  set_candidates<Shape>(variant, candidates);
  return variant;
}

}  // namespace greta::kernels::quantized_gemm
