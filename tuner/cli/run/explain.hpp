#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "runtime/pipeline/llama/runner.hpp"

namespace greta::tuner::cli {

/// Returns the operations of a pass as a table, with those of all layers merged: the configuration,
/// its origin and its gain over the default. `times` has one entry per operation, or is empty.
std::string explain_text(const PipelineGraph& pass, const std::vector<OperationTime>& times);

/// Returns the same as JSON (docs/json.md).
nlohmann::json explain_json(const PipelineGraph& pass, const std::vector<OperationTime>& times);

/// Returns a table of the alternatives that are used for chains of operations (docs/fusion.md);
/// empty if there are none.
std::string chains_table(const std::vector<ChosenChain>& chains);

/// Returns the label of an operation without its layer: "attention", from "layer 3 attention".
std::string name_of_operation(const std::string& label);

/// Receives a pass with valid inputs, so that it may be timed.
using PassVisit = std::function<void(std::int64_t tokens, const PipelineGraph& pass)>;

/// Feeds a prompt from the start, then the likeliest next tokens if there is room. Visits the pass
/// of the prompt's end, then the pass of a single token if it differs.
void visit_passes(LlamaRunner& runner, std::span<const std::int32_t> prompt,
                  const PassVisit& visit);

}  // namespace greta::tuner::cli
