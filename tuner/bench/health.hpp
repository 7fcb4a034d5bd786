#pragma once

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
  std::string problem;  ///< its key
  std::string config;   ///< its text
  std::uint64_t seed = 0;
  std::string status;   ///< as status_text(); "running" until it is known
  std::string message;  ///< what failed; empty when it is right
  std::string log;      ///< what a compiler said

  bool failed() const { return status != "ok" && status != "running"; }
};

/// How a health check ended.
struct Health {
  std::string check;                   ///< of check_names()
  std::optional<Status> failure;       ///< none: passed, or there is nothing to check
  std::string message;                 ///< what was right, what failed, or why there is nothing
  bool applies = true;                 ///< the device has what is checked
  std::vector<CheckedChoice> choices;  ///< what was run, in its order
  std::string errors;                  ///< standard error of its process
  double seconds = 0;                  ///< that it took
};

/// "passed: 7 configurations right", "FAILED, crash: …"
std::string health_text(const Health& health);

/// Runs one check in this process, which may not survive it. A failure that this process can tell
/// is in the result. `tell`: is called before each configuration and after it.
Health check_health(const std::string& check, const EvaluatorOptions& options,
                    const std::function<void(const CheckedChoice&)>& tell);

/// Runs one check in a process of its own, which is killed at the deadline. `command` starts a
/// program that calls serve_health_check() with these words: check, device, cache directory.
Health check_health_apart(const std::vector<std::string>& command, const std::string& check,
                          const std::string& device, const std::string& cache_directory,
                          std::chrono::seconds deadline);

/// What that process does: the check, its configurations and its result on standard output, and
/// the log on standard error. Returns an exit code.
int serve_health_check(const std::string& check, const EvaluatorOptions& options);

}  // namespace greta::tuner
