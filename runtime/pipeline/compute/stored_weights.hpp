#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "runtime/pipeline/compute/operations.hpp"
#include "runtime/pipeline/compute/request.hpp"

namespace greta::runtime {

/// Sets how quantised weights are stored, whose rows have as many elements as the extent `length`
/// of the problem. The options have a format, scales and zeros.
/// `scales_of_row`: the scales of a row; 0: as many as the scales have columns.
template <typename Options>
Result<void> set_weights(Problem& problem, const Options& options, const char* length,
                         std::int64_t scales_of_row = 0) {
  const std::string& operation = problem.op;
  if (options.format != kernels::WeightFormat::int4) {
    set(problem, "weights", std::string(kernels::traits(options.format).name));
  }
  const bool beside = !kernels::in_blocks(options.format);
  if (beside != static_cast<bool>(options.scales) || (options.zeros && !beside)) {
    return refused(operation.c_str(),
                   beside ? "int4, int8 and mxfp4 need scales"
                          : "blocks of weights hold their scales: none must be given");
  }
  if (beside && kernels::only_group(options.format) == 0) {
    const std::int64_t all = problem.dim(length);
    const std::int64_t groups =
        std::max<std::int64_t>(1, scales_of_row > 0 ? scales_of_row : cols_of(options.scales));
    if (all % groups != 0) {
      return refused(operation.c_str(),
                     fmt::format("{} groups of scales don't divide {}, {}", groups, length, all));
    }
    if (all / groups != 128) set(problem, "group", std::to_string(all / groups));
  }
  if (options.zeros) set(problem, "zeros", "groups");
  return {};
}

}  // namespace greta::runtime
