#include "runtime/pipeline/models/text/text_steps.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <cstdlib>
#include <limits>
#include <memory>

#include "runtime/device/result.hpp"
#include "runtime/device/text/strings.hpp"
#include "runtime/pipeline/models/text/tokenizers.hpp"

namespace greta::runtime {
namespace {

constexpr const char* gpt2_words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Calls use(step) for the steps of a Sequence, or for the part itself.
template <typename Use>
void for_each_step(const JsonFields& file, const char* key, const char* list, const Use& use) {
  if (!file.has(key)) return;
  const JsonFields part = file.object(key);
  if (part.text("type") != "Sequence") return use(part);
  const nlohmann::json& steps = part.at(list);
  if (!steps.is_array()) part.refuse(fmt::format("{} is not a list", list));
  for (const nlohmann::json& step : steps) use(JsonFields(step, part.name()));
}

[[noreturn]] void refuse_type(const JsonFields& step, const char* allowed) {
  step.refuse(
      fmt::format("'{}' isn't known; allowed: {}", step.text("type").substr(0, 100), allowed));
}

/// Returns the text of pattern: {"String": …}.
std::string string_pattern(const JsonFields& step) {
  std::string text = step.object("pattern").text("String");
  if (text.empty()) step.refuse("its pattern is empty");
  return text;
}

/// Returns the options of utf8proc for a normal form of Unicode, or nothing for another name.
std::optional<int> normal_form(std::string_view name) {
  if (name == "NFC") return UTF8PROC_COMPOSE;
  if (name == "NFD") return UTF8PROC_DECOMPOSE;
  if (name == "NFKC") return UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
  if (name == "NFKD") return UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  return std::nullopt;
}

/// Replaces a text in UTF-8 by a normal form of it.
void to_normal_form(std::string& text, int form) {
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &made,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | form));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  if (size < 0) throw Error(fmt::format("cannot normalise a text: {}", utf8proc_errmsg(size)));
  text.assign(reinterpret_cast<const char*>(made), static_cast<std::size_t>(size));
}

}  // namespace

TextSteps::TextSteps(const JsonFields& fields) {
  for_each_step(fields, "normalizer", "normalizers",
                [this](const JsonFields& step) { read_normalizer(step); });
  for_each_step(fields, "pre_tokenizer", "pretokenizers",
                [this](const JsonFields& step) { read_pre_tokenizer(step); });
  for_each_step(fields, "post_processor", "processors",
                [this](const JsonFields& step) { read_post_processor(step); });
  if (!fields.has("decoder")) fields.refuse("has no decoder");
  for_each_step(fields, "decoder", "decoders",
                [this](const JsonFields& step) { read_decoder(step); });
}

void TextSteps::read_normalizer(const JsonFields& step) {
  const std::string type = step.text("type");
  if (type == "Prepend") {
    normalizers_.emplace_back([prefix = step.text("prepend")](std::string& text) {
      if (!text.empty()) text.insert(0, prefix);
    });
  } else if (type == "Replace") {
    normalizers_.emplace_back([from = string_pattern(step), to = step.text("content")](
                                  std::string& text) { replace_all(text, from, to); });
  } else if (const auto form = normal_form(type)) {
    normalizers_.emplace_back([form](std::string& text) { to_normal_form(text, *form); });
  } else {
    refuse_type(step, "Prepend, Replace, NFC, NFD, NFKC, NFKD");
  }
}

void TextSteps::read_metaspace(const JsonFields& step) {
  space_ = step.text("replacement");
  if (space_.empty()) step.refuse("its replacement is empty");
  const std::string scheme =
      step.text("prepend_scheme", step.flag("add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    step.refuse(fmt::format("prepend_scheme is '{}'; allowed: always, first, never", scheme));
  }
  prefix_ = scheme == "always" ? Prefix::always : scheme == "first" ? Prefix::first : Prefix::never;
  splits_at_spaces_ = step.flag("split", true);
}

void TextSteps::read_split(const JsonFields& step) {
  const std::string name = step.text("behavior");
  const auto behaviour = split_behaviour_from_string(name);
  if (!behaviour) {
    step.refuse(
        fmt::format("behavior is '{}'; allowed: Isolated, Removed, MergedWithPrevious, "
                    "MergedWithNext, Contiguous",
                    name.substr(0, 40)));
  }
  const bool literal = step.object("pattern").has("String");
  splitters_.emplace_back(literal ? string_pattern(step) : step.object("pattern").text("Regex"),
                          WordSplitter::Options{*behaviour, step.flag("invert", false), literal});
}

void TextSteps::read_pre_tokenizer(const JsonFields& step) {
  const std::string type = step.text("type");
  try {
    if (type == "Split") {
      read_split(step);
    } else if (type == "ByteLevel") {
      byte_level_ = true;
      space_ = " ";
      if (step.flag("add_prefix_space", true)) {
        if (!splitters_.empty()) step.refuse("add_prefix_space after a Split isn't supported");
        prefix_ = Prefix::always;
      }
      if (step.flag("use_regex", true)) splitters_.emplace_back(gpt2_words);
    } else if (type == "Digits") {
      splitters_.emplace_back(step.flag("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
    } else if (type == "Metaspace") {
      read_metaspace(step);
    } else {
      refuse_type(step, "Split, Digits, ByteLevel, Metaspace");
    }
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(step.name())) throw;
    step.refuse(error.what());
  }
}

void TextSteps::read_post_processor(const JsonFields& step) {
  const std::string type = step.text("type");
  if (type == "ByteLevel") return;
  if (type != "TemplateProcessing") refuse_type(step, "TemplateProcessing, ByteLevel");
  const nlohmann::json& items = step.at("single");
  if (!items.is_array()) step.refuse("single is not a list");
  for (const nlohmann::json& item : items) {
    const JsonFields fields(item, step.name() + ": single");
    // Tokens after the text are ignored, because prompts are continued.
    if (!fields.has("SpecialToken")) return;
    if (bos_) step.refuse("more than one token in front of a text");
    const std::string name = fields.object("SpecialToken").text("id");
    const JsonFields token = step.object("special_tokens").object(name);
    const nlohmann::json& ids = token.at("ids");
    if (!ids.is_array() || ids.size() != 1) token.refuse("ids is not a list of one id");
    const nlohmann::json& id = ids[0];
    constexpr auto most = std::uint64_t{std::numeric_limits<std::int32_t>::max()};
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > most) token.refuse("ids has no id");
    bos_ = id.get<std::int32_t>();
  }
}

void TextSteps::read_decoder(const JsonFields& step) {
  const std::string type = step.text("type");
  if (type == "Replace") {
    undone_.push_back({string_pattern(step), step.text("content")});
  } else if (type == "ByteFallback") {
    bytes_ = true;
  } else if (type == "Strip") {
    if (step.text("content") != " " || step.integer("start", 0, 1) != 1 ||
        step.integer("stop", 0, 0) != 0) {
      step.refuse("a Strip must take one space from the start");
    }
    strips_first_ = true;
  } else if (type == "Metaspace") {
    undone_.push_back({step.text("replacement"), " "});
    if (undone_.back().from.empty()) step.refuse("its replacement is empty");
    const bool prefix = step.flag("add_prefix_space", true);
    strips_first_ = step.text("prepend_scheme", prefix ? "always" : "never") != "never";
  } else if (type == "ByteLevel") {
    if (!byte_level_) step.refuse("decodes bytes, which the pre_tokenizer doesn't encode");
  } else if (type != "Fuse") {
    refuse_type(step, "Replace, ByteFallback, Fuse, Strip, Metaspace, ByteLevel");
  }
}

std::string TextSteps::normalise(std::string_view text) const {
  std::string result(text);
  for (const auto& normalizer : normalizers_) normalizer(result);
  return result;
}

std::string TextSteps::mark_spaces(std::string_view text, bool first) const {
  std::string result(text);
  if (space_.empty()) return result;
  if (space_ != " ") replace_all(result, " ", space_);
  const bool wanted = prefix_ == Prefix::always || (prefix_ == Prefix::first && first);
  if (wanted && !result.empty() && !result.starts_with(space_)) result.insert(0, space_);
  return result;
}

std::vector<std::string_view> TextSteps::words(std::string_view text) const {
  std::vector<std::string_view> words{text};
  for (const WordSplitter& splitter : splitters_) {
    std::vector<std::string_view> shorter;
    for (const std::string_view word : words) {
      const auto parts = splitter.split(word);
      shorter.insert(shorter.end(), parts.begin(), parts.end());
    }
    words = std::move(shorter);
  }
  if (!splits_at_spaces_) return words;
  // Each space begins a word.
  words.clear();
  std::size_t begin = 0;
  for (std::size_t at = text.find(space_, 1); begin < text.size();
       at = text.find(space_, begin + 1)) {
    const std::size_t end = std::min(at, text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::string TextSteps::decode(const std::string& token) const {
  if (byte_level_) return token;
  if (const auto byte = byte_of_token(token); bytes_ && byte) return {static_cast<char>(*byte)};
  std::string text = token;
  for (const Replacement& step : undone_) replace_all(text, step.from, step.to);
  return text;
}

}  // namespace greta::runtime
