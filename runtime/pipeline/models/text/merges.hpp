#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// A token during merging, which covers the bytes begin to end-1 of a text.
struct TextSymbol {
  std::int32_t id = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A possible merge of two adjacent tokens. Lower priorities are merged first.
struct TextMerge {
  double priority = 0;
  std::int32_t id = 0;
};

/// Byte-pair encoding: repeatedly merges the adjacent pair with the lowest priority, the first one
/// in the text among equals, until no merge is left. `find(left, right)` returns an optional
/// TextMerge. O(n log n) for n symbols.
/// Source: Sennrich, Haddow, Birch, "Neural Machine Translation of Rare Words with Subword Units",
/// ACL 2016; the list with a heap is from SentencePiece.
template <typename Find>
std::vector<TextSymbol> merge_symbols(std::vector<TextSymbol> symbols, const Find& find) {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  /// Valid as long as both symbols are unchanged.
  struct Candidate {
    TextMerge merge;
    std::size_t left, middle, end;
    bool operator<(const Candidate& other) const {
      if (merge.priority != other.merge.priority) return merge.priority > other.merge.priority;
      return left > other.left;
    }
  };
  const std::size_t count = symbols.size();
  std::vector<std::size_t> next(count), previous(count);
  for (std::size_t i = 0; i < count; ++i) {
    next[i] = i + 1 < count ? i + 1 : none;
    previous[i] = i > 0 ? i - 1 : none;
  }
  std::vector<Candidate> first;
  const auto candidate = [&](std::size_t left) -> std::optional<Candidate> {
    if (left == none || next[left] == none) return std::nullopt;
    const TextSymbol &a = symbols[left], &b = symbols[next[left]];
    const std::optional<TextMerge> merge = find(a, b);
    if (!merge) return std::nullopt;
    return Candidate{*merge, left, a.end, b.end};
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (const auto found = candidate(i)) first.push_back(*found);
  }
  std::priority_queue<Candidate> queue({}, std::move(first));
  std::vector<bool> gone(count);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const std::size_t left = best.left, right = next[left];
    if (gone[left] || symbols[left].end != best.middle || right == none ||
        symbols[right].end != best.end) {
      continue;
    }
    symbols[left].id = best.merge.id;
    symbols[left].end = symbols[right].end;
    gone[right] = true;
    next[left] = next[right];
    if (next[left] != none) previous[next[left]] = left;
    if (const auto found = candidate(previous[left])) queue.push(*found);
    if (const auto found = candidate(left)) queue.push(*found);
  }
  std::vector<TextSymbol> merged;
  for (std::size_t i = 0; i < count; ++i) {
    if (!gone[i]) merged.push_back(symbols[i]);
  }
  return merged;
}

}  // namespace greta::runtime
