#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// Returns the bytes of the white space that a text begins with, or ends with: characters of
/// Unicode's property White_Space.
std::size_t leading_space(std::string_view text);
std::size_t trailing_space(std::string_view text);
/// Returns whether a text begins, or ends, with a letter, a mark, a digit or a connector, of which
/// words consist.
bool begins_in_word(std::string_view text);
bool ends_in_word(std::string_view text);

/// Tokens that are recognised in a text. Where several match, the longest one does.
class AddedTokens {
 public:
  /// How a token is recognised. White space that it strips is no part of the text beside it.
  struct Kind {
    bool special = false;  ///< decodes to nothing, which is up to the tokenizer
    bool strips_left = false, strips_right = false;
    bool whole_word = false;  ///< not recognised beside a word's character
  };

  /// Returns whether the token, which isn't empty, was new.
  bool add(const std::string& content, std::int32_t id, const Kind& kind) {
    if (!ids_.emplace(content, id).second) return false;
    lengths_.insert(content.size());
    begins_[static_cast<unsigned char>(content[0])] = true;
    kinds_.insert_or_assign(id, kind);
    return true;
  }

  /// Calls token(id) for each of these tokens in a text, and part(text, begin) for each text
  /// before, between and after them that is not empty, in order. `begin` is where the part begins.
  /// White space that a token strips may have tokens itself.
  template <typename Part, typename Token>
  void split(std::string_view text, const Part& part, const Token& token) const {
    std::size_t begin = 0;
    const auto end_part = [&](std::size_t at) {
      if (at > begin) part(text.substr(begin, at - begin), begin);
    };
    for (std::size_t at = 0; at < text.size();) {
      const auto [id, length] = first(text.substr(at));
      if (length == 0) {
        ++at;
        continue;
      }
      const Kind how = kind(id);
      const std::string_view before = text.substr(0, at), after = text.substr(at + length);
      at += length;
      if (how.whole_word && (ends_in_word(before) || begins_in_word(after))) continue;
      const std::string_view beside = before.substr(std::min(begin, before.size()));
      end_part(before.size() - (how.strips_left ? trailing_space(beside) : 0));
      token(id);
      if (!how.strips_right) {
        begin = at;
      } else if (begin < at) {  // else white space around the token was taken to its end
        begin = at + leading_space(after);
      }
    }
    end_part(text.size());
  }

 private:
  Kind kind(std::int32_t id) const {
    const auto found = kinds_.find(id);
    return found == kinds_.end() ? Kind{} : found->second;
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

  std::unordered_map<std::string, std::int32_t> ids_;
  std::set<std::size_t> lengths_;
  std::array<bool, 256> begins_{};
  std::unordered_map<std::int32_t, Kind> kinds_;
};

}  // namespace greta::runtime
