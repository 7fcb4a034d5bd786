#pragma once

#include <cstdint>
#include <string>

#include "kernels/model/problem.hpp"
#include "kernels/model/weight_formats.hpp"

namespace greta::kernels {

/// Returns the weights of a row that share a scale beside them: as many as the format always has,
/// or the problem's attribute `group`; 0 if the weights are in blocks.
inline std::int64_t group_length(const Problem& problem, WeightFormat format) {
  if (in_blocks(format)) return 0;
  const std::int64_t only = only_group(format);
  return only > 0 ? only : std::stoll(problem.attribute("group", "128"));
}

}  // namespace greta::kernels
