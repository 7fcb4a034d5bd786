#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// The first character of a text, or the bytes that prevent one.
struct Utf8Start {
  enum class Kind {
    character,   ///< one character, of `bytes` bytes
    incomplete,  ///< all `bytes` bytes of the text, which more bytes could complete to a character
    invalid,     ///< `bytes` bytes that can't begin a character, to be shown as one U+FFFD
  };
  Kind kind = Kind::character;
  std::size_t bytes = 0;
};

/// Classifies the first character of a non-empty text. Well-formed sequences and maximal subparts
/// are those of the Unicode Standard, table 3-7.
Utf8Start first_character(std::string_view text);

/// Returns the position of the first byte that is not UTF-8, or nothing if the whole text is UTF-8.
std::optional<std::size_t> invalid_utf8(std::string_view text);

/// Returns the text without the byte order mark that some editors write at its beginning.
constexpr std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

constexpr std::string_view replacement_character = "\xef\xbf\xbd";  ///< U+FFFD

}  // namespace greta::device
