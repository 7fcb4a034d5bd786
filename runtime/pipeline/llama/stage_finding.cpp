#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/pipeline/llama/stages.hpp"
#include "runtime/pipeline/llama/trace_check.hpp"

namespace greta::runtime {

std::string stage_place(std::int64_t layer, LlamaStage stage) {
  return layer < 0 ? std::string(to_string(stage))
                   : fmt::format("layer {} {}", layer, to_string(stage));
}

double StageFinding::ratio() const {
  if (std::isnan(want)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  if (std::isnan(got)) return std::numeric_limits<double>::infinity();
  if (got == want || bound == std::numeric_limits<double>::infinity()) return 0;
  return std::abs(got - want) / bound;
}

std::string StageFinding::text() const {
  if (head >= 0) {
    return fmt::format(
        "{}: the weight of key {} for query {} of head {} is {:.9g}, expected {:.9g} within {:.3g} "
        "(ratio {:.3g})",
        stage_place(layer, stage), col, row, head, got, want, bound, ratio());
  }
  return fmt::format(
      "{}: row {}, column {} is {:.9g}, expected {:.9g} within {:.3g} (ratio {:.3g})",
      stage_place(layer, stage), row, col, got, want, bound, ratio());
}

std::optional<StageFinding> first_failure(const std::vector<StageFinding>& findings) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [](const StageFinding& one) { return !one.passed; });
  if (found == findings.end()) return std::nullopt;
  return *found;
}

}  // namespace greta::runtime
