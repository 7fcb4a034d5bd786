#pragma once

#include <string>
#include <string_view>

namespace greta {

/// A text up to its first newline.
inline std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace greta
