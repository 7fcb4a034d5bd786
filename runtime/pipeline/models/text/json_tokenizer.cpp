#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "runtime/device/result.hpp"
#include "runtime/device/text/utf8.hpp"
#include "runtime/pipeline/models/text/bpe_model.hpp"
#include "runtime/pipeline/models/text/text_steps.hpp"
#include "runtime/pipeline/models/text/tokenizers.hpp"

namespace greta::runtime {
namespace {

/// Tokens that are recognised in the text before any other step, longest first.
class AddedTokens {
 public:
  AddedTokens(const JsonFields& file, std::int64_t most_tokens) {
    if (!file.has("added_tokens")) return;
    const nlohmann::json& list = file.at("added_tokens");
    if (!list.is_array()) file.refuse("added_tokens is not a list");
    for (const nlohmann::json& entry : list) {
      const JsonFields fields(entry, file.name() + ": added_tokens");
      const auto id = static_cast<std::int32_t>(fields.integer("id", 0, most_tokens - 1));
      const std::string content = fields.text("content");
      if (content.empty()) fields.refuse(fmt::format("token {} is empty", id));
      for (const char* flag : {"single_word", "lstrip", "rstrip"}) {
        if (fields.flag(flag, false)) {
          fields.refuse(fmt::format("'{}': {} is true; allowed: false", content, flag));
        }
      }
      if (!ids_.emplace(content, id).second) {
        fields.refuse(fmt::format("'{}' occurs twice", content));
      }
      lengths_.insert(content.size());
      begins_[static_cast<unsigned char>(content[0])] = true;
      if (fields.flag("special", false)) special_.insert(id);
    }
  }

  /// Returns the token at the start of a text and its number of bytes; 0 bytes if there is none.
  std::pair<std::int32_t, std::size_t> first(std::string_view text) const {
    if (!begins_[static_cast<unsigned char>(text[0])]) return {};
    for (auto length = lengths_.rbegin(); length != lengths_.rend(); ++length) {
      if (*length > text.size()) continue;
      const auto found = ids_.find(std::string(text.substr(0, *length)));
      if (found != ids_.end()) return {found->second, *length};
    }
    return {};
  }

  const std::unordered_map<std::string, std::int32_t>& ids() const { return ids_; }
  bool special(std::int32_t id) const { return special_.count(id) > 0; }

 private:
  std::unordered_map<std::string, std::int32_t> ids_;
  std::set<std::size_t> lengths_;
  std::array<bool, 256> begins_{};
  std::set<std::int32_t> special_;
};

class JsonTokenizer final : public Tokenizer {
 public:
  JsonTokenizer(const JsonFields& file, const LlamaConfig& config)
      : steps_(file),
        model_(file.object("model"), steps_.byte_level(), config.vocab),
        added_(file, config.vocab),
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
      const auto at = static_cast<std::size_t>(id);
      if (at >= decoded_.size()) decoded_.resize(at + 1);
      decoded_[at] = added_.special(id) ? std::string() : content;
    }
  }

  std::vector<std::int32_t> encode(std::string_view text, bool with_bos) const override {
    check_prompt(text);
    std::vector<std::int32_t> ids;
    if (with_bos && bos_ >= 0) ids.push_back(bos_);
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const auto [id, length] = added_.first(text.substr(at));
      if (length == 0) {
        ++at;
        continue;
      }
      encode_part(text.substr(begin, at - begin), begin == 0, ids);
      ids.push_back(id);
      at += length;
      begin = at;
    }
    encode_part(text.substr(begin), begin == 0, ids);
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
    if (text.empty()) return;
    const std::string changed = steps_.normalise(text, first);
    for (const std::string_view word : steps_.words(changed)) model_.encode(word, ids);
  }

  TextSteps steps_;
  BpeModel model_;
  AddedTokens added_;
  std::int32_t bos_;
  std::vector<std::string> decoded_;  ///< by id
};

}  // namespace

std::unique_ptr<Tokenizer> load_json_tokenizer(const MappedFile& file, const LlamaConfig& config) {
  const std::string name = file.path().string();
  const nlohmann::json json = parse_json(file.text(), name);
  return std::make_unique<JsonTokenizer>(JsonFields(json, name), config);
}

}  // namespace greta::runtime
