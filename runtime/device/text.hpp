#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Returns the text up to its first newline.
inline std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

/// Returns the text with ASCII letters in lower case.
inline std::string lowercase(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace greta::device
