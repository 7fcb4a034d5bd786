#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/device/backend.hpp"

namespace greta::tuner::cli {

/// What an API found on this machine, as docs/json.md has it.
nlohmann::json probe_json(std::string_view backend, const Probe& probe);

}  // namespace greta::tuner::cli
