#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/model/weight_panels.hpp"
#include "kernels/planning/arrival.hpp"
#include "kernels/planning/cluster_units.hpp"
#include "kernels/planning/resident_work.hpp"
#include "kernels/templates/gemm/alignment.hpp"
#include "kernels/templates/gemm/plan.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "kernels/templates/gemm/tensor_maps.hpp"
#include "kernels/templates/gemm/tma_defaults.hpp"
#include "kernels/templates/gemm/tma_kernel.hpp"
#include "kernels/templates/gemm/variant.hpp"
#include "kernels/templates/gemm/work.hpp"

/// GEMM, also of groups, by warpgroups that read what one thread copies in boxes: NVIDIA's sm_90.
namespace greta::kernels::gemm {
namespace {

std::vector<Constraint> tile_constraints(const Shape& shape, const DeviceInfo& device,
                                         const TmaKernel& kernel) {
  std::vector<Constraint> list{
      storage_constraint(shape.in, shape.out, device),
      {"warpgroups",
       fmt::format("the device has no warpgroup instructions on {}", to_string(shape.in)),
       kernel.offered()},
      tile_fits("tile_m", "BM", shape.m, 'm'),
      tile_fits("tile_n", "BN", shape.products(), 'n'),
      grid_of_clusters(shape, device),
      {"groups",
       "GROUPS must divide BM, or BN where BM is not a multiple of 64, into multiples of 64; with "
       "PINGPONG that must be a multiple of 64",
       {{"BM", "BN", "GROUPS", "PINGPONG"},
        [](const Config& c) { return TmaKernel::has_parts(c); }}},
      {"registers",
       "a part's sums need more registers than a thread has",
       {{"BM", "BN", "GROUPS", "PINGPONG"},
        [=](const Config& c) { return kernel.has_registers(c); }}},
  };
  append(list, kernel.shared_constraints(device.shared_memory_bytes));
  append(list, tiled_product(shape, true));
  if (shape.panels) {
    list.push_back({"panels",
                    "boxes of panels have no gates beside their ups, and a workgroup copies whole "
                    "panels: BN / CLUSTER_M must be a multiple of 16",
                    !shape.gated && p["BN"] % (16 * p["CLUSTER_M"]) == 0});
    list.push_back({"batch_panels", "the distance of B must be of whole panels",
                    Expression(shape.b_step % (panel_rows * shape.k) == 0)});
  }
  if (shape.gated) {
    list.push_back({"gates_of_one", "gates of a batch are not in one tensor map",
                    shape.grouping != Grouping::batch});
    list.push_back({"gate_rows", "gates and ups of all groups must be fewer than 2^30 lines of B",
                    shape.groups * shape.products() < (std::int64_t{1} << 30)});
  }
  return list;
}

/// Tiles that are divided by K steps, and the workgroups that run.
struct StreamedTiles {
  std::int64_t workgroups, count, steps;
};

/// Returns what turns.hip computes, with up to `resident` workgroups. With fewer tiles than these,
/// as many run as have four K steps each.
StreamedTiles streamed_tiles(const Shape& shape, const Config& c, std::int64_t resident) {
  constexpr std::int64_t least_steps = 4;
  const std::int64_t all = TmaKernel::clusters(shape, c), steps = ceil_div(shape.k, c["BK"]);
  const std::int64_t running = std::min(resident, std::max(all, all * steps / least_steps));
  const std::int64_t rest = all % running;
  return {running, rest == 0 ? 0 : all < running ? all : rest + running, steps};
}

/// Returns the constraints of workgroups that share copies, and of those that stay.
std::vector<Constraint> cluster_constraints(const Shape& shape, const DeviceInfo& device,
                                            const TmaKernel& kernel) {
  const std::int64_t units = resident_clusters(device, 1);  // STREAM_K has no clusters
  return {
      {"shares",
       "CLUSTER_M must divide B's lines of a K step, those of gates and ups into pairs, and "
       "CLUSTER_N those of A",
       {{"BM", "BN", "BK", "CLUSTER_M", "CLUSTER_N"},
        [=](const Config& c) {
          return kernel.all_lines_a(c) % c["CLUSTER_N"] == 0 &&
                 kernel.all_lines_b(c) % (c["CLUSTER_M"] * (shape.gated ? 2 : 1)) == 0;
        }}},
      {"clusters", "half of CLUSTER_M x CLUSTER_N must have fewer tiles than a product",
       p["BM"] * (p["CLUSTER_M"] / 2) < shape.rows_of_group() &&
           p["BN"] * (p["CLUSTER_N"] / 2) < shape.products()},
      {"cluster", fmt::format("a cluster is at most {} workgroups", most_in_cluster),
       p["CLUSTER_M"] * p["CLUSTER_N"] <= most_in_cluster},
      {"turns", "PINGPONG needs RESIDENT, and at least two GROUPS",
       p["PINGPONG"] == 0 || (p["RESIDENT"] > 0 && p["GROUPS"] > 1)},
      {"counter", "DYNAMIC needs RESIDENT, and neither PINGPONG nor clusters",
       p["DYNAMIC"] == 0 ||
           (p["RESIDENT"] > 0 && p["PINGPONG"] == 0 && p["CLUSTER_M"] * p["CLUSTER_N"] == 1)},
      {"stream", "STREAM_K needs RESIDENT, and neither PINGPONG, DYNAMIC nor clusters",
       p["STREAM_K"] == 0 || (p["RESIDENT"] > 0 && p["PINGPONG"] == 0 && p["DYNAMIC"] == 0 &&
                              p["CLUSTER_M"] * p["CLUSTER_N"] == 1)},
      {"streamed_steps",
       "STREAM_K is for tiles that do not fill the last round of workgroups, of fewer than 2^32 K "
       "steps",
       {{"BM", "BN", "BK", "CLUSTER_M", "CLUSTER_N", "RESIDENT", "STREAM_K"},
        [=](const Config& c) {
          if (c["STREAM_K"] == 0 || c["RESIDENT"] == 0) return true;
          const StreamedTiles tiles = streamed_tiles(shape, c, units * c["RESIDENT"]);
          return tiles.count > 0 && tiles.count * tiles.steps < std::int64_t{1} << 32;
        }}},
      {"whole_k", "SPLIT needs RESIDENT=0", p["SPLIT"] == 1 || p["RESIDENT"] == 0},
      {"cluster_of_slices",
       "the slices that FOLD=2 adds are a cluster: CLUSTER_M and CLUSTER_N are 1",
       p["FOLD"] != 2 || (p["CLUSTER_M"] == 1 && p["CLUSTER_N"] == 1)},
      fold_constraint(),
      whole_steps_constraint(shape),
      whole_lines_constraint(shape),
      walk_constraint(shape),
  };
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const TmaKernel kernel(shape, device);
  const bool clusters = has_clusters(device.architecture);
  const std::vector<int> sharing = clusters ? std::vector<int>{1, 2, 4} : std::vector<int>{1};
  std::vector<int> rows, columns;
  for (int row = 8; row <= 256; row += 8) rows.push_back(row);
  for (int column = 16; column <= 256; column += 16) columns.push_back(column);
  // BM x BN    tile of C per workgroup
  // BK         K steps per stage
  // GROUPS     warpgroups that share the tile: its rows, or its columns if BM is no multiple of 64
  // PINGPONG   1: each warpgroup computes whole tiles, and they take turns: one stores while
  //            another one multiplies
  // STAGES     stages in shared memory
  // CLUSTER_M  workgroups with neighbouring rows, which share the copies of B
  // CLUSTER_N  workgroups with neighbouring columns, which share the copies of A
  // RESIDENT   0: a workgroup for each tile; else the number of workgroups per compute unit, which
  //            compute tile after tile and store one while the next one is copied
  // DYNAMIC    1: these take the next tile from a counter; 0: those that are their number apart
  // STREAM_K   1: tiles that are too few for all of these are divided by K steps (turns.hip)
  // SWIZZLE    rows of clusters that are rasterised together; WALK=1: columns
  // SPLIT      slices of K; FOLD: how they are added, as in `matrix`
  // ALIGN      1: operands with odd lines are first copied to aligned rows
  Alternative a{"tma",
                {{"BM", rows},
                 {"BN", columns},
                 {"BK", {64, 128}},
                 {"GROUPS", {1, 2, 3, 4}},
                 {"PINGPONG", {0, 1}},
                 {"STAGES", {2, 3, 4, 5, 6, 7, 8, 9, 10}},
                 {"CLUSTER_M", sharing},
                 {"CLUSTER_N", sharing},
                 {"RESIDENT", {0, 1, 2}},
                 {"SWIZZLE", {1, 4, 8, 16}},
                 {"WALK", {0, 1}},
                 {"SPLIT", kernel.slice_counts()},
                 {"FOLD", clusters ? std::vector<int>{0, 1, 2} : std::vector<int>{0, 1}},
                 {"ALIGN", {has_odd_lines(shape) ? 1 : 0}},
                 {"DYNAMIC", {0, 1}},
                 {"STREAM_K", shape.grouped() ? std::vector<int>{0} : std::vector<int>{0, 1}}},
                {}};
  a.constraints = tile_constraints(shape, device, kernel);
  append(a.constraints, cluster_constraints(shape, device, kernel));
  append(a.constraints, slice_constraints(shape, device));
  return a;
}

/// Adds memory for sums of tiles that are divided, two tiles for each workgroup, behind counters of
/// those that have arrived (stream_k.hip).
void keep_sums(LaunchPlan& plan, const Config& config, const StreamedTiles& streamed) {
  constexpr std::size_t partial = 6, counters = 7;  // indices into the argument block
  plan.zeroed_bytes = counter_bytes(streamed.count);
  plan.workspace_bytes =
      plan.zeroed_bytes +
      static_cast<std::uint64_t>(streamed.workgroups * 2 * 4) * config["BM"] * config["BN"];
  plan.launches[0].arguments[partial] = WorkspaceArgument{plan.zeroed_bytes};
  plan.launches[0].arguments[counters] = WorkspaceArgument{0};
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const TmaKernel kernel(shape, device);
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  defines.emplace_back("WM", std::to_string(TmaKernel::wm(config)));
  defines.emplace_back("WN", std::to_string(TmaKernel::wn(config)));
  defines.emplace_back("WAVE", std::to_string(kernel.wave()));
  if (shape.alpha == 1) defines.emplace_back("ALPHA_IS_ONE", "1");
  defines.emplace_back("PACKED", kernel.packed(config) ? "1" : "0");
  defines.emplace_back("EARLY_PARTS", std::to_string(kernel.early_parts(config)));
  defines.emplace_back("SHARED_BYTES", std::to_string(kernel.shared_bytes(config)));
  // Copies of B are made by a launch before, and groups' rows by another operation.
  const bool early_b = config["ALIGN"] == 0 && shape.grouping == Grouping::none;
  defines.emplace_back("EARLY_B", early_b ? "1" : "0");
  KernelSource source = kernel_source(shape, device, "tma", defines, kernel.threads(config));
  if (has_warpgroup_products(device.architecture)) {
    compile_for_warpgroups(source, device);
  }
  source.dynamic_shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes(config));
  LaunchPlan plan = plan_of_tiles(shape, device, config, std::move(source));
  if (config["DYNAMIC"] != 0) {
    constexpr std::size_t counters = 7;  // index into the argument block
    plan.zeroed_bytes = plan.workspace_bytes = 256;
    plan.launches[0].arguments[counters] = WorkspaceArgument{0};
  }
  const int cluster = TmaKernel::cluster(config);
  const std::int64_t resident = resident_clusters(device, cluster, config["RESIDENT"]);
  const StreamedTiles streamed = streamed_tiles(shape, config, resident);
  if (config["STREAM_K"] != 0) keep_sums(plan, config, streamed);
  add_alignment(plan, shape, device, config);
  Launch& product = plan.launches[config["ALIGN"] != 0 ? 1 : 0];
  if (early_b) product.early_operands = {1};
  if (config["FOLD"] != 2) {
    constexpr std::size_t tiles_m = 11, tiles_n = 12;  // indices into the argument block
    const std::int64_t all = TmaKernel::clusters(shape, config);
    const std::int64_t running = config["STREAM_K"] != 0   ? streamed.workgroups
                                 : config["RESIDENT"] != 0 ? std::min(all, resident)
                                                           : all;
    product.grid =
        clustered_grid(device, plan.sources[product.source], running, cluster, config["SPLIT"]);
    product.arguments[tiles_m] =
        static_cast<std::uint32_t>(TmaKernel::clusters_along_m(shape, config));
    product.arguments[tiles_n] =
        static_cast<std::uint32_t>(TmaKernel::clusters_along_n(shape, config));
  }
  add_tensor_maps(product.arguments, shape, {kernel.lines_a(config), kernel.lines_b(config)});
  declare_arguments(plan.sources[product.source], product.arguments);
  return plan;
}

/// Returns how many lines along k, whole ones of the cache, take as long to fetch as an operand's
/// `span` lines, which `sharing` workgroups copy together (fitted to searches on H200s,
/// results/2026-11-29-nvidia-h200-clusters). Copies that share save time where lines of the operand
/// lie between lines of the cache.
double fetched_lines(const Shape& shape, bool along_k, double span, int sharing) {
  constexpr double box = 64, of_cut_boxes = 1.5, own = 0.2;
  const double boxes = std::ceil(span / box) * box;
  if (between_cache_lines(shape)) {
    return cost_of_two_lines * (along_k ? span : boxes) * (own + (1 - own) / sharing);
  }
  return along_k ? span : boxes * (boxes > span ? of_cut_boxes : 1);
}

/// Returns how many cycles of a multiprocessor's time an element of a tile takes to be stored while
/// the workgroup multiplies nothing, without its activation (fitted to searches on H200s,
/// results/2026-11-30-nvidia-h200-short-k).
double tail_of_element(const Shape& shape, const TmaKernel& kernel, const Config& config) {
  const bool turns = config["PINGPONG"] != 0;
  if (!kernel.packed(config)) {
    const double stored = TmaKernel::swapped(config) ? 0.2 : 0.15;
    return (turns ? 0.1 : stored) + (shape.residual ? 0.45 : 0);
  }
  const double early = static_cast<double>(kernel.early_parts(config)) / TmaKernel::parts(config);
  const double residual = early * (turns ? 0.06 : 0.2) + (1 - early) * 0.45;
  const double stored = turns ? 0.02 : config["RESIDENT"] != 0 ? 0.07 : 0.15;
  return stored + (shape.residual ? residual : 0);
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const TmaKernel kernel(shape, device);
  const double bm = config["BM"], bn = config["BN"], bk = config["BK"];
  const double wm = TmaKernel::wm(config), wn = TmaKernel::wn(config),
               groups = TmaKernel::groups_of_tile(config);
  Config loads = config;  // as if each thread of a wave copied 16 bytes
  loads.values.emplace_back("VA", 8);
  loads.values.emplace_back("VB", 8);
  LaunchWork work = work_of_tiles(shape, loads);
  // Clusters at the edges have workgroups without a tile.
  work.workgroups =
      expected_lines(shape, std::int64_t{config["BM"]} * config["CLUSTER_M"]) *
      static_cast<double>(TmaKernel::clusters_along_n(shape, config) * config["CLUSTER_M"] *
                          config["CLUSTER_N"] * config["SPLIT"]);
  work.loads /= 64;  // one instruction for a box
  work.read_bytes = work.steps * bk * 2 *
                    (fetched_lines(shape, shape.a_along_k, bm, config["CLUSTER_N"]) +
                     fetched_lines(shape, shape.b_along_k, bn, config["CLUSTER_M"]));
  work.threads = static_cast<double>(kernel.threads(config));
  work.shared_bytes = static_cast<double>(kernel.shared_bytes(config));
  // Warpgroups that multiply get registers of the one that copies.
  work.registers = static_cast<double>(
      std::min(kernel.least_registers(config) + 4, kernel.launch_registers(config)));
  work.matrix_flops = 2 * bm * bn * bk * work.steps;
  work.warpgroups = true;
  const bool swapped = TmaKernel::swapped(config);
  const double instructions = (swapped ? wn : wm) / 64;
  const double read = groups * instructions * (64 + (swapped ? wm : wn));
  work.shared_traffic = work.steps * bk * 2 * (bm + bn + read);
  if (swapped && wn > 64 && bm > 64) {  // by results/2026-11-27-nvidia-h200-unseen-shapes
    constexpr double measured = 1.1;
    work.shared_traffic *= measured;
    work.matrix_flops *= measured;
  }
  work.overlapped = true;
  // Warpgroups do not wait for each other, but one alone waits for its product.
  const bool alone = config["GROUPS"] == 1 && instructions == 1;
  work.barriers = work.steps * (alone ? 0.75 : 0.25);
  const int cluster = TmaKernel::cluster(config);
  if (cluster > 1) {
    work.barriers += 10;  // its workgroups begin together
    work.usable_units = usable_by_clusters(device, cluster);
  }
  work.ahead_bytes = work.read_bytes / work.steps * (config["STAGES"] - 1.5);
  // Two instructions of rows are code that each wave fetches and waits in alone; workgroups of one
  // compute unit do not compute faster together.
  const double lone = (!swapped && wm > 64 ? 3.0 : 1.0) * std::max(1, config["RESIDENT"]);
  work.tail_cycles = tail_of_tile(shape, config, tail_of_element(shape, kernel, config), lone);
  if (config["RESIDENT"] != 0) {  // a workgroup computes several tiles
    const std::int64_t running = resident_clusters(device, cluster, config["RESIDENT"]) * cluster;
    make_resident(work, static_cast<double>(running), 5.0 * config["RESIDENT"]);
  }
  // Sums that are kept, by their time on an H200: results/2026-11-27-nvidia-h200-stream-k. What it
  // gains is less for all tiles that were measured.
  if (config["STREAM_K"] != 0) work.barriers += bm * bn / 15;
  if (config["FOLD"] != 0) add_folding(work, config, config["FOLD"] == 1);
  if (config["FOLD"] == 1) work.barriers += bm * bn / 150;  // the last slice's, by their cost
  if (config["FOLD"] == 2) {
    work.usable_units = usable_by_clusters(device, config["SPLIT"]);
    work.barriers += 4 * bm * bn / 300;  // the exchange, by its cost
  }
  return work_of_launches(work, shape, config);
}

/// How the tile is stored, with each part of the epilogue.
std::vector<std::string> paths(const Shape& shape, const Config& config) {
  const std::string how = config["SPLIT"] > 1               ? fmt::format("FOLD {}", config["FOLD"])
                          : TmaKernel::packs(shape, config) ? "packed"
                          : TmaKernel::swapped(config)      ? "swapped"
                                                            : "rows";
  std::vector<std::string> list;
  const auto add = [&](bool there, const char* part) {
    if (there) list.push_back(fmt::format("{} {}", how, part));
  };
  const bool batch = shape.grouping == Grouping::batch;
  add(shape.residual, "residual");
  add(shape.residual && batch, "batched residual");
  add(shape.bias && !shape.gated, "bias");
  add(shape.gated, "gates");
  add(shape.gated && shape.bias, "gates with bias");
  add(shape.activation != 0 && !shape.gated, "activation");
  if (config["STREAM_K"] != 0)
    add(shape.residual || shape.bias || shape.gated, "streamed epilogue");
  return list;
}

/// With STREAM_K, workgroups have at least four K steps: one tile of twelve belongs to three or
/// more. With PINGPONG, warpgroups skip the K steps of others' tiles: up to all stages once, or
/// several times.
std::vector<Division> divisions(const Shape& shape, const Config& config) {
  std::vector<Division> list = divisions_of_stages(shape, config);
  const std::int64_t steps = ceil_div(shape.k, config["BK"]);
  const std::int64_t tiles = TmaKernel::clusters(shape, config);
  const bool one = config["STREAM_K"] != 0 && tiles == 1;
  list.push_back({"K steps of a streamed tile", steps, one ? 11 : 1});
  const bool turns = config["PINGPONG"] != 0 && tiles > 1;
  list.push_back({"K steps skipped", steps, turns ? 2 * config["STAGES"] : 1, {}, never});
  return list;
}

}  // namespace

Variant tma() {
  Variant variant = make_variant<Shape>(
      "tma", "on matrix cores: warpgroups compute a tile, which one thread copies in boxes", space,
      plan, tma_defaults, divisions);
  variant.migrations = {added("DYNAMIC", 0), added("STREAM_K", 0)};
  variant.kernels_by = "STREAM_K";
  set_work<Shape>(variant, work);
  set_paths<Shape>(variant, paths);
  return variant;
}

}  // namespace greta::kernels::gemm
