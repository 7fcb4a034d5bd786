#include <fmt/format.h>

#include <limits>
#include <set>

#include "runtime/device/result.hpp"
#include "runtime/device/text/utf8.hpp"
#include "runtime/pipeline/models/text/added_tokens.hpp"
#include "runtime/pipeline/models/text/bpe_model.hpp"
#include "runtime/pipeline/models/text/text_steps.hpp"
#include "runtime/pipeline/models/text/tokenizers.hpp"

namespace greta::runtime {
namespace {

constexpr std::int64_t most_id = std::numeric_limits<std::int32_t>::max() - 1;

/// An entry of `added_tokens`.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  AddedTokens::Kind kind;
  bool normalised = false;  ///< recognised in normalised texts, as what its content becomes
};

std::vector<AddedToken> added_tokens(const JsonFields& file) {
  std::vector<AddedToken> added;
  if (!file.has("added_tokens")) return added;
  const nlohmann::json& list = file.at("added_tokens");
  if (!list.is_array()) file.refuse("added_tokens is not a list");
  std::set<std::string> contents;
  for (const nlohmann::json& entry : list) {
    const JsonFields fields(entry, file.name() + ": added_tokens");
    const auto id = static_cast<std::int32_t>(fields.integer("id", 0, most_id));
    const std::string content = fields.text("content");
    if (content.empty()) fields.refuse(fmt::format("token {} is empty", id));
    if (!contents.insert(content).second) fields.refuse(fmt::format("'{}' occurs twice", content));
    added.push_back({id,
                     content,
                     {.special = fields.flag("special", false),
                      .strips_left = fields.flag("lstrip", false),
                      .strips_right = fields.flag("rstrip", false),
                      .whole_word = fields.flag("single_word", false)},
                     fields.flag("normalized", false)});
  }
  return added;
}

class JsonTokenizer final : public Tokenizer {
 public:
  JsonTokenizer(const JsonFields& file, const LlamaConfig& config)
      : steps_(file),
        model_(file.object("model"), steps_.byte_level(), config.vocab),
        most_tokens_(config.vocab),
        bos_(steps_.bos().value_or(config.bos)) {
    if (bos_ >= config.vocab) {
      file.refuse(fmt::format("texts begin with token {} of {}", bos_, config.vocab));
    }
    for (const std::string& token : model_.tokens()) decoded_.push_back(steps_.decode(token));
    for (const AddedToken& token : added_tokens(file)) {
      const auto other = model_.find(token.content);
      if (other && *other != token.id) {
        file.refuse(fmt::format("'{}' is token {} among the added ones, and {} in vocab",
                                token.content, token.id, *other));
      }
      add(token);
    }
  }

  std::vector<std::int32_t> encode(std::string_view text, bool with_bos) const override {
    check_prompt(text);
    std::vector<std::int32_t> ids;
    if (with_bos && bos_ >= 0) ids.push_back(bos_);
    const auto add_id = [&](std::int32_t id) {
      if (id >= most_tokens_) {
        throw Error(
            fmt::format("the text has token {}, of which the model has {}", id, most_tokens_));
      }
      ids.push_back(id);
    };
    const auto encode_part = [&](std::string_view part, std::size_t begin) {
      normalised_.split(
          steps_.normalise(part),
          [&](std::string_view words, std::size_t at) {
            const std::string marked = steps_.mark_spaces(words, begin == 0 && at == 0);
            for (const std::string_view word : steps_.words(marked)) model_.encode(word, ids);
          },
          add_id);
    };
    verbatim_.split(text, encode_part, add_id);
    return ids;
  }

  std::string decode(std::int32_t id, bool first) const override {
    if (id < 0 || id >= vocab_size()) return std::string(replacement_character);
    const std::string& text = decoded_[static_cast<std::size_t>(id)];
    return first && steps_.strips_first() && text.starts_with(' ') ? text.substr(1) : text;
  }

  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(decoded_.size()); }
  std::int32_t bos() const override { return bos_; }

 private:
  void add(const AddedToken& token) {
    if (token.normalised) {
      const std::string found_as = steps_.normalise(token.content);
      // Of several with the same form, the first one is found.
      if (!found_as.empty()) normalised_.add(found_as, token.id, token.kind);
    } else {
      verbatim_.add(token.content, token.id, token.kind);
    }
    if (token.id >= most_tokens_) return;  // encode() refuses it
    const auto at = static_cast<std::size_t>(token.id);
    if (at >= decoded_.size()) decoded_.resize(at + 1);
    decoded_[at] = token.kind.special ? std::string() : token.content;
  }

  TextSteps steps_;
  BpeModel model_;
  /// Those found in the text, and those found in what is normalised of it. Some may be beyond the
  /// model's tokens.
  AddedTokens verbatim_, normalised_;
  std::int64_t most_tokens_;
  std::int32_t bos_;
  std::vector<std::string> decoded_;  ///< by id
};

/// Returns whether texts begin with the model's bos, where no post processor of the tokenizer says
/// so: with the library's class for Llamas, unless the file beside the tokenizer says no.
bool adds_bos(const std::filesystem::path& path) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return false;
  const auto file = MappedFile::open(path, most_model_json_bytes);
  const nlohmann::json json = parse_json(file->text(), path.string());
  const JsonFields fields(json, path.string());
  return fields.text("tokenizer_class", "").starts_with("LlamaTokenizer") &&
         fields.flag("add_bos_token", true);
}

}  // namespace

std::unique_ptr<Tokenizer> make_json_tokenizer(const JsonFields& fields,
                                               const LlamaConfig& config) {
  return std::make_unique<JsonTokenizer>(fields, config);
}

std::unique_ptr<Tokenizer> load_json_tokenizer(const MappedFile& file, const LlamaConfig& config) {
  const std::string name = file.path().string();
  const nlohmann::json json = parse_json(file.text(), name);
  LlamaConfig own = config;
  if (!adds_bos(file.path().parent_path() / "tokenizer_config.json")) own.bos = -1;
  return make_json_tokenizer(JsonFields(json, name), own);
}

}  // namespace greta::runtime
