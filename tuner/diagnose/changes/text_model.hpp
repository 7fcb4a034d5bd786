#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tuner/diagnose/changes/kernel_text.hpp"

namespace greta::tuner {

/// How usual each word or sign is after the three before it, in a source itself. A fault is less
/// usual than the text around it, and what mends it more so (B. Ray, V. Hellendoorn, S. Godhane, Z.
/// Tu, A. Bacchelli, P. Devanbu: On the "naturalness" of buggy code, ICSE 2016).
class TextModel {
 public:
  /// Learns from a source's tokens, which must outlive it. Parentheses around a single token, and
  /// empty statements, do not count.
  explicit TextModel(const std::vector<SourceToken>& tokens);

  /// How a change alters the text.
  struct Gain {
    double likelihood = 0;  ///< logarithm of the likelihood of what is there after, less before
    double tokens = 0;      ///< number of tokens after, less before
  };
  /// Returns what the text gains if a part of the source is replaced by another text. What is
  /// replaced does not count as seen.
  Gain gain(std::size_t start, std::size_t end, std::string_view by);
  /// Whether a text's first words, or its last one and what follows, are next to each other
  /// elsewhere, if it replaces a part of the source.
  bool has_seen(std::size_t start, std::size_t end, std::string_view by) const;

 private:
  using Ids = std::vector<std::uint32_t>;
  using Counts = std::unordered_map<std::uint64_t, int>;
  static constexpr std::size_t most_words = 4;

  std::size_t place_of(std::size_t start) const;
  static std::uint64_t key_of(const Ids& ids, std::size_t end, std::size_t words);
  std::uint32_t id_of(std::string_view word) const;
  int count_of(std::uint64_t key) const;
  double likelihood(const Ids& ids, std::size_t from) const;
  void leave_out(std::size_t from, std::size_t to);

  std::unordered_map<std::string_view, std::uint32_t> words_;
  Ids ids_;                          ///< of all tokens that count
  std::vector<std::size_t> starts_;  ///< of each of them, in the source
  Counts counts_;                    ///< of sequences of up to most_words
  std::size_t left_from_ = 0, left_to_ = 0;
  Counts left_out_;
  double likelihood_before_ = 0;
};

}  // namespace greta::tuner
