#pragma once

#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// Returns SQL for the name of a table, a column or a trigger. Names that come from a file may
/// contain any characters.
std::string identifier(std::string_view name);

/// Returns SQL for a text.
std::string text_literal(std::string_view text);

}  // namespace greta::db
