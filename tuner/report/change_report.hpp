#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "db/answer_changes.hpp"

namespace greta::tuner {

/// Returns a table of the problems whose answers changed, and a line with the number of each
/// change.
std::string change_text(const std::vector<AnswerChange>& changes);
/// Returns one object for each problem (docs/json.md).
nlohmann::json change_json(const std::vector<AnswerChange>& changes);

/// Returns whether an answer became worse or was lost.
bool lost_ground(const std::vector<AnswerChange>& changes);

}  // namespace greta::tuner
