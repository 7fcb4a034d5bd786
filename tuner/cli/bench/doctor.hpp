#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/bench/health.hpp"

namespace greta::tuner::cli {

/// Runs health checks on a device, each in a process of its own, prints a line for each on
/// `stream`, and records in the database what fails and what does not fail any more. After a failed
/// check that makes the whole device unsafe, those behind it are left out.
std::vector<Health> run_doctor(const ProbedDevice& device, TunedDb& db,
                               const std::vector<std::string>& checks,
                               std::chrono::seconds deadline, std::FILE* stream);

/// How many of them failed.
int failures_of(const std::vector<Health>& checks);

}  // namespace greta::tuner::cli
