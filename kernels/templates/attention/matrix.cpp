#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/attention/cooperative.hpp"
#include "kernels/templates/attention/prefill.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// Attention for many queries, with matrix instructions.
namespace greta::kernels::attention {
namespace {

/// Predicts how matrix.hip treats a problem on a device.
class Kernel {
 public:
  Kernel(const Shape& shape, const DeviceInfo& device)
      : shape_(shape),
        cores_(matrix_cores(device.architecture)),
        thread_registers_(thread_registers(device)),
        workgroup_registers_(workgroup_registers(device)),
        wave_(static_cast<int>(device.subgroup_size)) {
    offered_ = bits_of(shape.in) == 16 &&
               std::any_of(device.matrix_operations.begin(), device.matrix_operations.end(),
                           [&](const MatrixOperation& operation) {
                             return operation.input == shape.in && operation.m == 16;
                           });
  }

  bool offered() const { return offered_; }
  int wave() const { return wave_; }
  /// Whether asynchronous copies write to per-lane addresses.
  bool copies() const { return cores_ == MatrixCores::mma; }
  std::int64_t threads(const Config& c) const { return std::int64_t{c["WAVES"]} * wave_; }
  static std::int64_t queries(const Config& c) { return std::int64_t{c["WAVES"]} * c["WQ"]; }

  std::int64_t shared_bytes(const Config& c) const {
    const std::int64_t keys = c["BK"] * line_bytes();
    const std::int64_t values = copies() ? keys : padded() * c["BK"] * 2;
    const std::int64_t tiles = c["ASYNC"] != 0 ? c["BUFFERS"] * keys : keys + values;
    const std::int64_t own = queries(c) * line_bytes();
    return c["QREG"] != 0 ? std::max(own, tiles) : own + tiles;
  }

  /// Returns the number of 32-bit registers that a thread uses at once: outputs, scores, the
  /// operands of one matrix instruction, all queries with QREG, and keys and values that wait to be
  /// written to shared memory.
  std::int64_t least_registers(const Config& c) const {
    const std::int64_t sums = c["WQ"] * (padded() + c["BK"]) / wave_;
    const std::int64_t queries = c["QREG"] != 0 ? blocks(c) * (padded() / depth()) : 1;
    const std::int64_t waiting =
        c["ASYNC"] != 0 ? 0 : 2 * ceil_div(c["BK"] * shape_.dim / 8, threads(c)) * 4;
    return sums + fragment() * (queries + 1) + waiting;
  }
  /// Returns an estimate of what a thread needs: also the operands of further instructions, and the
  /// maximum and the sum of each row.
  std::int64_t registers(const Config& c) const {
    const std::int64_t more = c["QREG"] != 0 ? 1 : blocks(c);
    const std::int64_t rows = blocks(c) * (cores_ == MatrixCores::mma ? 2 : 1);
    return least_registers(c) + fragment() * more + 2 * rows + (copies() ? 32 : 48);
  }
  std::int64_t register_limit(const Config& c) const {
    return std::min(thread_registers_, workgroup_registers_ / threads(c));
  }

  /// Returns the number of matrix instructions of a wave per tile.
  std::int64_t instructions(const Config& c) const {
    const std::int64_t products = c["WQ"] / 16 * (c["BK"] / 16) * (padded() / 16) * 2;
    return products * (cores_ == MatrixCores::mma ? 2 : 1);
  }

 private:
  static std::int64_t blocks(const Config& c) { return c["WQ"] / 16; }
  /// Returns the number of registers of an operand of a matrix instruction.
  std::int64_t fragment() const { return cores_ == MatrixCores::wmma11 ? 8 : 4; }
  std::int64_t depth() const { return cores_ == MatrixCores::mfma ? 32 : 16; }
  std::int64_t padded() const { return ceil_div(shape_.dim, depth()) * depth(); }
  /// Returns the size of a query or key in shared memory; see key_tiles.hip.
  std::int64_t line_bytes() const {
    const std::int64_t chunks = padded() / 8;
    return (chunks + ((chunks & (chunks - 1)) == 0 ? 0 : 1)) * 16;
  }

  Shape shape_;
  MatrixCores cores_;
  std::int64_t thread_registers_, workgroup_registers_;
  int wave_;
  bool offered_ = false;
};

std::vector<Constraint> constraints(const Shape& shape, const DeviceInfo& device,
                                    const Kernel& kernel) {
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  return {
      {"matrix_cores",
       fmt::format("the device has no matrix operations on {} that this kernel knows",
                   to_string(shape.in)),
       (kernel.offered())},
      {"workgroup_threads",
       fmt::format("WAVES subgroups of size {} must not be more than {} threads", kernel.wave(),
                   threads),
       {{"WAVES"}, [=](const Config& c) { return kernel.threads(c) <= threads; }}},
      {"copies",
       kernel.copies() ? "BUFFERS are 2 without ASYNC"
                       : "the device has no copies for ASYNC, and BUFFERS are 2 without",
       select(p["ASYNC"] != 0, kernel.copies(), p["BUFFERS"] == 2)},
      {"shared_memory",
       fmt::format("BUFFERS of BK keys, and the queries, must fit {} KiB", shared / 1024),
       {{"BK", "WQ", "WAVES", "BUFFERS", "ASYNC", "QREG"},
        [=](const Config& c) { return kernel.shared_bytes(c) <= shared; }}},
      {"code_size",
       "a tile of more than 1024 matrix instructions compiles slowly",
       {{"BK", "WQ"}, [=](const Config& c) { return kernel.instructions(c) <= 1024; }}},
      {"registers",
       "outputs, scores and queries need more registers than a thread has",
       {{"BK", "WQ", "WAVES", "ASYNC", "QREG"},
        [=](const Config& c) { return kernel.least_registers(c) <= kernel.register_limit(c); }}},
  };
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  if (device.language == Language::glsl) return cooperative_space(shape, device);
  const Kernel kernel(shape, device);
  Alternative a{"matrix", {}, {}};
  // BK        keys per step in shared memory: fewer barriers versus more registers
  // WQ        queries per wave: reuse of shared memory reads
  // WAVES     waves per workgroup: reuse of memory reads
  // BUFFERS   tiles of keys or values in shared memory
  // ASYNC     asynchronous loads from global to shared memory, without registers
  // QREG      queries stay in registers
  // TOGETHER  heads that are scheduled together, for L2 reuse
  a.parameters = {
      {"BK", {32, 64, 128}},          {"WQ", {16, 32, 64}}, {"WAVES", {1, 2, 4, 8}},
      {"BUFFERS", {2, 3, 4}},         {"ASYNC", {0, 1}},    {"QREG", {0, 1}},
      {"TOGETHER", heads_together()},
  };
  a.constraints = {storage_constraint(shape.in, shape.out, device)};
  append(a.constraints, tile_constraints(shape, device, p["WAVES"] * p["WQ"]));
  append(a.constraints, constraints(shape, device, kernel));
  return a;
}

std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (device.language == Language::glsl) return cooperative_defaults(shape, device);
  const Kernel kernel(shape, device);
  std::vector<Config> configs;
  if (!kernel.offered()) return configs;
  const bool async = kernel.copies();
  // With 32 lanes per wave, loads in flight leave registers for fewer keys.
  const bool few_keys = !async && kernel.wave() == 32;
  // Large tiles if they fill the device, else the tile that fills it most. With more waves, each
  // thread has fewer loads in flight, which helps bf16, whose conversions need registers if there
  // are few.
  struct Tile {
    int wq, waves;
  };
  std::vector<Tile> order, few;
  for (const Tile& tile : {Tile{32, 4}, Tile{16, 8}, Tile{16, 4}, Tile{16, 2}, Tile{16, 1}}) {
    if (tile.waves == 8 && !(few_keys && shape.in == DType::bf16)) continue;
    const std::int64_t count =
        ceil_div(shape.queries, tile.wq * tile.waves) * shape.batch * shape.heads;
    (count >= busy_workgroups(device) ? order : few).push_back(tile);
  }
  order.insert(order.end(), few.rbegin(), few.rend());
  for (const Tile& tile : order) {
    for (const int bk : {few_keys ? 32 : 64, few_keys ? 64 : 32}) {
      configs.push_back({"matrix",
                         {{"BK", bk},
                          {"WQ", tile.wq},
                          {"WAVES", tile.waves},
                          {"BUFFERS", async ? 3 : 2},
                          {"ASYNC", async},
                          {"QREG", 0},
                          {"TOGETHER", default_heads_together(shape)}}});
    }
  }
  // Configurations with more registers spill, so other variants are better defaults.
  if (few_keys) {
    const std::int64_t room = shape.in == DType::bf16 ? 176 : 192;  // conversions need some
    std::erase_if(configs, [=](const Config& c) { return kernel.registers(c) > room; });
  }
  // NVIDIA's compiler spills above 240 registers.
  std::stable_partition(configs.begin(), configs.end(), [&](const Config& c) {
    return kernel.registers(c) <= (async ? 240 : kernel.register_limit(c));
  });
  return configs;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  if (device.language == Language::glsl) return cooperative_plan(shape, device, config);
  const Kernel kernel(shape, device);
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  defines.emplace_back("WAVE", std::to_string(kernel.wave()));
  LaunchPlan plan = prefill_plan(shape, device, "attention/matrix", defines,
                                 Kernel::queries(config), kernel.threads(config));
  plan.sources[0].dynamic_shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes(config));
  return plan;
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  if (device.language == Language::glsl) return cooperative_work(shape, device, config);
  const Kernel kernel(shape, device);
  const double queries = static_cast<double>(Kernel::queries(config)), waves = config["WAVES"];
  const double bk = config["BK"], in = bytes_of(shape.in, 1);
  const auto dim = static_cast<double>(shape.dim);
  LaunchWork work = prefill_work(shape, config, Kernel::queries(config));
  work.threads = static_cast<double>(kernel.threads(config));
  work.shared_bytes = static_cast<double>(kernel.shared_bytes(config));
  work.registers = static_cast<double>(kernel.registers(config));
  work.matrix_flops = 4 * queries * bk * dim * work.steps;
  work.vector_flops = flops_of_weight * queries * bk * work.steps;
  const double own = config["QREG"] != 0 ? 0 : queries;  // read again for each tile of keys
  work.shared_traffic = work.steps * dim * in * (2 * bk * (1 + waves) + own);
  work.loads = work.read_bytes / 16;
  work.overlapped = true;
  if (config["ASYNC"] != 0) work.ahead_bytes *= config["BUFFERS"] - 1;
  work.barriers = 2 * work.steps;
  return {work};
}

}  // namespace

Variant matrix() {
  Variant variant = make_variant<Shape>(
      "matrix",
      "many queries, on matrix cores: a workgroup computes a tile of one head's queries over all "
      "keys, with scores and outputs in registers",
      space, plan, defaults, [](const Shape& shape, const Config& c) {
        return prefill_divisions(shape, c, Kernel::queries(c));
      });
  variant.kernels_by = "INSTR";
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::attention
