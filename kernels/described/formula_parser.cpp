#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "kernels/described/formula.hpp"
#include "kernels/described/names.hpp"

namespace greta::kernels {
namespace {

/// What ends the reading of a formula.
struct BadFormula {
  std::size_t at;
  std::string message;
};

using described::begins_name;
using described::is_digit;
using described::is_in_name;

/// Reads a formula by recursive descent, an operator's precedence a function.
class FormulaParser {
 public:
  using Kind = FormulaTree::Kind;
  using Node = FormulaTree::Node;

  explicit FormulaParser(std::string_view text) : text_(text) { tree_.nodes.clear(); }

  FormulaTree read() {
    if (text().size() > Formula::most_characters) {
      throw BadFormula{Formula::most_characters, fmt::format("a formula has at most {} characters",
                                                             Formula::most_characters)};
    }
    tree_.root = choice();
    skip_spaces();
    if (at_ < text().size()) fail(fmt::format("'{}' is not expected here", rest()));
    return std::move(tree_);
  }

  /// Names that are read, in order of appearance.
  const std::vector<std::string>& names() const { return names_; }

 private:
  using Parse = std::size_t (FormulaParser::*)();

  /// Counts how deep formulas lie in each other.
  struct Deeper {
    explicit Deeper(FormulaParser& parser) : depth(parser.depth_) {
      if (++depth > Formula::most_depth) {
        parser.fail(fmt::format("a formula is at most {} deep", Formula::most_depth));
      }
    }
    ~Deeper() { --depth; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    int& depth;
  };

  const std::string& text() const { return text_; }
  [[noreturn]] void fail(std::string message) const { throw BadFormula{at_, std::move(message)}; }
  std::string rest() const { return text().substr(at_, 12); }

  void skip_spaces() {
    while (at_ < text().size() &&
           (text()[at_] == ' ' || text()[at_] == '\t' || text()[at_] == '\n')) {
      ++at_;
    }
  }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text().size() ? text()[at_ + ahead] : '\0';
  }
  /// Reads one of these operators, each of which begins none that stands after it.
  template <std::size_t count>
  std::optional<std::size_t> accept(const std::array<std::string_view, count>& operators) {
    skip_spaces();
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view one = operators[i];
      if (text().compare(at_, one.size(), one) != 0) continue;
      if (begins_name(one.back()) && is_in_name(peek(one.size()))) continue;
      at_ += one.size();
      return i;
    }
    return std::nullopt;
  }
  bool accept(std::string_view one) { return accept(std::array{one}).has_value(); }
  void expect(std::string_view one) {
    if (!accept(one)) {
      fail(fmt::format("'{}' is expected here{}", one,
                       at_ < text().size() ? fmt::format(", not '{}'", rest()) : ""));
    }
  }

  /// Appends a node and returns it. Callers fill it in place: g++ 12 takes the moved value of a
  /// temporary one for uninitialised.
  Node& append(Kind kind, std::size_t at) {
    if (tree_.nodes.size() == Formula::most_terms) {
      fail(fmt::format("a formula has at most {} operators, names and literals",
                       Formula::most_terms));
    }
    Node& node = tree_.nodes.emplace_back();
    node.kind = kind;
    node.at = at;
    return node;
  }
  std::size_t last() const { return tree_.nodes.size() - 1; }
  std::size_t add(Kind kind, std::size_t at, std::vector<std::size_t> parts) {
    append(kind, at).parts = std::move(parts);
    return last();
  }
  std::size_t add(FormulaValue value, std::size_t at) {
    append(Kind::literal, at).value = std::move(value);
    return last();
  }
  std::size_t add_number(Kind kind, std::size_t at, std::ptrdiff_t number) {
    append(kind, at).number = static_cast<std::size_t>(number);
    return last();
  }

  std::size_t choice() {
    const Deeper deeper(*this);
    const std::size_t yes = either();
    const std::size_t at = at_;
    if (!accept("if")) return yes;
    const std::size_t condition = either();
    expect("else");
    return add(Kind::choice, at, {condition, yes, choice()});
  }
  std::size_t either() {
    std::size_t left = both();
    while (accept(std::array<std::string_view, 2>{"or", "||"}))
      left = add(Kind::either, at_, {left, both()});
    return left;
  }
  std::size_t both() {
    std::size_t left = negation();
    while (accept(std::array<std::string_view, 2>{"and", "&&"})) {
      left = add(Kind::both, at_, {left, negation()});
    }
    return left;
  }
  std::size_t negation() {
    skip_spaces();
    const bool sign = peek() == '!' && peek(1) != '=';
    if (!sign && !accept("not")) return comparison();
    if (sign) ++at_;
    const Deeper deeper(*this);
    const std::size_t at = at_;
    return add(Kind::negation, at, {negation()});
  }

  std::size_t comparison() {
    constexpr std::array<std::string_view, 7> signs{"<=", ">=", "==", "!=", "<", ">", "in"};
    constexpr std::array kinds{Kind::less_equal, Kind::greater_equal, Kind::equal,
                               Kind::not_equal,  Kind::less,          Kind::greater,
                               Kind::contained};
    std::size_t left = sum(), all = left;
    for (bool first = true;; first = false) {
      const std::size_t at = at_;
      Kind kind = Kind::not_contained;
      if (const auto sign = accept(signs)) {
        kind = kinds[*sign];
      } else if (accept("not")) {
        expect("in");
      } else {
        return all;
      }
      const std::size_t right = sum(), one = add(kind, at, {left, right});
      all = first ? one : add(Kind::both, at, {all, one});
      left = right;
    }
  }

  template <std::size_t count>
  std::size_t chain(const std::array<std::string_view, count>& signs,
                    const std::array<Kind, count>& kinds, Parse operand) {
    std::size_t left = (this->*operand)();
    while (true) {
      skip_spaces();
      const std::size_t at = at_;
      const auto sign = accept(signs);
      if (!sign) return left;
      left = add(kinds[*sign], at, {left, (this->*operand)()});
    }
  }
  std::size_t sum() {
    return chain<2>({"+", "-"}, {Kind::sum, Kind::difference}, &FormulaParser::product);
  }
  std::size_t product() {
    skip_spaces();
    return chain<4>({"//", "*", "/", "%"},
                    {Kind::floor_quotient, Kind::product, Kind::quotient, Kind::remainder},
                    &FormulaParser::sign);
  }
  std::size_t sign() {
    skip_spaces();
    const std::size_t at = at_;
    if (peek() != '-' && peek() != '+') return power();
    const Deeper deeper(*this);
    const Kind kind = peek() == '-' ? Kind::minus : Kind::plus;
    ++at_;
    return add(kind, at, {sign()});
  }
  std::size_t power() {
    const std::size_t base = subscripted();
    skip_spaces();
    const std::size_t at = at_;
    if (!accept("**")) return base;
    const Deeper deeper(*this);
    return add(Kind::power, at, {base, sign()});
  }

  std::size_t subscripted() {
    std::size_t value = primary();
    while (true) {
      skip_spaces();
      const std::size_t at = at_;
      if (!accept("[")) return value;
      const Deeper deeper(*this);
      value = add(Kind::item, at, {value, choice()});
      expect("]");
    }
  }

  std::size_t primary() {
    skip_spaces();
    const char c = peek();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (c == '\'' || c == '"') return word();
    if (c == '[') return list(']');
    if (c == '(') return list(')');
    if (begins_name(c)) return name();
    fail(c == '\0' ? "the formula ends here" : fmt::format("'{}' is not expected here", rest()));
  }

  std::size_t number() {
    const std::size_t at = at_;
    const char *const first = text().data() + at, *const end = text().data() + text().size();
    std::int64_t integer = 0;
    double real = 0;
    const auto whole = std::from_chars(first, end, integer);
    const auto both = std::from_chars(first, end, real);
    const bool is_real = both.ptr > whole.ptr;
    if ((is_real ? both.ec : whole.ec) != std::errc{}) fail("the number is out of range");
    at_ += static_cast<std::size_t>((is_real ? both.ptr : whole.ptr) - first);
    if (is_in_name(peek())) fail("a number ends before this");
    return is_real ? add({real}, at) : add({integer}, at);
  }

  std::size_t word() {
    const std::size_t at = at_;
    const std::size_t end = text().find(peek(), at + 1);
    if (end == std::string::npos) fail("the word has no end");
    std::string letters = text().substr(at + 1, end - at - 1);
    if (letters.find('\\') != std::string::npos) fail("words have no escapes");
    at_ = end + 1;
    return add({std::move(letters)}, at);
  }

  /// A list, a comprehension, or what parentheses are around.
  std::size_t list(char closing) {
    const Deeper deeper(*this);
    const std::string_view end = closing == ']' ? "]" : ")";
    const std::size_t at = at_++;
    if (accept(end)) return add(Kind::list, at, {});
    const std::size_t inside = at_;
    if (closing == ']') {
      if (const auto all = comprehension(at)) return *all;
      at_ = inside;
    }
    std::vector<std::size_t> parts{choice()};
    bool comma = false;
    while (accept(",")) {
      comma = true;
      if (accept(end)) return add(Kind::list, at, parts);
      parts.push_back(choice());
    }
    expect(end);
    return closing == ')' && !comma ? parts.front() : add(Kind::list, at, parts);
  }

  /// Its name stands behind the formula of its elements: finds it first. Returns nothing for lists.
  std::optional<std::size_t> comprehension(std::size_t at) {
    const auto place = for_of_list();
    if (!place) return std::nullopt;
    const std::size_t begin = at_;
    at_ = *place + 3;
    skip_spaces();
    const std::string element = read_name();
    expect("in");
    if (!scope_.empty()) fail("a comprehension does not lie within another");
    const std::size_t from = either();
    scope_.push_back(element);
    std::vector<std::size_t> parts{0, from};
    if (accept("if")) parts.push_back(either());
    expect("]");
    const std::size_t end = at_;
    at_ = begin;
    parts.front() = choice();
    skip_spaces();
    if (at_ != *place) fail("'for' is expected here");
    at_ = end;
    scope_.pop_back();
    return add(Kind::comprehension, at, parts);
  }

  /// Returns the place of `for` in the list whose first element begins here.
  std::optional<std::size_t> for_of_list() const {
    int depth = 0;
    for (std::size_t i = at_; i < text().size(); ++i) {
      const char c = text()[i];
      if (c == '\'' || c == '"') {
        i = text().find(c, i + 1);
        if (i == std::string::npos) return std::nullopt;
        continue;
      }
      if (c == '[' || c == '(') ++depth;
      if ((c == ']' || c == ')') && depth-- == 0) return std::nullopt;
      if (depth > 0 || text().compare(i, 4, "for ") != 0) continue;
      if (i > 0 && is_in_name(text()[i - 1])) continue;
      return i;
    }
    return std::nullopt;
  }

  std::string read_name() {
    const std::size_t at = at_;
    if (!begins_name(peek())) fail("a name is expected here");
    while (is_in_name(peek())) ++at_;
    std::string name = text().substr(at, at_ - at);
    constexpr std::array<std::string_view, 9> words{"and", "else", "for", "if",    "in",
                                                    "not", "or",   "is",  "lambda"};
    if (std::find(words.begin(), words.end(), name) != words.end()) {
      at_ = at;
      fail(fmt::format("'{}' is not expected here", name));
    }
    return name;
  }

  std::size_t name() {
    const std::size_t at = at_;
    const std::string name = read_name();
    skip_spaces();
    if (peek() == '(') return call(name, at);
    if (name == "True" || name == "true") return add({true}, at);
    if (name == "False" || name == "false") return add({false}, at);
    const auto element = std::find(scope_.begin(), scope_.end(), name);
    if (element != scope_.end()) return add_number(Kind::element, at, element - scope_.begin());
    const auto number = std::find(names_.begin(), names_.end(), name) - names_.begin();
    if (number == std::ssize(names_)) names_.push_back(name);
    return add_number(Kind::name, at, number);
  }

  std::size_t call(const std::string& name, std::size_t at) {
    struct Function {
      std::string_view name;
      Kind kind;
      std::size_t least, most;  // operands
    };
    constexpr std::size_t any = 64;
    constexpr std::array functions{
        Function{"abs", Kind::absolute, 1, 1},   Function{"ceil_div", Kind::rounded_up, 2, 2},
        Function{"float", Kind::real, 1, 1},     Function{"int", Kind::integer, 1, 1},
        Function{"len", Kind::length, 1, 1},     Function{"list", Kind::elements, 1, 1},
        Function{"max", Kind::greatest, 1, any}, Function{"min", Kind::least, 1, any},
        Function{"range", Kind::range, 1, 3},
    };
    const auto found = std::find_if(functions.begin(), functions.end(),
                                    [&](const Function& f) { return f.name == name; });
    if (found == functions.end()) {
      at_ = at;
      fail(
          fmt::format("there is no function {}; these exist: abs, ceil_div, float, int, len, list, "
                      "max, min, range",
                      name));
    }
    const Deeper deeper(*this);
    expect("(");
    std::vector<std::size_t> parts;
    while (!accept(")")) {
      if (!parts.empty()) expect(",");
      parts.push_back(choice());
    }
    if (parts.size() < found->least || parts.size() > found->most) {
      at_ = at;
      fail(fmt::format("{} takes {} operand{}, not {}", name,
                       found->least == found->most
                           ? fmt::format("{}", found->least)
                           : fmt::format("{} to {}", found->least, found->most),
                       found->most == 1 ? "" : "s", parts.size()));
    }
    return add(found->kind, at, std::move(parts));
  }

  std::string text_;
  std::vector<std::string> names_;
  FormulaTree tree_;
  std::vector<std::string> scope_;  // names of elements of the comprehensions around
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<Formula> Formula::parse(std::string_view text) {
  try {
    FormulaParser parser(text);
    Formula formula;
    formula.tree_ = parser.read();
    formula.text_ = text;
    formula.names_ = parser.names();
    return formula;
  } catch (const BadFormula& bad) {
    return invalid_argument(fmt::format("column {}: {}", bad.at + 1, bad.message));
  }
}

Formula Formula::constant(FormulaValue value) {
  Formula formula;
  formula.text_ = value.text();
  formula.tree_.nodes.front().value = std::move(value);
  return formula;
}

}  // namespace greta::kernels
