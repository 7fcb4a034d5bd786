#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tuner/evaluate/local_evaluator.hpp"

namespace greta {

/// How a health check ended.
struct Health {
  std::string check;              ///< of check_names()
  std::optional<Status> failure;  ///< none: passed, or there is nothing to check
  std::string message;            ///< what was right, what failed, or why there is nothing
  bool applies = true;            ///< the device has what is checked
};

/// Runs one check in this process, which may not survive it. A failure that this process can tell
/// is in the result.
Health check_health(const std::string& check, const EvaluatorOptions& options);

/// Runs one check in a process of its own, which is killed at the deadline. `command` starts a
/// program that calls serve_health_check() with these words: check, device, cache directory.
Health check_health_apart(const std::vector<std::string>& command, const std::string& check,
                          const std::string& device, const std::string& cache_directory,
                          std::chrono::seconds deadline);

/// What that process does: the check, and its result on standard output. Returns an exit code.
int serve_health_check(const std::string& check, const EvaluatorOptions& options);

}  // namespace greta
