#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/models/text/score_tokenizer.hpp"
#include "runtime/pipeline/models/text/tokenizers.hpp"

namespace greta::runtime {
namespace {

/// Reads numbers and bytes of a file that may be truncated.
class Reader {
 public:
  explicit Reader(const MappedFile& file) : text_(file.text()), name_(file.path().string()) {}

  bool at_end() const { return text_.empty(); }
  template <typename T>
  T read() {
    const std::string_view bytes = take(sizeof(T));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  std::string_view take(std::size_t count) {
    if (count > text_.size()) refuse("it ends within a token");
    const std::string_view bytes = text_.substr(0, count);
    text_.remove_prefix(count);
    return bytes;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(fmt::format("{}: is not a tokenizer of llama2.c: {}", name_, what));
  }

 private:
  std::string_view text_;
  std::string name_;
};

TokenKind kind_of(std::size_t id, std::string_view text) {
  if (id == 0) return TokenKind::unknown;
  if (id <= 2) return TokenKind::control;
  return byte_of_token(text) ? TokenKind::byte : TokenKind::normal;
}

}  // namespace

std::unique_ptr<Tokenizer> load_llama2c_tokenizer(const MappedFile& file,
                                                  const LlamaConfig& config) {
  Reader reader(file);
  ScoreVocabulary vocabulary;
  std::vector<ScoredToken>& tokens = vocabulary.tokens;
  const auto wanted = static_cast<std::size_t>(config.vocab);
  const auto longest = reader.read<std::int32_t>();
  while (!reader.at_end()) {
    if (tokens.size() == wanted) {
      reader.refuse(fmt::format("it has more than the model's {} tokens", wanted));
    }
    const auto score = reader.read<float>();
    const auto length = reader.read<std::int32_t>();
    if (std::isnan(score)) reader.refuse(fmt::format("token {} has no score", tokens.size()));
    if (length < 0 || length > longest) {
      reader.refuse(fmt::format("token {} has {} bytes, where the longest has {}", tokens.size(),
                                length, longest));
    }
    std::string text(reader.take(static_cast<std::size_t>(length)));
    const TokenKind kind = kind_of(tokens.size(), text);
    tokens.push_back({std::move(text), score, kind});
  }
  if (tokens.size() != wanted) {
    reader.refuse(fmt::format("it has {} tokens, the model {}", tokens.size(), wanted));
  }
  return make_score_tokenizer(std::move(vocabulary));
}

}  // namespace greta::runtime
