#include "tuner/cli/bench/verify_run.hpp"

#include <fmt/format.h>

#include "kernels/catalog.hpp"
#include "kernels/sampling/candidates.hpp"
#include "tuner/cli/bench/entries.hpp"

namespace greta::tuner::cli {

void VerifyRun::check(const std::string& name, const Benchmark& benchmark,
                      std::vector<NamedResult>& results, const std::atomic<bool>& stop) const {
  if (!benchmark.check || stop || !matches(filter, name)) return;
  MeasuredResult result{.subject = benchmark.subject};
  for (int run = 0; run < runs && !result.failure && !stop; ++run) {
    if (check_benchmark(benchmark, run, result)) ++result.count;
  }
  results.push_back({name, std::move(result)});
}

void VerifyRun::check_random(Evaluator& evaluator, std::vector<NamedResult>& results,
                             const std::atomic<bool>& stop) const {
  TrialLimits limits;
  limits.run_s = timeout_s;
  const auto count = static_cast<std::size_t>(random) * static_cast<std::size_t>(runs);
  for (const Operation& operation : evaluator.catalog()) {
    const std::string name = fmt::format("random/{}", operation.name);
    if (random == 0 || stop || !matches(filter, name)) continue;
    MeasuredResult total;
    total.subject = {.problem = {.op = operation.name, .attributes = {}, .dims = {}},
                     .typed = false,
                     .origin = ResultOrigin::random};
    total.subject.set_device(evaluator.device());
    std::uint64_t at = seed;
    for (const auto& [problem, config] :
         random_candidates(operation, evaluator.device(), {}, count, seed)) {
      if (stop) break;
      const bool plain = limits.inputs == InputStyle::plain;  // the styles alternate
      limits.inputs = plain ? InputStyle::adversarial : InputStyle::plain;
      const Trial trial = evaluator.verify(problem, config, at++, limits);
      total.add_verdict(trial.verdict);
      if (trial.ok()) {
        ++total.count;
        continue;
      }
      MeasuredResult wrong;
      wrong.subject = {.problem = problem, .config = config, .origin = ResultOrigin::random};
      wrong.subject.set_device(evaluator.device());
      wrong.failure = Failure{
          *trial.failure, fmt::format("{} | {}: {}", problem.key(), config.shown(), trial.message),
          trial.log};
      results.push_back({name, std::move(wrong)});
    }
    results.push_back({name, std::move(total)});
  }
}

}  // namespace greta::tuner::cli
