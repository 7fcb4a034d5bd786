#pragma once

#include <algorithm>
#include <string_view>

#include "runtime/device/layers.hpp"

/// Names as C has them, in ASCII and independent of the locale.
namespace greta::kernels::described {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
/// Whether it may stand in a name after the first character.
constexpr bool is_in_name(char c) {
  return begins_name(c) || is_digit(c);
}
inline bool is_name(std::string_view text) {
  return !text.empty() && begins_name(text[0]) && std::all_of(text.begin(), text.end(), is_in_name);
}

}  // namespace greta::kernels::described
