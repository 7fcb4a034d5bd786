#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Parses JSON that a user wrote. Throws Error with one line if it is not JSON, or if an object has
/// a key twice, of which nlohmann::json would keep one.
nlohmann::json parse_json_text(const std::string& text);

}  // namespace greta::tuner
