#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tuner/isa/loop_figures.hpp"

namespace greta::tuner {

/// Returns the figures of a main loop as indented lines of text.
std::string loop_text(const LoopFigures& figures);

/// Returns them as a JSON object; docs/json.md describes the fields.
nlohmann::json loop_json(const LoopFigures& figures);

}  // namespace greta::tuner
