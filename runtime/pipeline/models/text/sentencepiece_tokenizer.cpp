#include <fmt/format.h>

#include <array>
#include <limits>
#include <map>

#include "runtime/device/result.hpp"
#include "runtime/device/text/printable.hpp"
#include "runtime/device/text/strings.hpp"
#include "runtime/device/text/utf8.hpp"
#include "runtime/pipeline/models/text/added_tokens.hpp"
#include "runtime/pipeline/models/text/sentencepiece_file.hpp"
#include "runtime/pipeline/models/text/sentencepiece_segments.hpp"
#include "runtime/pipeline/models/text/tokenizers.hpp"

namespace greta::runtime {
namespace {

/// What files beside a tokenizer.model say.
struct Beside {
  bool adds_bos = true;
  bool adds_space_after_tokens = true;  ///< to the text after a recognised token
  std::map<std::int32_t, std::string> added;
  std::map<std::int32_t, AddedTokens::Kind> kinds;  ///< of these
};

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(SentencePieceModel model, const Beside& beside)
      : model_(std::move(model)),
        segments_(model_),
        bos_(beside.adds_bos ? model_.bos : -1),
        adds_space_after_tokens_(beside.adds_space_after_tokens) {
    bytes_.fill(-1);
    for (std::size_t i = 0; i < model_.pieces.size(); ++i) {
      const ScoredToken& piece = model_.pieces[i];
      const auto id = static_cast<std::int32_t>(i);
      if (piece.kind == TokenKind::byte) {
        if (const auto byte = byte_of_token(piece.text)) bytes_[*byte] = id;
      }
      if (piece.kind == TokenKind::control || piece.kind == TokenKind::unknown) {
        added_.add(piece.text, id, {.special = piece.kind == TokenKind::control});
      }
      decoded_.push_back(text_of(piece));
    }
    for (const auto& [id, content] : beside.added) {
      const AddedTokens::Kind& kind = beside.kinds.at(id);
      added_.add(content, id, kind);
      const auto at = static_cast<std::size_t>(id);
      if (at >= decoded_.size()) decoded_.resize(at + 1);
      decoded_[at] = kind.special ? std::string() : content;
    }
  }

  std::vector<std::int32_t> encode(std::string_view text, bool with_bos) const override {
    check_prompt(text);
    std::vector<std::int32_t> ids;
    if (with_bos && bos_ >= 0) ids.push_back(bos_);
    added_.split(
        text,
        [&](std::string_view part, std::size_t begin) {
          const bool adds = begin == 0 || adds_space_after_tokens_;
          encode_part(segments_.normalise(part, model_.adds_space && adds), ids);
        },
        [&](std::int32_t id) { ids.push_back(id); });
    return ids;
  }

  std::string decode(std::int32_t id, bool first) const override {
    if (id < 0 || id >= vocab_size()) return std::string(replacement_character);
    const std::string& text = decoded_[static_cast<std::size_t>(id)];
    return first && model_.adds_space && text.starts_with(' ') ? text.substr(1) : text;
  }

  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(decoded_.size()); }
  std::int32_t bos() const override { return bos_; }

 private:
  std::string text_of(const ScoredToken& piece) const {
    if (piece.kind == TokenKind::control) return {};
    if (piece.kind == TokenKind::unknown) return model_.unknown_surface;
    if (piece.kind == TokenKind::byte) {
      if (const auto byte = byte_of_token(piece.text)) return {static_cast<char>(*byte)};
    }
    std::string text = piece.text;
    replace_all(text, escaped_space, " ");
    return text;
  }

  /// Of unknown characters one after the other, one token is left if there are none for bytes.
  void encode_part(std::string_view text, std::vector<std::int32_t>& ids) const {
    bool after_unknown = false;
    for (const TextSymbol& piece : segments_.divide(text)) {
      const bool unknown = piece.id == model_.unknown;
      if (unknown && model_.byte_fallback) {
        for (std::size_t i = piece.begin; i < piece.end; ++i) {
          ids.push_back(bytes_[static_cast<unsigned char>(text[i])]);
        }
      } else if (!unknown || !after_unknown) {
        ids.push_back(piece.id);
      }
      after_unknown = unknown;
    }
  }

  SentencePieceModel model_;
  SentencePieceSegments segments_;
  ByteTokens bytes_{};
  AddedTokens added_;
  std::int32_t bos_;
  bool adds_space_after_tokens_;
  std::vector<std::string> decoded_;  ///< by id
};

/// Adds a token that a file beside the model lists. One of the model's own pieces stays as it is.
void add_token(const JsonFields& fields, const SentencePieceModel& model, const LlamaConfig& config,
               std::int64_t id, const std::string& content, const AddedTokens::Kind& kind,
               Beside& beside) {
  if (content.empty()) fields.refuse(fmt::format("token {} is empty", id));
  if (id < static_cast<std::int64_t>(model.pieces.size())) {
    const std::string& own = model.pieces[static_cast<std::size_t>(id)].text;
    if (own == content) return;
    fields.refuse(fmt::format("token {} is '{}', but '{}' in tokenizer.model", id,
                              one_line(content.substr(0, 60)), one_line(own.substr(0, 60))));
  }
  if (id >= config.vocab) return;  // of a larger model
  beside.added[static_cast<std::int32_t>(id)] = content;
  beside.kinds[static_cast<std::int32_t>(id)] = kind;
}

/// Reads the number of a token.
std::int64_t id_of(const JsonFields& fields, const std::string& text) {
  constexpr std::size_t most_digits = 9;
  const bool digits = !text.empty() && text.size() <= most_digits &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits)
    fields.refuse(fmt::format("'{}' is not the id of a token", one_line(text.substr(0, 40))));
  return std::stoll(text);
}

void read_config(const std::filesystem::path& path, const SentencePieceModel& model,
                 const LlamaConfig& config, Beside& beside) {
  const auto file = MappedFile::open(path, most_model_json_bytes);
  const nlohmann::json json = parse_json(file->text(), path.string());
  const JsonFields fields(json, path.string());
  beside.adds_bos = fields.flag("add_bos_token", true);
  beside.adds_space_after_tokens = fields.flag("legacy", true);
  if (!fields.has("added_tokens_decoder")) return;
  const JsonFields tokens = fields.object("added_tokens_decoder");
  for (const auto& [name, entry] : json.at("added_tokens_decoder").items()) {
    const std::int64_t id = id_of(tokens, name);
    const JsonFields token(entry, fmt::format("{}: token {}", tokens.name(), id));
    if (token.flag("single_word", false)) token.refuse("single_word is true; allowed: false");
    add_token(tokens, model, config, id, token.text("content"),
              {.special = token.flag("special", false),
               .strips_left = token.flag("lstrip", false),
               .strips_right = token.flag("rstrip", false)},
              beside);
  }
}

void read_added_tokens(const std::filesystem::path& path, const SentencePieceModel& model,
                       const LlamaConfig& config, Beside& beside) {
  constexpr std::int64_t most_id = std::numeric_limits<std::int32_t>::max() - 1;
  const auto file = MappedFile::open(path, most_model_json_bytes);
  const nlohmann::json json = parse_json(file->text(), path.string());
  const JsonFields fields(json, path.string());
  for (const auto& entry : json.items()) {
    add_token(fields, model, config, fields.integer(entry.key(), 0, most_id), entry.key(), {},
              beside);
  }
}

}  // namespace

std::unique_ptr<Tokenizer> load_sentencepiece_tokenizer(const MappedFile& file,
                                                        const LlamaConfig& config) {
  SentencePieceModel model = read_sentencepiece(file.text(), file.path().string());
  if (model.pieces.size() > static_cast<std::size_t>(config.vocab)) {
    throw Error(fmt::format("{}: it has {} tokens, the model {}", file.path().string(),
                            model.pieces.size(), config.vocab));
  }
  Beside beside;
  const std::filesystem::path folder = file.path().parent_path();
  std::error_code none;
  if (std::filesystem::exists(folder / "tokenizer_config.json", none)) {
    read_config(folder / "tokenizer_config.json", model, config, beside);
  }
  if (beside.added.empty() && std::filesystem::exists(folder / "added_tokens.json", none)) {
    read_added_tokens(folder / "added_tokens.json", model, config, beside);
  }
  return std::make_unique<SentencePieceTokenizer>(std::move(model), beside);
}

}  // namespace greta::runtime
