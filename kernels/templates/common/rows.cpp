#include "kernels/templates/common/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kernels/templates/common/limits.hpp"
#include "kernels/templates/common/plan.hpp"
#include "kernels/templates/common/rows_space.hpp"
#include "kernels/templates/common/strides.hpp"

namespace greta::kernels::rows {
namespace {

/// As KIND in common/rows.hip.
enum class Kind { held, streamed, partial, finish };

/// What a kernel is rendered with, besides the operation's own and the element types.
struct Walk {
  Kind kind = Kind::streamed;
  int threads = 256, rows = 1, vec = 1, items = 1;
  bool whole = false;  ///< the row has exactly as many elements as its threads hold
  int stay = 0, split = 1, subgroup = 0;
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
  return walk;
}

/// The argument block of every kernel of a row operation.
std::vector<Argument> arguments(const Operation& operation, const Problem& problem,
                                std::int64_t step, bool workspace) {
  const auto tensors = operation.tensors(problem);
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
  for (const std::int64_t value : {problem.dim("rows"), problem.dim("cols"), step}) {
    list.emplace_back(static_cast<std::uint32_t>(value));
  }
  list.emplace_back(operation.factor(problem));
  return list;
}

KernelSource source(const Operation& operation, const Problem& problem, const DeviceInfo& device,
                    const Walk& walk) {
  Defines defines = type_defines(problem.dtype, problem.out_dtype);
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
  if (device.language == "glsl") add("SUBGROUP", walk.subgroup);
  add_pack(defines, device, "X", problem.dtype, walk.vec);
  const auto operands = operation.tensors(problem);
  add("WEIGHT", has(operands, "weight") ? 1 : 0);
  add("BIAS", has(operands, "bias") ? 1 : 0);
  for (const char* name : {"x_stride", "y_stride"}) {
    defines.push_back(stride_define(problem, name, problem.dim("cols")));
  }
  const Defines own = operation.defines == nullptr ? Defines{} : operation.defines(problem);
  defines.insert(defines.end(), own.begin(), own.end());
  KernelSource kernel = kernel_source(device, fmt::format("{}/rows", operation.name), defines,
                                      walk.threads, arguments(operation, problem, 0, false));
  kernel.required_subgroup_size = static_cast<std::uint32_t>(walk.subgroup);
  return kernel;
}

/// A launch of one kernel for all rows.
LaunchPlan single(const Operation& operation, const Problem& problem, const DeviceInfo& device,
                  const Walk& walk) {
  auto groups = static_cast<std::uint64_t>(ceil_div(problem.dim("rows"), walk.rows));
  if (walk.stay > 0) {
    groups = std::min(groups, static_cast<std::uint64_t>(busy_workgroups(device) * walk.stay));
  }
  LaunchPlan plan;
  plan.sources.push_back(source(operation, problem, device, walk));
  plan.launches.push_back(
      {0, grid(device, plan.sources[0], groups),
       arguments(operation, problem, static_cast<std::int64_t>(groups), false)});
  return plan;
}

LaunchPlan plan_held(const Operation& operation, const Problem& problem, const DeviceInfo& device,
                     const Config& config) {
  Walk walk = walk_of(config);
  walk.kind = Kind::held;
  const std::int64_t cols = problem.dim("cols");
  walk.items = static_cast<int>(vectors_of_thread(cols, config));
  walk.whole = cols % (std::int64_t{walk.threads} / walk.rows * walk.vec) == 0;
  return single(operation, problem, device, walk);
}

LaunchPlan plan_streamed(const Operation& operation, const Problem& problem,
                         const DeviceInfo& device, const Config& config) {
  return single(operation, problem, device, walk_of(config));
}

LaunchPlan plan_split(const Operation& operation, const Problem& problem, const DeviceInfo& device,
                      const Config& config) {
  Walk walk = walk_of(config);
  const std::int64_t step =
      ceil_div(ceil_div(problem.dim("cols"), walk.split), walk.vec) * walk.vec;
  const auto groups = static_cast<std::uint64_t>(problem.dim("rows") * walk.split);
  LaunchPlan plan;
  plan.workspace_bytes = groups * static_cast<std::uint64_t>(operation.statistic_words) * 4;
  for (const Kind kind : {Kind::partial, Kind::finish}) {
    walk.kind = kind;
    plan.sources.push_back(source(operation, problem, device, walk));
    const std::size_t number = plan.launches.size();
    plan.launches.push_back({number, grid(device, plan.sources[number], groups),
                             arguments(operation, problem, step, true)});
  }
  return plan;
}

/// A part of a row is walked by the threads that share it, ITEMS loads at a time. Of a row that is
/// held, the threads have one load after the other.
std::vector<Division> divisions(const Problem& problem, const Config& config) {
  const Walk walk = walk_of(config);
  const std::int64_t cols = problem.dim("cols");
  const std::int64_t round = std::int64_t{walk.threads} / walk.rows * walk.vec * walk.items;
  std::vector<Division> list;
  if (config.has("ROWS")) list.push_back({"rows", problem.dim("rows"), walk.rows, "ROWS", 3});
  if (!config.has("SPLIT")) {
    list.push_back({"cols", cols, round});
    return list;
  }
  const std::int64_t part = ceil_div(ceil_div(cols, walk.split), walk.vec) * walk.vec;
  list.push_back({"vectors of a row", cols / walk.vec, walk.split, "SPLIT", never});
  list.push_back({"part of a row", part, round});
  return list;
}

/// Makes a variant of functions that are told the operation.
template <typename SpaceOf, typename PlanOf, typename DefaultsOf>
Variant make(const char* name, const char* summary, const Operation& operation, SpaceOf space,
             PlanOf plan, DefaultsOf defaults) {
  return {name,
          [=](const Problem& problem, const DeviceInfo& device) {
            return space(operation, problem, device);
          },
          [=](const Problem& problem, const DeviceInfo& device, const Config& config) {
            return plan(operation, problem, device, config);
          },
          [=](const Problem& problem, const DeviceInfo& device) {
            return defaults(operation, problem, device);
          },
          summary,
          divisions};
}

std::vector<Variant> variants(const Operation& operation) {
  std::vector<Variant> list;
  list.push_back(
      make("held",
           "a row stays in the registers of one or more threads: memory is read and written once",
           operation, held_space, plan_held, held_defaults));
  if (operation.splits) {
    list.push_back(make("split",
                        "few long rows: SPLIT workgroups read a row, a second launch merges what "
                        "they found and writes",
                        operation, split_space, plan_split, split_defaults));
  }
  list.push_back(make(
      "streamed", "rows of any length are walked once for each statistic and, backwards, to write",
      operation, streamed_space, plan_streamed, streamed_defaults));
  list.push_back(make("naive",
                      "a workgroup walks a row by single elements, and reduces in shared memory",
                      operation, naive_space, plan_streamed, naive_defaults));
  return list;
}

/// Fewer rows of the same length.
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

KernelTemplate start_template(const Operation& operation, std::vector<Attribute> attributes) {
  KernelTemplate t;
  t.name = operation.name;
  t.dimensions = {{"rows", "rows of the matrix"}, {"cols", "elements of a row"}};
  t.attributes = std::move(attributes);
  t.attributes.push_back(
      x_stride_attribute("elements from one row to the next, of every input that has rows"));
  t.attributes.push_back(
      stride_attribute("y_stride", "the same of what is written", "cols",
                       [](const Problem& problem) { return problem.dim("cols"); }));
  t.dtypes = converted_dtypes();
  t.sizes = {{16384, 4096}, {4096, 32000}, {1000, 999}, {4, 131072}};
  t.variants = variants(operation);
  t.naive = Config{"naive", {{"THREADS", 256}}};
  t.tensors = operation.tensors;
  t.stand_in = stand_in;
  return t;
}

}  // namespace greta::kernels::rows
