#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// Finds the texts that a text begins with. The texts must outlive the index.
class PieceIndex {
 public:
  void add(std::string_view text, std::int32_t id) { pieces_.emplace_back(text, id); }
  void sort() { std::sort(pieces_.begin(), pieces_.end()); }

  /// Calls found(length, id) for each text that `text` begins with, the shortest first.
  template <typename Found>
  void prefixes(std::string_view text, const Found& found) const {
    auto first = pieces_.begin(), last = pieces_.end();  // those that begin as the text does
    for (std::size_t at = 0; at < text.size() && first != last; ++at) {
      const auto less = [at](const Piece& piece, char c) {
        return piece.first.size() <= at || as_number(piece.first[at]) < as_number(c);
      };
      first = std::lower_bound(first, last, text[at], less);
      last = std::partition_point(first, last,
                                  [&](const Piece& piece) { return piece.first[at] == text[at]; });
      if (first != last && first->first.size() == at + 1) found(at + 1, first->second);
    }
  }

  /// Returns the longest one, by its length and id; a length of 0: none.
  std::pair<std::size_t, std::int32_t> longest(std::string_view text) const {
    std::pair<std::size_t, std::int32_t> result{0, -1};
    prefixes(text, [&](std::size_t length, std::int32_t id) { result = {length, id}; });
    return result;
  }

 private:
  using Piece = std::pair<std::string_view, std::int32_t>;
  static unsigned char as_number(char c) { return static_cast<unsigned char>(c); }

  std::vector<Piece> pieces_;
};

}  // namespace greta::runtime
