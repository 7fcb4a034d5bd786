#pragma once

#include <string>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// A text that a JSON parser accepts, made from one that a tool wrote.
struct CompletedJson {
  std::string text;
  bool completed = false;  ///< whether its end was missing
};

/// Replaces NaN and infinities, which Python writes and JSON lacks, by null. If the end is missing,
/// as in a file that a tool was appending to, drops what is incomplete after the last complete
/// entry and adds the closing brackets. The text is not checked otherwise.
CompletedJson complete_json(std::string text);

}  // namespace greta::tuner
