#include <fmt/format.h>

#include <algorithm>

#include "kernels/templates/attention/cooperative.hpp"
#include "kernels/templates/attention/prefill.hpp"
#include "kernels/templates/common/limits.hpp"
#include "kernels/templates/common/plan.hpp"
#include "runtime/device/architectures.hpp"

/// Many queries, on matrix cores.
namespace greta::kernels::attention {
namespace {

/// What matrix.hip makes of a problem on a device.
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
  /// Copies that write where a lane says.
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

  /// 32-bit registers that a thread uses at once: outputs, scores, the operands of a product, with
  /// QREG all queries, and keys and values that wait for their place in shared memory.
  std::int64_t least_registers(const Config& c) const {
    const std::int64_t sums = c["WQ"] * (padded() + c["BK"]) / wave_;
    const std::int64_t queries = c["QREG"] != 0 ? blocks(c) * (padded() / depth()) : 1;
    const std::int64_t waiting =
        c["ASYNC"] != 0 ? 0 : 2 * ceil_div(c["BK"] * shape_.dim / 8, threads(c)) * 4;
    return sums + fragment() * (queries + 1) + waiting;
  }
  /// An estimate of what a thread needs: the above, the operands of further products, and each
  /// row's greatest score and sum.
  std::int64_t registers(const Config& c) const {
    const std::int64_t more = c["QREG"] != 0 ? 1 : blocks(c);
    const std::int64_t rows = blocks(c) * (cores_ == MatrixCores::mma ? 2 : 1);
    return least_registers(c) + fragment() * more + 2 * rows + (copies() ? 32 : 48);
  }
  std::int64_t register_limit(const Config& c) const {
    return std::min(thread_registers_, workgroup_registers_ / threads(c));
  }

  /// Matrix instructions of a wave in a tile.
  std::int64_t instructions(const Config& c) const {
    const std::int64_t products = c["WQ"] / 16 * (c["BK"] / 16) * (padded() / 16) * 2;
    return products * (cores_ == MatrixCores::mma ? 2 : 1);
  }

 private:
  static std::int64_t blocks(const Config& c) { return c["WQ"] / 16; }
  /// Registers of an operand of a product.
  std::int64_t fragment() const { return cores_ == MatrixCores::wmma11 ? 8 : 4; }
  std::int64_t depth() const { return cores_ == MatrixCores::mfma ? 32 : 16; }
  std::int64_t padded() const { return ceil_div(shape_.dim, depth()) * depth(); }
  /// Of a query or key in shared memory; see key_tiles.hip.
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
       fmt::format("WAVES of {} must not be more than {} threads", kernel.wave(), threads),
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
  // BK        keys in shared memory at a time: fewer barriers against more registers
  // WQ        queries of a wave: reuse of what it reads from shared memory
  // WAVES     of a workgroup: reuse of what it reads from memory
  // BUFFERS   tiles of keys or values in shared memory
  // ASYNC     they get there past the registers
  // QREG      queries stay in registers
  // TOGETHER  heads that are walked together: what neighbours share in the cache
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
  // What waits in registers leaves room for fewer keys where a wave has 32 lanes.
  const bool few_keys = !async && kernel.wave() == 32;
  // Large tiles where they fill the device, else whatever fills it most. The more waves, the less
  // of a tile waits in a thread: for bf16, whose conversions need registers where there are few.
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
  if (few_keys) {  // what needs more spills: other variants are better defaults then
    const std::int64_t room = shape.in == DType::bf16 ? 176 : 192;  // conversions take some
    std::erase_if(configs, [=](const Config& c) { return kernel.registers(c) > room; });
  }
  // Of what fits more tightly, NVIDIA's compiler keeps some in memory.
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
  return variant;
}

}  // namespace greta::kernels::attention
