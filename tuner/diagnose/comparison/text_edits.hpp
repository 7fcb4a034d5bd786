#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// A part of a text that is replaced.
struct TextEdit {
  std::size_t start = 0, length = 0;  ///< what is replaced, in bytes
  std::string by;

  std::size_t end() const { return start + length; }
  bool operator==(const TextEdit&) const = default;
};

/// Returns the edits of whole lines, in order, that make one text another: a shortest list of
/// removed and added lines, with one edit for those that follow each other.
///
/// The method is that of E. W. Myers: An O(ND) difference algorithm and its variations,
/// Algorithmica 1, 1986.
std::vector<TextEdit> line_edits(std::string_view from, std::string_view to);

/// Divides an edit of a text into edits of its words and signs; each is at most a line.
std::vector<TextEdit> word_edits(std::string_view from, const TextEdit& edit);

/// Returns a text with edits, which are in order and have nothing in common.
std::string with_edits(std::string_view from, const std::vector<TextEdit>& edits);

}  // namespace greta::tuner
