#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// Splits texts at the matches of a regular expression with Unicode classes, as in tokenizer.json
/// files: \p{L}, (?i:…), (?!…).
class WordSplitter {
 public:
  /// Throws Error for a pattern that PCRE2 rejects.
  explicit WordSplitter(const std::string& pattern);

  /// Returns the matches and the text between them in order, without empty parts. The text must be
  /// UTF-8. Throws Error if matching exceeds PCRE2's limits.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  std::shared_ptr<const void> code_;  ///< of PCRE2
};

}  // namespace greta::runtime
