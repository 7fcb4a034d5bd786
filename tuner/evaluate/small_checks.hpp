#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/sampling/small_problems.hpp"
#include "tuner/evaluate/workload.hpp"

namespace greta::tuner {

/// Checks candidates of one problem on small problems that run the same compiled kernels, with
/// adversarial inputs. These detect kernels that are correct only if no tile is partial. Workloads
/// are created once and shared by all candidates.
class SmallChecks {
 public:
  /// `first` is a configuration of the problem, with its plan (SmallProblems). The operation must
  /// outlive this object.
  SmallChecks(const Operation& operation, const Problem& problem, const DeviceInfo& device,
              std::uint64_t seed, const Config& first, const LaunchPlan& plan);

  const Problem& problem() const { return problem_; }
  /// Begins to choose a candidate's small problems and to compute their inputs and references, on
  /// another thread. The result of check() is the same without this call.
  void prepare(const Config& config, const LaunchPlan& plan);
  /// `plan` is the candidate's plan. Appends the checks to `method`. A failure names the small
  /// problem. After `out_of_memory` the candidate may be correct, but it was not verified.
  Result<void> check(Device& device, Stream& stream, const Config& config, const LaunchPlan& plan,
                     const PreparedPlan& candidate, double run_s, std::string& method);

 private:
  std::vector<SmallProblem> chosen_for(const Config& config, const LaunchPlan& plan);
  /// Computes the host data of these problems, unless it exists or is being computed.
  void compute_host_data(const std::vector<SmallProblem>& small);
  HostData take_host_data(const Problem& problem);
  void forget_oldest();
  Result<void> check_once(Device& device, Stream& stream, const SmallProblem& small,
                          const PreparedPlan& candidate, double run_s);
  Result<void> check_on(Device& device, Stream& stream, const SmallProblem& small,
                        const PreparedPlan& candidate, double run_s);
  Result<Workload*> workload(Device& device, const Problem& problem);

  const Operation& operation_;
  Problem problem_;
  std::uint64_t seed_;
  const SmallProblems problems_;
  std::vector<std::unique_ptr<Workload>> made_;  ///< oldest first
  std::mutex mutex_;                             ///< of host_data_
  /// By problem key. Data that a workload of made_ has taken is no longer valid().
  std::map<std::string, std::future<HostData>> host_data_;
  std::map<Config, std::future<std::vector<SmallProblem>>> prepared_;
};

}  // namespace greta::tuner
