#include "tuner/diagnose/changes/unset_variables.hpp"

#include <algorithm>
#include <set>

#include "tuner/diagnose/changes/source_operands.hpp"

namespace greta::tuner {
namespace {

class UnsetSearch {
 public:
  UnsetSearch(std::string_view source, std::string_view entry)
      : source_(source), tokens_(used_tokens(source, entry)), operands_(tokens_) {
    read_macros();
  }

  std::vector<UnsetVariable> all() const {
    std::vector<UnsetVariable> found;
    std::vector<char> structures;  // of open braces, whether they are of a structure
    for (std::size_t i = 1; i + 1 < tokens_.size(); ++i) {
      if (text(i) == "{") structures.push_back(opens_structure(i) ? 1 : 0);
      if (text(i) == "}" && !structures.empty()) structures.pop_back();
      const bool shared = is_one_of(text(i - 2), {"shared", "__shared__"});
      const bool local = !structures.empty() && structures.back() == 0;
      if (is_output(i) && !macro_words_.contains(text(i)) && is_never_named_again(i))
        found.push_back({std::string(text(i)), line_of(i), 0});
      if ((!shared && !local) || !declares(i) || macro_words_.contains(text(i))) continue;
      if (const std::size_t read = first_reading(i, shared); read > 0)
        found.push_back({std::string(text(i)), line_of(i), line_of(read)});
    }
    return found;
  }

 private:
  std::string_view text(std::size_t i) const { return operands_.text(i); }
  std::size_t line_of(std::size_t i) const {
    const auto end = source_.begin() + static_cast<std::ptrdiff_t>(tokens_[i].start);
    return static_cast<std::size_t>(std::count(source_.begin(), end, '\n')) + 1;
  }
  void read_macros() {
    for (std::size_t at = 0; at < source_.size();) {
      const std::size_t end = std::min(source_.find('\n', at), source_.size());
      std::string_view line = source_.substr(at, end - at);
      const bool goes_on = !lines_.empty() && lines_.back().ends_with('\\');
      const auto first = line.find_first_not_of(" \t");
      if (goes_on || (first != std::string_view::npos && line[first] == '#')) {
        lines_.push_back(line);
        if (!goes_on) line.remove_prefix(first + 1);
        for (const SourceToken& token : tokens_of(line)) macro_words_.insert(token.text);
      } else {
        lines_.clear();
      }
      at = end + 1;
    }
  }
  bool opens_structure(std::size_t i) const {
    while (i > 0 && !is_one_of(text(i - 1), {";", "{", "}", ")"})) {
      --i;
      if (is_one_of(text(i), {"struct", "union", "class", "enum", "uniform", "buffer"}))
        return true;
    }
    return false;
  }
  /// Whether a token is the name of a variable, or of an array, that is declared without a value.
  bool declares(std::size_t i) const {
    if (tokens_[i].kind != SourceToken::Kind::name || is_source_keyword(text(i))) return false;
    if (is_constant_name(text(i)) || tokens_[i - 1].kind != SourceToken::Kind::name) return false;
    const bool no_type = is_one_of(text(i - 1), {"return", "else", "case", "struct", "typename",
                                                 "using", "class", "enum", "namespace"});
    if (no_type || text(i - 2) == "extern") return false;
    for (std::size_t at = i; at > 0 && !is_one_of(text(at), {";", "{", "}"}); --at) {
      if (is_one_of(text(at), {"typedef", "using"})) return false;
    }
    std::size_t after = i + 1;
    while (text(after) == "[") after = operands_.after_bracket(after);
    return text(after) == ";";
  }
  /// Whether a token is the name of a parameter that a function of GLSL has to set.
  bool is_output(std::size_t i) const {
    if (i < 2 || text(i - 2) != "out" || tokens_[i - 1].kind != SourceToken::Kind::name)
      return false;
    std::size_t after = i + 1;
    while (text(after) == "[") after = operands_.after_bracket(after);
    return is_one_of(text(after), {",", ")"});
  }
  bool is_never_named_again(std::size_t declared) const {
    return std::none_of(tokens_.begin(), tokens_.end(), [&](const SourceToken& other) {
      const SourceToken& own = tokens_[declared];
      return other.definition == own.definition && other.text == own.text &&
             other.start != own.start;
    });
  }
  /// Whether what a token names may be set there.
  bool may_set(std::size_t i) const {
    if (is_one_of(text(i - 1), {"&", "++", "--", "]", "*"})) return true;
    const std::size_t after = operands_.after_operand(i);
    const bool whole =
        is_one_of(text(i - 1), {"(", ",", "{"}) && is_one_of(text(after), {",", ")", "}"});
    if (whole) return true;  // of a call, which may set it
    return assigns(text(after)) || is_one_of(text(after), {"{", ":"}) || text(i + 1) == "." ||
           text(i + 1) == "(" || text(i + 1) == "->";
  }
  /// Returns the first token that reads the variable declared at a token; 0 if it may be set.
  std::size_t first_reading(std::size_t declared, bool shared) const {
    std::size_t read = 0;
    for (std::size_t i = 1; i < tokens_.size(); ++i) {
      const bool same = tokens_[i].text == tokens_[declared].text && i != declared &&
                        (shared || tokens_[i].definition == tokens_[declared].definition);
      if (!same || is_one_of(text(i - 1), {".", "->", "::"})) continue;
      if (may_set(i)) return 0;
      if (read == 0) read = i;
    }
    return read;
  }

  std::string_view source_;
  std::vector<SourceToken> tokens_;
  SourceOperands operands_;
  std::vector<std::string_view> lines_;  ///< of one directive
  std::set<std::string_view> macro_words_;
};

}  // namespace

std::vector<UnsetVariable> unset_variables(std::string_view source, std::string_view entry) {
  return UnsetSearch(source, entry).all();
}

}  // namespace greta::tuner
