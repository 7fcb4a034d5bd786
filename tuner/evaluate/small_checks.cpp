#include "tuner/evaluate/small_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace greta::tuner {
namespace {

// Limits on the workloads that are kept, which otherwise grow with the number of candidates.
constexpr std::size_t most_made = 128;
constexpr std::uint64_t most_check_bytes = std::uint64_t{1} << 28;

std::uint64_t bytes_of_operands(const Workload& workload) {
  std::uint64_t bytes = 0;
  for (const TensorSpec& spec : workload.operands().specs()) bytes += spec.bytes();
  return bytes;
}

}  // namespace

SmallChecks::SmallChecks(const Operation& operation, const Problem& problem,
                         const DeviceInfo& device, std::uint64_t seed, const Config& first,
                         const LaunchPlan& plan)
    : operation_(operation),
      problem_(problem),
      seed_(seed),
      problems_(operation, problem, device, seed, first, plan) {}

std::vector<SmallChecks::Case> SmallChecks::choose(const Config& config,
                                                   const LaunchPlan& plan) const {
  std::vector<Case> cases;
  for (auto& small : problems_.with_kernels_of(config, plan, operation_.checks.small)) {
    cases.push_back({std::move(small), seed_});
  }
  for (std::uint64_t seed = seed_ + 1; cases.size() + 1 < operation_.checks.inputs; ++seed) {
    cases.push_back({{problem_, plan}, seed});
  }
  return cases;
}

void SmallChecks::prepare(const Config& config, const LaunchPlan& plan) {
  if (prepared_.contains(config)) return;
  prepared_.emplace(config, std::async(std::launch::async, [this, config, plan] {
                      auto cases = choose(config, plan);
                      compute_host_data(cases);
                      return cases;
                    }));
}

std::vector<SmallChecks::Case> SmallChecks::chosen_for(const Config& config,
                                                       const LaunchPlan& plan) {
  const auto found = prepared_.find(config);
  if (found == prepared_.end()) return choose(config, plan);
  auto chosen = found->second.get();
  prepared_.erase(found);
  return chosen;
}

void SmallChecks::compute_host_data(const std::vector<Case>& cases) {
  for (const auto& [small, seed] : cases) {
    std::promise<HostData> promise;
    {
      const std::lock_guard lock(mutex_);
      const std::pair key(small.problem.key(), seed);
      if (!host_data_.emplace(key, promise.get_future()).second) continue;
    }
    try {
      promise.set_value(host_data(operation_, small.problem, seed, InputStyle::adversarial));
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  }
}

HostData SmallChecks::take_host_data(const Problem& problem, std::uint64_t seed) {
  std::future<HostData> computed;
  {
    const std::lock_guard lock(mutex_);
    auto& entry = host_data_[{problem.key(), seed}];
    computed = std::exchange(entry, {});
  }
  if (computed.valid()) return computed.get();
  return host_data(operation_, problem, seed, InputStyle::adversarial);
}

void SmallChecks::forget_oldest() {
  const std::lock_guard lock(mutex_);
  host_data_.erase({made_.front().load->problem().key(), made_.front().seed});
  made_.erase(made_.begin());
}

Result<Workload*> SmallChecks::workload(Device& device, const Problem& problem,
                                        std::uint64_t seed) {
  const auto known = std::find_if(made_.begin(), made_.end(), [&](const Made& made) {
    return made.seed == seed && made.load->problem() == problem;
  });
  if (known != made_.end()) return known->load.get();
  auto created = Workload::create(device, operation_, problem, Bounds::fenced);
  if (!created) return created.failure();
  auto made = std::make_unique<Workload>(*std::move(created));
  auto set = made->set_inputs(device, seed, InputStyle::adversarial, take_host_data(problem, seed));
  if (!set) return set.failure();
  made_.push_back({std::move(made), seed});
  std::uint64_t bytes = 0;
  for (const Made& one : made_) bytes += bytes_of_operands(*one.load);
  for (; made_.size() > 1 && (made_.size() > most_made || bytes > most_check_bytes);
       forget_oldest()) {
    bytes -= bytes_of_operands(*made_.front().load);
  }
  return made_.back().load.get();
}

Result<void> SmallChecks::check_once(Device& device, Stream& stream, const Case& one,
                                     const PreparedPlan& candidate, double run_s) {
  auto load = workload(device, one.small.problem, one.seed);
  if (!load) return load.failure();
  const auto prepared = candidate.with_launches(device, one.small.plan, (*load)->operands());
  if (!prepared) return prepared.failure();
  Verdict verdict;
  return (*load)->check(device, stream, *prepared, run_s, verdict);
}

// As for the problem itself, a candidate that fails is checked a second time on newly created
// operands. So is a candidate for which memory was insufficient, after the cached workloads are
// freed.
Result<void> SmallChecks::check_on(Device& device, Stream& stream, const Case& one,
                                   const PreparedPlan& candidate, double run_s) {
  for (int attempt = 0;; ++attempt) {
    auto right = check_once(device, stream, one, candidate, run_s);
    if (right) return right;
    while (!made_.empty()) forget_oldest();
    device.trim();
    const Status status = right.failure().status;
    const bool again = status == Status::correctness || status == Status::out_of_memory;
    if (!again || attempt > 0) return right;
  }
}

Result<void> SmallChecks::check(Device& device, Stream& stream, const Config& config,
                                const LaunchPlan& plan, const PreparedPlan& candidate, double run_s,
                                std::string& method) {
  const auto cases = chosen_for(config, plan);
  failed_on_.reset();
  std::size_t small = 0;
  for (const Case& one : cases) {
    const bool is_small = one.small.problem != problem_;
    small += is_small ? 1 : 0;
    const auto right = check_on(device, stream, one, candidate, run_s);
    if (right) continue;
    failed_on_ = one;
    Failure failure = right.failure();
    const bool unverified = failure.status == Status::out_of_memory;
    failure.message =
        fmt::format("{}on {}, {}: {}", unverified ? "not verified " : "", one.small.problem.key(),
                    is_small ? "which has the same kernels" : "with other inputs", failure.message);
    return failure;
  }
  method += small == 0 ? "; no small problem has the same kernels"
                       : fmt::format("; {} small problem{} with the same kernels", small,
                                     small == 1 ? "" : "s");
  if (cases.size() > small) method += fmt::format("; {} other inputs", cases.size() - small);
  return {};
}

}  // namespace greta::tuner
