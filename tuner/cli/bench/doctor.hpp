#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/bench/health.hpp"

namespace greta::tuner::cli {

/// Runs health checks on a device, each in a separate process, prints one line per check to
/// `stream`, and records failures, and those that no longer occur, in the database. After a failure
/// that makes the whole device unsafe, the remaining checks are skipped.
std::vector<Health> run_doctor(const ProbedDevice& device, TunedDb& db,
                               const std::vector<std::string>& checks,
                               std::chrono::seconds deadline, std::FILE* stream);

/// Returns the number of failed checks.
int failures_of(const std::vector<Health>& checks);

}  // namespace greta::tuner::cli
