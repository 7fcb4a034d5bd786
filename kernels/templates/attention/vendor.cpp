#include <cstdint>
#include <utility>

#include "kernels/planning/plan.hpp"
#include "kernels/planning/workspace.hpp"
#include "kernels/templates/attention/shape.hpp"

/// Attention by the vendor's library: cuDNN.
namespace greta::kernels::attention {
namespace {

constexpr std::uint64_t mib = 1 << 20;

Alternative space(const Shape& shape, const DeviceInfo& device) {
  Alternative a{vendor_variant.data(), {{"RANK", {0, 1, 2, 3}}}, {}};
  a.constraints = {
      {"library", "no library of attention is open: cuDNN", !device.attention_library.empty()},
      {"types", "the library's inputs and output are all f16 or all bf16",
       shape.in == shape.out && (shape.in == DType::f16 || shape.in == DType::bf16)},
      {"layout", "sequences are neither packed nor in pages", !shape.packed && shape.page == 0},
      {"softcap", "log-sum-exps of scores with softcap do not keep the bound of the error",
       !shape.lse || shape.softcap == 0},
  };
  return a;
}

AttentionCall call_of(const Shape& shape, const Config& config) {
  const auto extent = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  AttentionCall call;
  call.batch = extent(shape.batch);
  call.heads = extent(shape.heads);
  call.kv_heads = extent(shape.kv_heads);
  call.queries = extent(shape.queries);
  call.keys = extent(shape.capacity);
  call.dim = extent(shape.dim);
  call.v_dim = extent(shape.v_dim);
  call.type = shape.in;
  call.query_step = extent(shape.q_stride > 0 ? shape.q_stride : shape.heads * shape.dim);
  call.causal = shape.causal;
  call.window = extent(shape.window);
  call.scale = static_cast<float>(shape.scale);
  call.softcap = static_cast<float>(shape.softcap);
  call.sinks = shape.sinks;
  call.lse = shape.lse;
  call.workspace_bytes = 16 * mib;
  call.rank = static_cast<std::uint32_t>(config["RANK"]);
  return call;
}

/// Lengths of any value are read as between 0 and all keys, and sequences without keys have zeros
/// (Operation::out_of_range). Libraries promise neither, so launches ahead of the library's and
/// after it take care of them.
class Plan {
 public:
  Plan(const Shape& shape, const DeviceInfo& device) : shape_(shape), device_(device) {}

  LaunchPlan make(const AttentionCall& call) &&;

 private:
  void clamp_lengths();
  void compute(const AttentionCall& call);
  void clear_empty();
  void add(KernelSource source, std::uint64_t workgroups, std::vector<Argument> arguments);
  /// Return the operands in the order of the operation's tensors: Q, K, V, lengths, sinks, out,
  /// lse.
  Argument lengths() const { return OperandArgument{3}; }
  Argument sinks() const { return shape_.sinks ? Argument(OperandArgument{4}) : none; }
  Argument out() const { return OperandArgument{out_}; }
  Argument lse() const { return shape_.lse ? Argument(OperandArgument{out_ + 1}) : none; }

  static constexpr std::int64_t threads = 256;
  const Argument none = std::uint64_t{0};
  const Shape& shape_;
  const DeviceInfo& device_;
  std::size_t out_ = shape_.sinks ? 5 : 4;
  LaunchPlan plan_;
};

void Plan::add(KernelSource source, std::uint64_t workgroups, std::vector<Argument> arguments) {
  Launch launch;
  launch.source = plan_.sources.size();
  launch.grid = grid(device_, source, workgroups);
  launch.arguments = std::move(arguments);
  plan_.sources.push_back(std::move(source));
  plan_.launches.push_back(std::move(launch));
}

void Plan::clamp_lengths() {
  std::vector<Argument> arguments{lengths(), WorkspaceArgument{0},
                                  static_cast<std::uint32_t>(shape_.batch),
                                  static_cast<std::uint32_t>(shape_.capacity)};
  KernelSource source = kernel_source(device_, "attention/clamp_lengths",
                                      {{"THREADS", std::to_string(threads)}}, threads, arguments);
  add(std::move(source), static_cast<std::uint64_t>(ceil_div(shape_.batch, threads)),
      std::move(arguments));
}

void Plan::compute(const AttentionCall& call) {
  KernelSource source;
  source.name = "attention/vendor";
  source.language = device_.language;
  source.argument_bytes = sizeof(AttentionArguments);
  source.call = call;
  add(std::move(source), 1,
      {OperandArgument{0}, OperandArgument{1}, OperandArgument{2}, WorkspaceArgument{0}, sinks(),
       out(), lse(), WorkspaceArgument{plan_.workspace_bytes - call.workspace_bytes}});
}

void Plan::clear_empty() {
  std::vector<Argument> arguments{lengths(),
                                  sinks(),
                                  out(),
                                  lse(),
                                  static_cast<std::uint32_t>(shape_.queries * shape_.heads),
                                  static_cast<std::uint32_t>(shape_.heads)};
  Defines defines = problem_defines(shape_);
  defines.emplace_back("THREADS", std::to_string(threads));
  KernelSource source =
      kernel_source(device_, "attention/clear_empty", defines, threads, arguments);
  add(std::move(source), static_cast<std::uint64_t>(shape_.batch), std::move(arguments));
}

LaunchPlan Plan::make(const AttentionCall& call) && {
  const std::int64_t lengths_bytes = workspace_part(shape_.batch * 4);
  plan_.workspace_bytes = static_cast<std::uint64_t>(lengths_bytes) + call.workspace_bytes;
  clamp_lengths();
  compute(call);
  clear_empty();
  return std::move(plan_);
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  return Plan(shape, device).make(call_of(shape, config));
}

}  // namespace

Variant vendor() {
  Variant variant = make_variant<Shape>(
      vendor_variant.data(), "by the vendor's library, if it is installed: cuDNN", space, plan,
      [](const Shape&, const DeviceInfo&) { return std::vector<Config>{}; },
      [](const Shape&, const Config&) { return std::vector<Division>{}; });
  variant.finite_inputs = true;  // values past a sequence's length
  variant.library = &DeviceInfo::attention_library;
  return variant;
}

}  // namespace greta::kernels::attention
