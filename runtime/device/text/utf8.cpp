#include "runtime/device/text/utf8.hpp"

namespace greta::device {

Utf8Start first_character(std::string_view text) {
  using enum Utf8Start::Kind;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {character, 1};
  if (first < 0xc2 || first > 0xf4) return {invalid, 1};
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  // After some first bytes, the range of the second byte is narrower: this excludes overlong forms,
  // surrogates, and numbers above U+10FFFF.
  unsigned least = 0x80, most = 0xbf;
  if (first == 0xe0) least = 0xa0;
  if (first == 0xed) most = 0x9f;
  if (first == 0xf0) least = 0x90;
  if (first == 0xf4) most = 0x8f;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {incomplete, i};
    if (byte(i) < least || byte(i) > most) return {invalid, i};
    least = 0x80;
    most = 0xbf;
  }
  return {character, length};
}

std::optional<std::size_t> invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Start start = first_character(text.substr(at));
    if (start.kind != Utf8Start::Kind::character) return at;
    at += start.bytes;
  }
  return std::nullopt;
}

}  // namespace greta::device
