#pragma once

#include <nlohmann/json.hpp>

#include "db/counters.hpp"
#include "db/determinism.hpp"
#include "db/trial.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

// JSON conversions for the database, worker processes and --json output. The field names are
// documented in docs/json.md and stable.

nlohmann::json to_json(const Config& config);
nlohmann::json to_json(const Verdict& verdict);
/// Returns {"runs", "busy", "differing"}, or null if it is not known.
nlohmann::json to_json(const std::optional<Determinism>& determinism);
/// Only what is known.
nlohmann::json to_json(const CardState& state);
CardState card_state_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Measurement& measurement);
/// Figures that the GPU does not count are missing.
nlohmann::json to_json(const Counters& counters);
nlohmann::json to_json(const std::vector<KernelFigures>& kernels);
nlohmann::json to_json(const Trial& trial);
nlohmann::json to_json(const Winner& winner);
nlohmann::json to_json(const DeviceInfo& device);

/// The inverse functions. They throw Error for a value of the wrong form. Fields of a device that
/// do not identify it may be missing, because older versions of GRETA did not write them. Such
/// fields keep their defaults.
Config config_from_json(const nlohmann::json& json);
Verdict verdict_from_json(const nlohmann::json& json);
Measurement measurement_from_json(const nlohmann::json& json);
std::vector<KernelFigures> kernels_from_json(const nlohmann::json& json);
Trial trial_from_json(const nlohmann::json& json);
DeviceInfo device_from_json(const nlohmann::json& json);

}  // namespace greta::db
