#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/pipeline/models/formats/json_fields.hpp"
#include "runtime/pipeline/models/text/word_splitter.hpp"

namespace greta::runtime {

/// What a tokenizer.json does to texts before its model and behind it: the parts `normalizer`,
/// `pre_tokenizer`, `post_processor` and `decoder`, as far as Llamas have them. Whatever else they
/// may be is refused by name.
class TextSteps {
 public:
  /// `fields`: the whole file.
  explicit TextSteps(const JsonFields& fields);

  bool byte_level() const { return byte_level_; }
  /// The token that the post processor puts in front of a text.
  std::optional<std::int32_t> bos() const { return bos_; }

  /// A part of a text, changed as the model wants it. `first`: the part begins the text.
  std::string normalise(std::string_view text, bool first) const;
  /// The words of a changed part; the model merges within each.
  std::vector<std::string_view> words(std::string_view text) const;

  /// A token's text: as the vocabulary has it, or with its replacements undone.
  std::string decode(const std::string& token) const;
  /// Whether the first token of a text loses a space in front.
  bool strips_first() const { return strips_first_; }

 private:
  struct Replacement {
    std::string from;  ///< empty: `to` is put in front
    std::string to;
  };
  enum class Prefix { never, first, always };

  void read_normalizer(const JsonFields& fields);
  void read_pre_tokenizer(const JsonFields& fields);
  void read_metaspace(const JsonFields& fields);
  void read_post_processor(const JsonFields& fields);
  void read_decoder(const JsonFields& fields);

  std::vector<Replacement> replacements_;
  std::string space_;  ///< what stands for a space, where the pre tokenizer replaces it
  Prefix prefix_ = Prefix::never;
  bool byte_level_ = false, splits_at_spaces_ = false, strips_first_ = false, bytes_ = false;
  std::vector<WordSplitter> splitters_;
  std::optional<std::int32_t> bos_;
  std::vector<Replacement> undone_;
};

}  // namespace greta::runtime
