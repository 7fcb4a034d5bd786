#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/compile/compiled_choice.hpp"
#include "tuner/compile/kernel_loops.hpp"

namespace greta::tuner {

/// Returns a report as text: the target, then one line per kernel of each configuration with
/// registers, spills, memory, matrix instructions, and the waves per SIMD with the limiting
/// resource; on AMD GPUs two more lines on its main loop. A failed configuration has its reason.
std::string compile_text(const DeviceInfo& target, const std::vector<CompileOutcome>& outcomes);

/// Returns the report as one JSON object; docs/json.md describes the fields.
nlohmann::json compile_json(const DeviceInfo& target, const std::vector<CompileOutcome>& outcomes);

/// The same for the kernels of a code object, which is called `file`.
std::string code_object_text(const std::string& file, const CodeObjectKernels& contents);
nlohmann::json code_object_json(const std::string& file, const CodeObjectKernels& contents);

}  // namespace greta::tuner
