#include "runtime/pipeline/models/text/gguf_tokens.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "runtime/device/result.hpp"
#include "runtime/device/text/printable.hpp"
#include "runtime/device/text/strings.hpp"
#include "runtime/device/text/utf8.hpp"
#include "runtime/pipeline/models/formats/gguf.hpp"
#include "runtime/pipeline/models/text/score_tokenizer.hpp"
#include "runtime/pipeline/models/text/tokenizers.hpp"

namespace greta::runtime {
namespace {

constexpr const char* model_key = "tokenizer.ggml.model";
constexpr const char* tokens_key = "tokenizer.ggml.tokens";
constexpr const char* kinds_key = "tokenizer.ggml.token_type";

/// How texts are split into words before merges: a kind of tokenizer.ggml.pre.
struct Splitting {
  std::vector<std::string_view> names;
  std::vector<const char*> words{};  ///< regular expressions that split texts, one after the other
  bool then_gpt2 = false;            ///< the words are split further, as by GPT-2
  bool whole_words = false;          ///< a word that is a token is not split
  bool adds_bos = false;             ///< unless tokenizer.ggml.add_bos_token says otherwise
};

const std::vector<Splitting>& splittings() {
  static const std::vector<Splitting> all{
      {.names = {"llama-bpe", "llama3", "llama-v3", "pixtral", "falcon3"},
       .words = {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                 R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       .whole_words = true,
       .adds_bos = true},
      {.names = {"qwen2", "deepseek-r1-qwen", "megrez"},
       .words = {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                 R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
      {.names = {"tekken"},
       .words = {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
                 R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
                 R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
       .whole_words = true,
       .adds_bos = true},
      {.names = {"smollm", "starcoder", "refact"}, .words = {R"(\p{N})"}, .then_gpt2 = true},
      {.names = {"deepseek-coder"},
       .words = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                 "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", R"(\p{N})"}},
      // What llama.cpp does with tokenizers that it does not know.
      {.names = {"default"},
       .words = {R"([\p{P}\$\+<=>\^~\|]+)",
                 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))",
                 R"(\p{N}+)", R"([0-9][0-9][0-9])"}},
      {.names = {"gpt-2"}, .then_gpt2 = true},
  };
  return all;
}

const Splitting& splitting_of(const GgufMetadata& metadata) {
  constexpr const char* key = "tokenizer.ggml.pre";
  const auto name = metadata.text(key);
  std::vector<std::string_view> allowed;
  for (const Splitting& one : splittings()) {
    if (name && std::count(one.names.begin(), one.names.end(), *name) > 0) return one;
    allowed.insert(allowed.end(), one.names.begin(), one.names.end());
  }
  const std::string given = name ? "is '" + one_line(name->substr(0, 60)) + "'" : "is missing";
  metadata.refuse(key, fmt::format("{}; allowed: {}", given, fmt::join(allowed, ", ")));
}

std::int32_t token_of(const GgufMetadata& metadata, const char* key, std::int32_t fallback) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(metadata.integer(key, 0, most, fallback));
}

/// The vocabulary by id.
struct Tokens {
  std::vector<std::string_view> texts;
  std::vector<TokenKind> kinds;
};

Tokens read_tokens(const GgufMetadata& metadata, const LlamaConfig& config) {
  Tokens tokens;
  tokens.texts = metadata.texts(tokens_key);
  const std::size_t count = tokens.texts.size();
  if (count > static_cast<std::size_t>(config.vocab)) {
    metadata.refuse(tokens_key, fmt::format("has {} tokens, the model {}", count, config.vocab));
  }
  tokens.kinds.assign(count, TokenKind::normal);
  if (metadata.has(kinds_key)) {
    const std::vector<double> kinds = metadata.numbers(kinds_key);
    if (kinds.size() != count) {
      metadata.refuse(kinds_key, fmt::format("has {} elements for {} tokens", kinds.size(), count));
    }
    for (std::size_t id = 0; id < count; ++id) {
      if (!(kinds[id] >= 1 && kinds[id] <= 6 && kinds[id] == std::floor(kinds[id]))) {
        metadata.refuse(kinds_key,
                        fmt::format("is {} for token {}; allowed: 1 to 6", kinds[id], id));
      }
      tokens.kinds[id] = static_cast<TokenKind>(static_cast<int>(kinds[id]));
    }
  }
  std::set<std::string_view> known;
  for (std::size_t id = 0; id < count; ++id) {
    if (invalid_utf8(tokens.texts[id])) {
      metadata.refuse(tokens_key, fmt::format("has token {}, which isn't UTF-8", id));
    }
    if (!tokens.texts[id].empty() && !known.insert(tokens.texts[id]).second) {
      metadata.refuse(tokens_key, fmt::format("has token {} twice", id));
    }
  }
  return tokens;
}

/// Returns whether a token is recognised in a text, as llama.cpp does and Hugging Face's library.
bool is_added(TokenKind kind) {
  return kind == TokenKind::control || kind == TokenKind::user_defined ||
         kind == TokenKind::unknown;
}

std::unique_ptr<Tokenizer> score_tokenizer(const GgufMetadata& metadata,
                                           const LlamaConfig& config) {
  constexpr const char* scores_key = "tokenizer.ggml.scores";
  const Tokens tokens = read_tokens(metadata, config);
  const std::vector<double> scores = metadata.numbers(scores_key);
  if (scores.size() != tokens.texts.size()) {
    metadata.refuse(scores_key, fmt::format("has {} elements for {} tokens", scores.size(),
                                            tokens.texts.size()));
  }
  ScoreVocabulary vocabulary;
  vocabulary.bos = config.bos;
  vocabulary.unknown = token_of(metadata, "tokenizer.ggml.unknown_token_id", 0);
  vocabulary.adds_space = metadata.flag("tokenizer.ggml.add_space_prefix", true);
  vocabulary.escapes_space = true;
  for (std::size_t id = 0; id < scores.size(); ++id) {
    if (std::isnan(scores[id])) metadata.refuse(scores_key, fmt::format("is NaN for token {}", id));
    std::string text(tokens.texts[id]);
    replace_all(text, escaped_space, " ");
    const TokenKind kind = tokens.kinds[id];
    if (is_added(kind) && !text.empty()) {
      vocabulary.added.add(text, static_cast<std::int32_t>(id),
                           {.special = kind == TokenKind::control});
    }
    vocabulary.tokens.push_back({std::move(text), static_cast<float>(scores[id]), kind});
  }
  if (static_cast<std::size_t>(vocabulary.unknown) >= vocabulary.tokens.size()) {
    metadata.refuse("tokenizer.ggml.unknown_token_id",
                    fmt::format("is {} of {}", vocabulary.unknown, vocabulary.tokens.size()));
  }
  return make_score_tokenizer(std::move(vocabulary));
}

/// Returns the tokenizer.json that describes the same tokenizer.
nlohmann::json tokenizer_json(const GgufMetadata& metadata, const LlamaConfig& config) {
  const Tokens tokens = read_tokens(metadata, config);
  const Splitting& splitting = splitting_of(metadata);
  nlohmann::json vocab = nlohmann::json::object(), added = nlohmann::json::array();
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    if (tokens.texts[id].empty()) continue;
    vocab[std::string(tokens.texts[id])] = id;
    if (!is_added(tokens.kinds[id])) continue;
    added.push_back({{"id", id},
                     {"content", tokens.texts[id]},
                     {"special", tokens.kinds[id] == TokenKind::control}});
  }
  nlohmann::json steps = nlohmann::json::array();
  for (const char* words : splitting.words) {
    steps.push_back({{"type", "Split"}, {"pattern", {{"Regex", words}}}, {"behavior", "Isolated"}});
  }
  steps.push_back({{"type", "ByteLevel"},
                   {"add_prefix_space", metadata.flag("tokenizer.ggml.add_space_prefix", false)},
                   {"use_regex", splitting.then_gpt2}});
  return {{"model",
           {{"type", "BPE"},
            {"vocab", std::move(vocab)},
            {"merges", metadata.texts("tokenizer.ggml.merges")},
            {"ignore_merges", splitting.whole_words}}},
          {"added_tokens", std::move(added)},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}}},
          {"decoder", {{"type", "ByteLevel"}}}};
}

}  // namespace

GgufEnds gguf_ends(const GgufMetadata& metadata) {
  GgufEnds ends;
  const auto model = metadata.text(model_key);
  if (!model) return ends;
  const bool scores = *model == "llama";
  ends.bos = token_of(metadata, "tokenizer.ggml.bos_token_id", scores ? 1 : -1);
  const bool adds = scores || (*model == "gpt2" && splitting_of(metadata).adds_bos);
  ends.adds_bos = ends.bos >= 0 && metadata.flag("tokenizer.ggml.add_bos_token", adds);
  const std::int32_t eos = token_of(metadata, "tokenizer.ggml.eos_token_id", scores ? 2 : -1);
  if (eos >= 0) ends.eos.push_back(eos);
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    const std::int32_t id = token_of(metadata, key, -1);
    if (id >= 0 && id != eos) ends.eos.push_back(id);
  }
  return ends;
}

std::unique_ptr<Tokenizer> load_gguf_tokenizer(const std::filesystem::path& path,
                                               const LlamaConfig& config) {
  const GgufFile file = GgufFile::open(path);
  const GgufMetadata& metadata = file.metadata();
  const auto model = metadata.text(model_key);
  if (!model) metadata.refuse(model_key, "is missing");
  if (*model == "llama") return score_tokenizer(metadata, config);
  if (*model != "gpt2") {
    metadata.refuse(model_key,
                    fmt::format("is '{}'; allowed: llama, gpt2", one_line(model->substr(0, 60))));
  }
  const nlohmann::json json = tokenizer_json(metadata, config);
  try {
    return make_json_tokenizer(JsonFields(json, metadata.name()), config);
  } catch (const Error& error) {  // it may quote a token
    throw Error(one_line(std::string_view(error.what()).substr(0, 500)));
  }
}

}  // namespace greta::runtime
