#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/attention/cooperative.hpp"
#include "kernels/templates/attention/matrix_kernel.hpp"
#include "kernels/templates/attention/packing.hpp"
#include "kernels/templates/attention/prefill.hpp"
#include "kernels/templates/attention/slices.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// Attention with matrix instructions: many queries, or the heads that share a KV head.
namespace greta::kernels::attention {
namespace {

Constraint copies_constraint(const MatrixKernel& kernel) {
  const Expression copies =
      kernel.turns() ? Expression(p["TURN"] == 1) : Expression(kernel.lane_copies());
  return {"copies",
          kernel.copies() ? kernel.turns() ? "ASYNC needs TURN, and BUFFERS are 2 without"
                                           : "BUFFERS are 2 without ASYNC"
          : kernel.lane_copies()
              ? "values of v_dim elements leave no zeros after keys of dim with ASYNC, and BUFFERS "
                "are 2 without"
          : kernel.turns()
              ? "ASYNC needs the keys of a step within 2 GiB, and BUFFERS are 2 without"
              : "the device has no copies for ASYNC, and BUFFERS are 2 without",
          select(p["ASYNC"] != 0, kernel.copies() && copies, p["BUFFERS"] == 2)};
}

std::vector<Constraint> constraints(const Shape& shape, const DeviceInfo& device,
                                    const MatrixKernel& kernel) {
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  return {
      {"matrix_cores",
       fmt::format("the device has no matrix operations on {} that this kernel knows",
                   to_string(shape.in)),
       (kernel.offered())},
      {"workgroup_threads",
       fmt::format("WAVES x KWAVES subgroups of size {} must not be more than {} threads",
                   kernel.wave(), threads),
       p["WAVES"] * p["KWAVES"] * kernel.wave() <= threads},
      {"key_waves",
       fmt::format("KWAVES parts of BK keys must be multiples of {}", kernel.granule()),
       p["BK"] % (p["KWAVES"] * kernel.granule()) == 0},
      copies_constraint(kernel),
      {"shared_memory",
       fmt::format(
           "BUFFERS of BK keys, and the queries, must fit {} KiB; so must the sums of KWAVES "
           "waves or SPLIT slices",
           shared / 1024),
       {{"BK", "WQ", "WAVES", "KWAVES", "BUFFERS", "ASYNC", "QREG", "SPLIT", "FOLD"},
        [=](const Config& c) { return kernel.shared_bytes(c) <= shared; }}},
      {"code_size",
       "a tile of more than 1024 matrix instructions compiles slowly",
       {{"BK", "WQ", "KWAVES"}, [=](const Config& c) { return kernel.instructions(c) <= 1024; }}},
      {"registers",
       "outputs, scores and queries need more registers than a thread has",
       {{"BK", "WQ", "WAVES", "KWAVES", "ASYNC", "QREG"},
        [=](const Config& c) { return kernel.least_registers(c) <= kernel.register_limit(c); }}},
  };
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  if (device.language == Language::glsl) return cooperative_space(shape, device);
  const MatrixKernel kernel(shape, device);
  Alternative a{"matrix", {}, {}};
  // BK        keys per step in shared memory: fewer barriers versus more registers
  // WQ        rows per wave: reuse of shared memory reads
  // WAVES     waves per workgroup that have rows of their own: reuse of memory reads
  // KWAVES    waves that share these rows and divide the keys of a step
  // BUFFERS   tiles of keys or values in shared memory
  // ASYNC     asynchronous loads from global to shared memory, without registers
  // QREG      queries stay in registers: 1 by way of shared memory, 2 (AMD) straight from memory
  // PACK      rows are the queries of all heads that share a KV head, else those of one head
  // SPLIT     workgroups that share the keys of a sequence
  // FOLD      who joins slices: 1 the last workgroup, from the workspace; 2 all of them, as a
  //           cluster that reads each other's shared memory
  // TOGETHER  heads that are scheduled together, for L2 reuse
  // XCDS      dies that workgroups are dealt to in turn, each of which has neighbouring heads
  // INSTR     span of a product on CDNA: fewer instructions versus smaller pieces of work
  // TURN      on gfx950, reads from shared memory transpose values, else their loader does
  a.parameters = {
      {"BK", {32, 64, 128}},
      {"WQ", {16, 32, 64}},
      {"WAVES", {1, 2, 4, 8}},
      {"KWAVES", {1, 2, 4, 8}},
      {"BUFFERS", {2, 3, 4}},
      {"ASYNC", {0, 1}},
      {"QREG", kernel.lane_copies() ? std::vector{0, 1} : std::vector{0, 1, 2}},
      {"PACK", {0, 1}},
      {"SPLIT", key_slices()},
      {"FOLD", folds(device)},
      {"TOGETHER", heads_together()},
      {"XCDS", die_counts(device)},
  };
  a.constraints = {storage_constraint(shape.in, shape.out, device)};
  append(a.constraints, packing_constraints(shape, device, p["WAVES"] * p["WQ"]));
  append(a.constraints, constraints(shape, device, kernel));
  a.constraints.push_back(cluster_constraint());
  if (kernel.spans().size() > 1) {
    a.parameters.push_back({"INSTR", kernel.spans()});
    a.constraints.push_back(
        {"products", "products of INSTR must divide WQ", p["WQ"] % p["INSTR"] == 0});
  }
  if (kernel.turns()) a.parameters.push_back({"TURN", {0, 1}});
  return a;
}

/// Names the largest products that fit the configurations, where there are several, and lets reads
/// transpose values where they can.
void name_products(std::vector<Config>& configs, const MatrixKernel& kernel) {
  if (kernel.spans().size() == 1) return;
  for (Config& c : configs) {
    c.values.emplace_back("INSTR", c["WQ"] % kernel.spans().back() == 0 ? kernel.spans().back()
                                                                        : kernel.spans().front());
    if (kernel.turns()) c.values.emplace_back("TURN", 1);
  }
}

/// Few queries: tiles of packed heads, whose keys are divided over waves and workgroups.
std::vector<Config> packed_defaults(const Shape& shape, const DeviceInfo& device,
                                    const MatrixKernel& kernel) {
  const bool async = kernel.lane_copies(), ahead = async || kernel.wave_copies();
  std::vector<Config> configs;
  if (!kernel.offered() || !are_few_packed_rows(shape, device, async)) return configs;
  // With copies ahead, one workgroup keeps a processor's memory busy, and more waves its many rows.
  // Large clusters wait long for processors that are neighbours.
  for (const auto& [waves, split, workgroups] : packed_tiles(shape, device, async ? 1 : 2)) {
    const bool alone = async && workgroups <= busy_workgroups(device);
    const std::int64_t rows = shape.queries * shape.group();
    const bool many_alone = alone && rows >= 8;
    const std::int64_t key_waves = (many_alone ? 8 : 4) / std::min(waves, 2);
    for (const int bk : {128, 64, 32}) {
      if (bk * shape.longest() > (many_alone ? 256 : async ? 128 : 64) * 128) continue;
      for (const int keeps : {1, 0}) {
        if (keeps != 0 && !ahead) continue;
        configs.push_back(
            {"matrix",
             {{"BK", bk},
              {"WQ", 16},
              {"WAVES", waves},
              {"KWAVES", static_cast<int>(std::min(key_waves, bk / kernel.granule()))},
              {"BUFFERS", async ? 3 : 2},
              {"ASYNC", ahead},
              {"QREG", keeps},
              {"PACK", shape.group() > 1},
              {"SPLIT", split},
              {"FOLD", split > 1 && split <= 4 ? folds(device).back() : 1},
              {"TOGETHER", default_heads_together(shape)},
              {"XCDS", 1}}});
      }
    }
  }
  name_products(configs, kernel);
  return configs;
}

/// Queries of a workgroup: rows of each wave, which may keep them in registers.
struct QueryTile {
  int wq, waves;
  bool keeps = false;
};

/// Returns large tiles if they fill the device, then the tile that fills it most. With more waves,
/// each thread has fewer loads in flight, which helps bf16, whose conversions need registers if
/// there are few. With 64 lanes, eight waves that keep their queries are two for each SIMD, in the
/// shared memory that four need otherwise; queries of large heads come straight from memory.
std::vector<QueryTile> query_tiles(const Shape& shape, const DeviceInfo& device,
                                   const MatrixKernel& kernel, bool few_keys) {
  std::vector<QueryTile> order, few;
  for (const QueryTile& tile :
       {QueryTile{32, 8, true}, QueryTile{32, 4}, QueryTile{16, 8, true}, QueryTile{16, 8},
        QueryTile{16, 4}, QueryTile{16, 2}, QueryTile{16, 1}}) {
    if (tile.keeps && (kernel.lane_copies() || few_keys)) continue;
    if (tile.waves == 8 && !tile.keeps && !(few_keys && shape.in == DType::bf16)) continue;
    const std::int64_t count =
        ceil_div(shape.queries, tile.wq * tile.waves) * shape.batch * shape.heads;
    (count >= busy_workgroups(device) ? order : few).push_back(tile);
  }
  order.insert(order.end(), few.rbegin(), few.rend());
  // Where others need too many registers: the fewest loads in flight.
  if (few_keys && shape.in != DType::bf16) order.push_back({16, 8});
  return order;
}

/// Whether compilers may need more registers than a thread has. If queries stay there, they need up
/// to 40 more than estimated, of the 256 that a thread has then; with copies, up to 48 more. With
/// few keys it is up to 20, or 6 with copies.
bool may_spill(const Config& c, const Shape& shape, const MatrixKernel& kernel) {
  const bool waits = c["ASYNC"] == 0;
  if (kernel.lane_copies()) return false;
  // One wave copies a tile by way of its registers, of packed sequences with their bounds.
  if (waits && shape.finds_tokens() && c["WAVES"] * c["KWAVES"] == 1 && c["BK"] > 32) return true;
  if (c["QREG"] == 0) return false;
  if (waits && c["WQ"] == 16 && c["BK"] > 32) return true;  // up to 86 were seen
  const int room = c["BK"] > 32 ? (waits ? 216 : 208) : waits ? 236 : 250;
  return kernel.registers(c) > room;
}

std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (device.language == Language::glsl) return cooperative_defaults(shape, device);
  const MatrixKernel kernel(shape, device);
  std::vector<Config> configs;
  if (!kernel.offered()) return configs;
  const bool async = kernel.lane_copies(), ahead = async || kernel.wave_copies();
  // With 32 lanes per wave, loads in flight leave registers for fewer keys.
  const bool few_keys = !async && kernel.wave() == 32;
  // The more keys a tile has, the fewer instructions are left for each. Copies to shared memory
  // leave registers for more of them.
  const std::vector<int> some{few_keys ? 32 : 64, few_keys ? 64 : 32}, many{128, 64, 32};
  for (const QueryTile& tile : query_tiles(shape, device, kernel, few_keys)) {
    const bool keeps = tile.keeps || kernel.wave_copies();
    for (const int bk : kernel.wave_copies() && tile.wq == 32 ? many : some) {
      for (const int where : keeps ? std::vector{1, 2} : std::vector{0}) {
        configs.push_back({"matrix",
                           {{"BK", bk},
                            {"WQ", tile.wq},
                            {"WAVES", tile.waves},
                            {"KWAVES", 1},
                            {"BUFFERS", async ? 3 : 2},
                            {"ASYNC", ahead},
                            {"QREG", where},
                            {"PACK", 0},
                            {"SPLIT", 1},
                            {"FOLD", 1},
                            {"TOGETHER", default_heads_together(shape)},
                            {"XCDS", die_counts(device).back()}}});
      }
    }
  }
  name_products(configs, kernel);
  // Configurations with more registers spill, so other variants are better defaults.
  if (few_keys) {
    // Conversions need some; compilers were seen to spare 24 where values have another size.
    const std::int64_t room = shape.v_dim != shape.dim ? 200 : shape.in == DType::bf16 ? 176 : 192;
    std::erase_if(configs, [=](const Config& c) {
      return kernel.registers(c) - kernel.addresses(c) > room || kernel.registers(c) > 240;
    });
  }
  std::erase_if(configs, [&](const Config& c) { return may_spill(c, shape, kernel); });
  // The same for queries in shared memory: two waves on a SIMD, if that can be. A limit of scores
  // needs up to 40 more registers than estimated.
  const std::int64_t two_waves = shape.softcap > 0 ? 184 : 216;
  std::stable_partition(configs.begin(), configs.end(), [&](const Config& c) {
    return async || c["QREG"] != 0 || kernel.registers(c) <= two_waves;
  });
  const std::vector<Config> packed = packed_defaults(shape, device, kernel);
  configs.insert(configs.begin(), packed.begin(), packed.end());
  // NVIDIA's compiler spills above 240 registers.
  std::stable_partition(configs.begin(), configs.end(), [&](const Config& c) {
    return kernel.registers(c) <= (async ? 240 : kernel.register_limit(c));
  });
  return configs;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  if (device.language == Language::glsl) return cooperative_plan(shape, device, config);
  const MatrixKernel kernel(shape, device);
  Defines defines = problem_defines(shape);
  defines.emplace_back("WAVE", std::to_string(kernel.wave()));
  LaunchPlan plan = packing_plan(shape, device, "attention/matrix", config, std::move(defines),
                                 MatrixKernel::rows(config), kernel.threads(config));
  plan.sources[0].dynamic_shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes(config));
  return plan;
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  if (device.language == Language::glsl) return cooperative_work(shape, device, config);
  const MatrixKernel kernel(shape, device);
  const double rows = static_cast<double>(MatrixKernel::rows(config)), waves = config["WAVES"];
  const double bk = config["BK"], in = bytes_of(shape.in, 1), key_waves = config["KWAVES"];
  const auto dim = static_cast<double>(shape.dim), both = static_cast<double>(shape.both_dims());
  LaunchWork work = packing_work(shape, config, MatrixKernel::rows(config));
  work.threads = static_cast<double>(kernel.threads(config));
  work.shared_bytes = static_cast<double>(kernel.shared_bytes(config));
  work.registers = static_cast<double>(kernel.registers(config));
  work.matrix_flops = 2 * rows * bk * both * work.steps;
  work.vector_flops = flops_of_weight * rows * bk * work.steps;
  // Read again for each tile of keys.
  const double own = config["QREG"] != 0 ? 0 : rows * key_waves;
  work.shared_traffic = work.steps * in * (both * bk * (1 + waves) + dim * own);
  if (key_waves > 1) {
    work.shared_traffic += 2 * static_cast<double>(kernel.wave_sums_bytes(config));
  }
  work.loads = work.read_bytes / 16;
  work.overlapped = true;
  if (config["ASYNC"] != 0) work.ahead_bytes *= config["BUFFERS"] - 1;
  work.barriers += 2 * work.steps + (key_waves > 1 ? 2 : 0);
  if (kernel.copies() && waves * key_waves < 4) {
    // Of so few waves, each starts its products and copies one after the other
    // (results/2026-12-01-nvidia-h200-unseen-catalog).
    constexpr double cycles_of_start = 37;
    const double products = rows * bk * both / (16 * 128) / (waves * key_waves);
    const double copies = bk * both * in / 16 / work.threads;
    work.tail_cycles = work.steps * (products + copies) * cycles_of_start;
  }
  return {work};
}

}  // namespace

bool fits_matrix_rows(const Shape& shape, const DeviceInfo& device) {
  const std::vector<Config> configs =
      device.language == Language::glsl
          ? cooperative_packed_defaults(shape, device)
          : packed_defaults(shape, device, MatrixKernel(shape, device));
  if (configs.empty()) return false;
  const Alternative matrix = space(shape, device);
  return std::any_of(configs.begin(), configs.end(),
                     [&](const Config& config) { return !rejects(matrix, config); });
}

Variant matrix() {
  Variant variant = attention_variant(
      "matrix",
      "on matrix cores: a workgroup computes a tile of queries of one head, or of the heads that "
      "share a KV head, over all keys or a slice, with scores and outputs in registers",
      space, plan, defaults,
      [](const Shape& shape, const Config& c) {
        return packing_divisions(shape, c, MatrixKernel::rows(c), "BUFFERS");
      },
      work);
  variant.kernels_by = "INSTR";
  variant.migrations = {added("KWAVES", 1), added("PACK", 0),   added("SPLIT", 1), added("FOLD", 1),
                        added("XCDS", 1),   added("INSTR", 16), added("TURN", 0)};
  return variant;
}

}  // namespace greta::kernels::attention
