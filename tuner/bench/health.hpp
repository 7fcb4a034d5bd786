#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tuner/evaluate/local_evaluator.hpp"

namespace greta::tuner {

/// A configuration that a check ran, on inputs drawn from `seed`.
struct CheckedChoice {
  std::string problem;  ///< problem key
  std::string config;   ///< configuration as text
  std::uint64_t seed = 0;
  std::string status;   ///< as status_text(); "running" until known
  std::string message;  ///< the failure; empty if correct
  std::string log;      ///< output of a compiler

  bool failed() const { return status != "ok" && status != "running"; }
};

/// The result of a health check.
struct Health {
  std::string check;              ///< a name from check_names()
  std::optional<Status> failure;  ///< empty: passed, or nothing to check
  std::string message;            ///< what passed, what failed, or why there is nothing to check
  bool applies = true;            ///< whether the device has what is checked
  std::vector<CheckedChoice> choices;  ///< configurations in the order they ran
  std::string errors;                  ///< standard error of the check's process
  double seconds = 0;                  ///< duration
};

/// Returns "passed: 7 configurations correct", "FAILED, crash: …".
std::string health_text(const Health& health);

/// Runs one check in this process, which it may crash. Failures that this process survives are in
/// the result. `tell` is called before and after each configuration.
Health check_health(const std::string& check, const EvaluatorOptions& options,
                    const std::function<void(const CheckedChoice&)>& tell, double launch_s);

/// Runs one check in a separate process, which is killed at the deadline or after a stop. `command`
/// starts a program that calls serve_health_check(), with these arguments appended: check, device,
/// cache directory, seconds of a launch.
Health check_health_apart(const std::vector<std::string>& command, const std::string& check,
                          const std::string& device, const std::string& cache_directory,
                          std::chrono::seconds deadline, const std::atomic<bool>* stop = nullptr);

/// Runs that process: prints the configurations and the result on standard output, and the log on
/// standard error. A launch times out after `launch_s`. Returns an exit code.
int serve_health_check(const std::string& check, const EvaluatorOptions& options, double launch_s);

}  // namespace greta::tuner
