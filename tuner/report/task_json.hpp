#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tuner/tuning/tuner_options.hpp"

namespace greta::tuner {

/// Returns the result of a task as one JSON object: report_json() of its session, or those of all
/// devices and their comparison (docs/json.md).
nlohmann::json task_json(const TaskResult& result, const std::string& database);

}  // namespace greta::tuner
