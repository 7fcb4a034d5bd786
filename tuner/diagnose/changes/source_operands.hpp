#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "tuner/diagnose/changes/kernel_text.hpp"

namespace greta::tuner {

/// Whether a text is one of several.
inline bool is_one_of(std::string_view text, std::initializer_list<std::string_view> others) {
  return std::find(others.begin(), others.end(), text) != others.end();
}

/// Whether a sign after an operand changes it.
inline bool assigns(std::string_view sign) {
  return is_one_of(sign,
                   {"=", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "<<=", ">>=", "%=", "++", "--"});
}

/// Finds the operands of expressions among a source's tokens, which must outlive it.
class SourceOperands {
 public:
  explicit SourceOperands(const std::vector<SourceToken>& tokens) : tokens_(tokens) {}

  /// Returns a token's text; empty after the last one.
  std::string_view text(std::size_t i) const {
    return i < tokens_.size() ? tokens_[i].text : std::string_view();
  }
  /// Whether an operand ends, or begins, with a token.
  bool ends_operand(std::size_t i) const {
    return tokens_[i].kind == SourceToken::Kind::number || is_one_of(text(i), {")", "]"}) ||
           (tokens_[i].kind == SourceToken::Kind::name &&
            (!is_source_keyword(text(i)) || is_one_of(text(i), {"in", "out", "shared"})));
  }
  bool begins_operand(std::size_t i) const {
    return tokens_[i].kind != SourceToken::Kind::sign || is_one_of(text(i), {"(", "-", "!", "~"});
  }
  /// Returns the token after the operand that begins with a token: a name with its indices, calls
  /// and members, a number, or what is in parentheses.
  std::size_t after_operand(std::size_t i) const {
    while (is_one_of(text(i), {"-", "!", "~"})) ++i;
    if (text(i) != "(") ++i;
    while (i < tokens_.size()) {
      if (is_one_of(text(i), {"(", "["})) {
        i = after_bracket(i);
      } else if (is_one_of(text(i), {".", "->", "::"})) {
        i += 2;
      } else {
        break;
      }
    }
    return std::min(i, tokens_.size());
  }
  std::size_t after_bracket(std::size_t i) const {
    int depth = 0;
    for (; i < tokens_.size(); ++i) {
      if (is_one_of(text(i), {"(", "[", "{"})) ++depth;
      if (is_one_of(text(i), {")", "]", "}"}) && --depth == 0) return i + 1;
    }
    return i;
  }
  /// Returns the first token of the operand that ends before a token.
  std::size_t begin_of_operand(std::size_t i) const {
    while (i > 0) {
      --i;
      if (is_one_of(text(i), {")", "]"})) {
        int depth = 0;
        for (;; --i) {
          if (is_one_of(text(i), {")", "]"})) ++depth;
          if (is_one_of(text(i), {"(", "["}) && --depth == 0) break;
          if (i == 0) return 0;
        }
        if (i > 0 && (ends_operand(i - 1))) continue;
        return i;
      }
      if (i > 1 && is_one_of(text(i - 1), {".", "->", "::"})) {
        --i;
        continue;
      }
      return i;
    }
    return i;
  }

 private:
  const std::vector<SourceToken>& tokens_;
};

}  // namespace greta::tuner
