#include <fmt/format.h>

#include <algorithm>

#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/expert_ids.hpp"
#include "kernels/planning/number_attribute.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/planning/workspace.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/elementwise.hpp"

namespace greta::kernels {
namespace {

constexpr std::int64_t most_fused = 4096;  ///< assignments that each workgroup counts on its own

struct PermuteShape {
  explicit PermuteShape(const Problem& problem)
      : type(problem.dtype),
        tokens(problem.dim("tokens")),
        experts(problem.dim("experts")),
        top_k(problem.dim("top_k")),
        dim(problem.dim("dim")),
        capacity(problem.dim("capacity", 0)),
        block(whole_number(problem.attribute("block", "1")).value()) {}

  std::int64_t assignments() const { return tokens * top_k; }
  /// Returns the number of rows that `out` has for the worst distribution over experts.
  std::int64_t rows() const {
    if (capacity > 0) return experts * capacity;
    return assignments() + std::min(experts, assignments()) * (block - 1);
  }
  /// Returns the number of workgroups that copy: for tokens, and for experts.
  std::int64_t copiers() const { return tokens + (block > 1 ? experts : 1); }

  DType type;
  std::int64_t tokens, experts, top_k, dim, capacity, block;
};

std::vector<TensorSpec> tensors(const Problem& problem) {
  const PermuteShape s(problem);
  return {{"x", Role::input, s.type, s.tokens, s.dim},
          {"ids", Role::input, DType::i32, s.tokens, s.top_k},
          {"out", Role::output, s.type, s.rows(), s.dim},
          {s.capacity > 0 ? "rows" : "ends", Role::output, DType::i32, 1, s.experts},
          {"places", Role::output, DType::i32, s.tokens, s.top_k}};
}

/// Copies one row for each assignment. No arithmetic.
Work work(const Problem& problem) {
  auto list = tensors(problem);
  list[2].rows = std::min(list[2].rows, PermuteShape(problem).assignments());
  return {0, operand_bytes(list)};
}

/// Different experts for each token.
HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  if (spec.name != "ids") return random_tensor(spec, seed);
  return different_experts(spec, problem.dim("experts"), seed);
}

void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  mix_in_adversarial_rows(inputs[0], magnitudes_of(problem.dtype), seed);
  mix_in_special_values(inputs[0], seed);
  mix_in_invalid_indices(inputs[1], problem.dim("experts"), seed);
}

Result<void> check(const Problem& problem) {
  const std::int64_t experts = problem.dim("experts"), top_k = problem.dim("top_k");
  const auto bad = [](const char* field, std::int64_t value, std::string reason) {
    return bad_field(field, std::to_string(value), std::move(reason));
  };
  if (top_k > experts) {
    return bad("top_k", top_k, fmt::format("must not exceed the {} experts", experts));
  }
  if (auto good = check_count(problem, "tokens", {"tokens", "top_k"}); !good) return good;
  const PermuteShape shape(problem);
  if (shape.capacity > 0 && shape.block > 1) {
    return bad("block", shape.block, "experts with a capacity have no blocks");
  }
  if (shape.rows() <= 2147483647 && shape.tokens <= 2147483647 - experts) return {};
  return bad("tokens", shape.tokens, "out has more than 2147483647 rows");
}

std::vector<Parameter> parameters(const PermuteShape& shape) {
  return {{"THREADS", {64, 128, 256, 512, 1024}},
          {"VEC", vector_widths(shape.type)},
          {"ITEMS", {1, 2, 4, 8}}};
}

std::vector<Constraint> common_constraints(const PermuteShape& shape, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device), groups = most_workgroups(device);
  return {
      storage_constraint(shape.type, shape.type, device),
      {"workgroup_threads", fmt::format("the device allows {} threads", threads),
       p["THREADS"] <= threads},
      {"alignment", fmt::format("VEC must divide dim, which is {}", shape.dim),
       shape.dim % p["VEC"] == 0},
      {"grid",
       fmt::format("{} tokens and experts are more than {} workgroups", shape.copiers(), groups),
       p["THREADS"] > 0 && shape.copiers() <= groups}};
}

Alternative fused_space(const PermuteShape& shape, const DeviceInfo& device) {
  Alternative a{"fused", parameters(shape), common_constraints(shape, device)};
  a.constraints.push_back({"assignments",
                           fmt::format("each workgroup counts at most {} assignments, not {}",
                                       most_fused, shape.assignments()),
                           p["THREADS"] > 0 && shape.assignments() <= most_fused});
  return a;
}

/// The workspace of the variant sorted: counts of experts in each run of THREADS assignments, and
/// of all; each expert's first row.
struct Workspace {
  Workspace(const PermuteShape& shape, const Config& config)
      : runs(ceil_div(shape.assignments(), std::int64_t{config["THREADS"]})),
        totals(workspace_part(runs * shape.experts * 4)),
        starts(totals + workspace_part(shape.experts * 4)),
        bytes(starts + workspace_part(shape.experts * 4)) {}

  std::int64_t runs, totals, starts, bytes;
};

Alternative sorted_space(const PermuteShape& shape, const DeviceInfo& device) {
  const auto most =
      static_cast<std::int64_t>(std::min(device.memory_bytes / 4, device.max_allocation_bytes));
  Alternative a{"sorted", parameters(shape), common_constraints(shape, device)};
  a.constraints.push_back(
      {"workspace",
       fmt::format("counts of {} experts need more than {} MiB", shape.experts, most >> 20),
       {{"THREADS"},
        [shape, most](const Config& c) { return Workspace(shape, c).bytes <= most; }}});
  if (vectorising_cpu(device)) {
    a.constraints.push_back(
        {"loop_limit",
         "the CPU driver runs 65535 rounds of a loop: too few for the runs of assignments",
         {{"THREADS"},
          [shape](const Config& c) { return Workspace(shape, c).runs < most_iterations; }}});
  }
  return a;
}

Config default_of(const char* variant, const PermuteShape& shape, int threads) {
  const int vec = widest_vector(shape.type, shape.dim, shape.dim);
  const std::int64_t vectors = shape.dim / vec;
  while (threads > 64 && vectors <= threads / 2) threads /= 2;
  return {variant, {{"THREADS", threads}, {"VEC", vec}, {"ITEMS", vectors > threads ? 2 : 1}}};
}

std::vector<Config> fused_defaults(const PermuteShape& shape, const DeviceInfo& device) {
  if (shape.assignments() > 1024) return {};
  return {default_of("fused", shape, vectorising_cpu(device) ? 64 : 256),
          default_of("fused", shape, 64)};
}

std::vector<Config> sorted_defaults(const PermuteShape& shape, const DeviceInfo&) {
  return {default_of("sorted", shape, 256), default_of("sorted", shape, 64)};
}

/// Makes the launches of a plan one after the other.
class Planner {
 public:
  Planner(const PermuteShape& shape, const DeviceInfo& device, const Config& config)
      : device_(device),
        threads_(config["THREADS"]),
        defines_(type_defines({{"IN", shape.type}, {"OUT", shape.type}})) {
    add_parameters(defines_, config);
    add_pack(defines_, device, "X", shape.type, config["VEC"]);
    for (const auto& [name, value] : {std::pair{"EXPERTS", shape.experts},
                                      {"TOP_K", shape.top_k},
                                      {"BLOCK", shape.block},
                                      {"CAPACITY", shape.capacity}}) {
      defines_.emplace_back(name, std::to_string(value));
    }
    if (device.language == Language::glsl) defines_.emplace_back("F16_ARITHMETIC", "0");
  }

  void launch(const char* path, std::int64_t workgroups, std::vector<Argument> arguments) {
    plan_.sources.push_back(kernel_source(device_, path, defines_, threads_, arguments));
    plan_.launches.push_back(
        {plan_.sources.size() - 1,
         grid(device_, plan_.sources.back(), static_cast<std::uint64_t>(workgroups)),
         std::move(arguments)});
  }

  LaunchPlan take(std::int64_t workspace_bytes) {
    plan_.workspace_bytes = static_cast<std::uint64_t>(workspace_bytes);
    return std::move(plan_);
  }

 private:
  const DeviceInfo& device_;
  std::int64_t threads_;
  Defines defines_;
  LaunchPlan plan_;
};

LaunchPlan plan(const PermuteShape& shape, const DeviceInfo& device, const Config& config) {
  const auto number = [](std::int64_t value) -> Argument {
    return static_cast<std::uint32_t>(value);
  };
  const auto place = [](std::int64_t offset) -> Argument {
    return WorkspaceArgument{static_cast<std::uint64_t>(offset)};
  };
  const Argument x = OperandArgument{0}, ids = OperandArgument{1}, out = OperandArgument{2};
  const Argument groups = OperandArgument{3}, places = OperandArgument{4};
  const Argument tokens = number(shape.tokens), dim = number(shape.dim);
  Planner planner(shape, device, config);
  if (config.variant == "fused") {
    planner.launch("permute/fused", shape.copiers(), {x, ids, out, groups, places, tokens, dim});
    return planner.take(0);
  }
  const Workspace workspace(shape, config);
  const Argument counts = place(0), totals = place(workspace.totals);
  const Argument starts = place(workspace.starts), all = number(shape.assignments());
  planner.launch("permute/count", workspace.runs, {ids, counts, all});
  planner.launch("permute/scan", 1, {counts, totals, starts, number(workspace.runs)});
  planner.launch("permute/place", workspace.runs, {ids, counts, starts, places, all});
  planner.launch("permute/copy", shape.copiers(),
                 {x, places, totals, starts, out, groups, tokens, dim});
  return planner.take(workspace.bytes);
}

std::vector<Division> divisions(const PermuteShape& shape, const Config& config) {
  const std::int64_t threads = config["THREADS"];
  return {{"assignments", shape.assignments(), threads},
          {"experts", shape.experts, threads},
          {"vectors of a row", shape.dim / config["VEC"], threads * config["ITEMS"]}};
}

std::vector<Dimension> dimensions() {
  return {run_time_tokens("rows of x"),
          {.name = "experts",
           .help = "number of experts",
           .most = 1024,
           .examples = {1, 8, 60, 64, 256}},
          {.name = "top_k",
           .help = "experts of each token",
           .most = 64,
           .examples = {1, 2, 4, 6, 8, 10}},
          {.name = "dim", .help = "columns of x"},
          {.name = "capacity",
           .help = "rows of out for each expert; 0: experts' rows are one after the other",
           .least = 0,
           .fallback = "0",
           .examples = {1, 8, 33},
           .at_run_time = RunTimeExtent{},
           .optional = true}};
}

}  // namespace

Operation make_permute() {
  Operation t;
  t.name = "permute";
  t.summary = "copies each token's row to its top_k experts, whose rows are one after the other";
  t.bound = "exact; rows of no expert are not written";
  t.out_of_range =
      "an id below 0, or not below experts, is of no expert: its place is -1, as that of rows "
      "beyond an expert's capacity";
  t.dimensions = dimensions();
  t.attributes = {{.name = "block",
                   .help =
                       "an expert's number of rows is rounded up to a multiple of it, by rows of "
                       "zeros",
                   .fallback = "1",
                   .allowed = {"1", "16", "32", "64", "128", "256"}}};
  for (const DType type : converted_types()) t.dtypes.push_back({type, type});
  t.sizes = {{{4096, 256, 8, 7168}},
             {{1, 256, 8, 7168}},
             {{64, 8, 2, 4096}, {{"block", "64"}}},
             {{64, 16, 4, 512, 24}},
             {{33, 60, 4, 81}}};
  t.shape = [](const Problem& problem) { return ProblemShape(PermuteShape(problem)); };
  t.variants = {
      make_variant<PermuteShape>(
          "fused", "a workgroup takes a token, and counts all assignments to find its rows",
          fused_space, plan, fused_defaults, divisions),
      make_variant<PermuteShape>(
          "sorted",
          "launches count runs of THREADS assignments, add them up, and place them; then "
          "a workgroup takes a token",
          sorted_space, plan, sorted_defaults, divisions)};
  t.check = check;
  t.work = work;
  t.tensors = tensors;
  t.input = input;
  t.harden = harden;
  t.reference = permute_reference;
  t.stand_in = fewer_tokens;
  return t;
}

}  // namespace greta::kernels
