#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// What becomes of the matches of a pattern and of the text between them.
enum class SplitBehaviour : std::uint8_t {
  isolated,              ///< each is a word
  removed,               ///< the text between them
  merged_with_previous,  ///< a match is added to the text before it, unless that is a match
  merged_with_next,      ///< to the text after it, unless that is a match
  contiguous,            ///< consecutive matches are one word
};
/// By the names of tokenizer.json: "Isolated", "MergedWithPrevious".
std::optional<SplitBehaviour> split_behaviour_from_string(std::string_view name);

/// Splits texts at the matches of a regular expression with Unicode classes, as in tokenizer.json
/// files: \p{L}, (?i:…), (?!…).
class WordSplitter {
 public:
  struct Options {
    SplitBehaviour behaviour = SplitBehaviour::isolated;
    bool inverted = false;  ///< matches are the text between those of the pattern
    bool literal = false;   ///< the pattern is a text
  };

  /// Throws Error for a pattern that PCRE2 rejects.
  WordSplitter(const std::string& pattern, const Options& options);
  explicit WordSplitter(const std::string& pattern) : WordSplitter(pattern, Options{}) {}

  /// Returns the words in order, without empty ones. The text must be UTF-8. Throws Error if
  /// matching exceeds PCRE2's limits.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct Part {
    std::string_view text;
    bool match = false;
  };
  std::vector<Part> parts(std::string_view text) const;

  Options options_;
  std::shared_ptr<const void> code_;  ///< of PCRE2
};

}  // namespace greta::runtime
