#include "kernels/templates/quantize/variants.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/quantize/shape.hpp"

namespace greta::kernels::quantize {
namespace {

/// The values of KIND in the sources.
enum class Kind { held, streamed, flat };

constexpr int least_threads = 64;  ///< of workgroups of any problem: a wave of every device
constexpr int most_loads = 32;     ///< more loads crash the compilers of some drivers

Kind kind_of(const Config& config) {
  return config.variant == "flat" ? Kind::flat
                                  : (config.variant == "held" ? Kind::held : Kind::streamed);
}

/// Codes are stored in words of four.
std::vector<int> widths(const Shape& shape) {
  std::vector<int> list = vector_widths(shape.in);
  std::erase_if(list, [](int width) { return width < 4; });
  return list;
}

int most_held(const DeviceInfo& device) {
  return vectorising_cpu(device) ? 32 : 64;
}

std::int64_t rows_of(const Config& config) {
  return config.has("ROWS") ? config["ROWS"] : 1;
}

std::int64_t lanes_of(const Config& config) {
  return config["THREADS"] / rows_of(config);
}

/// Returns the vectors that a thread has at a time.
std::int64_t items_of(const Shape& shape, const Config& config) {
  if (config.has("ITEMS")) return config["ITEMS"];
  return ceil_div(shape.cols, lanes_of(config) * config["VEC"]);
}

/// Returns the columns that the threads of a row have at a time.
std::int64_t chunk_of(const Shape& shape, const Config& config) {
  return lanes_of(config) * items_of(shape, config) * config["VEC"];
}

int subgroup_of(const DeviceInfo& device, const Config& config) {
  return device.language == Language::glsl ? whole_subgroups(device, config["THREADS"]) : 0;
}

/// Constraints of every variant, in which `lanes` threads share a row.
std::vector<Constraint> basics(const Shape& shape, const DeviceInfo& device,
                               const Expression& lanes) {
  const std::int64_t threads = most_threads(device), cols = shape.cols;
  std::vector<Constraint> list{
      storage_constraint(shape.in, shape.in, device),
      {"workgroup_threads", fmt::format("the device allows {} threads", threads),
       p["THREADS"] <= threads},
      {"alignment", fmt::format("VEC must divide cols, {}", cols), cols % p["VEC"] == 0}};
  append(list, stride_constraints(shape.strides));
  if (device.language == Language::hip) {
    const int wave = static_cast<int>(device.subgroup_size);
    list.push_back({"whole_waves",
                    fmt::format("THREADS must be a multiple of the subgroup size {}", wave),
                    p["THREADS"] % wave == 0});
  }
  if (shape.block_scales()) {
    list.push_back(
        {"blocks",
         fmt::format("the threads of a row must have at least {} columns at a time", shape.block()),
         lanes * p["VEC"] >= shape.block()});
  }
  return list;
}

/// Constraints for several rows per workgroup, so that no threads idle.
std::vector<Constraint> several_rows(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t rows = shape.rows, cols = shape.cols, groups = most_workgroups(device);
  const std::int64_t widest = std::max(next_power(cols), scale_block);
  return {{"rows_of_workgroup",
           fmt::format("ROWS must not exceed THREADS, or the next power of 2 after rows, {}", rows),
           p["ROWS"] <= p["THREADS"] && p["ROWS"] <= next_power(rows)},
          {"idle_threads",
           fmt::format("THREADS / ROWS vectors of VEC must not be twice a row, {}, or more; a "
                       "workgroup has {} threads, and a row 128 columns, at least",
                       cols, least_threads),
           p["THREADS"] / p["ROWS"] * p["VEC"] < 2 * widest || p["THREADS"] <= least_threads},
          {"grid", fmt::format("rows / ROWS must not exceed {} workgroups", groups),
           ceil_div(rows, p["ROWS"]) <= groups}};
}

Constraint few_loads(const DeviceInfo& device) {
  const int most = most_held(device);
  return {"loads", fmt::format("VEC x ITEMS must not exceed {}", most),
          p["VEC"] * p["ITEMS"] <= most};
}

const std::vector<int> thread_counts{32, 64, 128, 256, 512, 1024};
const std::vector<int> row_counts{1, 2, 4, 8, 16, 32};

Alternative held_space(const Shape& shape, const DeviceInfo& device) {
  // THREADS  workgroup size for ROWS rows: more threads per row exchange more data but hold less
  // VEC      elements per load
  Alternative a{"held",
                {{"THREADS", thread_counts}, {"ROWS", row_counts}, {"VEC", widths(shape)}},
                basics(shape, device, p["THREADS"] / p["ROWS"])};
  append(a.constraints, several_rows(shape, device));
  const std::int64_t cols = shape.cols, most = most_held(device);
  const Expression vectors = ceil_div(cols, p["THREADS"] / p["ROWS"] * p["VEC"]);
  append(a.constraints,
         {{"held",
           fmt::format("THREADS / ROWS threads must hold a row of {} with at most {} elements, and "
                       "{} vectors, each",
                       cols, most, most_loads),
           vectors * p["VEC"] <= most && vectors <= most_loads},
          register_constraint(device, "rows that threads hold", vectors * p["VEC"], p["THREADS"])});
  return a;
}

Alternative streamed_space(const Shape& shape, const DeviceInfo& device) {
  // ITEMS  loads of VEC elements in flight per thread
  Alternative a{"streamed",
                {{"THREADS", thread_counts},
                 {"ROWS", row_counts},
                 {"VEC", widths(shape)},
                 {"ITEMS", {1, 2, 4, 8}}},
                basics(shape, device, p["THREADS"] / p["ROWS"])};
  append(a.constraints, several_rows(shape, device));
  a.constraints.push_back(few_loads(device));
  // The bound of norms holds for sums of limited length (kernels/reference/rows.hpp), and Mesa's
  // CPU driver ends loops after 65535 iterations.
  const std::int64_t most = std::clamp<std::int64_t>(shape.cols / 256, 8, 60000);
  a.constraints.push_back(
      {"rounds", fmt::format("a thread must walk a row in at most {} rounds", most),
       ceil_div(shape.cols, p["THREADS"] / p["ROWS"] * p["VEC"] * p["ITEMS"]) <= most});
  return a;
}

Alternative flat_space(const Shape& shape, const DeviceInfo& device) {
  Alternative a{"flat",
                {{"THREADS", thread_counts}, {"VEC", widths(shape)}, {"ITEMS", {1, 2, 4, 8}}},
                basics(shape, device, p["THREADS"])};
  const std::int64_t groups = most_workgroups(device), cols = shape.cols, rows = shape.rows;
  const std::int64_t widest = std::max(next_power(cols), scale_block);
  append(
      a.constraints,
      {{"independent", "parts of a row need its norm, or its largest element", shape.independent()},
       few_loads(device),
       {"idle_threads",
        fmt::format("THREADS vectors of VEC must not be twice a row, {}, or more; there are {} "
                    "threads, and 128 columns, at least",
                    cols, least_threads),
        p["THREADS"] * p["VEC"] < 2 * widest || p["THREADS"] <= least_threads},
       {"grid", fmt::format("the elements are more than {} workgroups", groups),
        ceil_div(cols, p["THREADS"] * p["VEC"] * p["ITEMS"]) <= groups / rows}});
  return a;
}

std::vector<Argument> arguments(const Shape& shape, std::int64_t parts) {
  // Operands in the order of the operation's tensors: x, other, weight, bias, scale, sum, Q,
  // scales.
  std::size_t next = 0;
  const auto operand = [&next](bool there) {
    return there ? Argument{OperandArgument{next++}} : Argument{std::uint64_t{0}};
  };
  const bool given = shape.scales == Scales::tensor;
  const Argument x = operand(true);
  const Argument other = operand(shape.other());
  const Argument weight = operand(shape.weight);
  const Argument bias = operand(shape.bias);
  const Argument scale = operand(given);
  const Argument sum = operand(shape.fused == Fused::add_rmsnorm);
  const Argument codes = operand(true);
  const Argument scales = given ? scale : operand(true);
  std::vector<Argument> list{x, other, weight, bias, scales, sum, codes};
  for (const std::int64_t value : {shape.rows, shape.cols, parts}) {
    list.emplace_back(static_cast<std::uint32_t>(value));
  }
  list.emplace_back(shape.epsilon);
  return list;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const Kind kind = kind_of(config);
  const std::int64_t threads = config["THREADS"], rows = rows_of(config);
  const std::int64_t parts = kind == Kind::flat ? ceil_div(shape.cols, chunk_of(shape, config)) : 1;
  Defines defines = type_defines({{"IN", shape.in}, {"OUT", shape.in}});
  for (const auto& [name, value] :
       {std::pair<const char*, std::int64_t>{"KIND", static_cast<int>(kind)},
        {"THREADS", threads},
        {"ROWS", rows},
        {"VEC", config["VEC"]},
        {"ITEMS", items_of(shape, config)},
        {"FORMAT", static_cast<int>(shape.format)},
        {"SCALES", static_cast<int>(shape.scales)},
        {"FUSED", static_cast<int>(shape.fused)},
        {"PACKED", shape.packed ? 1 : 0},
        {"WEIGHT", shape.weight ? 1 : 0},
        {"BIAS", shape.bias ? 1 : 0}}) {
    defines.emplace_back(name, std::to_string(value));
  }
  defines.push_back(stride_define(shape.strides, "x_stride", shape.packed_x()));
  defines.push_back(stride_define(shape.strides, "q_stride", shape.code_bytes()));
  add_pack(defines, device, "X", shape.in, config["VEC"]);
  if (device.language == Language::glsl) {
    defines.emplace_back("F16_ARITHMETIC", device.f16_arithmetic ? "1" : "0");
    defines.emplace_back("SUBGROUP", std::to_string(subgroup_of(device, config)));
  }
  std::vector<Argument> given = arguments(shape, parts);
  LaunchPlan plan;
  plan.sources.push_back(kernel_source(device, "quantize/rows", defines, threads, given));
  plan.sources[0].required_subgroup_size = static_cast<std::uint32_t>(subgroup_of(device, config));
  const auto groups = static_cast<std::uint64_t>(ceil_div(shape.rows, rows) * parts);
  plan.launches.push_back({0, grid(device, plan.sources[0], groups), std::move(given)});
  return plan;
}

/// Returns the smallest workgroup of at most `most` threads that reads `columns` at once.
int threads_for(const DeviceInfo& device, std::int64_t columns, int vec, std::int64_t most) {
  int threads = least_threads;
  while (threads < most && threads * 2 <= most_threads(device) && threads * vec < columns) {
    threads *= 2;
  }
  return threads;
}

int widest(const Shape& shape) {
  return widest_of(shape.strides, shape.in, shape.cols);
}

/// A thread holds up to 16 elements, or 32 in long rows. With more rows than units it holds up to
/// 64 of 16 bits, or 32 of others, of fused operations and in GLSL: several small workgroups of a
/// unit wait for less than a large one (results/2026-11-28-nvidia-h200-learnt-defaults).
std::vector<Config> held_defaults(const Shape& shape, const DeviceInfo& device) {
  const int vec = widest(shape);
  std::vector<Config> configs;
  std::vector<int> elements{8, 16, 32};
  if (shape.rows > busy_workgroups(device) && !vectorising_cpu(device)) {
    const bool room =
        shape.fused == Fused::none && shape.in != DType::f32 && device.language == Language::hip;
    elements.insert(elements.begin(), room ? 64 : 32);
  }
  for (const int held : elements) {
    const int threads = threads_for(device, ceil_div(shape.cols * vec, std::int64_t{held}), vec,
                                    vectorising_cpu(device) ? 256 : 1024);
    if (ceil_div(shape.cols, std::int64_t{threads} * vec) * vec > std::max(held, vec)) continue;
    configs.push_back({"held", {{"THREADS", threads}, {"ROWS", 1}, {"VEC", vec}}});
  }
  return configs;
}

std::vector<Config> streamed_defaults(const Shape& shape, const DeviceInfo& device) {
  const int vec = widest(shape);
  const int threads = threads_for(device, shape.cols, vec, vectorising_cpu(device) ? 256 : 1024);
  std::vector<Config> configs;
  for (const int items : {2, 1}) {
    configs.push_back(
        {"streamed", {{"THREADS", threads}, {"ROWS", 1}, {"VEC", vec}, {"ITEMS", items}}});
  }
  for (const int rows : {2, 4, 8, 16}) {
    configs.push_back({"streamed", {{"THREADS", 64}, {"ROWS", rows}, {"VEC", vec}, {"ITEMS", 1}}});
  }
  return configs;
}

std::vector<Config> flat_defaults(const Shape& shape, const DeviceInfo& device) {
  if (!shape.independent()) return {};
  const int vec = widest(shape);
  std::vector<Config> configs;
  for (const int items : {2, 1}) {
    const int threads = threads_for(device, ceil_div(shape.cols, std::int64_t{items}), vec, 256);
    const Config next{"flat", {{"THREADS", threads}, {"VEC", vec}, {"ITEMS", items}}};
    const bool busy =
        shape.rows * ceil_div(shape.cols, chunk_of(shape, next)) >= busy_workgroups(device);
    if (busy || items == 1) configs.push_back(next);
  }
  configs.push_back({"flat", {{"THREADS", 64}, {"VEC", vec}, {"ITEMS", 1}}});
  return configs;
}

/// The threads of a row process ITEMS loads at a time; in the held variant, a round is one load of
/// each. Blocks that share a scale may be incomplete.
std::vector<Division> divisions(const Shape& shape, const Config& config) {
  std::vector<Division> list;
  if (config.has("ROWS")) list.push_back({"rows", shape.rows, config["ROWS"], "ROWS", 3});
  const std::int64_t items = config.has("ITEMS") ? config["ITEMS"] : 1;
  list.push_back({"cols", shape.cols, lanes_of(config) * config["VEC"] * items});
  if (shape.block_scales()) {
    list.push_back({"block of a scale", shape.cols, shape.block(), {}, 4});
  }
  return list;
}

KernelWork work(const Shape& shape, const DeviceInfo&, const Config& config) {
  const Kind kind = kind_of(config);
  const double threads = config["THREADS"], vec = config["VEC"];
  const double operands = shape.fused >= Fused::add_rmsnorm ? 2 : 1,
               bytes = bytes_of(shape.in, 1.0);
  const double walks = kind != Kind::streamed
                           ? 1
                           : 1 + (shape.norm() ? 1 : 0) + (shape.scales == Scales::row ? 1 : 0);
  const std::int64_t parts = kind == Kind::flat ? ceil_div(shape.cols, chunk_of(shape, config)) : 1;
  const double columns = static_cast<double>(shape.cols) / static_cast<double>(parts);
  const double elements = columns * static_cast<double>(rows_of(config));
  LaunchWork work;
  work.threads = threads;
  work.workgroups = static_cast<double>(ceil_div(shape.rows, rows_of(config)) * parts);
  const double held = vec * static_cast<double>(items_of(shape, config));
  work.registers = 32 + 2 * held;
  work.ahead_bytes = std::min(elements, threads * held) * operands * bytes;
  work.read_bytes = walks * elements * operands * bytes;
  work.written_bytes = elements * (shape.fused == Fused::add_rmsnorm ? 1 + bytes : 1);
  work.loads = walks * elements * operands / vec;
  work.vector_flops = elements * (12 + 6 * walks);
  work.unique_bytes = work.workgroups * (elements * operands * bytes + work.written_bytes);
  return {work};
}

}  // namespace

std::vector<Variant> variants() {
  std::vector<Variant> list{
      make_variant<Shape>("flat",
                          "no statistic of a whole row: a workgroup takes ITEMS vectors of VEC "
                          "neighbours for each thread",
                          flat_space, plan, flat_defaults, divisions),
      make_variant<Shape>("held",
                          "a row stays in the registers of one or more threads: memory is read "
                          "once",
                          held_space, plan, held_defaults, divisions),
      make_variant<Shape>("streamed",
                          "rows of any length are walked once for each statistic, and to write",
                          streamed_space, plan, streamed_defaults, divisions)};
  for (Variant& variant : list) set_work<Shape>(variant, work);
  return list;
}

}  // namespace greta::kernels::quantize
