#pragma once

#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// The last schema in which attention's mask was a dimension, causal=0 or causal=1, and rope's
/// place was an attribute called output. The text of these two does not change if the operations
/// change.
constexpr int last_schema_of_earlier_keys = 4;

/// Converts a problem's key, or its dimensions' text, to the current form. Other texts are
/// unchanged.
std::string today_key(std::string_view earlier);
std::string today_dims(std::string_view earlier);

}  // namespace greta::db
