#include "runtime/pipeline/models/text/character_map.hpp"

#include <fmt/format.h>

#include "runtime/device/result.hpp"

namespace greta::runtime {
namespace {

constexpr std::uint32_t value_bits = 0x7fffffffU, label_bits = 0x800000ffU;

std::uint32_t offset_of(std::uint32_t node) {
  return node >> 10U << ((node & 0x200U) >> 6U);
}

std::uint32_t word_at(std::string_view bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    word |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << 8 * i;
  }
  return word;
}

}  // namespace

CharacterMap::CharacterMap(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) return;
  const std::size_t size = bytes.size() < 4 ? 0 : word_at(bytes, 0);
  if (size == 0 || size % 4 != 0 || size > bytes.size() - 4 || bytes.back() != '\0') {
    throw Error(fmt::format("{}: precompiled_charsmap is damaged", name));
  }
  for (std::size_t at = 4; at < 4 + size; at += 4) nodes_.push_back(word_at(bytes, at));
  replacements_ = bytes.substr(4 + size);
}

std::pair<std::string_view, std::size_t> CharacterMap::longest(std::string_view text) const {
  std::pair<std::string_view, std::size_t> found;
  if (nodes_.empty()) return found;
  std::size_t at = offset_of(nodes_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= nodes_.size() || (nodes_[at] & label_bits) != byte) break;
    const std::uint32_t node = nodes_[at];
    at ^= offset_of(node);
    if ((node & 0x100U) == 0 || at >= nodes_.size()) continue;
    const std::uint32_t value = nodes_[at] & value_bits;
    if (value < replacements_.size()) found = {replacements_.c_str() + value, i + 1};
  }
  return found;
}

}  // namespace greta::runtime
