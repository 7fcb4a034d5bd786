#include "tuner/diagnose/changes/preprocessor.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <optional>

namespace greta::tuner {
namespace {

using Macros = std::map<std::string, std::string>;

/// Evaluates a condition by recursive descent. Unknown values are empty, and so is what takes too
/// many steps, as a source may be anything.
class Condition {
 public:
  using Value = std::optional<std::int64_t>;

  Condition(std::string_view text, const Macros& macros)
      : rest_(text), macros_(macros), steps_(own_steps_) {}

  Value value() { return binary(0); }

 private:
  struct Operator {
    std::string_view sign;
    int level;
  };
  static constexpr Operator operators[] = {{"||", 0}, {"&&", 1}, {"==", 2}, {"!=", 2}, {"<=", 3},
                                           {">=", 3}, {"<", 3},  {">", 3},  {"+", 4},  {"-", 4},
                                           {"*", 5},  {"/", 5},  {"%", 5}};
  static constexpr int levels = 6;
  static constexpr int most_steps = 500;

  /// A part of another condition: the text of a macro.
  Condition(std::string_view text, const Macros& macros, int& steps)
      : rest_(text), macros_(macros), steps_(steps) {}

  void skip() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0])) != 0)
      rest_.remove_prefix(1);
  }
  const Operator* next_operator(int level) {
    skip();
    for (const Operator& one : operators) {
      if (one.level == level && rest_.starts_with(one.sign)) return &one;
    }
    return nullptr;
  }

  Value binary(int level) {
    if (level == levels) return unary();
    Value left = binary(level + 1);
    while (const Operator* const one = next_operator(level)) {
      rest_.remove_prefix(one->sign.size());
      left = applied(one->sign, left, binary(level + 1));
    }
    return left;
  }

  static Value applied(std::string_view sign, Value a, Value b) {
    if (sign == "||" && (a.value_or(0) != 0 || b.value_or(0) != 0)) return 1;
    if (sign == "&&" && (a.value_or(1) == 0 || b.value_or(1) == 0)) return 0;
    if (!a || !b) return {};
    if (sign == "||" || sign == "&&") return sign == "&&" ? 1 : 0;
    if (sign == "==") return *a == *b ? 1 : 0;
    if (sign == "!=") return *a != *b ? 1 : 0;
    if (sign == "<=") return *a <= *b ? 1 : 0;
    if (sign == ">=") return *a >= *b ? 1 : 0;
    if (sign == "<") return *a < *b ? 1 : 0;
    if (sign == ">") return *a > *b ? 1 : 0;
    const auto x = static_cast<std::uint64_t>(*a), y = static_cast<std::uint64_t>(*b);
    if (sign == "+") return static_cast<std::int64_t>(x + y);
    if (sign == "-") return static_cast<std::int64_t>(x - y);
    if (sign == "*") return static_cast<std::int64_t>(x * y);
    if (*b == 0 || *b == -1) return {};
    return sign == "/" ? *a / *b : *a % *b;
  }

  Value unary() {
    skip();
    if (rest_.empty() || --steps_ < 0) return {};
    const char first = rest_[0];
    if (first == '!' || first == '-') {
      rest_.remove_prefix(1);
      const Value of = unary();
      if (!of) return {};
      return first == '-' ? applied("-", 0, of) : static_cast<std::int64_t>(*of == 0);
    }
    if (first == '(') {
      rest_.remove_prefix(1);
      const Value inside = binary(0);
      skip();
      if (rest_.starts_with(")")) rest_.remove_prefix(1);
      return inside;
    }
    const std::string word = next_word();
    if (word.empty()) {
      rest_.remove_prefix(1);
      return {};
    }
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0)
      return std::strtoll(word.c_str(), nullptr, 0);
    return word == "defined" ? defined() : expanded(word);
  }

  std::string next_word() {
    std::size_t length = 0;
    while (length < rest_.size() && is_name_character(rest_[length])) ++length;
    std::string word(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return word;
  }
  Value defined() {
    skip();
    const bool parenthesis = rest_.starts_with("(");
    if (parenthesis) rest_.remove_prefix(1);
    skip();
    const std::string name = next_word();
    skip();
    if (parenthesis && rest_.starts_with(")")) rest_.remove_prefix(1);
    return macros_.contains(name) ? Value(1) : Value();
  }
  Value expanded(const std::string& word) const {
    const auto found = macros_.find(word);
    if (found == macros_.end()) return {};
    return Condition(found->second, macros_, steps_).value();
  }

  std::string_view rest_;
  const Macros& macros_;
  int own_steps_ = most_steps;
  int& steps_;  ///< that are left
};

/// The branches of one #if, of which each is compiled, is not, or may be.
struct Branches {
  bool outside = true;  ///< whether what contains it is compiled
  bool taken = false;   ///< whether a branch before is compiled in any case
  bool active = true;   ///< whether the present branch may be
  bool sure = true;     ///< whether that is known, of what contains it, too
};

class Lines {
 public:
  CompiledLines read(std::string_view source) {
    std::string joined;
    std::size_t parts = 0;
    while (!source.empty()) {
      const std::string_view line = source.substr(0, source.find('\n'));
      source.remove_prefix(std::min(line.size() + 1, source.size()));
      ++parts;
      joined += line;
      if (joined.ends_with('\\')) {
        joined.back() = ' ';
        continue;
      }
      const bool before = active();
      take(joined);
      result_.active.insert(result_.active.end(), parts, before ? 1 : 0);
      joined.clear();
      parts = 0;
    }
    result_.active.insert(result_.active.end(), parts + 1, 1);
    return std::move(result_);
  }

 private:
  bool active() const { return open_.empty() || open_.back().active; }
  bool sure() const { return open_.empty() || open_.back().sure; }

  void take(const std::string& line) {
    std::size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#') return;
    at = line.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos) return;
    std::size_t end = at;
    while (end < line.size() && is_name_character(line[end])) ++end;
    const std::string word = line.substr(at, end - at);
    std::string rest = line.substr(end);
    if (const auto comment = rest.find("//"); comment != std::string::npos) rest.resize(comment);
    if (word == "if" || word == "ifdef" || word == "ifndef") {
      open_.push_back({active(), false, true, sure()});
      branch(word == "if" ? rest : (word == "ifdef" ? "defined " : "!defined ") + rest);
    } else if ((word == "elif" || word == "else") && !open_.empty()) {
      branch(word == "elif" ? rest : "1");
    } else if (word == "endif" && !open_.empty()) {
      open_.pop_back();
    } else if (word == "define" && active()) {
      define(rest, sure());
    } else if (word == "undef" && active()) {
      known_.erase(rest.substr(std::min(rest.find_first_not_of(" \t"), rest.size())));
    }
  }
  void branch(const std::string& condition) {
    Branches& now = open_.back();
    const auto value = Condition(condition, known_).value();
    now.active = now.outside && !now.taken && value.value_or(1) != 0;
    now.sure = now.sure && value.has_value();
    if (value.value_or(0) != 0) now.taken = true;
  }
  /// `known`: the macro has this value from here on. Otherwise conditions know nothing of it.
  void define(const std::string& text, bool known) {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string::npos) return;
    std::size_t end = begin;
    while (end < text.size() && is_name_character(text[end])) ++end;
    const std::string name = text.substr(begin, end - begin);
    result_.macros[name] = text.substr(end);
    known_.erase(name);
    if (known) known_[name] = text.substr(end);
  }

  CompiledLines result_;
  Macros known_;  ///< those whose value is certain
  std::vector<Branches> open_;
};

}  // namespace

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

CompiledLines compiled_lines(std::string_view source) {
  return Lines().read(source);
}

}  // namespace greta::tuner
