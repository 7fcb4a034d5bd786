#include "tuner/replay/replay_evaluator.hpp"

#include <utility>

namespace greta::tuner {
namespace {

/// Returns an operation whose only variant has the recorded space. Nothing can be launched.
Operation recorded_operation(const std::shared_ptr<const Recording>& recording) {
  struct Shape {};
  const Alternative& recorded = recording->space().alternatives().front();
  Operation operation;
  operation.name = "recorded";
  operation.summary = "what a recording has of " + recorded.variant;
  operation.bound = "as it was recorded";
  operation.dtypes = {{DType::f32, DType::f32}};
  operation.shape = [](const Problem&) { return ProblemShape(Shape{}); };
  operation.work = [](const Problem&) { return Work{.flops = 0, .bytes = 1}; };
  operation.stand_in = [](const Problem& problem, double) { return problem; };
  operation.variants = {make_variant<Shape>(
      recorded.variant, operation.summary,
      [recording](const Shape&, const DeviceInfo&) {
        return recording->space().alternatives().front();
      },
      [](const Shape&, const DeviceInfo&, const Config&) -> LaunchPlan {
        throw Error("a recording can't be launched");
      },
      [recording](const Shape&, const DeviceInfo&) {
        return std::vector{recording->space().at(0)};
      },
      [](const Shape&, const Config&) { return std::vector<Division>{}; })};
  return operation;
}

}  // namespace

ReplayEvaluator::ReplayEvaluator(Recording recording)
    : recording_(std::make_shared<const Recording>(std::move(recording))),
      catalog_({recorded_operation(recording_)}) {
  problem_.op = "recorded";
  device_.backend = Api::hip;
  device_.language = Language::hip;
  device_.name = device_.architecture = recording_->device_name();
  device_.driver = device_.compiler = "recorded";
  device_.kind = DeviceKind::discrete_gpu;
}

void ReplayEvaluator::prepare(const Problem&, const std::vector<Config>&) {}

Trial ReplayEvaluator::evaluate(const Problem& problem, const Config& config,
                                const TrialLimits& limits) {
  Trial trial = recording_->trial(config);
  trial.problem_key = problem.key();
  trial.measurement.cold = limits.cold;
  return trial;
}

Trial ReplayEvaluator::verify(const Problem& problem, const Config& config, std::uint64_t,
                              const TrialLimits& limits) {
  Trial trial = evaluate(problem, config, limits);
  trial.measurement = {};
  return trial;
}

Rounds ReplayEvaluator::time_rounds(const Problem&, const std::vector<Config>& configs, int rounds,
                                    double, std::uint64_t, const TrialLimits&) {
  Rounds result;
  result.batch.assign(configs.size(), 1);
  for (const Config& config : configs) {
    const Trial trial = recording_->trial(config);
    if (!trial.ok()) result.failure = Failure{*trial.failure, trial.message, {}};
    result.us.emplace_back(static_cast<std::size_t>(rounds), trial.measurement.median_us);
  }
  return result;
}

}  // namespace greta::tuner
