#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/model/config.hpp"
#include "runtime/device/result.hpp"

namespace greta::db {

// Conversions of single values for the database's columns and for JSON.

/// Returns how a trial ended, as written to the database and to JSON: "ok", or the failure's name.
std::string_view status_text(const std::optional<Status>& failure);
/// The inverse. Throws Error for an unknown name.
std::optional<Status> status_from_text(std::string_view text);

/// Returns "plan", "search", "finals" or "lost". The inverse throws Error for other text.
std::string_view to_string(TrialPhase phase);
TrialPhase trial_phase_from_text(std::string_view text);

/// Returns "slower", "failed" or "slower elsewhere". The inverse throws Error for other text.
std::string_view to_string(Departure departure);
Departure departure_from_text(std::string_view text);

/// Returns the source of a regret: "same", "tie", "trials" or "measured". The inverse throws Error
/// for other text.
std::string_view to_string(Regret::Source source);
Regret::Source regret_source_from_text(std::string_view text);

/// The inverse of Config::text(): reads `variant NAME=VALUE …`. Throws Error for text of another
/// form. Names and values are not checked; that is done by a Space.
Config config_from_text(std::string_view text);

/// Converts a number to JSON. JSON has no NaN and no infinities: they become the strings "NaN",
/// "Infinity" and "-Infinity".
nlohmann::json json_number(double value);
/// The inverse. Throws Error, with `name` in the message, for anything else.
double number_from_json(const nlohmann::json& json, std::string_view name);

/// Converts numbers to a JSON array.
nlohmann::json json_numbers(const std::vector<double>& values);
std::vector<double> numbers_from_json(const nlohmann::json& json, std::string_view name);

}  // namespace greta::db
