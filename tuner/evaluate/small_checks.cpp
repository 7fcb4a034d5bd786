#include "tuner/evaluate/small_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace greta::tuner {
namespace {

// Two problems would miss a bug of tests/tuner/small_checks_test.cpp, because each problem leaves
// some values unchanged.
constexpr std::size_t problems_of_candidate = 3;
constexpr std::size_t most_made = 32;

}  // namespace

Result<Workload*> SmallChecks::workload(Device& device, const Problem& problem) {
  const auto known = std::find_if(made_.begin(), made_.end(),
                                  [&](const auto& made) { return made->problem() == problem; });
  if (known != made_.end()) return known->get();
  if (made_.size() == most_made) made_.erase(made_.begin());
  auto created = Workload::create(device, operation_, problem);
  if (!created) return created.failure();
  auto made = std::make_unique<Workload>(*std::move(created));
  if (auto r = made->set_inputs(device, seed_, InputStyle::adversarial); !r) return r.failure();
  made_.push_back(std::move(made));
  return made_.back().get();
}

Result<void> SmallChecks::check_once(Device& device, Stream& stream, const SmallProblem& small,
                                     const PreparedPlan& candidate, double run_s) {
  auto load = workload(device, small.problem);
  if (!load) return load.failure();
  const auto prepared = candidate.with_launches(device, small.plan, (*load)->operands());
  if (!prepared) return prepared.failure();
  Verdict verdict;
  return (*load)->check(device, stream, *prepared, run_s, verdict);
}

// As for the problem itself, a candidate that fails is checked a second time on newly created
// operands. So is a candidate for which memory was insufficient, after the cached workloads are
// freed.
Result<void> SmallChecks::check_on(Device& device, Stream& stream, const SmallProblem& small,
                                   const PreparedPlan& candidate, double run_s) {
  for (int attempt = 0;; ++attempt) {
    auto right = check_once(device, stream, small, candidate, run_s);
    if (right) return right;
    made_.clear();
    device.trim();
    const Status status = right.failure().status;
    const bool again = status == Status::correctness || status == Status::out_of_memory;
    if (!again || attempt > 0) return right;
  }
}

Result<void> SmallChecks::check(Device& device, Stream& stream, const Config& config,
                                const LaunchPlan& plan, const PreparedPlan& candidate, double run_s,
                                std::string& method) {
  const auto small = problems_.with_kernels_of(config, plan, problems_of_candidate);
  for (const SmallProblem& one : small) {
    const auto right = check_on(device, stream, one, candidate, run_s);
    if (right) continue;
    Failure failure = right.failure();
    const bool unverified = failure.status == Status::out_of_memory;
    failure.message =
        fmt::format("{}on {}, which has the same kernels: {}", unverified ? "not verified " : "",
                    one.problem.key(), failure.message);
    return failure;
  }
  method += small.empty() ? "; no small problem has the same kernels"
                          : fmt::format("; {} small problem{} with the same kernels", small.size(),
                                        small.size() == 1 ? "" : "s");
  return {};
}

}  // namespace greta::tuner
