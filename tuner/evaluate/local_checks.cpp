#include <fmt/format.h>

#include "kernels/described/described_operation.hpp"
#include "kernels/model/random.hpp"
#include "kernels/sampling/small_problems.hpp"
#include "tuner/compile/kernel_case.hpp"
#include "tuner/evaluate/local_open.hpp"
#include "tuner/evaluate/repeats.hpp"

namespace greta::tuner {

Result<void> LocalEvaluator::check(const PreparedPlan& candidate, const TrialLimits& limits,
                                   Trial& trial) {
  const Lap lap(trial.verify_s);
  return open_->workload->check(*open_->device, open_->warm_timer->stream(), candidate,
                                limits.run_s, trial.verdict);
}

// Every candidate is checked before it is timed, because a wrong one would mislead the search. The
// cost is small compared to compiling and timing (docs/measurement.md).
Result<void> LocalEvaluator::check_small(const Problem& problem, const Config& config,
                                         const Candidate& candidate, const TrialLimits& limits,
                                         Trial& trial) {
  const Lap lap(trial.verify_s);
  auto right = small_checks(problem, config, candidate.plan)
                   .check(*open_->device, open_->warm_timer->stream(), config, candidate.plan,
                          candidate.prepared, limits.run_s, trial.verdict.method);
  if (!right && right.failure().status == Status::correctness) {
    trial.verdict.passed = false;
    trial.verdict.detail = right.failure().message;
    keep_wrong_small(problem, config, candidate, limits, right.failure());
  }
  return right;
}

void LocalEvaluator::keep_wrong(const Problem& problem, const Config& config, const InputSeed& seed,
                                InputStyle style, const Candidate& candidate,
                                const TrialLimits& limits, const Failure& wrong) {
  if (!keeper_.wants_more()) return;
  const Operation& operation = catalog().at(problem.op);
  if (!check_case(operation, problem)) {
    Trial ignored;
    static_cast<void>(check_small(problem, config, candidate, limits, ignored));
    return;
  }
  const FailedCheck failed{{problem, config}, problem, candidate.plan, seed, style, wrong.message};
  keeper_.keep(*open_->device, info_, open_->warm_timer->stream(), operation, failed,
               candidate.prepared, limits.run_s);
}

void LocalEvaluator::keep_wrong_small(const Problem& problem, const Config& config,
                                      const Candidate& candidate, const TrialLimits& limits,
                                      const Failure& wrong) {
  const auto& on = open_->small->failed_on();
  if (!keeper_.wants_more() || !on) return;
  const FailedCheck failed{{problem, config}, on->small.problem,       on->small.plan,
                           on->seed,          InputStyle::adversarial, wrong.message};
  keeper_.keep(*open_->device, info_, open_->warm_timer->stream(), catalog().at(problem.op), failed,
               candidate.prepared, limits.run_s);
}

// A candidate may pass although it overwrote its inputs, and the next one then fails. A candidate
// that fails is therefore checked a second time on newly created operands.
Result<LocalEvaluator::Candidate> LocalEvaluator::checked(const Problem& problem,
                                                          const Config& config,
                                                          const InputSeed& seed, InputStyle style,
                                                          const TrialLimits& limits, Trial& trial) {
  if (style == InputStyle::adversarial &&
      catalog().at(problem.op).variant(config.variant).finite_inputs) {
    style = InputStyle::finite;
  }
  for (int attempt = 0;; ++attempt) {
    {
      const Lap lap(trial.verify_s);
      if (auto load = workload(problem, seed, style); !load) throw Error(load.failure());
    }
    auto candidate = make_candidate(problem, config, trial);
    if (!candidate) return candidate;
    if (limits.reject_spills) {
      if (auto fine = check_spills(trial.kernels); !fine) return fine.failure();
    }
    const auto right = check(candidate->prepared, limits, trial);
    if (right) return candidate;
    if (right.failure().status != Status::correctness) return right.failure();
    if (attempt > 0) keep_wrong(problem, config, seed, style, *candidate, limits, right.failure());
    open_->workload.reset();
    if (attempt > 0) return right.failure();
  }
}

Trial LocalEvaluator::verify(const Problem& problem, const Config& config, std::uint64_t seed,
                             const TrialLimits& limits) {
  return run_trial(problem, config, [&](Trial& trial) -> Result<void> {
    InputSeed drawn = seed;
    const Operation& operation = catalog().at(problem.op);
    const Variant& variant = operation.variant(config.variant);
    if (limits.inputs != InputStyle::plain && variant.divisions) {
      drawn.divisions = variant.divisions(operation.shape(problem), config);
    }
    const auto candidate = checked(problem, config, drawn, limits.inputs, limits, trial);
    if (!candidate) return candidate.failure();
    if (limits.small > 0) {
      if (auto right = check_others(problem, config, drawn, *candidate, limits, trial); !right)
        return right;
    }
    if (limits.repeats == 0) return {};
    return repeat(problem, config, drawn, *candidate, limits, trial);
  });
}

Result<void> LocalEvaluator::check_others(const Problem& problem, const Config& config,
                                          const InputSeed& seed, const Candidate& candidate,
                                          const TrialLimits& limits, Trial& trial) {
  const Lap lap(trial.verify_s);
  const Operation& operation = catalog().at(problem.op);
  const Variant& variant = operation.variant(config.variant);
  // An eighth of the work of random problems, and few to choose from: compiling should take most of
  // the time.
  const SmallProblems others(
      operation, problem, info_, seed, config, candidate.plan,
      {.limit = {1e6, 256 << 10}, .most_drawn = 40, .attempts = 250, .most_threads = 1 << 13});
  Stream& stream = open_->warm_timer->stream();
  InputStyle style = limits.inputs;
  InputSeed drawn = seed;
  for (const auto& [other, plan] :
       others.with_kernels_of(config, candidate.plan, static_cast<std::size_t>(limits.small))) {
    const bool plain = style == InputStyle::plain;
    style = !plain                  ? InputStyle::plain
            : variant.finite_inputs ? InputStyle::finite
                                    : InputStyle::adversarial;
    drawn.number = mix64(drawn.number);
    drawn.divisions.clear();
    if (style != InputStyle::plain && variant.divisions)
      drawn.divisions = variant.divisions(operation.shape(other), config);
    auto load = Workload::create(*open_->device, operation, other, Bounds::fenced);
    if (!load) return load.failure();
    if (auto set = load->set_inputs(*open_->device, drawn, style); !set) return set.failure();
    const auto prepared = candidate.prepared.with_launches(*open_->device, plan, load->operands());
    if (!prepared) return prepared.failure();
    Verdict verdict;
    auto right = load->check(*open_->device, stream, *prepared, limits.run_s, verdict);
    if (right) continue;
    Failure failure = right.failure();
    failure.message =
        fmt::format("on {}, which has the same kernels: {}", other.key(), failure.message);
    if (failure.status == Status::correctness) {
      trial.verdict.passed = false;
      trial.verdict.detail = failure.message;
      const FailedCheck failed{{problem, config}, other, plan, drawn, style, failure.message};
      if (keeper_.wants_more())
        keeper_.keep(*open_->device, info_, stream, operation, failed, *prepared, limits.run_s);
    }
    return failure;
  }
  return {};
}

// A race may give right results most of the time, so results are compared with each other.
Result<void> LocalEvaluator::repeat(const Problem& problem, const Config& config,
                                    const InputSeed& seed, const Candidate& candidate,
                                    const TrialLimits& limits, Trial& trial) {
  const Lap lap(trial.verify_s);
  RepeatLimits repeats;
  repeats.runs = limits.repeats;
  repeats.run_s = limits.run_s;
  const bool unordered = catalog().at(problem.op).variant(config.variant).unordered;
  auto same = check_repeats(*open_->device, open_->warm_timer->stream(), *open_->workload,
                            candidate.prepared, repeats, unordered);
  if (same) {
    trial.verdict.method += "; " + to_text(*same);
    return {};
  }
  if (same.failure().status == Status::correctness) {
    trial.verdict.passed = false;
    trial.verdict.detail = same.failure().message;
    keep_wrong(problem, config, seed, limits.inputs, candidate, limits, same.failure());
  }
  return same.failure();
}

}  // namespace greta::tuner
