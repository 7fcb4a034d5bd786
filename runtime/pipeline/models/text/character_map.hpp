#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// Replaces strings of characters by others, as SentencePiece's `precompiled_charsmap` says: for
/// NFKC and other rules, compiled to a trie. It is the size of the trie in bytes (u32,
/// little-endian), the trie, and the replacements, each of which ends with a zero byte.
///
/// The trie is a double array of Darts-clone, in words of 32 bits: the children of a node at `at`
/// with the offset o are at `at ^ o ^ byte`. Bits of a node: 0 to 7 and 31 the byte that leads to
/// it, 8 whether it has a value, 10 to 30 the offset, shifted left by 8 if bit 9 is set. A value is
/// in bits 0 to 30 of the child for byte 0. Source: Yata, Darts-clone, include/darts.h.
class CharacterMap {
 public:
  CharacterMap() = default;  ///< replaces nothing
  /// Throws Error, which begins with `name`, if the bytes are no such map.
  CharacterMap(std::string_view bytes, const std::string& name);

  /// Returns what replaces the longest known string that a text begins with, and its length; a
  /// length of 0: none. The result exists as long as the map.
  std::pair<std::string_view, std::size_t> longest(std::string_view text) const;

 private:
  std::vector<std::uint32_t> nodes_;
  std::string replacements_;
};

}  // namespace greta::runtime
