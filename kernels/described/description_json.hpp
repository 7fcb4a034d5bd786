#pragma once

#include <string>

#include "kernels/described/description.hpp"
#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Returns what callers of a described kernel need to know as one JSON object: `name`, `summary`,
/// `language`, `dtype`, `out`, `dimensions` with `name`, `help`, `default` (null: required),
/// `least` and `most`, `parameters` with `name` and `values`, and `operands` with `name`, `role`,
/// `dtype` and the formulas of their `shape`.
std::string description_json(const Description& description, const Operation& operation);

}  // namespace greta::kernels
