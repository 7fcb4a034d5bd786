#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/compile/compiled_choice.hpp"

namespace greta::tuner {

/// Returns a report as text: the target, then one line per kernel of each configuration with
/// registers, spills, memory, matrix instructions, and the waves per SIMD with the limiting
/// resource. A failed configuration has its reason.
std::string compile_text(const DeviceInfo& target, const std::vector<CompileOutcome>& outcomes);

/// Returns the report as one JSON object; docs/json.md describes the fields.
nlohmann::json compile_json(const DeviceInfo& target, const std::vector<CompileOutcome>& outcomes);

}  // namespace greta::tuner
