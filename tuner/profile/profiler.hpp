#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/evaluate/local_evaluator.hpp"
#include "tuner/profile/profile.hpp"

namespace greta::tuner {

/// What to profile.
struct ProfileRequest {
  struct Way {
    std::string name;  ///< "default", "winner", "config"
    Config config;
  };
  Problem problem;
  std::vector<Way> ways;  ///< speed-ups are those over the way named "default", if there is one
  bool cold = true;
  double run_s = 30;    ///< deadline of one launch, in seconds
  double seconds = 5;   ///< time limit of the rounds
  bool energy = false;  ///< also measure the energy of a launch
  std::uint64_t seed = 0;
  std::vector<Ceiling> ceilings{};  ///< of the device
};

/// Creates an evaluator that counts, in a process of its own. May throw Error.
using OpenCounting = std::function<std::unique_ptr<Evaluator>()>;

/// Verifies the ways and times them in interleaved rounds with `timing`. Then counts each with the
/// evaluator of `counting`, which is opened after all times were taken, so that nothing is timed
/// where counters are on. `announce` is told what is about to be done.
Profile profile(Evaluator& timing, const OpenCounting& counting, const ProfileRequest& request,
                const std::function<void(const std::string&)>& announce);

/// Launches a configuration once on random inputs, unverified and untimed, for a profiler that
/// watches this process. If `cold`, the kernel that flushes the caches (greta_read) runs before, as
/// it does when the configuration is counted. No other kernel runs.
Result<void> launch_once(const EvaluatorOptions& options, const Problem& problem,
                         const Config& config, bool cold, double run_s);

}  // namespace greta::tuner
