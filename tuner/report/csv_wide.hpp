#pragma once

#include <string>
#include <vector>

#include "tuner/measure/measured_result.hpp"

namespace greta::tuner {

/// Returns results as CSV with a header, in which each dimension, each attribute and each parameter
/// that occurs has a column of its own: dim_m, attribute_layout, param_BM (docs/csv.md). Fields
/// that do not apply are empty, and samples are omitted, so that statistics programs read it as it
/// is.
std::string csv_wide(const std::vector<MeasuredResult>& results);

}  // namespace greta::tuner
