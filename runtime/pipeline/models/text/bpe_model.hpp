#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/pipeline/models/formats/json_fields.hpp"
#include "runtime/pipeline/models/text/merges.hpp"
#include "runtime/pipeline/models/text/tokenizers.hpp"

namespace greta::runtime {

/// The bytes that a token of a byte-level vocabulary stands for: its characters are bytes, or stand
/// for those that aren't printable (U+0100 and up, in order). Nothing where one doesn't.
/// Source: Radford and others, GPT-2, encoder.py, bytes_to_unicode().
std::optional<std::string> byte_level_bytes(std::string_view token);

/// The `model` of a tokenizer.json: a vocabulary, and merges by their rank.
class BpeModel {
 public:
  /// Throws Error for what is no BPE model, for ids of `most_tokens` and above, and for merges of
  /// tokens that aren't there.
  BpeModel(const JsonFields& fields, bool byte_level, std::int64_t most_tokens);
  BpeModel(const BpeModel&) = delete;
  BpeModel& operator=(const BpeModel&) = delete;

  /// Appends a word's tokens. Characters that aren't in the vocabulary become tokens of their bytes
  /// or the unknown one; throws Error where there are neither.
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const;

  /// Tokens by id, as bytes; empty where there is none.
  const std::vector<std::string>& tokens() const { return tokens_; }
  /// The id of a token as the file spells it.
  std::optional<std::int32_t> find(std::string_view spelling) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  using Ids = std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>>;

  void read_vocabulary(const JsonFields& fields, bool byte_level, std::int64_t most_tokens);
  void read_merges(const JsonFields& fields);
  std::vector<TextSymbol> symbols(std::string_view word) const;
  std::int32_t unknown(std::string_view character) const;

  Ids spelled_;
  const Ids* ids_ = &spelled_;  ///< by bytes
  Ids by_bytes_;                ///< where these aren't the spellings
  std::vector<std::string> tokens_;
  std::unordered_map<std::uint64_t, TextMerge> merges_;  ///< by left * 2^32 + right
  ByteTokens bytes_{};
  std::int32_t unknown_ = -1;
  bool byte_level_ = false, whole_words_ = false, fuse_unknown_ = false;
};

}  // namespace greta::runtime
