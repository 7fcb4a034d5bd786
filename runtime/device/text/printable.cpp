#include "runtime/device/text/printable.hpp"

#include <fmt/format.h>

#include <iterator>

#include "runtime/device/text/utf8.hpp"

namespace greta::device {
namespace {

unsigned byte_of(char c) {
  return static_cast<unsigned char>(c);
}

/// Whether a well-formed UTF-8 character is one of C1.
bool is_c1(std::string_view character) {
  return character.size() == 2 && byte_of(character[0]) == 0xc2 && byte_of(character[1]) < 0xa0;
}

bool is_control(std::string_view character) {
  const unsigned first = byte_of(character[0]);
  return first < 0x20 || first == 0x7f || is_c1(character);
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Start start = first_character(text);
    const std::string_view character = text.substr(0, start.bytes);
    if (kept.find(character[0]) != std::string_view::npos ||
        (start.kind == Utf8Start::Kind::character && !is_control(character))) {
      result += character;
    } else {
      for (const char c : character)
        fmt::format_to(std::back_inserter(result), "\\x{:02x}", byte_of(c));
    }
    text.remove_prefix(start.bytes);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) {
  return escaped(text, "\n\t");
}

std::string one_line(std::string_view text) {
  return escaped(text, "");
}

std::string printable_json(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool c1 = is_c1(text.substr(i, 2));
    if (!c1 && byte_of(text[i]) != 0x7f) {
      result += text[i];
      continue;
    }
    i += c1 ? 1 : 0;
    fmt::format_to(std::back_inserter(result), "\\u00{:02x}", byte_of(text[i]));
  }
  return result;
}

}  // namespace greta::device
