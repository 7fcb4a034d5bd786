#include "tuner/diagnose/changes/change_slots.hpp"

#include <algorithm>
#include <initializer_list>

#include "tuner/diagnose/changes/kernel_text.hpp"

namespace greta::tuner {
namespace {

using SlotKind = ChangeSlot::Kind;

bool is_word_of(std::string_view text, std::initializer_list<std::string_view> others) {
  return std::find(others.begin(), others.end(), text) != others.end();
}

/// Finds the statements of a source's functions.
class Statements {
 public:
  Statements(std::string_view source, std::string_view entry)
      : source_(source), tokens_(used_tokens(source, entry)) {}

  std::vector<ChangeSlot> all() {
    std::size_t head = 0;  // of a function: what is after the definition or member before
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const bool body = text(i) == "{" && i > 0 && is_word_of(text(i - 1), {")", "const"});
      if (is_word_of(text(i), {";", "{", "}"}) && !body) head = i + 1;
      if (!body) continue;
      const bool constant = has(head, i, "constexpr");
      const std::size_t found = found_.size();
      i = std::max(block(i), i + 1) - 1;
      head = i + 1;
      if (constant) found_.resize(found);
    }
    return std::move(found_);
  }

 private:
  std::string_view text(std::size_t i) const {
    return i < tokens_.size() ? tokens_[i].text : std::string_view();
  }
  bool is_name(std::size_t i) const {
    return i < tokens_.size() && tokens_[i].kind == SourceToken::Kind::name;
  }
  bool has(std::size_t from, std::size_t to, std::string_view word) const {
    for (std::size_t i = from; i < to; ++i) {
      if (text(i) == word) return true;
    }
    return false;
  }
  /// Returns the token after the bracket that closes the one at a place.
  std::size_t after_bracket(std::size_t i) const {
    int depth = 0;
    for (; i < tokens_.size(); ++i) {
      if (is_word_of(text(i), {"(", "[", "{"})) ++depth;
      if (is_word_of(text(i), {")", "]", "}"}) && --depth <= 0) return i + 1;
    }
    return i;
  }
  /// Returns the token after template arguments that begin at a "<".
  std::size_t after_angles(std::size_t i) const {
    int depth = 0;
    for (; i < tokens_.size(); ++i) {
      if (is_word_of(text(i), {"(", "[", "{"})) {
        i = after_bracket(i) - 1;
        continue;
      }
      if (text(i) == "<") ++depth;
      if (text(i) == ">") --depth;
      if (text(i) == ">>") depth -= 2;
      if (depth <= 0) return i + 1;
      if (is_word_of(text(i), {";", "{", "}"})) return i;
    }
    return i;
  }
  /// Returns the first token from a place on, outside of brackets, that is one of two.
  std::size_t find(std::size_t i, std::size_t end, std::string_view a, std::string_view b) const {
    while (i < end && text(i) != a && text(i) != b) {
      i = is_word_of(text(i), {"(", "[", "{"}) ? after_bracket(i) : i + 1;
    }
    return std::min(i, end);
  }

  void add(SlotKind kind, std::size_t from, std::size_t to) {
    if (from >= to || to > tokens_.size()) return;
    const std::size_t start = tokens_[from].start, end = tokens_[to - 1].end();
    const std::string_view contents = source_.substr(start, end - start);
    for (std::size_t at = contents.find('\n'); at != std::string_view::npos;
         at = contents.find('\n', at + 1)) {
      const auto next = contents.find_first_not_of(" \t\n", at);
      if (next != std::string_view::npos && contents[next] == '#') return;
    }
    found_.push_back({kind, start, end});
  }
  /// Adds the place after a statement that ends with a token.
  void add_place(std::size_t last) {
    if (last >= tokens_.size() || is_word_of(text(last + 1), {"else", "while"})) return;
    const std::size_t place = tokens_[last].end();
    found_.push_back({SlotKind::insertion, place, place});
  }
  void add_expression(std::size_t from, std::size_t to) {
    if (from < to && text(from) == "{") return add_elements(from);
    if (from < to) add(SlotKind::expression, from, to);
    add_lists(from, to);
    visit_bodies(from, to);
  }
  /// Adds the elements of a list in braces.
  void add_elements(std::size_t from) {
    const std::size_t last = after_bracket(from) - 1;
    for (std::size_t i = from + 1; i < last;) {
      const std::size_t comma = find(i, last, ",", ";");
      add_expression(i, comma);
      i = comma + 1;
    }
  }
  /// Adds the elements of lists that an expression contains, as `Place{row, col}`.
  void add_lists(std::size_t from, std::size_t to) {
    for (std::size_t i = from + 1; i < to; ++i) {
      if (text(i) == "{" && is_name(i - 1) && !is_word_of(text(i - 1), {"const", "mutable"}))
        add_elements(i);
    }
  }
  /// Visits the bodies of functions within an expression.
  void visit_bodies(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      if (text(i) == "{" && i > from && is_word_of(text(i - 1), {")", "mutable"}))
        i = std::max(block(i), i + 1) - 1;
    }
  }
  /// Adds what the variables of a declaration begin with.
  void add_declaration(std::size_t from, std::size_t end) {
    for (std::size_t i = from; i < end;) {
      const std::size_t comma = find(i, end, ",", ";");
      const std::size_t equals = find(i, comma, "=", "=");
      if (equals < comma) {
        add_expression(equals + 1, comma);
      } else {
        const std::size_t list = find(i, comma, "{", "{");
        if (list < comma && is_name(list - 1)) add_elements(list);
        visit_bodies(i, comma);
      }
      i = comma + 1;
    }
  }
  bool is_declaration(std::size_t i, std::size_t end) const {
    if (!is_name(i)) return false;
    while (text(i + 1) == "::") i += 2;
    ++i;
    if (text(i) == "<") {
      const std::size_t after = after_angles(i);
      return is_name(after) || is_word_of(text(after), {"&", "*"});
    }
    if (is_word_of(text(i), {"*", "&"})) {
      const std::size_t next = text(i + 1) == "const" ? i + 2 : i + 1;
      return is_name(next) && next + 1 <= end && is_word_of(text(next + 1), {"=", ";", ",", "["});
    }
    return is_name(i);
  }

  /// Returns the token after a block, whose "{" is at a place.
  std::size_t block(std::size_t i) {
    const std::size_t end = after_bracket(i);
    std::size_t before = end;  // the statement before, if it declares nothing
    for (++i; i + 1 < end;) {
      const std::size_t after = std::max(statement(i, end - 1), i + 1);
      const bool movable = may_move(i, after);
      if (movable && before < i) add(SlotKind::statement, before, after);  // to exchange them
      before = movable ? i : end;
      i = after;
    }
    return end;
  }
  /// Whether tokens are a statement without a declaration that others may use.
  bool may_move(std::size_t i, std::size_t after) const {
    const std::string_view first = text(i);
    if (first == "if") return text(i + 1) != "constexpr" && text(after) != "else";
    if (is_word_of(first, {"{", "for", "while", "do", "switch", "[", "case", "default", ";"}))
      return false;
    const bool macro = is_name(i) && is_constant_name(first);
    return text(after - 1) == ";" && !macro && !is_other(first) && first != "return" &&
           !is_declaration(i, after - 1);
  }
  std::size_t condition(std::size_t i, bool constant) {
    const std::size_t after = after_bracket(i);
    const bool plain = find(i + 1, after - 1, ";", "=") == after - 1;
    if (!constant && plain && after > i + 2) add_expression(i + 1, after - 1);
    return after;
  }
  std::size_t loop(std::size_t i, std::size_t end) {
    const std::size_t after = after_bracket(i + 1);
    const std::size_t first = find(i + 2, after - 1, ";", ";");
    if (first < after - 1) {
      const std::size_t second = find(first + 1, after - 1, ";", ";");
      if (is_declaration(i + 2, first)) {
        add_declaration(i + 2, first);
      } else {
        add_expression(i + 2, first);
      }
      add_expression(first + 1, second);
      if (second < after - 1) add_expression(second + 1, after - 1);
    }
    return statement(after, end);
  }

  static bool is_other(std::string_view first) {
    return is_word_of(first, {"struct", "union", "using", "typedef", "static_assert", "constexpr",
                              "static", "extern", "break", "continue", ";", "__shared__", "enum"});
  }
  /// Adds the slots of a statement, and returns the token after it.
  std::size_t statement(std::size_t i, std::size_t end) {
    while (text(i) == "[" && text(i + 1) == "[") i = after_bracket(i);  // attributes
    while (i < end && is_name(i) && is_constant_name(text(i)) &&
           is_word_of(text(i + 1), {"for", "while", "do"}))
      ++i;  // macros such as those that unroll
    const std::string_view first = text(i);
    if (first == "{") {
      const std::size_t after = block(i);
      add_place(after - 1);
      return after;
    }
    if (first == "if" || first == "switch" || first == "while") {
      const bool constant = text(i + 1) == "constexpr";
      i = statement(condition(i + (constant ? 2 : 1), constant), end);
      return text(i) == "else" && i < end ? statement(i + 1, end) : i;
    }
    if (first == "for") return loop(i, end);
    if (first == "do") {
      i = statement(i + 1, end);
      return text(i) == "while" ? condition(i + 1, false) + 1 : i;
    }
    if (first == "case" || first == "default") return find(i, end, ":", ";") + 1;
    return simple_statement(i, end);
  }
  std::size_t simple_statement(std::size_t i, std::size_t end) {
    const std::string_view first = text(i);
    const std::size_t after = find(i, end, ";", ";");
    if (after >= end) return end;
    const bool other = is_other(first);
    const bool macro = is_name(i) && is_constant_name(first) && text(i + 1) == "(" &&
                       after_bracket(i + 1) == after;
    if (first == "return") {
      add_expression(i + 1, after);
    } else if (is_declaration(i, after)) {
      if (!other) add_declaration(i, after);
    } else if (!other && !macro) {
      add(SlotKind::statement, i, after + 1);
      visit_bodies(i, after);
    }
    add_place(after);
    return after + 1;
  }

  std::string_view source_;
  std::vector<SourceToken> tokens_;
  std::vector<ChangeSlot> found_;
};

}  // namespace

std::vector<ChangeSlot> slots_of(std::string_view source, std::string_view entry) {
  std::vector<ChangeSlot> slots = Statements(source, entry).all();
  for (const auto& macro : used_macros(source, entry))
    slots.push_back({SlotKind::macro, macro.front().start, macro.back().end()});
  return slots;
}

}  // namespace greta::tuner
