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

/// Returns the bytes of a token in a byte-level vocabulary. Each character represents a byte:
/// printable bytes represent themselves, the others are U+0100 and up, in order. Returns
/// std::nullopt if a character represents no byte. Source: Radford and others, GPT-2, encoder.py,
/// bytes_to_unicode().
std::optional<std::string> byte_level_bytes(std::string_view token);

/// The `model` of a tokenizer.json: a vocabulary and ranked merges.
class BpeModel {
 public:
  /// Throws Error for other kinds of models, ids of `most_tokens` and above, and merges of missing
  /// tokens.
  BpeModel(const JsonFields& fields, bool byte_level, std::int64_t most_tokens);
  BpeModel(const BpeModel&) = delete;
  BpeModel& operator=(const BpeModel&) = delete;

  /// Appends the tokens of a word. Characters outside of the vocabulary become the tokens of their
  /// bytes or the unknown token. Throws Error if there are neither.
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const;

  /// Returns the tokens' bytes by id; empty for ids without a token.
  const std::vector<std::string>& tokens() const { return tokens_; }
  /// Returns the id of a token, given as spelled in the file.
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
  Ids by_bytes_;                ///< used if bytes and spellings differ
  std::vector<std::string> tokens_;
  std::unordered_map<std::uint64_t, TextMerge> merges_;  ///< by left * 2^32 + right
  ByteTokens bytes_{};
  std::int32_t unknown_ = -1;
  bool byte_level_ = false, whole_words_ = false, fuse_unknown_ = false;
};

}  // namespace greta::runtime
