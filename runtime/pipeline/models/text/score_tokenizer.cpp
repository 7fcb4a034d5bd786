#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "runtime/device/result.hpp"
#include "runtime/device/text/utf8.hpp"
#include "runtime/pipeline/models/text/merges.hpp"
#include "runtime/pipeline/models/text/tokenizers.hpp"

namespace greta::runtime {
namespace {

constexpr std::int32_t unknown = 0, beginning = 1, end_of_text = 2, controls = 3;

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

class ScoreTokenizer final : public Tokenizer {
 public:
  ScoreTokenizer(std::shared_ptr<const MappedFile> file, const LlamaConfig& config)
      : file_(std::move(file)) {
    bytes_.fill(-1);
    Reader reader(*file_);
    const auto longest = reader.read<std::int32_t>();
    while (!reader.at_end()) {
      if (vocab_size() == config.vocab) {
        reader.refuse(fmt::format("it has more than the model's {} tokens", config.vocab));
      }
      const auto score = reader.read<float>();
      const auto length = reader.read<std::int32_t>();
      if (std::isnan(score)) reader.refuse(fmt::format("token {} has no score", vocab_size()));
      if (length < 0 || length > longest) {
        reader.refuse(fmt::format("token {} has {} bytes, where the longest has {}", vocab_size(),
                                  length, longest));
      }
      add(reader.take(static_cast<std::size_t>(length)), score);
    }
    if (vocab_size() != config.vocab) {
      reader.refuse(fmt::format("it has {} tokens, the model {}", vocab_size(), config.vocab));
    }
  }

  std::vector<std::int32_t> encode(std::string_view text, bool with_bos) const override {
    check_prompt(text);
    std::vector<std::int32_t> ids;
    if (with_bos) ids.push_back(beginning);
    if (text.empty()) return ids;
    const std::string spaced = " " + std::string(text);
    const std::string_view all = spaced;
    const auto find = [&](const TextSymbol& a, const TextSymbol& b) -> std::optional<TextMerge> {
      const bool short_enough = b.end - a.begin <= longest_;
      if (!short_enough || !merges_[index(a.id)] || !merges_[index(b.id)]) return std::nullopt;
      const auto found = ids_.find(all.substr(a.begin, b.end - a.begin));
      if (found == ids_.end()) return std::nullopt;
      return TextMerge{-double{scores_[index(found->second)]}, found->second};
    };
    for (const TextSymbol& symbol : merge_symbols(characters(all), find)) ids.push_back(symbol.id);
    return ids;
  }

  std::string decode(std::int32_t id, std::int32_t previous) const override {
    if (id < 0 || id >= vocab_size()) return std::string(replacement_character);
    if (id == beginning || id == end_of_text) return {};
    std::string_view token = tokens_[index(id)];
    if (const auto byte = byte_of_token(token)) return {static_cast<char>(*byte)};
    const bool first = previous < 0 || previous == beginning;
    if (first && token.starts_with(' ')) token.remove_prefix(1);
    return std::string(token);
  }

  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(tokens_.size()); }
  std::int32_t bos() const override { return beginning; }

 private:
  void add(std::string_view token, float score) {
    const auto id = static_cast<std::int32_t>(tokens_.size());
    tokens_.push_back(token);
    scores_.push_back(score);
    const auto byte = byte_of_token(token);
    merges_.push_back(!byte && id >= controls);
    longest_ = std::max(longest_, token.size());
    if (byte) bytes_[*byte] = id;
    if (merges_.back()) ids_.emplace(token, id);
  }

  static std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

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
          symbols.push_back({id < 0 ? unknown : id, i, i + 1});
        }
      }
      at += length;
    }
    return symbols;
  }

  std::shared_ptr<const MappedFile> file_;
  std::vector<std::string_view> tokens_;  ///< in the file
  std::vector<float> scores_;
  std::vector<bool> merges_;  ///< false: bytes and control tokens, which are never merged
  std::size_t longest_ = 0;
  std::unordered_map<std::string_view, std::int32_t> ids_;  ///< of tokens that text can become
  ByteTokens bytes_{};
};

}  // namespace

std::unique_ptr<Tokenizer> load_score_tokenizer(std::shared_ptr<const MappedFile> file,
                                                const LlamaConfig& config) {
  return std::make_unique<ScoreTokenizer>(std::move(file), config);
}

}  // namespace greta::runtime
