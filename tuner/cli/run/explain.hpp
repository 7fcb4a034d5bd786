#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "runtime/pipeline/llama/runner.hpp"

namespace greta::tuner::cli {

/// What a pass runs, as a table: operation by operation, those of all layers together, with the
/// configuration, where it came from and what it gains over the default. `times`: of each
/// operation, or empty.
std::string explain_text(const PipelineGraph& pass, const std::vector<OperationTime>& times);

/// Told a pass that has been given what it works on, so that it may be timed.
using PassVisit = std::function<void(std::int64_t tokens, const PipelineGraph& pass)>;

/// Feeds a prompt from the start, then the likeliest tokens behind it where there is room, and
/// visits the pass that took the prompt's end, then the one for a token, where that is another.
void visit_passes(LlamaRunner& runner, std::span<const std::int32_t> prompt,
                  const PassVisit& visit);

}  // namespace greta::tuner::cli
