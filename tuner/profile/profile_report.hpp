#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/profile/figures.hpp"
#include "tuner/profile/profile.hpp"

namespace greta::tuner {

/// Returns a profile as text: the ways, a table with a row for each figure and a column for each
/// way and the roofline, and what limits each way.
std::string profile_text(const Profile& profile);

/// Returns it as one JSON object; docs/json.md describes the fields.
nlohmann::json profile_json(const Profile& profile);

/// Returns a figure with its unit: "34.1 MiB", "71 %".
std::string figure_text(const Figure& figure, double value);

}  // namespace greta::tuner
