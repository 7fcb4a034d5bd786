#pragma once

#include <string>

#include "kernels/catalog.hpp"

namespace greta::tuner {

/// The catalog as text for a terminal: a line for each operation.
std::string operations_text(const Catalog& operations);
/// The catalog as docs/kernels.md has it: dimensions, attributes, types and error bound of each
/// operation, parameters and constraints of its variants. Those depend on problem and device; they
/// are told for the operation's first size on gfx942.
std::string operations_markdown(const Catalog& operations);

}  // namespace greta::tuner
