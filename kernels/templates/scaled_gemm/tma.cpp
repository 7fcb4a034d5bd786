#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/planning/arrival.hpp"
#include "kernels/planning/cluster_units.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/line_map.hpp"
#include "kernels/planning/resident_work.hpp"
#include "kernels/templates/scaled_gemm/cores.hpp"
#include "kernels/templates/scaled_gemm/plan.hpp"
#include "kernels/templates/scaled_gemm/tma_tiles.hpp"
#include "kernels/templates/scaled_gemm/variant.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// Scaled products of numbers of eight bits by warpgroups that read what one thread copies in
/// boxes: NVIDIA's sm_90.
namespace greta::kernels::scaled_gemm {
namespace tma_tiles {
namespace {

/// Returns the bytes of the sums of all slices in the workspace.
std::int64_t partial_bytes(std::int64_t tiles, const Config& c) {
  return tiles * c["SPLIT"] * c["BM"] * c["BN"] * 4;
}

/// Reject slices that are none, and sums of slices that have no place.
std::vector<Constraint> slice_constraints_of_tiles(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t steps = ceil_div(shape.k, step), most = most_workspace(device);
  return {
      {"slices",
       fmt::format("SPLIT must not exceed the {} steps of {} k, and needs RESIDENT=0", steps, step),
       p["SPLIT"] == 1 || (p["SPLIT"] <= steps && p["RESIDENT"] == 0)},
      {"fold",
       "FOLD=2 needs several slices of one product without gates, CLUSTER_M=CLUSTER_N=1, STORE=0, "
       "and SPLIT must divide the eights of BN",
       shape.grouped() || shape.gated()
           ? p["FOLD"] == 1
           : p["FOLD"] == 1 || (p["SPLIT"] > 1 && p["CLUSTER_M"] * p["CLUSTER_N"] == 1 &&
                                p["STORE"] == 0 && p["BN"] % (p["SPLIT"] * 8) == 0)},
      {"workspace",
       fmt::format("SPLIT sums of all tiles need more than {} MiB of workspace", most >> 20),
       {{"BM", "BN", "CLUSTER_M", "CLUSTER_N", "SPLIT", "FOLD"}, [=](const Config& c) {
          if (c["SPLIT"] == 1 || folds_in_cluster(c)) return true;
          const std::int64_t tiles =
              clusters_along_m(shape, c) * clusters_along_n(shape, c) * cluster_of(c);
          return static_cast<std::int64_t>(counter_bytes(tiles)) + partial_bytes(tiles, c) <= most;
        }}}};
}

/// Reject tiles that the inputs or the device cannot have, or that would be mostly idle.
std::vector<Constraint> constraints_of_tiles(const Shape& shape, const DeviceInfo& device) {
  return {
      {"scales", "there are no scales mx", !shape.mx()},
      {"warpgroups",
       fmt::format("the device has no warpgroup instructions on {}", to_string(shape.format)),
       has_warpgroup_bytes(shape, device)},
      {"groups", "GROUPS must divide BM into multiples of 64, two of these at most",
       p["BM"] % (p["GROUPS"] * warpgroup_rows) == 0 &&
           p["BM"] <= p["GROUPS"] * (2 * warpgroup_rows)},
      {"tile_m", fmt::format("BM must not be twice m, {}, or more, unless it is 64", shape.m),
       p["BM"] < 2 * shape.m || p["BM"] == warpgroup_rows},
      {"tile_n",
       fmt::format("BN must not be twice n, {}, or more, unless it is 8", shape.products()),
       p["BN"] < 2 * shape.products() || p["BN"] <= (shape.gated() ? 16 : 8)},
      {"gates", "with gates, BN must be a multiple of 16", !shape.gated() || p["BN"] % 16 == 0},
      {"blocks",
       "with scales of blocks, a tile's columns must have two blocks at most, or with gates one of "
       "these and one of ups",
       {{"BN"}, [=](const Config& c) { return has_blocks(shape, c); }}}};
}

/// Reject clusters that cannot share copies, and warpgroups that cannot take turns.
std::vector<Constraint> cluster_constraints(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t groups = most_workgroups(device);
  return {
      {"shares", "CLUSTER_M must divide BN and CLUSTER_N BM into multiples of 8, of 256 at most",
       p["BN"] % (p["CLUSTER_M"] * 8) == 0 && p["BM"] / p["CLUSTER_N"] <= 256},
      {"device_clusters", "the device has no clusters of workgroups",
       (p["CLUSTER_M"] == 1 && p["CLUSTER_N"] == 1 && p["FOLD"] == 1) ||
           has_clusters(device.architecture)},
      {"clusters", "half of CLUSTER_M x CLUSTER_N must have fewer tiles than there are",
       p["BM"] * (p["CLUSTER_M"] / 2) < shape.m && p["BN"] * (p["CLUSTER_N"] / 2) < shape.n},
      {"cluster",
       fmt::format("a cluster is at most {} workgroups, and with gates CLUSTER_M at most 2: a "
                   "share of B is of gates or of ups",
                   most_in_cluster),
       p["CLUSTER_M"] * p["CLUSTER_N"] <= most_in_cluster &&
           (!shape.gated() || p["CLUSTER_M"] <= 2)},
      {"grid", fmt::format("C has more than {} workgroups", groups),
       (ceil_div(shape.products(), p["BN"]) + p["CLUSTER_N"] - 1) *
               (launched_lines(shape, p["BM"]) + (p["CLUSTER_M"] - 1) * shape.groups) <=
           groups},
      {"stagger", "STAGGER needs RESIDENT, several GROUPS, and k of STAGES steps",
       p["STAGGER"] == 0 ||
           (p["RESIDENT"] > 0 && p["GROUPS"] > 1 && p["STAGES"] * step <= shape.k)},
      {"sums", "SUMS=2 needs sums that threads add, and BM = 64 GROUPS",
       p["SUMS"] == 1 || (promoted(shape) && p["BM"] == p["GROUPS"] * warpgroup_rows)}};
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t shared = device.shared_memory_bytes;
  // BM x BN    tile of C of a workgroup
  // GROUPS     warpgroups that share its rows
  // STAGES     steps of 128 k in shared memory
  // CLUSTER_M  workgroups with neighbouring rows, which share the copies of B
  // CLUSTER_N  workgroups with neighbouring columns, which share the copies of A
  // RESIDENT   1: a workgroup for each compute unit, which computes tile after tile
  // SWIZZLE    rows of clusters that are rasterised together
  // STAGGER    1: each warpgroup begins a tile when the one before it has its first products
  // STORE      1: bulk copies store a tile while the next one is multiplied; 0: threads store it
  // SUMS       2: a warpgroup starts the products of a step before it adds those of the one before
  // SPLIT      workgroups that share k
  // FOLD       1: the last of these to arrive adds their sums; 2: all of them, as a cluster
  Alternative a{"tma",
                {{"BM", {64, 128, 192, 256, 384}},
                 {"BN", {8, 16, 32, 64, 96, 128, 160, 192, 224, 256}},
                 {"GROUPS", {1, 2, 3}},
                 {"STAGES", {2, 3, 4, 5, 6, 7, 8, 10, 12, 16}},
                 {"CLUSTER_M", {1, 2, 4}},
                 {"CLUSTER_N", {1, 2, 4}},
                 {"RESIDENT", {0, 1}},
                 {"SWIZZLE", {1, 4, 8, 16}},
                 {"STORE", {0, 1}},
                 {"STAGGER", {0, 1}},
                 {"SUMS", {1, 2}},
                 {"SPLIT", {1, 2, 3, 4, 6, 8}},
                 {"FOLD", {1, 2}}},
                {storage_constraint(DType::f32, shape.out, device)}};
  append(a.constraints, constraints_of_tiles(shape, device));
  append(a.constraints, cluster_constraints(shape, device));
  append(a.constraints,
         {{"shared_memory",
           fmt::format("STAGES of both tiles, and stored rows, must fit {} KiB", shared / 1024),
           {{"BM", "BN", "STAGES", "GROUPS", "STORE", "SPLIT", "FOLD"},
            [=](const Config& c) { return shared_bytes(shape, c) <= shared; }}},
          {"whole_rows", "bulk copies store rows of C that are multiples of 16 bytes",
           has_whole_rows(shape) || p["STORE"] == 0},
          {"registers",
           "sums need more registers than a thread has",
           {{"BM", "BN", "GROUPS", "SUMS"},
            [=](const Config& c) { return has_registers(shape, c); }}}});
  append(a.constraints, slice_constraints_of_tiles(shape, device));
  return a;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const std::int64_t wave = device.subgroup_size;
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  defines.emplace_back("WAVE", std::to_string(wave));
  defines.emplace_back("SHARED_BYTES", std::to_string(shared_bytes(shape, config)));
  defines.emplace_back("SHIFTED", has_whole_rows(shape) ? "0" : "1");
  const std::int64_t along_m = clusters_along_m(shape, config),
                     along_n = clusters_along_n(shape, config);
  std::vector<Argument> given = arguments(shape, along_n);
  given.emplace_back(static_cast<std::uint32_t>(along_m));
  LaunchPlan plan;
  if (config["SPLIT"] > 1 && !folds_in_cluster(config)) {
    const std::int64_t tiles = along_m * along_n * cluster_of(config);
    plan.zeroed_bytes = counter_bytes(tiles);
    plan.workspace_bytes =
        plan.zeroed_bytes + static_cast<std::uint64_t>(partial_bytes(tiles, config));
    given.emplace_back(WorkspaceArgument{0});
    given.emplace_back(WorkspaceArgument{plan.zeroed_bytes});
  }
  const int shares = shape.gated() ? 2 : config["CLUSTER_M"];  // of B
  given.push_back(map_of_lines(0, shape.all_rows(), shape.k, config["BM"] / config["CLUSTER_N"]));
  given.push_back(map_of_lines(1, shape.groups * shape.products(), shape.k, config["BN"] / shares));
  plan.sources.push_back(kernel_of(shape, device, "tma", defines, threads_of(config, wave), given));
  KernelSource& source = plan.sources[0];
  compile_for_warpgroups(source, device);
  source.dynamic_shared_bytes = static_cast<std::uint32_t>(shared_bytes(shape, config));
  const int cluster = cluster_of(config);
  const std::int64_t all = along_m * along_n;
  const std::int64_t running =
      config["RESIDENT"] != 0 ? std::min(all, resident_clusters(device, cluster)) : all;
  plan.launches.push_back(
      {0, clustered_grid(device, source, running, cluster, config["SPLIT"]), std::move(given)});
  return plan;
}

std::vector<Division> divisions(const Shape& shape, const Config& config) {
  return {{"m", shape.m, config["BM"], "BM", warpgroup_rows},
          {"n", shape.products(), config["BN"], "BN", 8},
          {"k", shape.k, step, {}, 1},
          {"slices", ceil_div(shape.k, step), config["SPLIT"], {}, 2}};
}

/// Returns the part of an operand's bytes that a workgroup's copies cost where it shares them with
/// others: what it reads less, it waits for the others in part.
double share_of_copies(int workgroups) {
  return 0.3 + 0.7 / workgroups;
}

/// Returns what a workgroup waits for, in barriers.
double waits(const Shape& shape, const Config& config, double steps) {
  const double elements = static_cast<double>(config["BM"]) * config["BN"];
  const double split = config["SPLIT"];
  const bool alone = config["GROUPS"] == 1, folds = folds_in_cluster(config);
  // The products of a warpgroup alone wait for its sums of the step before. Of three, and with
  // SUMS=2, the other terms count more than they take (measured on H200s); a tile is stored.
  const double alike = config["GROUPS"] == 3 ? -1 : 0.5;
  const double of_step = config["SUMS"] == 2 ? (alone ? 1 : -1.6) : alone ? 3 : alike;
  double barriers = steps * of_step + 20 * elements / (64 * 128) / (folds ? split : 1);
  // Threads store 32 or 64 columns at a time, and bulk copies whole rows
  // (results/2026-11-30-nvidia-h200-short-k).
  if (config["STORE"] != 0) {
    barriers += elements / 2000;
  } else if (stores_narrow(shape, config) && split == 1) {
    barriers += elements / 500;
  }
  if (shape.scales == Scales::block) barriers += steps * (alone ? 1.5 : 0.5);
  if (cluster_of(config) > 1) barriers += 10;  // its workgroups begin together
  if (folds) {
    barriers += 25 + elements / 300;
  } else if (split > 1) {
    barriers += 35 + elements / 435 + split * elements / 580;  // the last one reads all sums
  }
  return barriers;
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double bm = config["BM"], bn = config["BN"], split = config["SPLIT"];
  const bool folds = folds_in_cluster(config);
  const int cluster = cluster_of(config);
  LaunchWork work;
  const std::int64_t height = std::int64_t{config["BM"]} * config["CLUSTER_M"];
  const double lines = expected_lines(shape, height);
  work.workgroups = lines * static_cast<double>(clusters_along_n(shape, config)) * cluster * split;
  work.threads = static_cast<double>(threads_of(config, device.subgroup_size));
  work.shared_bytes = static_cast<double>(shared_bytes(shape, config));
  work.registers = static_cast<double>(
      std::min<std::int64_t>(least_registers(shape, config) + 4, 65536 / threads_of(config, 32)));
  work.steps = std::ceil(static_cast<double>(ceil_div(shape.k, step)) / split);
  // The rates are those of 16-bit types, half of those of 8 bits.
  work.matrix_flops = bm * bn * step * work.steps;
  // Three warpgroups take 10 % longer than two for 6896 x 18944 x 5904, and as long for fewer rows
  // (results/2026-12-01-nvidia-h200-unseen-catalog).
  if (config["GROUPS"] == 3 && shape.scales != Scales::block) work.matrix_flops *= 1.05;
  const bool crosses = shape.scales == Scales::block && scale_block % config["BN"] != 0 &&
                       config["BN"] % scale_block != 0;  // each sum's scale is one of two
  work.vector_flops = promoted(shape) ? (crosses ? 3.5 : 2) * bm * bn * work.steps : 0;
  work.warpgroups = true;
  work.overlapped = true;
  const double of_step = step * (bm * share_of_copies(config["CLUSTER_N"]) +
                                 bn * share_of_copies(config["CLUSTER_M"]));
  work.read_bytes = work.steps * of_step;
  work.written_bytes = bm * bn * bytes_of(shape.out, 1.0) / split;
  work.shared_traffic = work.steps * step * (bm + bn + bm + bm / warpgroup_rows * bn);
  work.loads = 4 * work.steps;
  work.barriers = waits(shape, config, work.steps);
  work.usable_units = usable_by_clusters(device, folds ? config["SPLIT"] : cluster);
  if (folds) {
    work.shared_traffic += 8 * bm * bn;
  } else if (split > 1) {
    work.read_bytes += 4 * bm * bn;
    work.written_bytes += 4 * bm * bn;
  }
  // A stage is free again before its products end: three stages are as fast as four.
  work.ahead_bytes = of_step * (config["STAGES"] - 0.5);
  if (config["RESIDENT"] != 0) {
    make_resident(work, static_cast<double>(resident_clusters(device, cluster) * cluster), 5,
                  std::min(1.0, lines / static_cast<double>(launched_lines(shape, height))));
  }
  work.unique_bytes = least_bytes(shape);
  return {work};
}

}  // namespace
}  // namespace tma_tiles

Variant tma() {
  Variant variant = make_variant<Shape>(
      "tma", "NVIDIA's sm_90: warpgroups compute a tile, which one thread copies in boxes",
      tma_tiles::space, tma_tiles::plan, tma_tiles::defaults, tma_tiles::divisions);
  variant.migrations = {added("STORE", 0), added("STAGGER", 0), added("SPLIT", 1), added("FOLD", 1),
                        added("SUMS", 1)};
  set_work<Shape>(variant, tma_tiles::work);
  return variant;
}

}  // namespace greta::kernels::scaled_gemm
