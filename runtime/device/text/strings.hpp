#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Replaces every occurrence of `from`, which isn't empty, from left to right.
inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t at = 0;
  for (std::size_t found = text.find(from); found != std::string::npos;
       found = text.find(from, at)) {
    result.append(text, at, found - at).append(to);
    at = found + from.size();
  }
  text = result.append(text, at);
}

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

/// Returns "nn, nt or tn".
inline std::string one_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : " or ";
    text += names[i];
  }
  return text;
}

}  // namespace greta::device
