#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/pipeline/models/formats/json_fields.hpp"
#include "runtime/pipeline/models/text/word_splitter.hpp"

namespace greta::runtime {

/// The processing of texts before and after a tokenizer.json's model: `normalizer`,
/// `pre_tokenizer`, `post_processor` and `decoder`, as used by Llamas. Other kinds are rejected by
/// name.
class TextSteps {
 public:
  /// `fields` is the whole file.
  explicit TextSteps(const JsonFields& fields);

  bool byte_level() const { return byte_level_; }
  /// Returns the token that the post processor puts before a text.
  std::optional<std::int32_t> bos() const { return bos_; }

  /// Returns a part of a text as the `normalizer` changes it.
  std::string normalise(std::string_view text) const;
  /// Returns a normalised part with spaces as the pre tokenizer writes and adds them. `first`: the
  /// part begins the text.
  std::string mark_spaces(std::string_view text, bool first) const;
  /// Splits such a part into words. The model merges only within words.
  std::vector<std::string_view> words(std::string_view text) const;

  /// Returns a token's text: as in the vocabulary, or with replacements undone.
  std::string decode(const std::string& token) const;
  /// Returns whether a leading space of a text's first token is removed.
  bool strips_first() const { return strips_first_; }

 private:
  struct Replacement {
    std::string from;
    std::string to;
  };
  enum class Prefix { never, first, always };

  void read_normalizer(const JsonFields& fields);
  void read_pre_tokenizer(const JsonFields& fields);
  void read_split(const JsonFields& fields);
  void read_metaspace(const JsonFields& fields);
  void read_post_processor(const JsonFields& fields);
  void read_decoder(const JsonFields& fields);

  std::vector<std::function<void(std::string&)>> normalizers_;  ///< in this order
  std::string space_;  ///< replacement of a space, if the pre tokenizer replaces it
  Prefix prefix_ = Prefix::never;
  bool byte_level_ = false, splits_at_spaces_ = false, strips_first_ = false, bytes_ = false;
  std::vector<WordSplitter> splitters_;
  std::optional<std::int32_t> bos_;
  std::vector<Replacement> undone_;
};

}  // namespace greta::runtime
