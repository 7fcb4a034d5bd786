#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// Splits texts at the matches of a regular expression with Unicode classes, as those of
/// tokenizer.json files: \p{L}, (?i:…), (?!…).
class WordSplitter {
 public:
  /// Throws Error for a pattern that PCRE2 doesn't take.
  explicit WordSplitter(const std::string& pattern);

  /// Matches, and what lies between them, in order; without empty ones. The text must be UTF-8.
  /// Throws Error where matching takes more steps than are allowed.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  std::shared_ptr<const void> code_;  ///< PCRE2's
};

}  // namespace greta::runtime
