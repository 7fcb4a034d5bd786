#pragma once

#include <string>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Returns the attribute "format" of an operation on numbers of eight bits. `what`: the operands
/// that have them.
Attribute byte_format_attribute(const std::string& what);

}  // namespace greta::kernels
