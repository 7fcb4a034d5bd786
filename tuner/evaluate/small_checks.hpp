#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/small_problems.hpp"
#include "tuner/evaluate/workload.hpp"

namespace greta::tuner {

/// Checks candidates of one problem on small ones as well that run the same compiled kernels, with
/// adversarial inputs: those find a kernel that is right only where no part of the problem is
/// incomplete. Workloads are made once and used by all candidates.
class SmallChecks {
 public:
  /// The operation must outlive it.
  SmallChecks(const Operation& operation, const Problem& problem, const DeviceInfo& device,
              std::uint64_t seed)
      : operation_(operation),
        problem_(problem),
        seed_(seed),
        problems_(operation, problem, device, seed) {}

  const Problem& problem() const { return problem_; }
  /// `plan` is the candidate's. Adds to `method` what was checked. A failure names the small
  /// problem. With `out_of_memory` the candidate may be right, but was not verified.
  Result<void> check(Device& device, Stream& stream, const Config& config, const LaunchPlan& plan,
                     const PreparedPlan& candidate, double run_s, std::string& method);

 private:
  Result<void> check_once(Device& device, Stream& stream, const SmallProblem& small,
                          const PreparedPlan& candidate, double run_s);
  Result<void> check_on(Device& device, Stream& stream, const SmallProblem& small,
                        const PreparedPlan& candidate, double run_s);
  Result<Workload*> workload(Device& device, const Problem& problem);

  const Operation& operation_;
  Problem problem_;
  std::uint64_t seed_;
  SmallProblems problems_;
  std::vector<std::unique_ptr<Workload>> made_;
};

}  // namespace greta::tuner
