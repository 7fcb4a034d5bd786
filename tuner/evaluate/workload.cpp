#include "tuner/evaluate/workload.hpp"

#include "runtime/device/system/stall_watch.hpp"
#include "tuner/evaluate/written.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {

Result<Workload> Workload::create(Device& device, const Operation& operation,
                                  const Problem& problem, Bounds bounds) {
  return create(device, operation, problem, operation.tensors(problem), bounds);
}

Result<Workload> Workload::create_with_finite_guards(Device& device, const Operation& operation,
                                                     const Problem& problem) {
  auto specs = operation.tensors(problem);
  for (TensorSpec& spec : specs) spec.table = true;
  return create(device, operation, problem, specs, Bounds::guarded);
}

Result<Workload> Workload::create(Device& device, const Operation& operation,
                                  const Problem& problem, const std::vector<TensorSpec>& specs,
                                  Bounds bounds) {
  auto operands = Operands::create(device, specs, bounds);
  if (!operands) return operands.failure();
  Workload workload;
  workload.operation_ = &operation;
  workload.problem_ = problem;
  workload.operands_ = *std::move(operands);
  return workload;
}

bool Workload::has_inputs(const InputSeed& seed, InputStyle style) const {
  return filled_ && seed_ == seed && style_ == style;
}

HostData host_data(const Operation& operation, const Problem& problem, const InputSeed& seed,
                   InputStyle style) {
  HostData data;
  data.inputs = operation.inputs(problem, seed, style);
  data.reference = operation.reference(problem, data.inputs, seed);
  return data;
}

Result<void> Workload::set_inputs(Device& device, const InputSeed& seed, InputStyle style) {
  reference_.reset();
  inputs_ = operation_->inputs(problem_, seed, style);
  return upload_inputs(device, seed, style);
}

Result<void> Workload::set_inputs(Device& device, const InputSeed& seed, InputStyle style,
                                  HostData data) {
  reference_ = std::move(data.reference);
  inputs_ = std::move(data.inputs);
  const auto uploaded = upload_inputs(device, seed, style);
  inputs_.clear();
  return uploaded;
}

Result<void> Workload::upload_inputs(Device& device, const InputSeed& seed, InputStyle style) {
  filled_ = false;
  auto input = inputs_.begin();
  const auto& specs = operands_.specs();
  restored_.assign(specs.size(), {});
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role == Role::output) continue;
    if (auto uploaded = operands_.upload(device, i, *input); !uploaded) return uploaded;
    if (specs[i].role == Role::input_output) restored_[i] = *input;
    ++input;
  }
  seed_ = seed;
  style_ = style;
  filled_ = true;
  return {};
}

Result<void> Workload::record(Stream& stream, const PreparedPlan& candidate,
                              const BeforeLaunch& before, const AroundLaunch& around) {
  if (auto r = operands_.poison_outputs(stream, before.outputs); !r) return r;
  if (!before.keeps_workspace) {
    if (auto r = candidate.poison_workspace(stream, before.workspace); !r) return r;
  }
  if (around.before != nullptr) {
    if (auto r = stream.record(*around.before); !r) return r;
  }
  if (auto r = candidate.record(stream); !r) return r;
  return around.after != nullptr ? stream.record(*around.after) : Result<void>();
}

Result<void> Workload::run(Device& device, Stream& stream, const PreparedPlan& candidate,
                           double run_s, const BeforeLaunch& before, const AroundLaunch& around) {
  const StallWatch watch(run_s);
  for (std::size_t i = 0; i < restored_.size(); ++i) {
    if (restored_[i].data.empty()) continue;
    if (auto r = operands_.upload(device, i, restored_[i]); !r) return r;
  }
  if (auto r = record(stream, candidate, before, around); !r) {
    stream.discard();
    return r;
  }
  return stream.synchronize(deadline_of(run_s));
}

void Workload::compute_reference(Device& device) {
  if (operation_->reference_on) {
    auto computed = operation_->reference_on(device, problem_, inputs_);
    if (!computed) throw Error(computed.failure());
    reference_ = *std::move(computed);
  } else {
    reference_ = operation_->reference(problem_, inputs_, seed_);
  }
  inputs_.clear();
}

Result<void> Workload::outputs_of(Device& device, Stream& stream, const PreparedPlan& candidate,
                                  double run_s, const BeforeLaunch& before,
                                  std::vector<HostTensor>& outputs) {
  if (auto r = run(device, stream, candidate, run_s, before); !r) return r;
  return operands_.download_outputs(device, outputs);
}

Result<void> Workload::check(Device& device, Stream& stream, const PreparedPlan& candidate,
                             double run_s, Verdict& verdict, const AroundLaunch& around) {
  if (auto r = run(device, stream, candidate, run_s, {}, around); !r) return r;
  auto guard = operands_.broken_guard(device);
  if (guard && !*guard) guard = candidate.broken_guard(device);
  if (!guard) return guard.failure();
  const auto zero = candidate.zeroed_part_is_zero(device);
  if (!zero) return zero.failure();
  if (auto r = operands_.download_outputs(device, outputs_); !r) return r;
  if (!reference_) compute_reference(device);
  verdict = reference_->check(outputs_);
  if (*guard) {
    verdict.passed = false;
    verdict.detail = **guard;
  }
  if (!*zero) {
    verdict.passed = false;
    verdict.detail = "left counters in the workspace that the next run would start from";
  }
  if (verdict.passed) {
    if (auto r = check_written(device, stream, candidate, run_s, verdict); !r) return r;
  }
  if (!verdict.passed) return Failure{Status::correctness, verdict.detail, {}};
  return {};
}

// A kernel that does not write an element may leave there what was expected: a NaN, or -1.
Result<void> Workload::check_written(Device& device, Stream& stream, const PreparedPlan& candidate,
                                     double run_s, Verdict& verdict) {
  std::optional<std::string> wrong = written_elsewhere(*reference_, outputs_);
  const auto unchanged = wrong ? Unchanged{} : unchanged_elements(*reference_, outputs_);
  if (unchanged.any) {
    const BeforeLaunch before{.outputs = finite_pattern};
    if (auto r = outputs_of(device, stream, candidate, run_s, before, outputs_); !r) return r;
    wrong = not_written(unchanged, outputs_);
  }
  if (!wrong) return {};
  verdict.passed = false;
  verdict.detail = *std::move(wrong);
  return {};
}

}  // namespace greta::tuner
