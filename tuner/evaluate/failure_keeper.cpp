#include "tuner/evaluate/failure_keeper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "kernels/model/embedded.hpp"
#include "runtime/device/system/log.hpp"
#include "tuner/compile/target_compiler.hpp"
#include "tuner/diagnose/comparison/case_sources.hpp"
#include "tuner/diagnose/failed_case.hpp"
#include "tuner/diagnose/probe_runs.hpp"
#include "tuner/evaluate/workload.hpp"
#include "tuner/evaluate/written.hpp"

namespace greta::tuner {
namespace {

constexpr int repeats = 8;
constexpr std::uint64_t most_case_bytes = std::uint64_t{128} << 20;

Failure no_case(const std::string& why) {
  return {Status::unavailable, why, {}};
}

Result<void> check_size(const Operation& operation, const Problem& problem) {
  if (auto possible = check_case(operation, problem); !possible) return possible;
  std::uint64_t bytes = 0;
  for (const TensorSpec& spec : operation.tensors(problem))
    bytes += spec.bytes() + (spec.role == Role::input ? 0 : spec.elements() * sizeof(Expected));
  if (bytes <= most_case_bytes) return {};
  return no_case(fmt::format("its operands and expected elements are {} MiB, more than {}",
                             bytes >> 20, most_case_bytes >> 20));
}

/// Plain inputs tell more than adversarial ones, if the candidate fails with them, too. Returns
/// whether it does.
bool fails_plainly(Device& device, Stream& stream, const PreparedPlan& prepared, Workload& load,
                   const InputSeed& seed, double run_s) {
  if (!load.set_inputs(device, seed, InputStyle::plain)) return false;
  Verdict verdict;
  const auto right = load.check(device, stream, prepared, run_s, verdict);
  return !right && right.failure().status == Status::correctness;
}

/// Returns the content of outputs with which the results are wrong: NaN, or if elements that are
/// not written pass as NaN, another one.
std::uint32_t content_that_fails(Device& device, Stream& stream, const PreparedPlan& prepared,
                                 Workload& load, const Reference& reference, double run_s) {
  std::vector<HostTensor> outputs;
  const auto done = load.outputs_of(device, stream, prepared, run_s, {}, outputs);
  const bool passes = done && reference.check(outputs).passed &&
                      !written_elsewhere(reference, outputs) &&
                      unchanged_elements(reference, outputs).any;
  return passes ? finite_pattern : nan_pattern;
}

/// Runs the candidate as often as a race needs to show, with `content` in its outputs, and with
/// other contents of what it writes. If there is no time for all runs, those with other contents
/// have precedence over further equal ones; one is run in any case.
Result<std::vector<KeptRun>> kept_runs(Device& device, Stream& stream, const PreparedPlan& prepared,
                                       Workload& load, std::uint32_t content, double run_s,
                                       CaseTime& time) {
  std::vector<BeforeLaunch> order(2, {.outputs = content});
  order.push_back({.outputs = content == nan_pattern ? finite_pattern : nan_pattern});
  if (prepared.has_workspace()) order.push_back({.outputs = content, .workspace = finite_pattern});
  order.resize(order.size() + repeats - 2, {.outputs = content});
  std::vector<KeptRun> equal, others;
  for (const BeforeLaunch& before : order) {
    if (!equal.empty() && !time.has_room()) break;
    const bool is_equal = before.outputs == content && before.workspace == nan_pattern;
    KeptRun& run = (is_equal ? equal : others).emplace_back();
    run.outputs_before = before.outputs;
    run.workspace_before = before.workspace;
    auto done = time.timed(
        [&] { return load.outputs_of(device, stream, prepared, run_s, before, run.outputs); });
    if (!done) return done.failure();
  }
  std::move(others.begin(), others.end(), std::back_inserter(equal));
  return equal;
}

/// Puts what elements that are not written don't pass with into the outputs of a case.
void fill_outputs(const Operation& operation, const Problem& problem, const Reference& reference,
                  KernelCase& made) {
  const auto specs = operation.tensors(problem);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role == Role::output)
      made.buffers.at(i).data = filled_where_written(reference, specs[i]);
  }
}

/// Compiles the plan again for its binaries. Nothing is compiled where that is not possible.
CompiledChoice compiled_again(const DeviceInfo& device, const OpenOptions& options,
                              const FailedCheck& failed) {
  CompiledChoice compiled{{failed.on, failed.choice.config}, device.architecture, failed.plan, {}};
  const auto target = create_probed_target(device, options);
  if (!target) return compiled;
  for (const KernelSource& source : failed.plan.sources) {
    auto kernel = source.call ? Result<CompiledKernel>(no_case("")) : (*target)->compile(source);
    if (!kernel) {
      compiled.kernels.clear();
      break;
    }
    compiled.kernels.push_back(*std::move(kernel));
  }
  return compiled;
}

/// Adds the templates that the kernels are made of, and the built-in ones where these are others.
void add_templates(const Operation& operation, const std::vector<KernelSource>& sources,
                   FailedCase& made) {
  if (!operation.sources_key.empty()) return;  // a described kernel
  made.files = template_files(sources, [](const std::string&) { return nullptr; });
  if (template_folder().empty()) return;
  SourceFiles built_in;
  for (const EmbeddedFile& file : built_in_files()) built_in.emplace(file.path, file.text);
  made.known_good =
      other_files("the built-in templates", template_files(sources, find_in(built_in)), made.files);
}

}  // namespace

void FailureKeeper::keep(Device& device, const DeviceInfo& device_info, Stream& stream,
                         const Operation& operation, const FailedCheck& failed,
                         const PreparedPlan& candidate, double run_s) {
  if (!wants_more()) return;
  const auto kept = try_to_keep(device, device_info, stream, operation, failed, candidate, run_s);
  if (kept) {
    ++kept_;
    return;
  }
  log(LogLevel::warning, "{}: not kept: {}", failed.on.key(), kept.failure().message);
}

Result<void> FailureKeeper::try_to_keep(Device& device, const DeviceInfo& device_info,
                                        Stream& stream, const Operation& operation,
                                        FailedCheck failed, const PreparedPlan& candidate,
                                        double run_s) {
  if (auto possible = check_size(operation, failed.on); !possible) return possible;
  auto load = Workload::create(device, operation, failed.on);
  if (!load) return load.failure();
  const auto prepared = candidate.with_launches(device, failed.plan, load->operands());
  if (!prepared) return prepared.failure();
  if (failed.style != InputStyle::plain &&
      fails_plainly(device, stream, *prepared, *load, failed.seed, run_s)) {
    failed.style = InputStyle::plain;
  }
  if (auto set = load->set_inputs(device, failed.seed, failed.style); !set) return set;
  auto [inputs, reference] = host_data(operation, failed.on, failed.seed, failed.style);
  const std::uint32_t content =
      content_that_fails(device, stream, *prepared, *load, *reference, run_s);
  CaseTime time(most_time_);
  auto runs = kept_runs(device, stream, *prepared, *load, content, run_s, time);
  if (!runs) return runs.failure();
  if (content == finite_pattern) {
    for (KeptRun& run : *runs) clear_rows_of_nobody(*reference, run.outputs);
  }

  auto expected = reference->expected();
  if (!expected) return no_case("its reference does not compute every element");
  FailedCase made;
  made.seed = failed.seed;
  made.style = failed.style;
  made.runs = *std::move(runs);
  add_other_runs(device, stream, failed, operation, *prepared, *load, inputs, run_s, time, made);
  made.kernel = make_case_of(operation, compiled_again(device_info, compiler_, failed),
                             std::move(inputs), *std::move(expected));
  made.kernel.seed = failed.seed;
  if (content == finite_pattern) fill_outputs(operation, failed.on, *reference, made.kernel);
  made.device = fmt::format("{} {}", device_info.id(), device_info.name);
  made.message = failed.message;
  for (const KernelSource& source : failed.plan.sources)
    made.sources.push_back(kept_source(source));
  const auto& block = failed.plan.sources[failed.plan.launches.back().source].block;
  add_templates(operation, failed.plan.sources, made);
  made.workgroup = std::accumulate(block.begin(), block.end(), 1U, std::multiplies<>());
  const Variant& variant = operation.variant(failed.choice.config.variant);
  if (variant.divisions)
    made.divisions = variant.divisions(operation.shape(failed.on), failed.choice.config);
  return write_failed_case(made, folder_ / name_of_failed_case(failed.choice.problem.key(),
                                                               failed.choice.config.text()));
}

}  // namespace greta::tuner
