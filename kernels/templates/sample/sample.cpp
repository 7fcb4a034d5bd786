#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/planning/stride_attributes.hpp"
#include "kernels/planning/workspace.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/sample/inputs.hpp"

namespace greta::kernels {
namespace {

constexpr int penalty_threads = 128;  ///< which every device allows

struct SampleShape {
  explicit SampleShape(const Problem& problem)
      : in(problem.dtype),
        rows(problem.dim("rows")),
        cols(problem.dim("cols")),
        history(problem.dim("history", 0)),
        strides(strides_of(problem)) {}

  DType in;
  std::int64_t rows, cols, history;
  Strides strides;
};

std::vector<TensorSpec> tensors(const Problem& problem) {
  const SampleShape s(problem);
  const std::int64_t stride = problem.stride("x_stride", s.cols);
  const Role x = s.history > 0 ? Role::input_output : Role::input;
  std::vector<TensorSpec> list{{"x", x, s.in, s.rows, s.cols, stride},
                               {"settings", Role::input, DType::f32, s.rows, 4},
                               {"seeds", Role::input, DType::i32, s.rows, 3}};
  if (s.history > 0) {
    list.push_back({"penalties", Role::input, DType::f32, s.rows, 3});
    list.push_back({"history", Role::input, DType::i32, s.rows, s.history});
  }
  list.push_back({"token", Role::output, DType::i32, s.rows, 1});
  return list;
}

/// A difference, a product, an exponential and a sum for each element.
Work work(const Problem& problem) {
  Work least = work_per_element(tensors(problem), problem, 4);
  const SampleShape s(problem);
  if (s.history == 0) return least;
  // Only the logits of tokens in the history are written.
  least.bytes -=
      static_cast<double>(bytes_of(s.in, s.rows * std::max<std::int64_t>(0, s.cols - s.history)));
  return least;
}

std::int64_t split_of(const Config& config) {
  return config.has("SPLIT") ? config["SPLIT"] : 1;
}

/// Returns the columns of each part, a multiple of VEC.
std::int64_t part_of(const SampleShape& shape, const Config& config) {
  return ceil_div(ceil_div(shape.cols, config["VEC"]), split_of(config)) * config["VEC"];
}

/// The workspace: counts of earlier tokens, if there are any, one per logit; for the variant split
/// counters, one per row, and then the largest logit and the histogram of each part. Counts and
/// counters are zero between runs.
struct Workspace {
  Workspace(const SampleShape& shape, const Config& config)
      : counters(workspace_part(shape.history > 0 ? shape.rows * shape.cols * 4 : 0)),
        most(counters + (config.has("SPLIT") ? workspace_part(shape.rows * 4) : 0)),
        histograms(most + workspace_part(shape.rows * split_of(config) * 4)),
        bytes(config.has("SPLIT") ? histograms + shape.rows * split_of(config) * config["BINS"] * 4
                                  : most) {}

  std::int64_t counters, most, histograms, bytes;
};

/// Returns the shared memory of a workgroup: powers of 2, bins, the list, sections of the row, and
/// what scans and reductions need. In HIP, a thread's part is in registers; GLSL has parts of the
/// row and their runs there, and without whole subgroups a word for each thread.
std::int64_t shared_bytes(const Config& config, const DeviceInfo& device) {
  constexpr std::int64_t powers = 4 * 512;
  const std::int64_t lists = powers + 4 * config["BINS"] * config["COPIES"] + 8 * config["LIST"];
  const std::int64_t threads = config["THREADS"];
  if (device.language == Language::hip) return lists + 56 * (threads / 32) + 256;
  const bool by_memory = whole_subgroups(device, config["THREADS"]) == 0;
  const std::int64_t runs = std::max<std::int64_t>(config["BINS"], threads) / 32;
  return lists + 12 * threads + 12 * runs + config["BINS"] / 4 + 512 +
         (by_memory ? 4 * threads : 0);
}

/// Returns the bytes that a workgroup may use: at most the static shared memory of a HIP kernel.
std::int64_t shared_limit(const DeviceInfo& device) {
  return std::min<std::int64_t>(device.shared_memory_bytes, 48 * 1024);
}

std::vector<Constraint> common_constraints(const SampleShape& shape, const DeviceInfo& device,
                                           bool split) {
  const std::int64_t threads = most_threads(device), groups = most_workgroups(device);
  const std::int64_t shared = shared_limit(device);
  std::vector<Constraint> list{
      storage_constraint(shape.in, shape.in, device),
      {"workgroup_threads", fmt::format("the device allows {} threads", threads),
       p["THREADS"] <= threads},
      {"alignment", fmt::format("VEC must divide cols, which is {}", shape.cols),
       shape.cols % p["VEC"] == 0},
      {"shared_memory",
       fmt::format("bins, list and parts must fit {} KiB", shared / 1024),
       {{"THREADS", "BINS", "COPIES", "LIST"},
        [shared, device](const Config& c) { return shared_bytes(c, device) <= shared; }}},
      {"grid", fmt::format("{} rows are more than {} workgroups", shape.rows, groups),
       shape.rows <= groups}};
  append(list, stride_constraints(shape.strides));
  const auto most =
      static_cast<std::int64_t>(std::min(device.memory_bytes / 4, device.max_allocation_bytes));
  std::vector<std::string> names{"BINS"};
  if (split) names.emplace_back("SPLIT");
  list.push_back(
      {"workspace",
       fmt::format("counts and histograms of {} rows need more than {} MiB", shape.rows,
                   most >> 20),
       {names, [shape, most](const Config& c) { return Workspace(shape, c).bytes <= most; }}});
  if (vectorising_cpu(device)) {
    // The row is read up to six times; searches take some thousand iterations.
    const Expression rounds = ceil_div(shape.cols, p["THREADS"] * p["VEC"] * p["ITEMS"]);
    list.push_back(loop_limit(6 * rounds + 10000, shape.cols));
  }
  return list;
}

std::vector<Parameter> parameters(const SampleShape& shape) {
  return {{"THREADS", {64, 128, 256, 512, 1024}},
          {"VEC", vector_widths(shape.in)},
          {"ITEMS", {1, 2, 4, 8}},
          {"BINS", {256, 512, 1024, 2048, 4096, 8192}},
          {"COPIES", {1, 2, 4}},
          {"LIST", {512, 1024, 2048}}};
}

Alternative row_space(const SampleShape& shape, const DeviceInfo& device) {
  return {"row", parameters(shape), common_constraints(shape, device, false)};
}

/// Only in HIP: GLSL may round between a product and a sum.
Alternative early_space(const SampleShape& shape, const DeviceInfo& device) {
  Alternative a{"early", parameters(shape), common_constraints(shape, device, false)};
  a.constraints.push_back({"language", "the bins of early need the fused multiply-add of HIP",
                           device.language == Language::hip});
  return a;
}

Alternative split_space(const SampleShape& shape, const DeviceInfo& device) {
  Alternative a{"split", parameters(shape), common_constraints(shape, device, true)};
  a.parameters.push_back({"SPLIT", {2, 4, 8, 16, 32, 64}});
  a.constraints.push_back(
      {"parts", fmt::format("SPLIT must not exceed the vectors of {} columns", shape.cols),
       p["SPLIT"] <= shape.cols / p["VEC"]});
  return a;
}

/// Returns the default parameters with up to `threads` threads. Bins are so narrow that the tokens
/// of those in which a border may lie fit the list, so that the row is read three times.
Config defaults_with(const SampleShape& shape, const DeviceInfo& device, const char* variant,
                     int threads) {
  const int vec = widest_of(shape.strides, shape.in, shape.cols);
  const std::int64_t vectors = shape.cols / vec;
  if (vectorising_cpu(device)) threads = std::min(threads, 256);
  const int most = static_cast<int>(std::min<std::int64_t>(threads, most_threads(device)));
  int used = 64;
  while (used < most && used < vectors) used *= 2;
  int bins = 256;
  while (bins < 4096 && bins * 32 < shape.cols) bins *= 2;
  Config config{variant,
                {{"THREADS", used},
                 {"VEC", vec},
                 {"ITEMS", vectors > 4 * used ? 4 : 1},
                 {"BINS", bins},
                 {"COPIES", 1},
                 {"LIST", std::max(1024, bins / 2)}}};
  while (config["BINS"] > 256 && shared_bytes(config, device) > shared_limit(device)) {
    if (config["LIST"] == 1024) config.value("BINS") /= 2;
    config.value("LIST") = 1024;
  }
  return config;
}

std::vector<Config> row_defaults(const SampleShape& shape, const DeviceInfo& device) {
  // HIP's kernels for 1024 threads need more registers than AMD's GPUs have for so many.
  const bool few = device.language == Language::hip && device.vendor == "AMD";
  return {defaults_with(shape, device, "row", few ? 512 : 1024),
          defaults_with(shape, device, "row", 256)};
}

std::vector<Config> early_defaults(const SampleShape& shape, const DeviceInfo& device) {
  // On AMD's GPUs it has not been measured.
  if (!compiled_by_nvrtc(device)) return {};
  return {defaults_with(shape, device, "early", 1024)};
}

/// For rows that are too few to occupy the device.
std::vector<Config> split_defaults(const SampleShape& shape, const DeviceInfo& device) {
  constexpr std::int64_t least_part = 4096;
  if (vectorising_cpu(device)) return {};
  int split = 1;
  while (split < 64 && 2 * shape.rows * split <= busy_workgroups(device) &&
         shape.cols >= 2 * split * least_part) {
    split *= 2;
  }
  if (split == 1) return {};
  std::vector<Config> configs;
  for (const int threads : {512, 256}) {
    Config config = defaults_with(shape, device, "split", threads);
    // Four vectors of eight elements take more registers than a thread of NVIDIA's GPUs has.
    if (config["VEC"] > 4) config.value("ITEMS") = std::min(config["ITEMS"], 2);
    config.values.emplace_back("SPLIT", split);
    configs.push_back(std::move(config));
  }
  return configs;
}

/// Makes the launches of a plan one after the other.
class Planner {
 public:
  Planner(const SampleShape& shape, const DeviceInfo& device, const Config& config)
      : shape_(shape),
        device_(device),
        config_(config),
        glsl_(device.language == Language::glsl),
        defines_(type_defines({{"IN", shape.in}, {"OUT", DType::i32}})) {
    defines_.push_back(stride_define(shape.strides, "x_stride", shape.cols));
    add_pack(defines_, device, "X", shape.in, config["VEC"]);
    if (glsl_) defines_.emplace_back("F16_ARITHMETIC", "0");
  }

  void penalise() {
    Defines defines = defines_;
    defines.emplace_back("THREADS", std::to_string(penalty_threads));
    defines.emplace_back("VEC", std::to_string(config_["VEC"]));
    defines.emplace_back("ITEMS", "1");
    launch("sample/penalise", defines, penalty_threads, 1,
           {OperandArgument{0}, OperandArgument{3}, OperandArgument{4}, WorkspaceArgument{0},
            extent(shape_.rows), extent(shape_.cols), extent(shape_.history)});
  }

  /// Launches a kernel of THREADS for each row and each of `parts` of it.
  void sample(const char* path, std::int64_t parts, std::vector<Argument> arguments) {
    Defines defines = defines_;
    add_parameters(defines, config_);
    if (glsl_) {
      defines.emplace_back("SUBGROUP",
                           std::to_string(whole_subgroups(device_, config_["THREADS"])));
    }
    launch(path, defines, config_["THREADS"], parts, std::move(arguments));
    if (glsl_) {
      plan_.sources.back().required_subgroup_size =
          static_cast<std::uint32_t>(whole_subgroups(device_, config_["THREADS"]));
    }
  }

  /// Launches what finds the largest logit of each part of `part` columns, after its penalties.
  void largest(const Argument& most, const Argument& part) {
    const bool history = shape_.history > 0;
    std::vector<Argument> arguments{OperandArgument{0}};
    if (history) {
      arguments.insert(arguments.end(),
                       {OperandArgument{3}, OperandArgument{4}, WorkspaceArgument{0}});
    }
    arguments.insert(arguments.end(), {most, extent(shape_.rows), extent(shape_.cols), part});
    if (history) arguments.push_back(extent(shape_.history));
    defines_.emplace_back("HISTORY", history ? "1" : "0");
    sample("sample/most", config_["SPLIT"], std::move(arguments));
    defines_.pop_back();
  }

  static Argument extent(std::int64_t value) { return static_cast<std::uint32_t>(value); }

  LaunchPlan take(const Workspace& workspace) {
    plan_.zeroed_bytes = static_cast<std::uint64_t>(workspace.most);
    plan_.workspace_bytes = static_cast<std::uint64_t>(workspace.bytes);
    return std::move(plan_);
  }

 private:
  void launch(const char* path, const Defines& defines, std::int64_t threads, std::int64_t parts,
              std::vector<Argument> arguments) {
    plan_.sources.push_back(kernel_source(device_, path, defines, threads, arguments));
    plan_.launches.push_back(
        {plan_.sources.size() - 1,
         grid(device_, plan_.sources.back(), static_cast<std::uint64_t>(shape_.rows),
              static_cast<int>(parts)),
         std::move(arguments)});
  }

  const SampleShape& shape_;
  const DeviceInfo& device_;
  const Config& config_;
  bool glsl_;
  Defines defines_;
  LaunchPlan plan_;
};

LaunchPlan plan(const SampleShape& shape, const DeviceInfo& device, const Config& config) {
  const auto place = [](std::int64_t offset) {
    return WorkspaceArgument{static_cast<std::uint64_t>(offset)};
  };
  const Workspace workspace(shape, config);
  Planner planner(shape, device, config);
  const Argument rows = Planner::extent(shape.rows), cols = Planner::extent(shape.cols);
  const std::size_t token = shape.history > 0 ? 5 : 3;
  std::vector<Argument> arguments{OperandArgument{0}, OperandArgument{1}, OperandArgument{2},
                                  OperandArgument{token}};
  if (!config.has("SPLIT")) {
    if (shape.history > 0) planner.penalise();
    arguments.insert(arguments.end(), {rows, cols});
    planner.sample(config.variant == "early" ? "sample/early" : "sample/row", 1,
                   std::move(arguments));
    return planner.take(workspace);
  }
  const Argument part = Planner::extent(part_of(shape, config));
  const Argument most = place(workspace.most);
  planner.largest(most, part);
  arguments.insert(arguments.end(), {most, place(workspace.histograms), place(workspace.counters),
                                     rows, cols, part});
  planner.sample("sample/split", config["SPLIT"], std::move(arguments));
  return planner.take(workspace);
}

/// A part of a row is processed by the threads of a workgroup, ITEMS loads at a time.
std::vector<Division> divisions(const SampleShape& shape, const Config& config) {
  const std::int64_t round = std::int64_t{config["THREADS"]} * config["VEC"] * config["ITEMS"];
  const Division part{"part of a row", part_of(shape, config), round};
  if (!config.has("SPLIT")) return {part};
  return {{"vectors of a row", shape.cols / config["VEC"], config["SPLIT"], "SPLIT", never}, part};
}

/// Elements of a thread's round that are more than 32 have bits in two words (listing.hip).
std::vector<std::string> paths(const SampleShape&, const Config& config) {
  return {config["VEC"] * config["ITEMS"] > 32 ? "two words of bits" : "one word of bits"};
}

}  // namespace

Operation make_sample() {
  Operation t;
  t.name = "sample";
  t.summary = "draws a token for each row of logits: temperature, min-p, top-k, top-p, penalties";
  t.bound =
      "the token of FP64 arithmetic, or one to which the bounds of the weights permit a border to "
      "move: an exponent within 4.4u of itself and 2^-24, its power within 2^-22, a weight within "
      "2^-29 of the largest; u = 2^-24. Penalised logits: 2u for a quotient, u for each other "
      "operation, and the rounding of x";
  t.out_of_range =
      "tokens of the history below 0, or not below cols, are skipped; a NaN is never drawn; a row "
      "without a logit above -inf gives -1";
  t.dimensions = {{.name = "rows",
                   .help = "rows of x, each with a draw of its own",
                   .at_run_time = RunTimeExtent{.rounded = RunTimeExtent::Rounded::down}},
                  {.name = "cols", .help = "columns of x: tokens of the vocabulary"},
                  {.name = "history",
                   .help = "earlier tokens of each row, whose logits are penalised in place",
                   .least = 0,
                   .most = 1 << 20,
                   .fallback = "0",
                   .examples = {1, 7, 300},
                   .at_run_time = RunTimeExtent{},
                   .optional = true}};
  t.attributes = {x_stride_attribute("elements from one row of x to the next")};
  for (const DType type : converted_types()) t.dtypes.push_back({type, DType::i32});
  t.sizes = {{{128, 128256}}, {{1, 128256}}, {{64, 32000, 256}}, {{3, 1001}}};
  t.shape = [](const Problem& problem) { return ProblemShape(SampleShape(problem)); };
  t.variants = {
      make_variant<SampleShape>("split",
                                "SPLIT workgroups share a row's largest logit and its histogram; "
                                "the last one to arrive draws",
                                split_space, plan, split_defaults, divisions),
      make_variant<SampleShape>("early",
                                "a workgroup takes a row; one pass finds its largest logit and "
                                "makes its histogram",
                                early_space, plan, early_defaults, divisions),
      make_variant<SampleShape>("row", "a workgroup takes a row", row_space, plan, row_defaults,
                                divisions)};
  for (Variant& variant : t.variants) set_paths<SampleShape>(variant, paths);
  t.work = work;
  t.tensors = tensors;
  t.input = sampling::input;
  t.harden = sampling::harden;
  t.reference = sample_reference;
  t.stand_in = fewer_rows;
  return t;
}

}  // namespace greta::kernels
