#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tuner/session/session.hpp"

namespace greta {

/// What a session found, for people: the winner, its time, rate and share of the roofline, the
/// ratio to the default, the error against its bound, trials by status, why candidates were
/// rejected, and where the result went.
std::string report_text(const SessionResult& result, const std::string& database);

/// The same as one object; fields in docs/json.md.
nlohmann::json report_json(const SessionResult& result, const std::string& database);

/// The first line of every CSV file; columns in docs/csv.md.
std::string csv_header();
/// One line for each trial, then the default and the winner as certified.
std::string csv_rows(const SessionResult& result, bool cold, const std::string& date);

}  // namespace greta
