#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/bench/gate.hpp"
#include "tuner/cli/bench/table.hpp"

namespace greta::tuner::cli {

/// Returns the results of a run as one object (docs/json.md).
nlohmann::ordered_json bench_json(const std::string& preset, const std::vector<NamedResult>& rows,
                                  const std::vector<GateResult>& gates,
                                  const std::vector<PartsResult>& parts);

}  // namespace greta::tuner::cli
