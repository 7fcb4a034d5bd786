#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/attention/prefill.hpp"
#include "kernels/templates/attention/slices.hpp"
#include "kernels/templates/latent_attention/cooperative.hpp"
#include "runtime/device/hardware/architectures.hpp"

/// Rows that share keys, with matrix instructions.
namespace greta::kernels::latent {
namespace {

/// Predicts how rows_matrix.hip treats a problem on a device.
class MatrixRows {
 public:
  MatrixRows(const Shape& shape, const DeviceInfo& device)
      : shape_(shape),
        cores_(matrix_cores(device.architecture)),
        wave_(static_cast<int>(device.subgroup_size)),
        most_registers_(thread_registers(device)),
        file_(workgroup_registers(device)) {
    const auto& list = device.matrix_operations;
    offered_ = device.language == Language::hip && bits_of(shape.in) == 16 &&
               std::any_of(list.begin(), list.end(), [&](const MatrixOperation& operation) {
                 return operation.input == shape.in && operation.m == 16;
               });
  }

  bool offered() const { return offered_; }
  int wave() const { return wave_; }
  /// Whether asynchronous copies write to any address of shared memory.
  bool copies() const { return cores_ == MatrixCores::mma; }
  static std::int64_t rows(const Config& c) { return std::int64_t{c["WAVES"]} * c["WQ"]; }
  std::int64_t threads(const Config& c) const {
    return std::int64_t{c["WAVES"]} * c["VWAVES"] * wave_;
  }

  std::int64_t shared_bytes(const Config& c) const {
    const std::int64_t bk = c["BK"];
    const std::int64_t key_line = shape_.shared ? std::max(padded(), all_values(c)) : padded();
    const std::int64_t value_line = shape_.shared ? 0 : line_bytes(all_values(c));
    const std::int64_t queries = c["QREG"] != 0 ? 0 : rows(c) * line_bytes(padded());
    const std::int64_t tiles = c["BUFFERS"] * bk * (line_bytes(key_line) + value_line);
    const std::int64_t walk =
        queries + tiles + rows(c) * line_bytes(bk) + c["VWAVES"] * rows(c) * 4;
    const std::int64_t join =
        c["SPLIT"] > 1 ? 4 * (attention::slices_floats(rows(c), c["SPLIT"]) + 4) : 0;
    return std::max(walk, join);
  }

  /// Returns the number of 32-bit registers that a thread uses at once: outputs, scores, operands
  /// of an instruction, with QREG queries, and keys that wait to be written to shared memory.
  std::int64_t least_registers(const Config& c) const {
    const std::int64_t sums = c["WQ"] * (wave_values(c) + wave_keys(c)) / wave_;
    const std::int64_t queries = c["QREG"] != 0 ? c["WQ"] / 16 * (padded() / depth()) : 0;
    const std::int64_t waiting = c["BUFFERS"] > 1 ? 0 : 4 * loads(c);
    return sums + fragment() * (queries + 1) + waiting;
  }
  /// Returns an estimate of what a thread needs.
  std::int64_t registers(const Config& c) const {
    const std::int64_t blocks = c["WQ"] / 16;
    const std::int64_t lane_rows = blocks * (copies() ? 2 : 1);
    const std::int64_t turned = copies() ? 0 : 4 * fragment() + 16;
    return least_registers(c) + fragment() * (blocks + 1) + turned +
           lane_rows * (shape_.tree ? 9 : 4) + 40 + addresses(c);
  }
  std::int64_t register_limit(const Config& c) const {
    return std::min(most_registers_, file_ / threads(c));
  }
  /// Returns the number of matrix instructions of a wave per tile.
  std::int64_t instructions(const Config& c) const {
    const std::int64_t blocks = c["WQ"] / 16;
    return blocks * (wave_keys(c) / 16 * (padded() / 16) + c["BK"] / 16 * (wave_values(c) / 16)) *
           (copies() ? 2 : 1);
  }
  /// Returns the dimensions of a wave's outputs.
  std::int64_t wave_values(const Config& c) const {
    const std::int64_t step = copies() ? 16 : 64;
    return ceil_div(shape_.v_dim, c["VWAVES"] * step) * step;
  }

 private:
  static std::int64_t line_bytes(std::int64_t elements) { return elements * 2 + 16; }
  /// Returns of what dimensions are padded to a multiple; see layout.hip.
  std::int64_t depth() const { return cores_ == MatrixCores::mfma ? 32 : 16; }
  std::int64_t padded() const { return round_up(shape_.dim, depth()); }
  std::int64_t all_values(const Config& c) const { return wave_values(c) * c["VWAVES"]; }
  std::int64_t wave_keys(const Config& c) const {
    return c["BK"] / std::min(c["BK"] / 16, c["VWAVES"]);
  }
  std::int64_t fragment() const { return cores_ == MatrixCores::wmma11 ? 8 : 4; }
  /// Returns the number of loads of 16 bytes of a thread for the keys of a step.
  std::int64_t loads(const Config& c) const {
    return ceil_div(c["BK"] * shape_.read_elements() / 8, threads(c));
  }
  /// Returns an estimate of the registers that hold where pages lie. For gfx12, clang keeps those
  /// of each load, and bits of trees.
  std::int64_t addresses(const Config& c) const {
    if (shape_.page == 0) return 0;
    if (cores_ != MatrixCores::wmma12) return 30;
    return std::max<std::int64_t>(30, 4 * loads(c)) + (shape_.tree ? 25 : 0);
  }

  Shape shape_;
  MatrixCores cores_;
  int wave_;
  std::int64_t most_registers_, file_;
  bool offered_ = false;
};

std::vector<Constraint> constraints(const Shape& shape, const DeviceInfo& device,
                                    const MatrixRows& kernel) {
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  return {
      {"matrix_cores",
       fmt::format("the device has no matrix operations on {} that this kernel knows",
                   to_string(shape.in)),
       (kernel.offered())},
      {"workgroup_threads",
       fmt::format("WAVES x VWAVES subgroups of size {} must not be more than {} threads",
                   kernel.wave(), threads),
       p["WAVES"] * p["VWAVES"] * kernel.wave() <= threads},
      {"values",
       fmt::format("VWAVES parts of {} dimensions must not be mostly idle", shape.v_dim),
       {{"VWAVES"},
        [=](const Config& c) { return (c["VWAVES"] - 1) * kernel.wave_values(c) < shape.v_dim; }}},
      {"copies", "the device has no copies for BUFFERS, or queries must not stay in registers",
       kernel.copies() ? p["QREG"] == 0 : p["BUFFERS"] == 1},
      {"shared_memory",
       fmt::format("queries, BUFFERS of BK keys and their weights, and what joins SPLIT slices, "
                   "must fit {} KiB",
                   shared / 1024),
       {{"BK", "WQ", "WAVES", "VWAVES", "BUFFERS", "QREG", "SPLIT"},
        [=](const Config& c) { return kernel.shared_bytes(c) <= shared; }}},
      {"code_size",
       "a tile of more than 1024 matrix instructions compiles slowly",
       {{"BK", "WQ", "VWAVES"}, [=](const Config& c) { return kernel.instructions(c) <= 1024; }}},
      {"registers",
       "outputs, scores and queries need more registers than a thread has",
       {{"BK", "WQ", "WAVES", "VWAVES", "BUFFERS", "QREG"},
        [=](const Config& c) { return kernel.least_registers(c) <= kernel.register_limit(c); }}},
  };
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  if (device.language == Language::glsl) return cooperative_space(shape, device);
  const MatrixRows kernel(shape, device);
  Alternative a{"matrix", {}, {}};
  // BK       keys per step in shared memory: fewer barriers versus more memory
  // WQ       rows per wave: reuse of shared memory reads
  // WAVES    groups of waves that have rows of their own: reuse of memory reads
  // VWAVES   waves of a group, which divide the keys of scores and the dimensions of outputs
  // BUFFERS  tiles in shared memory, which asynchronous copies fill; 1: by way of registers
  // QREG     queries stay in registers (AMD)
  // SPLIT    workgroups that share the keys of a KV head
  // FOLD     who joins what they leave; 0: a second launch; 1: the last one of a tile
  a.parameters = {
      {"BK", {32, 64, 128}},
      {"WQ", {16, 32}},
      {"WAVES", {1, 2, 4}},
      {"VWAVES", {1, 2, 4, 8}},
      {"BUFFERS", {1, 2, 3}},
      {"QREG", {0, 1}},
      {"SPLIT", attention::key_slices()},
      {"FOLD", {0, 1}},
  };
  a.constraints = {
      storage_constraint(shape.in, shape.out, device),
      {"fold", "a second launch joins SPLIT slices", p["FOLD"] == 1 || p["SPLIT"] > 1}};
  append(a.constraints, rows_constraints(shape, device, p["WAVES"] * p["WQ"]));
  append(a.constraints, constraints(shape, device, kernel));
  return a;
}

struct Group {
  int wq, waves;
  std::int64_t rows() const { return std::int64_t{wq} * waves; }
};

/// Returns groups of waves, the best first. On an H200, tiles whose rows grow with the root of the
/// number of all rows were the fastest: larger ones read keys less often, smaller ones leave fewer
/// slices to join (results/2026-11-28-nvidia-h200-learnt-defaults).
std::vector<Group> groups_for(const Shape& shape, const MatrixRows& kernel) {
  std::vector<Group> groups{{16, 4}, {32, 2}, {16, 2}, {16, 1}};
  std::erase_if(groups, [&](const Group& group) {
    return group.rows() > 16 && group.rows() / 2 >= shape.rows();
  });
  if (!kernel.copies()) return groups;
  if (shape.rows() > 64) groups.push_back({32, 4});
  const double target =
      std::sqrt((shape.shared ? 30.0 : 40.0) * static_cast<double>(readers_of(shape, 16)));
  const auto distance = [&](const Group& group) {
    return std::abs(std::log2(static_cast<double>(group.rows()) / target));
  };
  std::stable_sort(groups.begin(), groups.end(), [&](const Group& one, const Group& other) {
    return distance(one) < distance(other);
  });
  return groups;
}

/// Eight waves of a workgroup, as many keys in shared memory as it has room for, and one workgroup
/// on each compute unit, where copies fill it. Otherwise waves for all dimensions of the outputs.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (device.language == Language::glsl) return cooperative_defaults(shape, device);
  const MatrixRows kernel(shape, device);
  std::vector<Config> configs;
  if (!kernel.offered()) return configs;
  struct Tiles {
    int bk, buffers;
  };
  const auto tiles = kernel.copies()
                         ? std::vector<Tiles>{{128, 2}, {64, 2}, {64, 1}, {32, 2}, {32, 1}}
                         : std::vector<Tiles>{{64, 1}, {32, 1}};
  for (const Group& group : groups_for(shape, kernel)) {
    const bool one_of_unit = kernel.copies();
    const int split = split_for(shape, device, group.rows(), one_of_unit ? 1 : 2,
                                one_of_unit && shape.shared ? 64 : 128);
    const int first = kernel.copies() ? 8 / group.waves : 4;
    for (const int v_waves : {first, 8, 4, 2, 1}) {
      for (const Tiles& tile : tiles) {
        for (const int keeps : {0, 1}) {
          configs.push_back({"matrix",
                             {{"BK", tile.bk},
                              {"WQ", group.wq},
                              {"WAVES", group.waves},
                              {"VWAVES", v_waves},
                              {"BUFFERS", tile.buffers},
                              {"QREG", keeps},
                              {"SPLIT", split},
                              {"FOLD", split > 1 && kernel.copies() ? 0 : 1}}});
        }
      }
    }
  }
  std::erase_if(configs, [&](const Config& c) {
    // NVIDIA's compiler loads a tile by way of fewer registers if there are too few.
    const std::int64_t spared = kernel.copies() && c["BUFFERS"] == 1 ? 48 : 0;
    return kernel.registers(c) - spared > std::min<std::int64_t>(kernel.register_limit(c), 232);
  });
  return configs;
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  if (device.language == Language::glsl) return cooperative_work(shape, device, config);
  const MatrixRows kernel(shape, device);
  const double rows = static_cast<double>(MatrixRows::rows(config)), bk = config["BK"];
  const double in = bytes_of(shape.in, 1), waves = config["WAVES"], v_waves = config["VWAVES"];
  const auto dim = static_cast<double>(shape.dim), both = static_cast<double>(shape.both_dims());
  const auto key = static_cast<double>(shape.read_elements());
  LaunchWork work = rows_work(shape, config, MatrixRows::rows(config));
  work.threads = static_cast<double>(kernel.threads(config));
  work.shared_bytes = static_cast<double>(kernel.shared_bytes(config));
  work.registers = static_cast<double>(kernel.registers(config));
  work.matrix_flops = 2 * rows * bk * both * work.steps;
  work.vector_flops = attention::flops_of_weight * rows * bk * work.steps;
  // Each group of waves reads the tile once; each wave reads its queries, and all weights.
  const double own = config["QREG"] != 0 ? 0 : rows * v_waves * dim;
  work.shared_traffic =
      work.steps * in * (bk * key + waves * bk * both + own + rows * bk * (1 + v_waves));
  work.loads = work.read_bytes / 16;
  work.overlapped = true;
  if (config["BUFFERS"] > 1) work.ahead_bytes *= config["BUFFERS"] - 1;
  work.barriers += (config["BUFFERS"] > 1 ? 3 : 4) * work.steps;
  if (!has_join(config)) return {work};
  return {work, join_work(shape, config, MatrixRows::rows(config), config["SPLIT"])};
}

}  // namespace

Variant matrix(std::string_view folder) {
  Variant variant = make_variant<Shape>(
      "matrix",
      "rows of all heads that share keys, on matrix cores: groups of waves divide the keys of the "
      "scores and the dimensions of the outputs, and a tile of keys serves both",
      space,
      [path = std::string(folder) + "/matrix"](const Shape& shape, const DeviceInfo& device,
                                               const Config& config) {
        if (device.language == Language::glsl) {
          return cooperative_plan(shape, device, path, config);
        }
        const MatrixRows kernel(shape, device);
        Defines defines = attention::problem_defines(shape);
        defines.emplace_back("WAVE", std::to_string(kernel.wave()));
        LaunchPlan plan = rows_plan(shape, device, path, config, std::move(defines),
                                    MatrixRows::rows(config), kernel.threads(config));
        plan.sources[0].dynamic_shared_bytes =
            static_cast<std::uint32_t>(kernel.shared_bytes(config));
        return plan;
      },
      defaults,
      [](const Shape& shape, const Config& c) {
        return rows_divisions(shape, c, MatrixRows::rows(c));
      });
  variant.migrations = {added("FOLD", 1)};
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::latent
