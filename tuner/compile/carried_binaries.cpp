#include "tuner/compile/carried_binaries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <thread>

#include "runtime/device/system/utc.hpp"

namespace greta::tuner {

void WantedKernels::add(const Lookup& lookup, const Problem& problem) {
  const Operation& operation = lookup.catalog().at(problem.op);
  const Answer answer = lookup.answer(problem);
  const auto plan = operation.plan(problem, lookup.device(), answer.config);
  if (!plan) throw Error(plan.failure());
  for (const KernelSource& source : plan->sources) {
    if (source.call || !known_.insert(source.content_key({}, {})).second) continue;
    sources_.push_back(source);
  }
}

Result<std::vector<CarriedBinary>> compile_binaries(const std::vector<KernelSource>& sources,
                                                    BinaryCompiler& compiler, unsigned jobs) {
  using Outcome = Result<std::vector<TargetBinary>>;
  std::vector<std::optional<Outcome>> outcomes(sources.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < sources.size(); i = next++)
      outcomes[i] = compiler.compile(sources[i]);
  };
  const std::size_t most = jobs == 0 ? std::max(1U, std::thread::hardware_concurrency()) : jobs;
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min(most, sources.size()); ++i) threads.emplace_back(work);
  work();
  threads.clear();  // joins
  std::vector<CarriedBinary> binaries;
  const std::string now = utc_now();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Outcome& outcome = *outcomes[i];
    if (!outcome) {
      Failure failure = outcome.failure();
      if (!failure.message.starts_with(sources[i].name))
        failure.message = fmt::format("{}: {}", sources[i].name, failure.message);
      return failure;
    }
    for (const TargetBinary& one : *outcome) {
      binaries.push_back({sources[i].content_key({}, {}), one.target, sources[i].name, one.compiler,
                          one.binary, now});
    }
  }
  return binaries;
}

}  // namespace greta::tuner
