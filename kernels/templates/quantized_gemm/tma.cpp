#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "kernels/model/weight_panels.hpp"
#include "kernels/planning/cluster_units.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/line_map.hpp"
#include "kernels/planning/resident_work.hpp"
#include "kernels/templates/quantized_gemm/cores.hpp"
#include "kernels/templates/quantized_gemm/plan.hpp"
#include "kernels/templates/quantized_gemm/variant.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// Products of many rows with quantised weights by warpgroups, which make operands of what one
/// thread copies in boxes: NVIDIA's sm_90.
namespace greta::kernels::quantized_gemm {
namespace {

constexpr std::int64_t step = 128;         ///< k of a stage
constexpr std::int64_t product_cols = 64;  ///< columns of C, which are rows of a product

bool offered(const Shape& shape, const DeviceInfo& device) {
  return device.language == Language::hip && has_warpgroup_products(device.architecture) &&
         bits_of(shape.in) == 16;
}

/// Returns whether weights may be rounded to A's type, or are exact in it: all of mxfp4 below 2^128
/// are in bf16.
bool may_round(const Shape& shape) {
  if (shape.format == WeightFormat::mxfp4) return shape.in == DType::bf16;
  return shape.rounded;
}

std::int64_t threads_of(const Config& config, std::int64_t wave) {
  const std::int64_t groups = config["GROUPS"];
  return (groups == 1 ? 5 : groups * 4 + 4) * wave;
}

/// Returns the bytes of a line of weights that a box has, or 0 if there are no boxes: rows of
/// blocks must be multiples of 16 bytes for them. Boxes of blocks have 256 weights of a line, and
/// are as long as lines that begin in different banks of shared memory.
std::int64_t box_bytes(const Shape& shape) {
  if (!in_blocks(shape.format)) return 128;
  if (row_bytes(shape.format, shape.k) % 16 != 0) return 0;
  return shape.format == WeightFormat::q8_0 ? 272 : shape.format == WeightFormat::q6_k ? 240 : 144;
}

/// Returns the number of boxes of weights in shared memory: those of the stages of A, and one more
/// where a box has the weights of several.
std::int64_t line_stages(const Shape& shape, const Config& config) {
  if (box_bytes(shape) == 0) return 0;
  const std::int64_t stages = config["STAGES"];
  const bool several = in_blocks(shape.format) || traits(shape.format).bits == 4;
  return several ? stages / 2 + 1 : stages;
}

/// Returns the bytes of dynamic shared memory, as tma.hip has them.
std::int64_t shared_bytes(const Shape& shape, const Config& config) {
  const std::int64_t bm = config["BM"], bn = config["BN"], stages = config["STAGES"];
  const std::int64_t lines = line_stages(shape, config);
  const std::int64_t rings = stages * bm * step * 2 + lines * bn * box_bytes(shape);
  const std::int64_t barriers = (stages + lines) * 16;
  if (config["SPLIT"] > 1) return std::max(rings, bm * (bn + 4) * 4) + barriers;
  const std::int64_t rows = bm % 32 == 0 ? 32 : bm % 16 == 0 ? 16 : 8;
  const std::int64_t stored = rows * (bytes_of(shape.out, product_cols) + 16);  // of a warpgroup
  return rings + config["GROUPS"] * stored + barriers;
}

std::int64_t products_of(const Config& config) {
  return config["BN"] / config["GROUPS"] / product_cols;
}

/// Returns the registers of the parts of blocks that a lane has loaded (tma_units.hip): of boxes
/// those of a unit, else of a step.
std::int64_t block_registers(const Shape& shape) {
  const bool boxes = box_bytes(shape) != 0;
  switch (shape.format) {
    case WeightFormat::q4_0:
      return boxes ? 6 : 24;
    case WeightFormat::q8_0:
      return boxes ? 10 : 40;
    case WeightFormat::q4_k:
      return 16;
    default:
      return boxes ? 34 : 52;
  }
}

/// Returns the number of 32-bit registers that a thread of a warpgroup needs at least: sums, those
/// of a group unless weights are rounded, operands, and scales and zero points of two steps, or
/// parts of blocks.
std::int64_t least_registers(const Shape& shape, const Config& config) {
  constexpr std::int64_t addresses = 40, beside_scaled_sums = 24;  // by NVRTC
  const std::int64_t products = products_of(config), group = shape.group;
  const bool rounds = config["ROUND"] != 0;
  const std::int64_t sums = config["BM"] / 2 * (products + (rounds ? 0 : 1));
  if (in_blocks(shape.format)) return sums + 16 + block_registers(shape) + addresses;
  const std::int64_t operands = rounds ? step / 4 : group / 4;
  return sums + operands + products * (step / group) * (shape.zeros ? 8 : 4) +
         (rounds ? addresses : beside_scaled_sums);
}

/// Returns whether a thread has these registers: some of those of the warpgroup that copies.
bool has_registers(const Shape& shape, const Config& config) {
  static constexpr std::array<std::int64_t, 4> most{0, 255, 240, 160};
  // ptxas wants an instruction's sums and addresses to fit what a thread has at launch.
  const std::int64_t at_launch = 65536 / threads_of(config, 32) / 8 * 8;
  return least_registers(shape, config) <= most[static_cast<std::size_t>(config["GROUPS"])] &&
         config["BM"] / 2 + 30 <= at_launch;
}

/// Returns the lines of tiles that a launch has.
std::int64_t tiles_along_m(const Shape& shape, const Config& c) {
  return launched_lines(shape, std::int64_t{c["BM"]});
}

std::int64_t tiles_along_n(const Shape& shape, const Config& c) {
  return ceil_div(shape.products(), std::int64_t{c["BN"]});
}

/// Returns the tiles that have rows.
std::int64_t filled_tiles(const Shape& shape, const Config& c) {
  return filled_lines(shape, c["BM"]) * tiles_along_n(shape, c);
}

/// Reject tiles that the problem or the device cannot have, or that would be mostly idle.
std::vector<Constraint> constraints_of_tiles(const Shape& shape, const DeviceInfo& device) {
  // What is valid for an m is valid for all that are looked up with it.
  const auto rows_of_bucket =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(shape.m)));
  return {
      {"warpgroups",
       fmt::format("the device has no warpgroup instructions on {}", to_string(shape.in)),
       offered(shape, device)},
      {"clusters", "the device has no clusters of workgroups",
       p["SPLIT"] == 1 || has_clusters(device.architecture)},
      {"slices", "gates and groups of rows have no slices: SPLIT must be 1",
       p["SPLIT"] == 1 || !(shape.gated() || shape.grouped())},
      {"math",
       "ROUND=1 needs math rounded_weights, or A of bf16 and weights of mxfp4, which bf16 has "
       "below 2^128; f16 does not have the range of mxfp4",
       p["ROUND"] == 0 || may_round(shape)},
      {"products", "with blocks, BN must be 64 x GROUPS",
       !in_blocks(shape.format) || p["BN"] == p["GROUPS"] * product_cols},
      {"groups", "GROUPS must divide BN into multiples of 64, two of these at most",
       p["BN"] % (p["GROUPS"] * product_cols) == 0 && p["BN"] <= p["GROUPS"] * (2 * product_cols)},
      {"tile_m",
       fmt::format("BM must not exceed m, {}, rounded up to a power of two, unless it is 16",
                   shape.m),
       p["BM"] <= rows_of_bucket || p["BM"] == 16},
      {"tile_n",
       fmt::format("BN must not be twice the product's columns, {}, or more, unless it is 64",
                   shape.products()),
       p["BN"] < 2 * shape.products() || p["BN"] == 64}};
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t shared = device.shared_memory_bytes, groups = most_workgroups(device);
  // BM x BN   tile of C of a workgroup
  // GROUPS    warpgroups that share its columns
  // STAGES    steps of 128 k in shared memory
  // SPLIT     workgroups of a cluster that share K
  // RESIDENT  1: a workgroup for each compute unit, which computes tile after tile
  // ROUND     1: weights are scaled and rounded to A's type before they are multiplied
  Alternative a{"tma",
                {{"BM", {16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 256}},
                 {"BN", {64, 128, 192, 256}},
                 {"GROUPS", {1, 2, 3}},
                 {"STAGES", {2, 3, 4, 5, 6, 8, 10, 12}},
                 {"SPLIT", {1, 2, 4, 8}},
                 {"RESIDENT", {0, 1}},
                 {"ROUND", {0, 1}}},
                {storage_constraint(shape.halves(), shape.out, device), no_norm(shape),
                 rows_of_weights(shape)}};
  append(a.constraints, constraints_of_tiles(shape, device));
  append(a.constraints,
         {{"split",
           fmt::format("SPLIT must divide BM, not exceed the steps of 128 of k, {}, and have "
                       "RESIDENT=0",
                       shape.k),
           p["SPLIT"] == 1 || (p["BM"] % p["SPLIT"] == 0 && p["RESIDENT"] == 0 &&
                               p["SPLIT"] <= ceil_div(shape.k, step))},
          {"grid", fmt::format("C has more than {} workgroups", groups),
           ceil_div(shape.products(), p["BN"]) * launched_lines(shape, p["BM"]) <= groups},
          {"shared_memory",
           fmt::format("STAGES of both operands, and stored sums, must fit {} KiB", shared / 1024),
           {{"BM", "BN", "STAGES", "GROUPS", "SPLIT"},
            [=](const Config& c) { return shared_bytes(shape, c) <= shared; }}},
          {"registers",
           "sums and operands need more registers than a thread has",
           {{"BM", "BN", "GROUPS", "ROUND"},
            [=](const Config& c) { return has_registers(shape, c); }}}});
  return a;
}

std::int64_t blocks_of(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const std::int64_t tiles = tiles_along_m(shape, config) * tiles_along_n(shape, config);
  return config["RESIDENT"] != 0
             ? std::min(tiles, std::max<std::int64_t>(1, busy_workgroups(device)))
             : tiles;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const std::int64_t wave = device.subgroup_size;
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  defines.emplace_back("WAVE", std::to_string(wave));
  defines.emplace_back("LINE_STAGES", std::to_string(line_stages(shape, config)));
  defines.emplace_back("LINE_BYTES", std::to_string(box_bytes(shape)));
  defines.emplace_back("SHARED_BYTES", std::to_string(shared_bytes(shape, config)));
  std::vector<Argument> given = arguments(shape, tiles_along_m(shape, config));
  for (const std::int64_t count :
       {tiles_along_m(shape, config) * tiles_along_n(shape, config),
        ceil_div(ceil_div(shape.k, step), std::int64_t{config["SPLIT"]})}) {
    given.emplace_back(static_cast<std::uint32_t>(count));
  }
  given.push_back(map_of_lines(0, shape.all_rows(), shape.k * 2, config["BM"]));
  if (box_bytes(shape) != 0) {
    // Gates and ups of a warpgroup are boxes of their own.
    const std::int64_t lines = shape.gated() ? config["BN"] / config["GROUPS"] / 2 : config["BN"];
    const std::int64_t rows = shape.groups * shape.products();
    const std::int64_t bytes = row_bytes(shape.format, shape.k);
    // A box of panels has two units of each of their rows.
    given.push_back(
        shape.panels
            ? map_of_lines(1, rows / panel_rows, panel_rows * bytes, lines / panel_rows,
                           2 * panel_rows * panel_unit_bytes)
            : map_of_lines(1, rows, bytes, lines, in_blocks(shape.format) ? box_bytes(shape) : 0));
  }
  LaunchPlan plan;
  plan.sources.push_back(kernel_of(shape, device, "tma", defines, threads_of(config, wave), given));
  KernelSource& source = plan.sources[0];
  compile_for_warpgroups(source, device);
  source.dynamic_shared_bytes = static_cast<std::uint32_t>(shared_bytes(shape, config));
  const auto blocks = static_cast<std::uint64_t>(blocks_of(shape, device, config));
  plan.launches.push_back({0, grid(device, source, blocks, config["SPLIT"]), std::move(given)});
  return plan;
}

/// Returns the rows from which on the other variants, which are for few, are slower: less where
/// they can't multiply a group of 128 weights before they scale it, and least for one product of
/// GGUF's blocks that are copied in boxes.
std::int64_t least_rows(const Shape& shape) {
  if (in_blocks(shape.format)) return shape.grouped() || box_bytes(shape) == 0 ? 17 : 5;
  return shape.group < core_unit ? 9 : 17;
}

/// Returns the configuration with as many stages as shared memory has room for.
Config with_stages(const Shape& shape, const DeviceInfo& device, Config config) {
  for (const int stages : {3, 4, 5, 6, 8}) {
    Config more = config;
    more.value("STAGES") = stages;
    if (shared_bytes(shape, more) <= device.shared_memory_bytes) config = more;
  }
  return config;
}

/// Returns the tiles of defaults, those that round first. Weights that are rounded need no sums of
/// their own, which leaves registers for larger tiles. `wide`: also those of three warpgroups,
/// where there are no groups.
std::vector<Config> default_tiles(const Shape& shape, bool wide) {
  std::vector<Config> tiles;
  int round = may_round(shape) ? 1 : 0;
  const auto add = [&](int bm, int bn, int groups) {
    tiles.push_back({"tma",
                     {{"BM", bm},
                      {"BN", bn},
                      {"GROUPS", groups},
                      {"STAGES", 2},
                      {"SPLIT", 1},
                      {"RESIDENT", 0},
                      {"ROUND", round}}});
  };
  if (round != 0) {
    for (const int bm : {256, 192}) add(bm, 128, 2);
    if (!in_blocks(shape.format)) {
      for (const int bm : {128, 96, 64}) add(bm, 256, 2);
    }
  }
  for (; round >= 0; --round) {
    for (const int bm : {160, 144, 128, 96, 64, 48, 32, 16}) {
      // Few rows leave registers for three.
      if ((shape.grouped() || wide) && bm <= 48 && shape.rows_of_group() <= bm) add(bm, 192, 3);
      for (const int groups : {2, 1}) add(bm, groups * 64, groups);
    }
  }
  return tiles;
}

/// Returns tiles in the order of the steps that the busiest compute unit multiplies, shared by
/// workgroups where there are fewer tiles than units.
std::vector<Config> ordered(const Shape& shape, const DeviceInfo& device,
                            const std::vector<Config>& tiles_to_order) {
  const std::int64_t units = std::max<std::int64_t>(1, busy_workgroups(device));
  const std::int64_t steps = ceil_div(shape.k, step);
  std::vector<std::pair<double, Config>> found;
  for (const Config& tile : tiles_to_order) {
    for (const int split : {1, 2, 4, 8}) {
      Config config = tile;
      config.value("SPLIT") = split;
      const double bm = config["BM"];
      const std::int64_t tiles = filled_tiles(shape, config);
      if (split > 1 && (shape.gated() || shape.grouped() || split > steps ||
                        tiles * split > units_of_clusters(device, split))) {
        break;
      }
      // A tile of one warpgroup leaves matrix cores idle.
      const double of_step =
          static_cast<double>(products_of(config)) * (bm + 40) * (config["GROUPS"] == 1 ? 0.8 : 1);
      const auto own = static_cast<double>(ceil_div(steps, std::int64_t{split}));
      const double exchange = split > 1 ? 2 * bm : 0;
      const double cost =
          static_cast<double>(ceil_div(tiles, units)) * (own * of_step + bm + exchange);
      // Groups gain nothing from it (results/2026-11-28-nvidia-h200-learnt-defaults).
      config.value("RESIDENT") = tiles > units && !shape.grouped() ? 1 : 0;
      found.emplace_back(cost, with_stages(shape, device, std::move(config)));
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Config> configs;
  for (auto& [cost, config] : found) configs.push_back(std::move(config));
  return configs;
}

/// The other variants are for few rows.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (!offered(shape, device) || shape.rows_of_group() < least_rows(shape)) return {};
  return ordered(shape, device, default_tiles(shape, false));
}

std::vector<Config> candidates(const Shape& shape, const DeviceInfo& device) {
  constexpr std::int64_t most_rows = 48;
  if (!offered(shape, device) || shape.grouped() || shape.m == 1 || shape.m > most_rows) return {};
  return ordered(shape, device, default_tiles(shape, true));
}

/// Tiles with the same weights are in bands, which begin again for each column of tiles.
std::vector<Division> divisions(const Shape& shape, const Config& config) {
  constexpr std::int64_t band = 16;  // as tile_of() in tma.hip
  const bool columns = shape.products() > config["BN"];
  return {{"m", shape.m, config["BM"], "BM", 16},
          {"n", shape.products(), config["BN"]},
          {"steps", ceil_div(shape.k, step), config["SPLIT"], {}, 2},
          {"lines of tiles", columns ? ceil_div(shape.m, config["BM"]) : 0, columns ? band : 1}};
}

/// Returns what a step of weights that are rounded takes besides products, in barriers: operands
/// are made for the products that follow, which hides more of it the longer products are (measured
/// on an H200).
double rounding_latencies(const Shape& shape, const Config& config) {
  if (box_bytes(shape) != 0 && in_blocks(shape.format)) {
    return shape.format == WeightFormat::q4_k ? 12 : 6;
  }
  if (in_blocks(shape.format)) return shape.format == WeightFormat::q8_0 ? 50 : 25;
  const double of_group =
      (shape.zeros ? 10 : 4.5) * std::log2(step / static_cast<double>(shape.group));
  const double exposed = std::clamp((256.0 - config["BM"]) / 128, 0.0, 1.0);
  return 4 * static_cast<double>(products_of(config)) + of_group * exposed;
}

/// Returns the latencies of a tile, in barriers. The products of a warpgroup wait for operands that
/// its threads make, which wait for the products before them, and each group of weights begins such
/// a chain. A warpgroup alone takes longer for it than each of two (measured on an H200, cause
/// unknown).
double latencies(const Shape& shape, const Config& config, double steps) {
  const bool rounds = config["ROUND"] != 0;
  const double alone = config["GROUPS"] == 1 ? 1.4 : 1;
  if (in_blocks(shape.format) && !rounds) {
    const double made = shape.format == WeightFormat::q4_k ? 10 : 0;  // from scales and minima
    return steps * (made + (config["GROUPS"] == 1 ? 0.75 : 0.25));
  }
  const double chain = rounds ? rounding_latencies(shape, config)
                              : 7 + 3.0 * step / static_cast<double>(shape.group);
  const double stored = 0.5 * config["BM"];
  return steps * static_cast<double>(products_of(config)) * alone * chain + stored;
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double bm = config["BM"], bn = config["BN"], split = config["SPLIT"];
  const bool blocks = in_blocks(shape.format);
  const double weight =
      static_cast<double>(row_bytes(shape.format, shape.k)) / static_cast<double>(shape.k) +
      scale_bytes(shape);
  // k of sums that are scaled, and products for each weight.
  const double scaled = !blocks                              ? static_cast<double>(shape.group)
                        : shape.format == WeightFormat::q6_k ? 16
                                                             : 32;
  const bool rounds = config["ROUND"] != 0;
  const double of_weight = shape.format == WeightFormat::q4_k && !rounds ? 2 : 1;
  LaunchWork work;
  work.workgroups = expected_tiles(shape, config["BM"], config["BN"]) * split;
  work.threads = static_cast<double>(threads_of(config, device.subgroup_size));
  work.shared_bytes = static_cast<double>(shared_bytes(shape, config));
  work.registers = static_cast<double>(
      std::min<std::int64_t>(least_registers(shape, config) + 4, 65536 / threads_of(config, 32)));
  work.steps = std::ceil(static_cast<double>(ceil_div(shape.k, step)) / split);
  work.matrix_flops = 2 * bm * bn * step * work.steps * of_weight;
  // Of groups, latencies have a part of what decoding costs. A weight that is rounded takes half an
  // instruction for it.
  const double scaling = rounds ? 0.5 : (blocks ? 2 * of_weight : 1) * bm / scaled;
  const double decoding = in_super_blocks(shape.format) ? 8 : blocks ? 3 : 2;
  work.vector_flops = work.steps * bn * step * (decoding + scaling);
  work.warpgroups = true;
  work.overlapped = config["GROUPS"] > 1;
  work.read_bytes = work.steps * step * (bm * 2 + bn * weight);
  const double written = shape.gated() ? bn / 2 : bn;
  work.written_bytes = bm * written * bytes_of(shape.out, 1.0) / split;
  // Lanes read narrow pieces of weights of fewer than 8 bits.
  const double reads = traits(shape.format).bits < 8 ? 9 : 4.5;
  work.shared_traffic = work.steps * step * (bm * 2 + bn * weight * reads + bn / 64 * bm * 2);
  // Without boxes, a lane loads pairs of bytes of blocks.
  work.loads = 3 * work.steps + (box_bytes(shape) == 0 ? work.steps * step * bn * weight / 2 : 0);
  work.barriers = latencies(shape, config, work.steps);
  if (split > 1) {
    work.barriers += 10 + 4 * bm * bn / 300;  // the exchange, by its cost
    work.usable_units = usable_by_clusters(device, config["SPLIT"]);
  }
  work.ahead_bytes = work.read_bytes / work.steps * (config["STAGES"] - 1.5);
  if (config["RESIDENT"] != 0) {
    const double lines = expected_lines(shape, config["BM"]);
    make_resident(work, static_cast<double>(busy_workgroups(device)), 5,
                  std::min(1.0, lines / static_cast<double>(tiles_along_m(shape, config))));
  }
  work.unique_bytes = least_bytes(shape);
  return {work};
}

}  // namespace

Variant tma() {
  Variant variant = make_variant<Shape>(
      "tma",
      "NVIDIA's sm_90, many rows, integers in groups: warpgroups make operands of weights that one "
      "thread copies in boxes",
      space, plan, defaults, divisions);
  variant.migrations = {added("ROUND", 0)};
  set_work<Shape>(variant, work);
  set_candidates<Shape>(variant, candidates);
  return variant;
}

}  // namespace greta::kernels::quantized_gemm
