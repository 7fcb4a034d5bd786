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

// The forms that single values take in the database's columns and in JSON.

/// How a trial ended, as it is written to the database and to JSON: "ok", or the failure's name.
std::string_view status_text(const std::optional<Status>& failure);
/// The inverse; throws Error for an unknown name.
std::optional<Status> status_from_text(std::string_view text);

/// Where a regret comes from: "same", "tie", "trials" or "measured"; the inverse throws Error.
std::string_view to_string(Regret::Source source);
Regret::Source regret_source_from_text(std::string_view text);

/// The inverse of Config::text(): `variant NAME=VALUE …`. Throws Error on text of another form.
/// Which names and values are valid is for a Space to say.
Config config_from_text(std::string_view text);

/// JSON has no NaN and no infinities: they become the strings "NaN", "Infinity" and "-Infinity".
nlohmann::json json_number(double value);
/// The inverse; throws Error for anything else, calling it `name`.
double number_from_json(const nlohmann::json& json, std::string_view name);

/// A JSON array of such numbers.
nlohmann::json json_numbers(const std::vector<double>& values);
std::vector<double> numbers_from_json(const nlohmann::json& json, std::string_view name);

}  // namespace greta::db
