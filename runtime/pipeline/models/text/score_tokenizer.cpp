#include "runtime/pipeline/models/text/score_tokenizer.hpp"

#include <algorithm>
#include <unordered_map>

#include "runtime/device/text/strings.hpp"
#include "runtime/device/text/utf8.hpp"
#include "runtime/pipeline/models/text/merges.hpp"
#include "runtime/pipeline/models/text/tokenizers.hpp"

namespace greta::runtime {
namespace {

class ScoreTokenizer final : public Tokenizer {
 public:
  explicit ScoreTokenizer(ScoreVocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
    bytes_.fill(-1);
    for (std::int32_t id = 0; id < vocab_size(); ++id) {
      const ScoredToken& token = vocabulary_.tokens[index(id)];
      longest_ = std::max(longest_, token.text.size());
      if (token.kind == TokenKind::byte) {
        if (const auto byte = byte_of_token(token.text)) bytes_[*byte] = id;
      }
      if (merges(id)) ids_.emplace(token.text, id);
    }
  }

  std::vector<std::int32_t> encode(std::string_view text, bool with_bos) const override {
    check_prompt(text);
    std::vector<std::int32_t> ids;
    if (with_bos && bos() >= 0) ids.push_back(bos());
    vocabulary_.added.split(
        text, [&](std::string_view part, std::size_t) { encode_part(part, ids); },
        [&](std::int32_t id) { ids.push_back(id); });
    return ids;
  }

  std::string decode(std::int32_t id, bool first) const override {
    if (id < 0 || id >= vocab_size()) return std::string(replacement_character);
    const ScoredToken& token = vocabulary_.tokens[index(id)];
    if (token.kind == TokenKind::control) return {};
    if (token.kind == TokenKind::byte) {
      if (const auto byte = byte_of_token(token.text)) return {static_cast<char>(*byte)};
    }
    const bool strips = first && vocabulary_.adds_space && token.text.starts_with(' ');
    return strips ? token.text.substr(1) : token.text;
  }

  std::int64_t vocab_size() const override {
    return static_cast<std::int64_t>(vocabulary_.tokens.size());
  }
  std::int32_t bos() const override { return vocabulary_.bos; }

 private:
  static std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

  /// Returns whether text can become this token, and the token a part of another one.
  bool merges(std::int32_t id) const {
    const TokenKind kind = vocabulary_.tokens[index(id)].kind;
    return kind == TokenKind::normal || kind == TokenKind::user_defined ||
           kind == TokenKind::unused;
  }

  void encode_part(std::string_view text, std::vector<std::int32_t>& ids) const {
    std::string all = vocabulary_.adds_space ? " " : "";
    all += text;
    if (vocabulary_.escapes_space) replace_all(all, escaped_space, " ");
    const std::string_view view = all;
    const auto find = [&](const TextSymbol& a, const TextSymbol& b) -> std::optional<TextMerge> {
      const bool short_enough = b.end - a.begin <= longest_;
      if (!short_enough || !merges(a.id) || !merges(b.id)) return std::nullopt;
      const auto found = ids_.find(view.substr(a.begin, b.end - a.begin));
      if (found == ids_.end()) return std::nullopt;
      const float score = vocabulary_.tokens[index(found->second)].score;
      return TextMerge{-double{score}, found->second};
    };
    for (const TextSymbol& symbol : merge_symbols(characters(view), find)) ids.push_back(symbol.id);
  }

  /// Returns a token per character, or tokens for its bytes.
  std::vector<TextSymbol> characters(std::string_view text) const {
    std::vector<TextSymbol> symbols;
    symbols.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = first_character(text.substr(at)).bytes;
      const auto found = ids_.find(text.substr(at, length));
      if (found != ids_.end()) {
        symbols.push_back({found->second, at, at + length});
      } else {
        for (std::size_t i = at; i < at + length; ++i) {
          const std::int32_t id = bytes_[static_cast<unsigned char>(text[i])];
          symbols.push_back({id < 0 ? vocabulary_.unknown : id, i, i + 1});
        }
      }
      at += length;
    }
    return symbols;
  }

  ScoreVocabulary vocabulary_;
  std::size_t longest_ = 0;
  std::unordered_map<std::string_view, std::int32_t> ids_;  ///< of tokens that text can become
  ByteTokens bytes_{};
};

}  // namespace

std::unique_ptr<Tokenizer> make_score_tokenizer(ScoreVocabulary vocabulary) {
  return std::make_unique<ScoreTokenizer>(std::move(vocabulary));
}

}  // namespace greta::runtime
