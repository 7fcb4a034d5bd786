#pragma once

#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// Up to this schema, attention's mask was a dimension, causal=0 or causal=1, and rope's place an
/// attribute called output. The text of these two never changes with the operations.
constexpr int last_schema_of_earlier_keys = 4;

/// A problem's key, or its dimensions' text, as it has been written since; others stay as they are.
std::string today_key(std::string_view earlier);
std::string today_dims(std::string_view earlier);
/// A key as it was written until then.
std::string earlier_key(std::string_view today);

}  // namespace greta::db
