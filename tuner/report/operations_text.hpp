#pragma once

#include <string>

#include "kernels/catalog.hpp"

namespace greta::tuner {

/// Returns the catalog as text for a terminal, one line per operation.
std::string operations_text(const Catalog& operations);
/// Returns the catalog as in docs/kernels.md: dimensions, attributes, types and error bound of each
/// operation, and parameters and constraints of its variants. Since those depend on the problem and
/// device, they are given for the operation's first size on gfx942.
std::string operations_markdown(const Catalog& operations);

}  // namespace greta::tuner
