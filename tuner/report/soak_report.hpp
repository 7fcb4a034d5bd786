#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tuner/bench/soak.hpp"

namespace greta::tuner {

/// Returns "1 h 2 min", "12 min 5 s", "5.0 s".
std::string format_duration(double seconds);

/// Returns the judgement of a soak as text: a line for each kernel, the memory, the card's sensors,
/// and the verdict.
std::string soak_text(const SoakSummary& summary);

/// Returns the same as one object (docs/json.md).
nlohmann::ordered_json soak_json(const SoakSummary& summary, const std::string& device,
                                 double planned_s, bool interrupted);

/// Returns the first line of a file of turns, and the line of a turn (docs/csv.md).
std::string soak_csv_header();
std::string soak_csv_line(const SoakTurn& turn, const std::string& benchmark);

}  // namespace greta::tuner
