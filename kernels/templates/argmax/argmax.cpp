#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <random>

#include "kernels/model/random.hpp"
#include "kernels/operations.hpp"
#include "kernels/planning/arrival.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/planning/stride_attributes.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

constexpr int most_rows = 64;  ///< per workgroup

struct ArgmaxShape {
  explicit ArgmaxShape(const Problem& problem)
      : in(problem.dtype),
        rows(problem.dim("rows")),
        cols(problem.dim("cols")),
        x_stride(problem.stride("x_stride", cols)),
        strides(strides_of(problem)) {}

  DType in;
  std::int64_t rows, cols, x_stride;
  Strides strides;
};

std::vector<TensorSpec> tensors(const Problem& problem) {
  const ArgmaxShape s(problem);
  return {{"x", Role::input, s.in, s.rows, s.cols, s.x_stride},
          {"index", Role::output, DType::i32, s.rows, 1}};
}

/// One comparison per element.
Work work(const Problem& problem) {
  return work_per_element(tensors(problem), problem, 1);
}

/// Returns the number of threads that share a row.
int lanes_of(const Config& config) {
  return config["THREADS"] / (config.has("ROWS") ? config["ROWS"] : 1);
}

std::int64_t split_of(const Config& config) {
  return config.has("SPLIT") ? config["SPLIT"] : 1;
}

/// Returns the columns of each part, a multiple of VEC.
std::int64_t part_of(const ArgmaxShape& shape, const Config& config) {
  return ceil_div(ceil_div(shape.cols, config["VEC"]), split_of(config)) * config["VEC"];
}

/// Returns the size of the candidates, which follow a counter for each row.
auto candidate_bytes(const ArgmaxShape& shape, const auto& split) {
  return shape.rows * split * 8;
}

std::vector<Constraint> common_constraints(const ArgmaxShape& shape, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device);
  return {storage_constraint(shape.in, shape.in, device),
          {"workgroup_threads", fmt::format("the device allows {} threads", threads),
           p["THREADS"] <= threads},
          {"alignment", fmt::format("VEC must divide cols, which is {}", shape.cols),
           shape.cols % p["VEC"] == 0}};
}

/// `other` is the parameter that determines a thread's share of a row.
std::vector<Constraint> row_loop_limit(const ArgmaxShape& shape, const DeviceInfo& device,
                                       const char* other) {
  if (!vectorising_cpu(device)) return {};
  return {
      {"loop_limit",
       fmt::format("the CPU driver runs 65535 rounds of a loop: too few for cols = {}", shape.cols),
       {{"THREADS", "VEC", "ITEMS", other}, [shape](const Config& c) {
          const std::int64_t round = std::int64_t{lanes_of(c)} * c["VEC"] * c["ITEMS"];
          return part_of(shape, c) / round < most_iterations;
        }}}};
}

std::vector<Parameter> parameters(const ArgmaxShape& shape, Parameter other) {
  return {{"THREADS", {64, 128, 256, 512, 1024}},
          {"VEC", vector_widths(shape.in)},
          {"ITEMS", {1, 2, 4, 8}},
          std::move(other)};
}

Alternative row_space(const ArgmaxShape& shape, const DeviceInfo& device) {
  const std::int64_t groups = most_workgroups(device);
  Alternative a{"row", parameters(shape, {"ROWS", {1, 2, 4, 8, 16, 32, most_rows}}),
                common_constraints(shape, device)};
  append(a.constraints, stride_constraints(shape.strides));
  append(a.constraints, row_loop_limit(shape, device, "ROWS"));
  a.constraints.push_back({"rows",
                           fmt::format("ROWS must not exceed rows, which are {}", shape.rows),
                           p["ROWS"] <= shape.rows});
  a.constraints.push_back(
      {"idle_threads",
       fmt::format("THREADS / ROWS vectors of VEC must not be twice a row, {}, or more, unless "
                   "ROWS is the largest possible",
                   shape.cols),
       2 * p["ROWS"] > std::min<std::int64_t>(most_rows, shape.rows) ||
           p["THREADS"] / p["ROWS"] * p["VEC"] < 2 * next_power(shape.cols)});
  a.constraints.push_back({"grid", fmt::format("the rows are more than {} workgroups", groups),
                           ceil_div(shape.rows, p["ROWS"]) <= groups});
  return a;
}

Alternative split_space(const ArgmaxShape& shape, const DeviceInfo& device) {
  const std::int64_t groups = most_workgroups(device);
  const auto most =
      static_cast<std::int64_t>(std::min(device.memory_bytes / 4, device.max_allocation_bytes));
  Alternative a{"split", parameters(shape, {"SPLIT", {2, 4, 8, 16, 32, 64}}),
                common_constraints(shape, device)};
  append(a.constraints, stride_constraints(shape.strides));
  append(a.constraints, row_loop_limit(shape, device, "SPLIT"));
  a.constraints.push_back(
      {"parts", fmt::format("SPLIT must not exceed the vectors of {} columns", shape.cols),
       p["SPLIT"] <= shape.cols / p["VEC"]});
  a.constraints.push_back(
      {"workspace",
       fmt::format("candidates of {} rows need more than {} MiB", shape.rows, most >> 20),
       static_cast<std::int64_t>(counter_bytes(shape.rows)) + candidate_bytes(shape, p["SPLIT"]) <=
           most});
  a.constraints.push_back({"grid",
                           fmt::format("{} rows are more than {} workgroups", shape.rows, groups),
                           shape.rows <= groups});
  return a;
}

/// Short rows share a workgroup.
std::vector<Config> row_defaults(const ArgmaxShape& shape, const DeviceInfo&) {
  const int vec = widest_of(shape.strides, shape.in, shape.cols);
  const std::int64_t vectors = ceil_div(shape.cols, vec);
  const int lanes = static_cast<int>(std::min<std::int64_t>(256, next_power(vectors)));
  std::vector<Config> configs;
  for (int rows = std::min(most_rows, 256 / lanes); rows >= 1; rows /= 2) {
    configs.push_back({"row",
                       {{"THREADS", std::max(64, lanes * rows)},
                        {"VEC", vec},
                        {"ITEMS", vectors > 512 ? 4 : 1},
                        {"ROWS", rows}}});
  }
  return configs;
}

/// For rows that are too few to occupy the device.
std::vector<Config> split_defaults(const ArgmaxShape& shape, const DeviceInfo& device) {
  constexpr std::int64_t least_part = 2048;
  if (vectorising_cpu(device)) return {};
  int split = 1;
  while (split < 64 && shape.rows * split < busy_workgroups(device) &&
         shape.cols >= 2 * split * least_part) {
    split *= 2;
  }
  if (split == 1) return {};
  const int vec = widest_of(shape.strides, shape.in, shape.cols);
  return {{"split", {{"THREADS", 256}, {"VEC", vec}, {"ITEMS", 2}, {"SPLIT", split}}}};
}

LaunchPlan plan(const ArgmaxShape& shape, const DeviceInfo& device, const Config& config) {
  const bool split = config.has("SPLIT"), glsl = device.language == Language::glsl;
  Defines defines = type_defines({{"IN", shape.in}, {"OUT", DType::i32}});
  add_parameters(defines, config);
  defines.push_back(stride_define(shape.strides, "x_stride", shape.cols));
  add_pack(defines, device, "X", shape.in, config["VEC"]);
  if (glsl) {
    defines.emplace_back("F16_ARITHMETIC", "0");
    defines.emplace_back("SUBGROUP", std::to_string(whole_subgroups(device, config["THREADS"])));
  }
  std::vector<Argument> arguments{OperandArgument{0}, OperandArgument{1}};
  LaunchPlan plan;
  if (split) {
    plan.zeroed_bytes = counter_bytes(shape.rows);
    plan.workspace_bytes =
        plan.zeroed_bytes + static_cast<std::uint64_t>(candidate_bytes(shape, config["SPLIT"]));
    arguments.emplace_back(WorkspaceArgument{plan.zeroed_bytes});
    arguments.emplace_back(WorkspaceArgument{0});
  }
  for (const std::int64_t extent : {shape.rows, shape.cols}) {
    arguments.emplace_back(static_cast<std::uint32_t>(extent));
  }
  if (split) arguments.emplace_back(static_cast<std::uint32_t>(part_of(shape, config)));

  KernelSource kernel = kernel_source(device, split ? "argmax/split" : "argmax/row", defines,
                                      config["THREADS"], arguments);
  if (glsl)
    kernel.required_subgroup_size =
        static_cast<std::uint32_t>(whole_subgroups(device, config["THREADS"]));
  plan.sources.push_back(std::move(kernel));
  const std::int64_t groups = ceil_div(shape.rows, config.has("ROWS") ? config["ROWS"] : 1);
  plan.launches.push_back({0,
                           grid(device, plan.sources[0], static_cast<std::uint64_t>(groups),
                                static_cast<int>(split_of(config))),
                           arguments});
  return plan;
}

/// A part of a row is processed by the threads that share it, ITEMS loads at a time.
std::vector<Division> divisions(const ArgmaxShape& shape, const Config& config) {
  const std::int64_t round = std::int64_t{lanes_of(config)} * config["VEC"] * config["ITEMS"];
  const Division part{"part of a row", part_of(shape, config), round};
  if (config.has("ROWS")) return {{"rows", shape.rows, config["ROWS"], "ROWS", never}, part};
  return {{"vectors of a row", shape.cols / config["VEC"], config["SPLIT"], "SPLIT", never}, part};
}

/// Mixes in rows of all magnitudes, NaN and infinities.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  HostTensor& x = inputs[0];
  mix_in_adversarial_rows(x, magnitudes_of(problem.dtype), seed);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double values[] = {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity};
  std::mt19937_64 random(mix64(seed));
  for (std::int64_t row = 0; row < x.spec.rows; ++row) {
    if (uniform_below(random, 4) != 0) continue;
    const double one = values[uniform_below(random, std::size(values))];
    const double other =
        uniform_below(random, 2) == 0 ? one : values[uniform_below(random, std::size(values))];
    const std::uint64_t of_four = 1 + uniform_below(random, 4);
    for (std::int64_t col = 0; col < x.spec.cols; ++col) {
      if (uniform_below(random, 4) >= of_four) continue;
      store_element(x.spec.dtype, x.data.data(), static_cast<std::size_t>(row * x.spec.cols + col),
                    uniform_below(random, 2) == 0 ? one : other);
    }
  }
}

}  // namespace

Operation make_argmax() {
  Operation t;
  t.name = "argmax";
  t.summary = "the lowest column of each row's largest value";
  t.bound = "exact; a NaN is below all other values, and zeros are equal";
  t.dimensions = {{.name = "rows",
                   .help = "rows of x",
                   .at_run_time = RunTimeExtent{.rounded = RunTimeExtent::Rounded::down}},
                  {.name = "cols", .help = "columns of x"}};
  t.attributes = {x_stride_attribute("elements from one row of x to the next")};
  for (const DType type : converted_types()) t.dtypes.push_back({type, DType::i32});
  t.sizes = {{{1, 128256}}, {{64, 32000}}, {{4096, 40}}, {{3, 1001}}};
  t.shape = [](const Problem& problem) { return ProblemShape(ArgmaxShape(problem)); };
  t.variants = {
      make_variant<ArgmaxShape>(
          "split", "SPLIT workgroups share a row; the last one to arrive compares what they found",
          split_space, plan, split_defaults, divisions),
      make_variant<ArgmaxShape>(
          "row", "a workgroup takes ROWS rows, each with an equal share of its threads", row_space,
          plan, row_defaults, divisions)};
  t.work = work;
  t.harden = harden;
  t.tensors = tensors;
  t.reference = argmax_reference;
  t.stand_in = fewer_rows;
  return t;
}

}  // namespace greta::kernels
