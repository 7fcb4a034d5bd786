#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/sampling/small_problems.hpp"
#include "tuner/evaluate/workload.hpp"

namespace greta::tuner {

/// Checks candidates of one problem on small problems that run the same compiled kernels, with
/// adversarial inputs, and where these are fewer inputs than the operation wants
/// (Operation::checks), on the problem itself with other inputs. Small problems detect kernels that
/// are correct only if no tile is partial. Workloads are created once and shared by all candidates.
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
  struct Case {
    SmallProblem small;  ///< or the problem itself
    std::uint64_t seed;  ///< of the inputs, which are adversarial
  };
  /// Returns what the last candidate failed on, if it did.
  const std::optional<Case>& failed_on() const { return failed_on_; }

 private:
  struct Made {
    std::unique_ptr<Workload> load;
    std::uint64_t seed;
  };

  std::vector<Case> choose(const Config& config, const LaunchPlan& plan) const;
  std::vector<Case> chosen_for(const Config& config, const LaunchPlan& plan);
  /// Computes the host data of these cases, unless it exists or is being computed.
  void compute_host_data(const std::vector<Case>& cases);
  HostData take_host_data(const Problem& problem, std::uint64_t seed);
  void forget_oldest();
  Result<void> check_once(Device& device, Stream& stream, const Case& one,
                          const PreparedPlan& candidate, double run_s);
  Result<void> check_on(Device& device, Stream& stream, const Case& one,
                        const PreparedPlan& candidate, double run_s);
  Result<Workload*> workload(Device& device, const Problem& problem, std::uint64_t seed);

  const Operation& operation_;
  Problem problem_;
  std::uint64_t seed_;
  const SmallProblems problems_;
  std::vector<Made> made_;  ///< oldest first
  std::optional<Case> failed_on_;
  std::mutex mutex_;  ///< of host_data_
  /// By problem and seed. Data that a workload of made_ has taken is no longer valid().
  std::map<std::pair<std::string, std::uint64_t>, std::future<HostData>> host_data_;
  std::map<Config, std::future<std::vector<Case>>> prepared_;
};

}  // namespace greta::tuner
