#include "tuner/compile/compiled_choice.hpp"

#include <algorithm>
#include <limits>

#include "kernels/prior/prior.hpp"

namespace greta::tuner {
namespace {

/// Returns the registers of a thread in each launch, with those that were spilled. A unified file
/// holds the accumulators among the others, and separate files have the same size.
std::vector<double> registers_of(const CompiledChoice& compiled) {
  std::vector<double> registers;
  for (const Launch& launch : compiled.plan.launches) {
    const KernelStatistics& kernel = compiled.kernels.at(launch.source).statistics;
    registers.push_back(std::max(kernel.registers, kernel.accumulator_registers) +
                        kernel.spilled_registers);
  }
  return registers;
}

}  // namespace

void rank_compiled(const Operation& operation, const DeviceInfo& target,
                   std::vector<CompileOutcome>& outcomes) {
  if (outcomes.empty()) return;
  const StaticPrior prior(operation, outcomes.front().choice.problem, target);
  for (CompileOutcome& outcome : outcomes) {
    if (!outcome.compiled) continue;
    outcome.predicted = prior.cost(outcome.choice.config, registers_of(*outcome.compiled));
  }
  const auto cost = [](const CompileOutcome& outcome) {
    return outcome.predicted.value_or(std::numeric_limits<double>::infinity());
  };
  std::stable_sort(
      outcomes.begin(), outcomes.end(),
      [&](const CompileOutcome& a, const CompileOutcome& b) { return cost(a) < cost(b); });
  const double least = cost(outcomes.front());
  for (CompileOutcome& outcome : outcomes) {
    if (outcome.predicted) *outcome.predicted /= least;
  }
}

}  // namespace greta::tuner
