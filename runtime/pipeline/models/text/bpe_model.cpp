#include "runtime/pipeline/models/text/bpe_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/device/result.hpp"
#include "runtime/device/text/utf8.hpp"

namespace greta::runtime {
namespace {

/// Returns whether a byte represents itself, as a character in U+0021 … U+00FF.
bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) |
         static_cast<std::uint32_t>(right);
}

/// Returns the two tokens of a merge: "a b" or ["a", "b"].
std::optional<std::pair<std::string, std::string>> parts_of(const nlohmann::json& merge) {
  if (merge.is_array()) {
    if (merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string()) return std::nullopt;
    return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  }
  if (!merge.is_string()) return std::nullopt;
  const std::string text = merge.get<std::string>();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    return std::nullopt;
  }
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

}  // namespace

std::optional<std::string> byte_level_bytes(std::string_view token) {
  static const std::unordered_map<std::uint32_t, char> bytes = [] {
    std::unordered_map<std::uint32_t, char> map;
    std::uint32_t other = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      map[stands_for_itself(byte) ? byte : other++] = static_cast<char>(byte);
    }
    return map;
  }();
  std::string result;
  while (!token.empty()) {
    // All characters of the mapping are encoded in one or two bytes.
    const Utf8Start start = first_character(token);
    if (start.kind != Utf8Start::Kind::character || start.bytes > 2) return std::nullopt;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(token[i]); };
    const std::uint32_t point =
        start.bytes == 1 ? std::uint32_t{byte(0)} : ((byte(0) & 0x1fU) << 6) | (byte(1) & 0x3fU);
    const auto found = bytes.find(point);
    if (found == bytes.end()) return std::nullopt;
    result += found->second;
    token.remove_prefix(start.bytes);
  }
  return result;
}

BpeModel::BpeModel(const JsonFields& fields, bool byte_level, std::int64_t most_tokens)
    : byte_level_(byte_level) {
  const std::string type = fields.text("type", "BPE");
  if (type != "BPE") fields.refuse(fmt::format("its type is '{}'; allowed: BPE", type));
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!fields.text(affix, "").empty()) fields.refuse(fmt::format("has a {}", affix));
  }
  if (fields.number("dropout", 0) != 0) fields.refuse("has a dropout");
  read_vocabulary(fields, byte_level, most_tokens);
  read_merges(fields);
  whole_words_ = fields.flag("ignore_merges", false);
  fuse_unknown_ = fields.flag("fuse_unk", false);
  if (fields.has("unk_token")) {
    const std::string token = fields.text("unk_token");
    const auto id = find(token);
    if (!id) fields.refuse(fmt::format("its unk_token '{}' isn't in vocab", token));
    unknown_ = *id;
  }
  bytes_.fill(-1);
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (byte_level) {
      const auto found = by_bytes_.find(std::string(1, static_cast<char>(byte)));
      if (found != by_bytes_.end()) bytes_[byte] = found->second;
      if (found == by_bytes_.end() && unknown_ < 0) {
        fields.refuse(fmt::format("vocab has no token for byte 0x{:02x}", byte));
      }
    } else if (fields.flag("byte_fallback", false)) {
      bytes_[byte] = find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
    }
  }
}

void BpeModel::read_vocabulary(const JsonFields& fields, bool byte_level,
                               std::int64_t most_tokens) {
  const JsonFields vocab = fields.object("vocab");
  std::vector<bool> taken;
  for (const auto& [token, value] : fields.at("vocab").items()) {
    if (!value.is_number_unsigned() ||
        value.get<std::uint64_t>() >= static_cast<std::uint64_t>(most_tokens)) {
      vocab.refuse(fmt::format("the id of '{}' isn't one of the model's {} tokens",
                               token.substr(0, 100), most_tokens));
    }
    const auto id = value.get<std::size_t>();
    if (id >= tokens_.size()) {
      tokens_.resize(id + 1);
      taken.resize(id + 1);
    }
    if (taken[id]) vocab.refuse(fmt::format("two tokens have id {}", id));
    taken[id] = true;
    spelled_.emplace(token, static_cast<std::int32_t>(id));
    tokens_[id] = token;
    if (!byte_level) continue;
    // Special tokens may contain other characters. They never result from merges.
    if (const auto bytes = byte_level_bytes(token)) {
      tokens_[id] = *bytes;
      by_bytes_.emplace(*bytes, static_cast<std::int32_t>(id));
    }
  }
  if (byte_level) ids_ = &by_bytes_;
}

void BpeModel::read_merges(const JsonFields& fields) {
  const nlohmann::json& list = fields.at("merges");
  if (!list.is_array()) fields.refuse("merges is not a list");
  merges_.reserve(list.size());
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    const auto parts = parts_of(list[rank]);
    if (!parts) {
      fields.refuse(fmt::format("merge {} is neither \"a b\" nor [\"a\", \"b\"]", rank));
    }
    const auto left = find(parts->first), right = find(parts->second),
               both = find(parts->first + parts->second);
    if (!left || !right || !both) {
      fields.refuse(fmt::format("merge {} has a token that isn't in vocab", rank));
    }
    merges_.emplace(pair_key(*left, *right), TextMerge{static_cast<double>(rank), *both});
  }
}

std::optional<std::int32_t> BpeModel::find(std::string_view spelling) const {
  const auto found = spelled_.find(spelling);
  if (found == spelled_.end()) return std::nullopt;
  return found->second;
}

std::int32_t BpeModel::unknown(std::string_view character) const {
  if (unknown_ >= 0) return unknown_;
  throw Error(fmt::format("the tokenizer has no token for '{}'", character));
}

std::vector<TextSymbol> BpeModel::symbols(std::string_view word) const {
  std::vector<TextSymbol> list;
  list.reserve(word.size());
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = byte_level_ ? 1 : first_character(word.substr(at)).bytes;
    const std::string_view character = word.substr(at, length);
    const auto found = ids_->find(character);
    const bool bytes = std::all_of(character.begin(), character.end(), [&](char c) {
      return bytes_[static_cast<unsigned char>(c)] >= 0;
    });
    if (found != ids_->end()) {
      list.push_back({found->second, at, at + length});
    } else if (bytes) {
      for (std::size_t i = at; i < at + length; ++i) {
        list.push_back({bytes_[static_cast<unsigned char>(word[i])], i, i + 1});
      }
    } else {
      const std::int32_t id = unknown(character);
      const bool fused = fuse_unknown_ && !list.empty() && list.back().id == id;
      if (fused) list.back().end = at + length;
      if (!fused) list.push_back({id, at, at + length});
    }
    at += length;
  }
  return list;
}

void BpeModel::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (whole_words_) {
    const auto found = ids_->find(word);
    if (found != ids_->end()) {
      ids.push_back(found->second);
      return;
    }
  }
  const auto merge = [this](const TextSymbol& a, const TextSymbol& b) -> std::optional<TextMerge> {
    const auto found = merges_.find(pair_key(a.id, b.id));
    if (found == merges_.end()) return std::nullopt;
    return found->second;
  };
  for (const TextSymbol& symbol : merge_symbols(symbols(word), merge)) ids.push_back(symbol.id);
}

}  // namespace greta::runtime
