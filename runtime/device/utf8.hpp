#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// What a text begins with.
struct Utf8Start {
  enum class Kind {
    character,   ///< one character, of `bytes` bytes
    incomplete,  ///< all `bytes` bytes of the text, which may become a character
    invalid,     ///< `bytes` bytes that are none and become none, to be shown as one U+FFFD
  };
  Kind kind = Kind::character;
  std::size_t bytes = 0;
};

/// Looks at the first character of a text that isn't empty. Well-formed sequences and maximal
/// subparts are those of the Unicode Standard, table 3-7.
Utf8Start first_character(std::string_view text);

/// Where a text stops being UTF-8.
std::optional<std::size_t> invalid_utf8(std::string_view text);

constexpr std::string_view replacement_character = "\xef\xbf\xbd";  ///< U+FFFD

}  // namespace greta::device
