#include <fmt/format.h>

#include <limits>

#include "runtime/device/result.hpp"
#include "runtime/device/text/utf8.hpp"
#include "runtime/pipeline/models/text/added_tokens.hpp"
#include "runtime/pipeline/models/text/bpe_model.hpp"
#include "runtime/pipeline/models/text/text_steps.hpp"
#include "runtime/pipeline/models/text/tokenizers.hpp"

namespace greta::runtime {
namespace {

constexpr std::int64_t most_id = std::numeric_limits<std::int32_t>::max() - 1;

AddedTokens added_tokens(const JsonFields& file) {
  AddedTokens added;
  if (!file.has("added_tokens")) return added;
  const nlohmann::json& list = file.at("added_tokens");
  if (!list.is_array()) file.refuse("added_tokens is not a list");
  for (const nlohmann::json& entry : list) {
    const JsonFields fields(entry, file.name() + ": added_tokens");
    const auto id = static_cast<std::int32_t>(fields.integer("id", 0, most_id));
    const std::string content = fields.text("content");
    if (content.empty()) fields.refuse(fmt::format("token {} is empty", id));
    if (fields.flag("single_word", false)) {
      fields.refuse(fmt::format("'{}': single_word is true; allowed: false", content));
    }
    if (!added.add(content, id,
                   {.special = fields.flag("special", false),
                    .strips_left = fields.flag("lstrip", false),
                    .strips_right = fields.flag("rstrip", false)})) {
      fields.refuse(fmt::format("'{}' occurs twice", content));
    }
  }
  return added;
}

class JsonTokenizer final : public Tokenizer {
 public:
  JsonTokenizer(const JsonFields& file, const LlamaConfig& config)
      : steps_(file),
        model_(file.object("model"), steps_.byte_level(), config.vocab),
        added_(added_tokens(file)),
        most_tokens_(config.vocab),
        bos_(steps_.bos().value_or(config.bos)) {
    if (bos_ >= config.vocab) {
      file.refuse(fmt::format("texts begin with token {} of {}", bos_, config.vocab));
    }
    for (const std::string& token : model_.tokens()) decoded_.push_back(steps_.decode(token));
    for (const auto& [content, id] : added_.ids()) {
      const auto other = model_.find(content);
      if (other && *other != id) {
        file.refuse(fmt::format("'{}' is token {} among the added ones, and {} in vocab", content,
                                id, *other));
      }
      if (id >= most_tokens_) continue;  // encode() refuses it
      const auto at = static_cast<std::size_t>(id);
      if (at >= decoded_.size()) decoded_.resize(at + 1);
      decoded_[at] = added_.special(id) ? std::string() : content;
    }
  }

  std::vector<std::int32_t> encode(std::string_view text, bool with_bos) const override {
    check_prompt(text);
    std::vector<std::int32_t> ids;
    if (with_bos && bos_ >= 0) ids.push_back(bos_);
    added_.split(
        text, [&](std::string_view part, std::size_t begin) { encode_part(part, begin == 0, ids); },
        [&](std::int32_t id) {
          if (id >= most_tokens_) {
            throw Error(
                fmt::format("the text has token {}, of which the model has {}", id, most_tokens_));
          }
          ids.push_back(id);
        });
    return ids;
  }

  std::string decode(std::int32_t id, std::int32_t previous) const override {
    if (id < 0 || id >= vocab_size()) return std::string(replacement_character);
    const std::string& text = decoded_[static_cast<std::size_t>(id)];
    const bool first = previous < 0 || previous == bos_;
    return first && steps_.strips_first() && text.starts_with(' ') ? text.substr(1) : text;
  }

  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(decoded_.size()); }
  std::int32_t bos() const override { return bos_; }

 private:
  void encode_part(std::string_view text, bool first, std::vector<std::int32_t>& ids) const {
    const std::string changed = steps_.normalise(text, first);
    for (const std::string_view word : steps_.words(changed)) model_.encode(word, ids);
  }

  TextSteps steps_;
  BpeModel model_;
  AddedTokens added_;  ///< some may be beyond the model's tokens
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
