#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::tuner {

/// Returns trials of one problem on one device in the T4 results format 1.1 of auto-tuning tools,
/// as Kernel Tuner writes it and autotuning_methodology reads it: configuration (parameters and
/// "variant"), times in milliseconds, validity, and the objective "time", which is the name of an
/// error for a failed configuration. The measurements also contain values that T4 has no field for:
/// the error and its bound, intervals, registers. Source: odgaard/TuningSchema on GitHub, branch
/// T4.
nlohmann::json t4_json(const StoredSession& session, const std::vector<Trial>& trials);

}  // namespace greta::tuner
