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

/// Tokens that are recognised in a text before any other step. Where several match, the longest one
/// does.
class AddedTokens {
 public:
  /// Returns whether the token, which isn't empty, was new. Special tokens decode to nothing.
  bool add(const std::string& content, std::int32_t id, bool special) {
    if (!ids_.emplace(content, id).second) return false;
    lengths_.insert(content.size());
    begins_[static_cast<unsigned char>(content[0])] = true;
    if (special) special_.insert(id);
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
      end_part(at);
      token(id);
      begin = at += length;
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
  std::set<std::int32_t> special_;
};

}  // namespace greta::runtime
