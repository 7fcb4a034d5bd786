#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// What a process of GRETA's own printed as its result: the last line that is a JSON object whose
/// first key is `key`, as drivers may have written something as well. Empty where there is none.
nlohmann::json printed_result(const std::string& output, const std::string& key);

}  // namespace greta::tuner
