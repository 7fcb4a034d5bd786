#pragma once

#include <string>

#include "runtime/pipeline/compute/pipeline.hpp"

namespace greta {

/// What a pass runs, as a table: operation by operation, those of all layers together, with the
/// configuration, where it came from and what it gains over the default. `times`: of each
/// operation, or empty.
std::string explain_text(const PipelineGraph& pass, const std::vector<OperationTime>& times);

}  // namespace greta
