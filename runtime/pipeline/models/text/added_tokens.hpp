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

/// Tokens that are recognised in a text before any other step. Where several match, the longest one
/// does.
class AddedTokens {
 public:
  /// How a token is recognised. White space that it strips is no part of the text beside it.
  struct Kind {
    bool special = false;  ///< decodes to nothing
    bool strips_left = false, strips_right = false;
  };

  /// Returns whether the token, which isn't empty, was new.
  bool add(const std::string& content, std::int32_t id, const Kind& kind) {
    if (!ids_.emplace(content, id).second) return false;
    lengths_.insert(content.size());
    begins_[static_cast<unsigned char>(content[0])] = true;
    if (kind.special) special_.insert(id);
    if (kind.strips_left) strips_left_.insert(id);
    if (kind.strips_right) strips_right_.insert(id);
    return true;
  }

  const std::unordered_map<std::string, std::int32_t>& ids() const { return ids_; }
  bool special(std::int32_t id) const { return special_.count(id) > 0; }

  /// Calls token(id) for each of these tokens in a text, and part(text, begin) for each text
  /// before, between and after them that is not empty, in order. `begin` is where the part begins.
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
      const std::string_view before = text.substr(begin, at - begin);
      end_part(at - (strips_left_.count(id) > 0 ? trailing_space(before) : 0));
      token(id);
      at += length;
      if (strips_right_.count(id) > 0) at += leading_space(text.substr(at));
      begin = at;
    }
    end_part(text.size());
  }

 private:
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
  std::set<std::int32_t> special_, strips_left_, strips_right_;
};

}  // namespace greta::runtime
