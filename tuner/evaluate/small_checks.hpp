#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/sampling/small_problems.hpp"
#include "tuner/evaluate/workload.hpp"

namespace greta::tuner {

/// Checks candidates of one problem on small problems that run the same compiled kernels, with
/// adversarial inputs. These detect kernels that are correct only if no tile is partial. Workloads
/// are created once and shared by all candidates.
class SmallChecks {
 public:
  /// The operation must outlive this object.
  SmallChecks(const Operation& operation, const Problem& problem, const DeviceInfo& device,
              std::uint64_t seed)
      : operation_(operation),
        problem_(problem),
        seed_(seed),
        problems_(operation, problem, device, seed) {}

  const Problem& problem() const { return problem_; }
  /// `plan` is the candidate's plan. Appends the checks to `method`. A failure names the small
  /// problem. After `out_of_memory` the candidate may be correct, but it was not verified.
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
