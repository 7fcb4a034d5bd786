#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/compile/compiled_choice.hpp"

namespace greta::tuner {

/// For people: the target, then for each configuration a line for each of its kernels: registers,
/// spills, memory, matrix instructions, and how many waves a SIMD holds and why not more. What
/// failed says why.
std::string compile_text(const DeviceInfo& target, const std::vector<CompileOutcome>& outcomes);

/// The same as one object; fields in docs/json.md.
nlohmann::json compile_json(const DeviceInfo& target, const std::vector<CompileOutcome>& outcomes);

}  // namespace greta::tuner
