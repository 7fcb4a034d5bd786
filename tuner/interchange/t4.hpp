#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta {

/// Trials of one problem on one device in the T4 results format 1.0.0 of auto-tuning tools, as
/// Kernel Tuner writes it: configuration (parameters and "variant"), times in milliseconds,
/// validity, and the objective "time". What T4 has no field for (the error and its bound,
/// intervals, registers) is among the measurements. Source: odgaard/TuningSchema on GitHub.
nlohmann::json t4_json(const StoredSession& session, const std::vector<Trial>& trials);

}  // namespace greta
