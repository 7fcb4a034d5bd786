#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/pipeline/models/text/added_tokens.hpp"
#include "runtime/pipeline/models/tokenizer.hpp"

namespace greta::runtime {

/// What SentencePiece writes for a space: "▁".
inline constexpr std::string_view escaped_space = "\u2581";

/// What a token is, numbered as in GGUF files.
enum class TokenKind : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

struct ScoredToken {
  std::string text;  ///< with spaces as such; of bytes as "<0xE2>"
  float score = 0;
  TokenKind kind = TokenKind::normal;
};

/// A vocabulary of SentencePiece, whose tokens are merged by the highest score.
struct ScoreVocabulary {
  std::vector<ScoredToken> tokens;  ///< by id
  std::int32_t bos = 1;             ///< -1: texts begin without
  std::int32_t unknown = 0;         ///< for characters without a token and bytes without one
  bool adds_space = true;           ///< in front of texts, also after added tokens
  bool escapes_space = false;       ///< "▁" in a text is a space
  AddedTokens added;
};

/// Source: Kudo and Richardson, "SentencePiece", EMNLP 2018.
std::unique_ptr<Tokenizer> make_score_tokenizer(ScoreVocabulary vocabulary);

}  // namespace greta::runtime
