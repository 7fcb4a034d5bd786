#include "kernels/skeletons/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/planning/stride_attributes.hpp"
#include "kernels/skeletons/rows_space.hpp"
#include "kernels/skeletons/rows_work.hpp"

namespace greta::kernels::rows {
namespace {

/// The values of KIND in common/rows.hip.
enum class Kind { held, streamed, partial, finish, staged };

/// Macros of a kernel besides those of the operation and the element types.
struct Walk {
  Kind kind = Kind::streamed;
  int threads = 256, rows = 1, vec = 1, items = 1;
  bool whole = false;  ///< whether the row has exactly as many elements as its threads hold
  int stay = 0, split = 1, subgroup = 0;
  int ahead = 0, cluster = 1, keep = 0;
  int sure = 0;  ///< vectors that each thread of each workgroup has, if not whole
};

Walk walk_of(const Config& config) {
  const auto value = [&](const char* name, int fallback) {
    return config.has(name) ? config[name] : fallback;
  };
  Walk walk;
  walk.threads = config["THREADS"];
  walk.rows = value("ROWS", 1);
  walk.vec = value("VEC", 1);
  walk.items = value("ITEMS", 1);
  walk.stay = value("STAY", 0);
  walk.split = value("SPLIT", 1);
  walk.subgroup = value("SUBGROUP", 0);
  walk.ahead = value("AHEAD", 0);
  walk.cluster = value("CLUSTER", 1);
  walk.keep = value("KEEP", 0);
  return walk;
}

/// Returns the arguments of a row operation's kernels, which all have the same argument block.
std::vector<Argument> arguments(const Shape& s, std::int64_t step, bool workspace) {
  const auto& tensors = s.tensors;
  std::vector<Argument> list;
  const auto add = [&](const char* name, const char* other) {
    Argument found = std::uint64_t{0};
    for (std::size_t i = tensors.size(); i-- > 0;) {
      if (tensors[i].name == name || tensors[i].name == other) found = OperandArgument{i};
    }
    list.push_back(found);
  };
  add("X", "");
  add("mask", "residual");
  for (const char* name : {"weight", "bias", "gain"}) add(name, "");
  add("Y", tensors[0].role == Role::input_output ? "X" : "");
  add("sum", "");
  list.push_back(workspace ? Argument{WorkspaceArgument{0}} : Argument{std::uint64_t{0}});
  for (const std::int64_t value : {s.rows, s.cols, step}) {
    list.emplace_back(static_cast<std::uint32_t>(value));
  }
  list.emplace_back(s.factor);
  return list;
}

KernelSource source(const Shape& s, const DeviceInfo& device, const Walk& walk) {
  Defines defines = type_defines({{"IN", s.in}, {"OUT", s.out}});
  const auto add = [&defines](const char* name, int value) {
    defines.emplace_back(name, std::to_string(value));
  };
  add("F16_ARITHMETIC", device.f16_arithmetic ? 1 : 0);
  add("KIND", static_cast<int>(walk.kind));
  add("THREADS", walk.threads);
  add("ROWS", walk.rows);
  add("VEC", walk.vec);
  add("ITEMS", walk.items);
  add("WHOLE", walk.whole ? 1 : 0);
  add("STAY", walk.stay > 0 ? 1 : 0);
  add("SPLIT", walk.split);
  if (device.language == Language::glsl) add("SUBGROUP", walk.subgroup);
  if (walk.kind == Kind::staged) {
    add("AHEAD", walk.ahead);
    add("CLUSTER", walk.cluster);
    add("KEEP", walk.keep);
    if (!walk.whole) add("SURE", walk.sure);
    add("RESIDENT", walk.stay);
  }
  add_pack(defines, device, "X", s.in, walk.vec);
  add("WEIGHT", has(s.tensors, "weight") ? 1 : 0);
  add("BIAS", has(s.tensors, "bias") ? 1 : 0);
  for (const char* name : {"x_stride", "y_stride"}) {
    defines.push_back(stride_define(s.strides, name, s.cols));
  }
  defines.insert(defines.end(), s.defines.begin(), s.defines.end());
  KernelSource kernel = kernel_source(device, fmt::format("{}/rows", s.operation.name), defines,
                                      walk.threads, arguments(s, 0, false));
  kernel.required_subgroup_size = static_cast<std::uint32_t>(walk.subgroup);
  return kernel;
}

/// Returns a plan with a single launch for all rows.
LaunchPlan single(const Shape& s, const DeviceInfo& device, const Walk& walk) {
  auto groups = static_cast<std::uint64_t>(ceil_div(s.rows, walk.rows));
  if (walk.stay > 0) {
    groups = std::min(groups, static_cast<std::uint64_t>(busy_workgroups(device) * walk.stay));
  }
  LaunchPlan plan;
  plan.sources.push_back(source(s, device, walk));
  plan.launches.push_back({0, grid(device, plan.sources[0], groups),
                           arguments(s, static_cast<std::int64_t>(groups), false)});
  return plan;
}

LaunchPlan plan_held(const Shape& s, const DeviceInfo& device, const Config& config) {
  Walk walk = walk_of(config);
  walk.kind = Kind::held;
  const std::int64_t cols = s.cols;
  walk.items = static_cast<int>(vectors_of_thread(cols, config));
  walk.whole = cols % (std::int64_t{walk.threads} / walk.rows * walk.vec) == 0;
  return single(s, device, walk);
}

LaunchPlan plan_staged(const Shape& s, const DeviceInfo& device, const Config& config) {
  Walk walk = walk_of(config);
  walk.kind = Kind::staged;
  walk.items = static_cast<int>(vectors_of_thread(s.cols, config));
  walk.whole = s.cols % (std::int64_t{walk.threads} * walk.cluster * walk.vec) == 0;
  const std::int64_t vectors = s.cols / walk.vec;
  const std::int64_t of_last = vectors - (walk.cluster - 1) * ceil_div(vectors, walk.cluster);
  walk.sure = static_cast<int>(std::max<std::int64_t>(of_last, 0) / walk.threads);
  const std::int64_t groups = staged_groups(s, device, config);
  LaunchPlan plan;
  plan.sources.push_back(source(s, device, walk));
  plan.sources[0].dynamic_shared_bytes = static_cast<std::uint32_t>(staged_bytes(s, config));
  const auto count = static_cast<std::uint64_t>(groups);
  plan.launches.push_back(
      {0, grid(device, plan.sources[0], count, walk.cluster), arguments(s, groups, false)});
  return plan;
}

LaunchPlan plan_streamed(const Shape& s, const DeviceInfo& device, const Config& config) {
  return single(s, device, walk_of(config));
}

LaunchPlan plan_split(const Shape& s, const DeviceInfo& device, const Config& config) {
  Walk walk = walk_of(config);
  const std::int64_t step = round_up(ceil_div(s.cols, walk.split), walk.vec);
  const auto groups = static_cast<std::uint64_t>(s.rows * walk.split);
  LaunchPlan plan;
  plan.workspace_bytes = groups * static_cast<std::uint64_t>(s.operation.statistic_words) * 4;
  for (const Kind kind : {Kind::partial, Kind::finish}) {
    walk.kind = kind;
    plan.sources.push_back(source(s, device, walk));
    const std::size_t number = plan.launches.size();
    plan.launches.push_back(
        {number, grid(device, plan.sources[number], groups), arguments(s, step, true)});
  }
  return plan;
}

/// A part of a row is processed by the threads that share it, ITEMS loads at a time. In the held
/// variant, a round is one load of each thread.
std::vector<Division> divisions(const Shape& s, const Config& config) {
  const Walk walk = walk_of(config);
  const std::int64_t cols = s.cols;
  const std::int64_t round =
      std::int64_t{walk.threads} / walk.rows * walk.cluster * walk.vec * walk.items;
  std::vector<Division> list;
  if (config.has("ROWS")) list.push_back({"rows", s.rows, walk.rows, "ROWS", 3});
  // With a few compute units, workgroups take several turns.
  const std::int64_t stay = walk.stay > 0 ? 8 * walk.stay : 1;
  if (config.has("STAY")) list.push_back({"turns", ceil_div(s.rows, walk.rows), stay});
  if (!config.has("SPLIT")) {
    list.push_back({"cols", cols, round});
    return list;
  }
  const std::int64_t part = round_up(ceil_div(cols, walk.split), walk.vec);
  list.push_back({"vectors of a row", cols / walk.vec, walk.split, "SPLIT", never});
  list.push_back({"part of a row", part, round});
  return list;
}

std::vector<Variant> variants(const RowOperation& operation) {
  std::vector<Variant> list;
  list.push_back(make_variant<Shape>(
      "staged",
      "workgroups stay; while one holds a row, its next rows arrive in shared memory; CLUSTER of "
      "them share a row",
      staged_space, plan_staged, staged_defaults, divisions));
  list.push_back(make_variant<Shape>(
      "held",
      "a row stays in the registers of one or more threads: memory is read and written once",
      held_space, plan_held, held_defaults, divisions));
  if (operation.splits) {
    list.push_back(make_variant<Shape>(
        "split",
        "few long rows: SPLIT workgroups read a row, a second launch merges what they found and "
        "writes",
        split_space, plan_split, split_defaults, divisions));
  }
  list.push_back(make_variant<Shape>(
      "streamed", "rows of any length are walked once for each statistic and, backwards, to write",
      streamed_space, plan_streamed, streamed_defaults, divisions));
  list.push_back(make_variant<Shape>(
      "naive", "a workgroup walks a row by single elements, and reduces in shared memory",
      naive_space, plan_streamed, naive_defaults, divisions));
  for (Variant& variant : list) {
    set_work<Shape>(variant, variant.name == "held"     ? held_work
                             : variant.name == "staged" ? staged_work
                             : variant.name == "split"  ? split_work
                                                        : streamed_work);
  }
  return list;
}

Shape shape_of(const RowOperation& operation, const Problem& problem) {
  return {.operation = operation,
          .in = problem.dtype,
          .out = problem.out_dtype,
          .rows = problem.dim("rows"),
          .cols = problem.dim("cols"),
          .strides = strides_of(problem),
          .tensors = operation.tensors(problem),
          .defines = operation.defines ? operation.defines(problem) : Defines{},
          .factor = operation.factor(problem)};
}

/// Returns the problem with fewer rows of the same length.
Problem stand_in(const Problem& problem, double fraction) {
  return shorter(problem, "rows", 256, fraction);
}

}  // namespace

TensorSpec matrix(const Problem& problem, const char* name, Role role) {
  const DType type = role == Role::input ? problem.dtype : problem.out_dtype;
  const char* const stride = role == Role::output ? "y_stride" : "x_stride";
  const std::int64_t cols = problem.dim("cols");
  return {name, role, type, problem.dim("rows"), cols, problem.stride(stride, cols)};
}

TensorSpec first_row(const Problem& problem, const char* name) {
  return {name, Role::input, problem.dtype, 1, problem.dim("cols")};
}

bool has(const std::vector<TensorSpec>& operands, std::string_view name) {
  return std::any_of(operands.begin(), operands.end(),
                     [name](const TensorSpec& operand) { return operand.name == name; });
}

Operation start_template(const RowOperation& operation, std::vector<Attribute> attributes) {
  Operation t;
  t.name = operation.name;
  t.dimensions = {run_time_rows("rows of the matrix"),
                  {.name = "cols", .help = "elements of a row"}};
  t.attributes = std::move(attributes);
  t.attributes.push_back(
      x_stride_attribute("elements from one row to the next, of every input that has rows"));
  t.attributes.push_back(
      stride_attribute("y_stride", "the same of what is written", "cols",
                       [](const Problem& problem) { return problem.dim("cols"); }));
  t.dtypes = converted_dtypes();
  t.sizes = {{{16384, 4096}}, {{4096, 32000}}, {{1000, 999}}, {{4, 131072}}};
  t.shape = [operation](const Problem& problem) {
    return ProblemShape(shape_of(operation, problem));
  };
  t.variants = variants(operation);
  t.naive = Config{"naive", {{"THREADS", 256}}};
  t.tensors = operation.tensors;
  t.stand_in = stand_in;
  return t;
}

}  // namespace greta::kernels::rows
