#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/experts/shape.hpp"

namespace greta::kernels::experts {
namespace {

constexpr std::int64_t chunk = 32;  ///< quantised weights that a thread loads at once

/// Returns the elements of a workgroup: of a pair's h, and of a token's output.
auto gate_width(const auto& c) {
  return c["THREADS"] / c["GATE_LANES"] * c["GATE_TN"];
}
auto down_width(const auto& c) {
  return c["THREADS"] / c["DOWN_LANES"] * c["DOWN_TN"];
}

std::int64_t workspace_bytes(const Shape& s) {
  return s.pairs() * s.hidden * 4;
}

/// Returns the elements of a line that a thread loads at once.
std::int64_t load_width(const Shape& s, const Config& c) {
  return s.format ? chunk : std::int64_t{c["VEC"]};
}

/// What a thread loads of a line at once.
struct Load {
  Expression width;  ///< elements
  /// Registers of 32 bits, of gates and ups and of the second launch: elements as they lie in
  /// memory, or a chunk with its scales.
  Expression gate_registers, down_registers;
};

Load dense_load(const Shape& s) {
  const Expression registers = p["VEC"] * (s.element_bits() / 8) / 4;
  return {p["VEC"], registers, registers};
}

Load quantized_load(const Shape& s) {
  const auto registers_of = [](std::optional<WeightFormat> format) {
    return chunk * std::int64_t{traits(format.value_or(WeightFormat::int8)).bits} / 32 + 2;
  };
  return {chunk, registers_of(s.format), registers_of(s.down_format)};
}

/// Returns the constraints of both variants.
std::vector<Constraint> limits(const Shape& s, const DeviceInfo& device, const Load& load) {
  const Expression& width = load.width;
  const std::int64_t threads = most_threads(device), groups = most_workgroups(device);
  const auto most =
      static_cast<std::int64_t>(std::min(device.memory_bytes / 4, device.max_allocation_bytes));
  return {storage_constraint(s.format ? s.halves() : s.in, s.out, device),
          {"workgroup_threads", fmt::format("the device allows {} threads", threads),
           p["THREADS"] <= threads},
          {"lanes", "GATE_LANES and DOWN_LANES must not exceed THREADS",
           p["GATE_LANES"] <= p["THREADS"] && p["DOWN_LANES"] <= p["THREADS"]},
          {"slots", fmt::format("SLOTS must not be twice top_k, {}, or more", s.top_k),
           p["SLOTS"] < 2 * s.top_k && p["SLOTS"] <= p["DOWN_LANES"]},
          {"gate_lanes",
           fmt::format("loads of GATE_LANES threads must not be more than twice dim, {}", s.dim),
           p["GATE_LANES"] * width <= 2 * s.dim || p["GATE_LANES"] <= 8},
          {"down_lanes",
           fmt::format("loads of DOWN_LANES / SLOTS threads must not be more than twice hidden, {}",
                       s.hidden),
           p["DOWN_LANES"] / p["SLOTS"] * width <= 2 * s.hidden || p["DOWN_LANES"] <= 8},
          {"grid", fmt::format("there are more than {} workgroups", groups),
           ceil_div(s.hidden, gate_width(p)) * s.pairs() <= groups &&
               ceil_div(s.dim, down_width(p)) * s.tokens <= groups},
          {"workspace", fmt::format("h needs more than {} MiB", most >> 20),
           workspace_bytes(s) <= most},
          register_constraint(device, "loads in flight, and sums",
                              p["UNROLL"] * max(2 * p["GATE_TN"] * load.gate_registers,
                                                p["DOWN_TN"] * load.down_registers) +
                                  4 * p["GATE_TN"] + 24,
                              device.language == Language::hip ? p["THREADS"] : Expression(1))};
}

/// Adds what the CPU driver's compiler and loops need.
void add_cpu_limits(Alternative& a, const Shape& s, const DeviceInfo& device,
                    const Expression& width) {
  if (!vectorising_cpu(device)) return;
  a.constraints.push_back(
      {"code_size", "loads in flight of all lines above 32 elements compile slowly for a CPU",
       max(2 * p["GATE_TN"], p["DOWN_TN"]) * width * p["UNROLL"] <= (s.format ? 64 : 32)});
  a.constraints.push_back(loop_limit(
      ceil_div(s.top_k, p["SLOTS"]) *
              (ceil_div(s.hidden, p["DOWN_LANES"] / p["SLOTS"] * width * p["UNROLL"]) + 2) +
          ceil_div(s.dim, p["GATE_LANES"] * width * p["UNROLL"]),
      std::max(s.dim, s.top_k * s.hidden)));
}

/// Returns the parameters of both variants:
/// - THREADS: workgroup size
/// - GATE_LANES: threads that share an element of h; the first launch
/// - GATE_TN: elements of h of a thread, which one load of x serves
/// - DOWN_LANES: threads that share an element of the output; the second launch
/// - DOWN_TN: elements of the output of a thread, which one load of h serves
/// - SLOTS: experts that DOWN_LANES threads take at the same time
/// - UNROLL: loads in flight for each line of a matrix
std::vector<Parameter> parameters(int most_gate_lanes) {
  const std::vector<int> lanes{8, 16, 32, 64, 128, 256};
  const auto end = std::find(lanes.begin(), lanes.end(), most_gate_lanes) + 1;
  return {{"THREADS", {64, 128, 256, 512}},
          {"GATE_LANES", {lanes.begin(), end}},
          {"GATE_TN", {1, 2, 4}},
          {"DOWN_LANES", lanes},
          {"DOWN_TN", {1, 2, 4}},
          {"SLOTS", {1, 2, 4, 8}},
          {"UNROLL", {1, 2, 4}}};
}

Alternative space(const Shape& s, const DeviceInfo& device) {
  Alternative a{"gemv", parameters(256), limits(s, device, dense_load(s))};
  // Elements of a load of a matrix.
  a.parameters.push_back({"VEC", s.scaled() ? std::vector<int>{4, 8, 16} : vector_widths(s.in)});
  append(a.constraints,
         {{"dense", "matrices are quantised", !s.format.has_value()},
          {"alignment",
           fmt::format("VEC must divide dim and hidden, which are {} and {}", s.dim, s.hidden),
           s.dim % p["VEC"] == 0 && s.hidden % p["VEC"] == 0}});
  add_cpu_limits(a, s, device, p["VEC"]);
  return a;
}

Alternative quantized_space(const Shape& s, const DeviceInfo& device) {
  Alternative a{"quantized", parameters(64), limits(s, device, quantized_load(s))};
  a.constraints.push_back({"quantized", "matrices are not quantised", s.format.has_value()});
  add_cpu_limits(a, s, device, chunk);
  return a;
}

/// Makes a plan's launches one after the other.
class Planner {
 public:
  Planner(const Shape& s, const DeviceInfo& device, const Config& config)
      : device_(device),
        threads_(config["THREADS"]),
        subgroup_(whole_subgroups(device, config["THREADS"])),
        defines_(type_defines({{"IN", s.in}, {"OUT", s.out}})) {
    add_parameters(defines_, config);
    defines_.emplace_back("QUANTIZED", s.format ? "1" : "0");
    defines_.emplace_back("SCALED", s.scaled() ? "1" : "0");
    if (s.format) {
      defines_.emplace_back("GROUP", std::to_string(s.group));
      defines_.emplace_back("ZEROS", s.zeros ? "1" : "0");
      defines_.emplace_back("SCALES_BF16", s.scales() == DType::bf16 ? "1" : "0");
      if (s.panels) defines_.emplace_back("PACKING", "4");
    } else if (s.scaled()) {
      defines_.emplace_back("FORMAT", std::to_string(static_cast<int>(s.gate_up_lines->format)));
      defines_.emplace_back("SCALES", std::to_string(static_cast<int>(s.gate_up_lines->scales)));
    } else {
      add_pack(defines_, device, "W", s.in, config["VEC"]);
    }
    if (device.language == Language::glsl)
      defines_.emplace_back("SUBGROUP", std::to_string(subgroup_));
  }

  /// `format` is that of the matrix that the launch reads.
  void launch(const char* path, std::optional<WeightFormat> format, std::int64_t workgroups,
              std::vector<Argument> arguments) {
    Defines defines = defines_;
    if (format) defines.emplace_back("FORMAT", std::to_string(static_cast<int>(*format)));
    KernelSource& source =
        plan.sources.emplace_back(kernel_source(device_, path, defines, threads_, arguments));
    if (device_.language == Language::glsl)
      source.required_subgroup_size = static_cast<std::uint32_t>(subgroup_);
    plan.launches.push_back({plan.sources.size() - 1,
                             grid(device_, source, static_cast<std::uint64_t>(workgroups)),
                             std::move(arguments)});
  }

  LaunchPlan plan;

 private:
  const DeviceInfo& device_;
  std::int64_t threads_;
  int subgroup_;
  Defines defines_;
};

LaunchPlan plan(const Shape& s, const DeviceInfo& device, const Config& config) {
  const auto number = [](std::int64_t value) -> Argument {
    return static_cast<std::uint32_t>(value);
  };
  std::size_t next = 0;
  const auto operand = [&](bool there = true) -> Argument {
    if (!there) return std::uint64_t{0};
    return OperandArgument{next++};
  };
  const bool scales = s.has_scales() || s.scaled();
  const Argument x = operand(), ids = operand(), weights = operand();
  const Argument gate_up = operand(), gate_up_scales = operand(scales),
                 gate_up_zeros = operand(s.zeros);
  const Argument down = operand(), down_scales = operand(scales), down_zeros = operand(s.zeros);
  const Argument out = operand(), h = WorkspaceArgument{0};
  const std::int64_t gates = ceil_div(s.hidden, std::int64_t{gate_width(config)});
  const std::int64_t downs = ceil_div(s.dim, std::int64_t{down_width(config)});
  Planner planner(s, device, config);
  planner.plan.workspace_bytes = static_cast<std::uint64_t>(workspace_bytes(s));
  planner.launch("experts/gate", s.format, s.pairs() * gates,
                 {x, ids, weights, gate_up, gate_up_scales, gate_up_zeros, h, number(s.pairs()),
                  number(s.experts), number(s.top_k), number(s.dim), number(s.hidden)});
  planner.launch("experts/down", s.down_format, s.tokens * downs,
                 {h, ids, weights, down, down_scales, down_zeros, out, number(s.tokens),
                  number(s.experts), number(s.top_k), number(s.dim), number(s.hidden)});
  return std::move(planner.plan);
}

/// A wave for a line, or less where lines are short; all experts of a token at the same time where
/// there are few tokens.
std::vector<Config> default_configs(const Shape& s, const DeviceInfo& device) {
  const bool cpu = vectorising_cpu(device);
  const int vec = s.scaled() ? 16 : widest_vector(s.in, s.dim, s.hidden);
  const std::int64_t width = s.format ? chunk : vec;
  const auto lanes_for = [&](std::int64_t length) {
    int lanes = 32;
    while (lanes > 8 && lanes * width >= 2 * length) lanes /= 2;
    return lanes;
  };
  int slots = 1;
  const std::int64_t busy = 2048 * busy_workgroups(device);  // threads
  while (slots < 8 && 2 * slots <= s.top_k && s.tokens * s.dim * 32 * slots < busy) slots *= 2;
  const int gate = lanes_for(s.dim), each = std::max(8 / slots, lanes_for(s.hidden));
  std::vector<Config> configs;
  // On an H200, scaled lines in pairs and four loads in flight took 20 µs in place of 27. AMD's
  // compiler spills with four loads of blocks.
  const bool pairs = s.scaled() && !cpu;
  const bool blocks = s.scaled() && s.gate_up_lines->scales == scaled_gemm::Scales::block;
  const bool four = pairs && (device.vendor == "NVIDIA" || !blocks);
  for (const int unroll : {cpu || s.format ? 1 : four ? 4 : 2, 1}) {
    for (const int threads : {256, 128, 64}) {
      int parts = slots;
      while (parts > 1 && parts * each > threads) parts /= 2;
      Config config{s.format ? "quantized" : "gemv",
                    {{"THREADS", threads},
                     {"GATE_LANES", gate},
                     {"GATE_TN", pairs ? 2 : 1},
                     {"DOWN_LANES", std::max(8, parts * each)},
                     {"DOWN_TN", pairs ? 2 : 1},
                     {"SLOTS", parts},
                     {"UNROLL", unroll}}};
      if (!s.format) config.values.emplace_back("VEC", vec);
      configs.push_back(std::move(config));
    }
  }
  return configs;
}

std::vector<Config> defaults(const Shape& s, const DeviceInfo& device) {
  if (s.format) return {};
  std::vector<Config> configs = default_configs(s, device);
  if (!s.scaled() || device.vendor != "NVIDIA") return configs;
  const bool one = s.tokens == 1;
  configs.insert(configs.begin(), {"gemv",
                                   {{"THREADS", one ? 128 : 64},
                                    {"GATE_LANES", one ? 32 : 16},
                                    {"GATE_TN", 2},
                                    {"DOWN_LANES", one ? 128 : 64},
                                    {"DOWN_TN", 4},
                                    {"SLOTS", one ? 4 : 2},
                                    {"UNROLL", 4},
                                    {"VEC", 16}}});
  return configs;
}

/// Short lanes with four loads in flight: a wave's loads are of several lines, each a run of
/// blocks. On an H200 they took 0.45 to 0.83 of the time of a wave for a line
/// (results/2026-11-28-nvidia-h200-learnt-defaults).
std::vector<Config> quantized_defaults(const Shape& s, const DeviceInfo& device) {
  if (!s.format) return {};
  std::vector<Config> configs = default_configs(s, device);
  if (device.vendor != "NVIDIA") return configs;  // AMD's compiler spills
  int slots = 1;
  while (slots < 8 && slots < s.top_k) slots *= 2;
  configs.insert(configs.begin(), {"quantized",
                                   {{"THREADS", 64},
                                    {"GATE_LANES", 16},
                                    {"GATE_TN", 1},
                                    {"DOWN_LANES", std::min(64, 16 * slots)},
                                    {"DOWN_TN", 4},
                                    {"SLOTS", slots},
                                    {"UNROLL", 4}}});
  return configs;
}

std::vector<Division> divisions(const Shape& s, const Config& c) {
  const std::int64_t lanes = c["DOWN_LANES"] / c["SLOTS"];
  const std::int64_t loads = load_width(s, c) * c["UNROLL"];
  return {{"hidden", s.hidden, gate_width(c)},
          {"dim", s.dim, down_width(c)},
          {"elements of dim", s.dim, c["GATE_LANES"] * loads},
          {"elements of hidden", s.hidden, lanes * loads},
          {"top_k", s.top_k, c["SLOTS"], "SLOTS", 4}};
}

/// A launch's workgroup reads `lines` lines of `length` elements and `line_bytes`, and for them
/// `vector_bytes` of vectors.
LaunchWork launch_work(const Shape& s, const Config& c, double lines, double length,
                       double line_bytes, double vector_bytes) {
  LaunchWork work;
  const double read = lines * line_bytes, load = s.format ? 16 : c["VEC"] * s.element_bits() / 8.0;
  work.threads = c["THREADS"];
  // A product, and the conversion of an element: of a scaled one to f16 first, of a quantised one
  // its integer and a difference, too.
  work.vector_flops = lines * length * (s.format ? 7 : s.scaled() ? 4 : 3);
  work.read_bytes = read + vector_bytes;
  work.loads = work.read_bytes / load;
  const double at_once = static_cast<double>(load_width(s, c)) / length * line_bytes;
  work.ahead_bytes = std::min(read, work.threads * c["UNROLL"] * at_once);
  work.steps = std::max(1.0, read / work.ahead_bytes);
  work.barriers = 1;
  return work;
}

KernelWork work(const Shape& s, const DeviceInfo&, const Config& c) {
  const double dim = static_cast<double>(s.dim), hidden = static_cast<double>(s.hidden);
  const double pairs = static_cast<double>(s.pairs()), top_k = static_cast<double>(s.top_k);
  const double chosen = static_cast<double>(chosen_experts(s)), bytes = bytes_of(s.in, 1.0);
  const double of_dim = static_cast<double>(s.line_bytes(s.format, s.dim));
  const double of_hidden = static_cast<double>(s.line_bytes(s.down_format, s.hidden));
  const double gates = gate_width(c), downs = down_width(c);
  const double loaded = s.format ? 12 : c["VEC"] * s.element_bits() / 32.0;  // registers
  LaunchWork gate = launch_work(s, c, 2 * gates, dim, of_dim, gates / c["GATE_TN"] * dim * bytes);
  gate.workgroups = std::ceil(hidden / gates) * pairs;
  gate.registers = 24 + c["GATE_TN"] * (4 + 2 * c["UNROLL"] * loaded);
  gate.written_bytes = gates * 4;
  gate.unique_bytes = chosen * 2 * hidden * of_dim + pairs * (dim * bytes + hidden * 4);
  LaunchWork down = launch_work(s, c, downs, top_k * hidden, top_k * of_hidden,
                                downs / c["DOWN_TN"] * top_k * hidden * 4);
  down.workgroups = std::ceil(dim / downs) * static_cast<double>(s.tokens);
  down.registers = 24 + c["DOWN_TN"] * (4 + c["UNROLL"] * loaded);
  down.written_bytes = downs * bytes_of(s.out, 1.0);
  down.unique_bytes = chosen * dim * of_hidden + pairs * hidden * 4 +
                      static_cast<double>(s.tokens) * dim * bytes_of(s.out, 1.0);
  return {gate, down};
}

}  // namespace

Variant gemv() {
  Variant variant = make_variant<Shape>(
      "gemv",
      "bound by reading the chosen experts' matrices: a launch for the gates of each token's "
      "experts, and one for their sums",
      space, plan, defaults, divisions);
  set_work<Shape>(variant, work);
  return variant;
}

Variant quantized() {
  Variant variant = make_variant<Shape>("quantized", "the same of quantised matrices",
                                        quantized_space, plan, quantized_defaults, divisions);
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::experts
