#pragma once

#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// SQL for the name of a table, a column or a trigger, whatever characters it has. Names that a
/// file gives may have any.
std::string identifier(std::string_view name);

/// SQL for a text.
std::string text_literal(std::string_view text);

}  // namespace greta::db
